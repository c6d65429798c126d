/*
 * The records of a CPU: how many, the first time, and the last before each of some times.
 *
 * The twin is find_times_slowly() in src/tracepoint/analysis/coverage.py.
 */
#include "columns.h"
#include "ids.h"

/* The times that are asked for of a CPU, in order, and what is found before each; INT64_MIN: nothing. */
struct wanted {
	Py_buffer stops;
	uint64_t n, n_rows;
	int64_t first, *found;
	PyObject *made;
};

static uint64_t first_after(const struct wanted *wanted, int64_t stamp)
{
	uint64_t low = 0, high = wanted->n;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		int64_t stop;

		memcpy(&stop, (const unsigned char *)wanted->stops.buf + 8 * middle, sizeof(stop));
		if (stop > stamp)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void find(const Py_buffer *stamps, const Py_buffer *cpus, const struct tp_ids *ids, struct wanted *wanted)
{
	uint64_t n_rows = (uint64_t)stamps->len / 8;

	if ((uint64_t)cpus->len / 4 < n_rows)
		n_rows = (uint64_t)cpus->len / 4;
	for (uint64_t row = 0; row < n_rows; row++) {
		uint32_t cpu, at;
		uint64_t place;
		int64_t stamp;

		memcpy(&cpu, (const unsigned char *)cpus->buf + 4 * row, sizeof(cpu));
		memcpy(&stamp, (const unsigned char *)stamps->buf + 8 * row, sizeof(stamp));
		at = tp_ids_find(ids, cpu);
		if (at == TP_NO_INDEX)
			continue;
		wanted[at].n_rows++;
		if (stamp < wanted[at].first)
			wanted[at].first = stamp;
		place = first_after(&wanted[at], stamp);
		if (place < wanted[at].n && stamp > wanted[at].found[place])
			wanted[at].found[place] = stamp;
	}
	for (uint64_t n = 0; n < ids->n; n++)
		for (uint64_t i = 1; i < wanted[n].n; i++)
			if (wanted[n].found[i - 1] > wanted[n].found[i])
				wanted[n].found[i] = wanted[n].found[i - 1];
}

static bool take_wanted(PyObject *module, PyObject *given, struct tp_ids *ids, struct wanted *wanted)
{
	struct tp_block *block;
	uint64_t n = ids->n;
	int cpu;

	if (!PyArg_ParseTuple(given, "iy*", &cpu, &wanted->stops))
		return false;
	wanted->n = (uint64_t)wanted->stops.len / 8;
	block = tp_block_create(8 * wanted->n);
	if (!block || tp_ids_add(ids, (uint32_t)cpu) != n) {
		tp_block_put(block);
		PyErr_SetString(PyExc_ValueError, "a CPU is there twice");
		return false;
	}
	wanted->first = INT64_MAX;
	wanted->found = (int64_t *)(void *)block->bytes;
	for (uint64_t i = 0; i < wanted->n; i++)
		wanted->found[i] = INT64_MIN;
	wanted->made = tp_buffer_of(module, block);
	return wanted->made != NULL;
}

PyObject *tp_times_before(PyObject *module, PyObject *args)
{
	PyObject *given, *made = NULL;
	struct wanted *wanted = NULL;
	Py_buffer stamps, cpus;
	struct tp_ids ids;
	Py_ssize_t n;

	if (!PyArg_ParseTuple(args, "y*y*O!:times_before", &stamps, &cpus, &PyTuple_Type, &given))
		return NULL;
	n = PyTuple_GET_SIZE(given);
	wanted = calloc((size_t)n + 1, sizeof(*wanted));
	if (!tp_ids_init(&ids) || !wanted) {
		PyErr_NoMemory();
		goto out;
	}
	for (Py_ssize_t i = 0; i < n; i++)
		if (!PyTuple_Check(PyTuple_GET_ITEM(given, i)) ||
		    !take_wanted(module, PyTuple_GET_ITEM(given, i), &ids, &wanted[i])) {
			if (!PyErr_Occurred())
				PyErr_SetString(PyExc_TypeError, "not a CPU and times");
			goto out;
		}
	Py_BEGIN_ALLOW_THREADS
	find(&stamps, &cpus, &ids, wanted);
	Py_END_ALLOW_THREADS
	made = PyTuple_New(n);
	for (Py_ssize_t i = 0; made && i < n; i++) {
		PyObject *one = Py_BuildValue("(KLO)", (unsigned long long)wanted[i].n_rows,
					      (long long)wanted[i].first, wanted[i].made);

		if (!one)
			Py_CLEAR(made);
		else
			PyTuple_SET_ITEM(made, i, one);
	}
out:
	for (Py_ssize_t i = 0; wanted && i < n; i++) {
		PyBuffer_Release(&wanted[i].stops);
		Py_XDECREF(wanted[i].made);
	}
	free(wanted);
	tp_ids_deinit(&ids);
	PyBuffer_Release(&stamps);
	PyBuffer_Release(&cpus);
	return made;
}
