/*
 * Counting the records of each task.
 *
 * The twin is src/tracepoint/decode/rows.py: count_tasks_slowly().
 */
#include "columns.h"
#include "head.h"
#include "../hints.h"

/* How many records of each task: places of a hash table, free where `n` is 0. */
struct tasks {
	const struct tp_layout *layout;
	const unsigned char *base;
	struct task {
		uint64_t n;
		int32_t pid;
	} *places;
	uint64_t n, n_places;
	unsigned int pid_at;
	bool has_failed;
};

enum { FIRST_PLACES = 256 };

static struct task *place_of(const struct tasks *tasks, int32_t pid)
{
	uint64_t at = (uint32_t)pid * 0x9E3779B97F4A7C15ull >> 32;

	for (;; at++) {
		struct task *place = &tasks->places[at & (tasks->n_places - 1)];

		if (!place->n || place->pid == pid)
			return place;
	}
}

static bool make_places(struct tasks *tasks, uint64_t n_places)
{
	struct tasks fresh = *tasks;

	fresh.places = calloc(n_places, sizeof(*fresh.places));
	if (!fresh.places)
		return false;
	fresh.n_places = n_places;
	for (uint64_t i = 0; i < tasks->n_places; i++)
		if (tasks->places[i].n)
			*place_of(&fresh, tasks->places[i].pid) = tasks->places[i];
	free(tasks->places);
	*tasks = fresh;
	return true;
}

static tp_always_inline void count_task(void *to, uint64_t stamp, uint32_t at, uint32_t size)
{
	struct tasks *tasks = to;
	struct task *place;
	int32_t pid;

	(void)stamp;
	if (size < tasks->pid_at + sizeof(pid))
		return;
	pid = (int32_t)tp_number(tasks->base + at + tasks->pid_at, sizeof(pid), tasks->layout->is_big);
	place = place_of(tasks, pid);
	if (tp_unlikely(!place->n)) {
		if (2 * ++tasks->n > tasks->n_places) {
			if (!make_places(tasks, 2 * tasks->n_places)) {
				tasks->n--;
				tasks->has_failed = true;
				return;
			}
			place = place_of(tasks, pid);
		}
		place->pid = pid;
	}
	place->n++;
}

static bool count_all(const unsigned char *data, uint64_t size, struct tasks *tasks)
{
	uint64_t page_size = tp_page_size(tasks->layout);

	if (!make_places(tasks, FIRST_PLACES))
		return false;
	for (uint64_t at = 0; size - at >= page_size; at += page_size) {
		struct tp_head head;

		tp_read_head(data, at, tasks->layout, &head);
		tasks->base = data + at + tasks->layout->data_offset;
		tp_walk(data, at, tasks->layout, &head, count_task, tp_pass_mark, tasks);
	}
	return !tasks->has_failed;
}

static PyObject *tasks_dict(const struct tasks *tasks)
{
	PyObject *dict = PyDict_New();

	for (uint64_t i = 0; dict && i < tasks->n_places; i++) {
		PyObject *pid, *n;

		if (!tasks->places[i].n)
			continue;
		pid = PyLong_FromLong(tasks->places[i].pid);
		n = PyLong_FromUnsignedLongLong(tasks->places[i].n);
		if (!pid || !n || PyDict_SetItem(dict, pid, n))
			Py_CLEAR(dict);
		Py_XDECREF(pid);
		Py_XDECREF(n);
	}
	return dict;
}

PyObject *tp_count_tasks(PyObject *module, PyObject *args)
{
	struct tasks tasks = { 0 };
	struct tp_layout layout;
	PyObject *made = NULL;
	Py_buffer data;
	bool is_done;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*(IIIIp)I:count_tasks", &data, &layout.data_offset, &layout.data_size,
			      &layout.commit_offset, &layout.long_size, &layout.is_big, &tasks.pid_at))
		return NULL;
	if (tasks.pid_at > UINT16_MAX) {
		PyErr_SetString(PyExc_ValueError, "not an offset in a record");
	} else if (tp_check_layout(&layout)) {
		tasks.layout = &layout;
		Py_BEGIN_ALLOW_THREADS
		is_done = count_all(data.buf, (uint64_t)data.len, &tasks);
		Py_END_ALLOW_THREADS
		made = is_done ? tasks_dict(&tasks) : PyErr_NoMemory();
	}
	free(tasks.places);
	PyBuffer_Release(&data);
	return made;
}
