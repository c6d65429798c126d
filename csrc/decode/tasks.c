/*
 * Counting the records of each task.
 *
 * The twin is src/tracepoint/decode/rows.py: count_tasks_slowly().
 */
#include "columns.h"
#include "head.h"
#include "ids.h"
#include "../hints.h"

/* How many records of each task: by the numbers of their ids. */
struct tasks {
	const struct tp_layout *layout;
	const unsigned char *base;
	struct tp_ids pids;
	uint64_t *counts, room;
	unsigned int pid_at;
	bool has_failed;
};

static tp_always_inline void count_task(void *to, uint64_t stamp, uint32_t at_record, uint32_t size)
{
	struct tasks *tasks = to;
	uint64_t n = tasks->pids.n;
	uint32_t pid, at;

	(void)stamp;
	if (size < tasks->pid_at + sizeof(pid))
		return;
	pid = (uint32_t)tp_number(tasks->base + at_record + tasks->pid_at, sizeof(pid), tasks->layout->is_big);
	at = tp_ids_add(&tasks->pids, pid);
	if (tp_unlikely(at == n)) {
		if (!tp_grow(&tasks->counts, &tasks->room, n + 1, sizeof(*tasks->counts))) {
			tasks->has_failed = true;
			return;
		}
		tasks->counts[at] = 0;
	}
	if (tp_unlikely(at == TP_NO_INDEX || at >= tasks->room))
		tasks->has_failed = true;
	else
		tasks->counts[at]++;
}

static bool count_all(const unsigned char *data, uint64_t size, struct tasks *tasks)
{
	uint64_t page_size = tp_page_size(tasks->layout);

	if (!tp_ids_init(&tasks->pids))
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

	for (uint64_t i = 0; dict && i < tasks->pids.n; i++) {
		PyObject *pid = PyLong_FromLong((int32_t)(uint32_t)tasks->pids.keys[i]);
		PyObject *n = PyLong_FromUnsignedLongLong(tasks->counts[i]);

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
	tp_ids_deinit(&tasks.pids);
	free(tasks.counts);
	PyBuffer_Release(&data);
	return made;
}
