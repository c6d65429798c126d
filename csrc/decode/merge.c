/*
 * Putting the records of several CPUs in the order of time.
 *
 * The twin is src/tracepoint/decode/rows.py.
 */
#include "collect.h"

#define ROWS "tracepoint.rows"

/* Records whose time does not go back; runs are taken in turn. */
struct run {
	const struct tp_record *at, *end;
};

struct runs {
	struct run *all;
	uint64_t n, room, n_records;
};

static bool add_runs(struct runs *runs, const struct tp_record *records, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (!i || records[i].stamp < records[i - 1].stamp) {
			if (!tp_grow(&runs->all, &runs->room, runs->n + 1, sizeof(*runs->all)))
				return false;
			runs->all[runs->n++] = (struct run){ &records[i], NULL };
		}
		runs->all[runs->n - 1].end = &records[i + 1];
	}
	runs->n_records += n;
	return true;
}

/* Whether run `a` comes first; of equal times the one of the lower CPU, which was added before. */
static bool is_before(const struct run *all, uint64_t a, uint64_t b)
{
	int64_t first = all[a].at->stamp, second = all[b].at->stamp;

	return first < second || (first == second && a < b);
}

static void sift(const struct run *all, uint64_t *heap, uint64_t n, uint64_t at)
{
	for (uint64_t child; (child = 2 * at + 1) < n; at = child) {
		uint64_t held = heap[at];

		if (child + 1 < n && is_before(all, heap[child + 1], heap[child]))
			child++;
		if (!is_before(all, heap[child], held))
			return;
		heap[at] = heap[child];
		heap[child] = held;
	}
}

static bool merge(struct runs *runs, struct tp_record *to)
{
	uint64_t n = runs->n, *heap = malloc((n + 1) * sizeof(*heap));

	if (!heap)
		return false;
	for (uint64_t i = 0; i < n; i++)
		heap[i] = i;
	for (uint64_t i = n / 2; i-- > 0;)
		sift(runs->all, heap, n, i);
	while (n) {
		struct run *run = &runs->all[heap[0]];

		*to++ = *run->at++;
		if (run->at == run->end)
			heap[0] = heap[--n];
		sift(runs->all, heap, n, 0);
	}
	free(heap);
	return true;
}

static void rows_free(PyObject *capsule)
{
	struct tp_rows *rows = PyCapsule_GetPointer(capsule, ROWS);

	free(rows->records);
	for (uint64_t n = 0; n < rows->n_taken; n++)
		tp_free_arenas(&rows->taken[n]);
	free(rows->taken);
	free(rows);
}

struct tp_rows *tp_rows_of(PyObject *capsule)
{
	return PyCapsule_GetPointer(capsule, ROWS);
}

/* Merge what was taken out of the collectors, so that no other thread finds it there. */
static bool merge_slots(struct tp_rows *rows)
{
	struct runs runs = { 0 };
	bool is_done = true;

	for (uint64_t n = 0; is_done && n < rows->n_taken; n++)
		is_done = add_runs(&runs, rows->taken[n].records, rows->taken[n].n);
	rows->n = runs.n_records;
	rows->records = is_done ? malloc((rows->n + 1) * sizeof(*rows->records)) : NULL;
	if (rows->records)
		tp_ask_huge(rows->records, rows->n * sizeof(*rows->records));
	is_done = rows->records && merge(&runs, rows->records);
	free(runs.all);
	for (uint64_t n = 0; n < rows->n_taken; n++) {
		free(rows->taken[n].records);
		rows->taken[n].records = NULL;
	}
	return is_done;
}

static bool take_slots(PyObject *sources, unsigned int number, struct tp_rows *rows)
{
	for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(sources); n++) {
		struct tp_slot *slot = tp_slot_of(PyTuple_GET_ITEM(sources, n), number);

		if (!slot)
			return false;
		rows->taken[rows->n_taken++] = *slot;
		*slot = (struct tp_slot){ 0 };
	}
	return true;
}

PyObject *tp_merge_rows(PyObject *module, PyObject *args)
{
	PyObject *sources, *made;
	struct tp_rows *rows;
	unsigned int number;
	bool is_done;

	(void)module;
	if (!PyArg_ParseTuple(args, "O!I:merge_rows", &PyTuple_Type, &sources, &number))
		return NULL;
	rows = calloc(1, sizeof(*rows));
	made = rows ? PyCapsule_New(rows, ROWS, rows_free) : PyErr_NoMemory();
	if (!made) {
		free(rows);
		return NULL;
	}
	rows->taken = calloc((size_t)PyTuple_GET_SIZE(sources) + 1, sizeof(*rows->taken));
	if (!rows->taken) {
		PyErr_NoMemory();
	} else if (take_slots(sources, number, rows)) {
		Py_BEGIN_ALLOW_THREADS
		is_done = merge_slots(rows);
		Py_END_ALLOW_THREADS
		if (!is_done)
			PyErr_NoMemory();
	}
	if (PyErr_Occurred()) {
		for (uint64_t n = 0; n < rows->n_taken; n++) {
			free(rows->taken[n].records);
			rows->taken[n].records = NULL;
		}
		Py_DECREF(made);
		return NULL;
	}
	return Py_BuildValue("(NK)", made, (unsigned long long)rows->n);
}
