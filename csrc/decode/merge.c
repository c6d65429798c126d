/*
 * Putting the records of several CPUs in the order of time.
 *
 * The twin is src/tracepoint/decode/rows.py.
 */
#include "collect.h"

#define ROWS "tracepoint.rows"

/* Records whose time does not go back; `next` is the run that goes on after them, 0 for none. */
struct run {
	const struct tp_record *at, *end;
	uint64_t next;
};

struct runs {
	struct run *all;
	uint64_t n, room, n_records;
	uint64_t *heads, n_heads, head_room; /* those that no other goes on with */
};

/* A run that follows another, and does not go back in time, goes on with it: so those of a CPU are mostly one. */
static bool start_run(struct runs *runs, const struct tp_record *at)
{
	struct run *before = runs->n ? &runs->all[runs->n - 1] : NULL;

	if (before && before->end[-1].stamp <= at->stamp) {
		before->next = runs->n;
	} else {
		if (!tp_grow(&runs->heads, &runs->head_room, runs->n_heads + 1, sizeof(*runs->heads)))
			return false;
		runs->heads[runs->n_heads++] = runs->n;
	}
	if (!tp_grow(&runs->all, &runs->room, runs->n + 1, sizeof(*runs->all)))
		return false;
	runs->all[runs->n++] = (struct run){ at, at + 1, 0 };
	return true;
}

static bool add_runs(struct runs *runs, struct tp_piece *piece)
{
	const struct tp_record *records = tp_records_of(piece);
	uint64_t n = tp_n_records(piece);

	for (uint64_t i = 0; i < n; i++) {
		if ((!i || records[i].stamp < records[i - 1].stamp) && !start_run(runs, &records[i]))
			return false;
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

static void merge(struct runs *runs, struct tp_record *to)
{
	uint64_t n = runs->n_heads, *heap = runs->heads;

	for (uint64_t i = n / 2; i-- > 0;)
		sift(runs->all, heap, n, i);
	while (n) {
		struct run *run = &runs->all[heap[0]];

		*to++ = *run->at++;
		if (run->at == run->end) {
			if (run->next)
				*run = runs->all[run->next];
			else
				heap[0] = heap[--n];
		}
		sift(runs->all, heap, n, 0);
	}
}

static void rows_free(PyObject *capsule)
{
	struct tp_rows *rows = PyCapsule_GetPointer(capsule, ROWS);

	tp_block_put(rows->block);
	for (uint64_t n = 0; n < rows->n_taken; n++)
		tp_empty_slot(&rows->taken[n]);
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
		for (struct tp_piece *piece = rows->taken[n].first; is_done && piece; piece = piece->next)
			is_done = add_runs(&runs, piece);
	rows->n = runs.n_records;
	rows->block = is_done ? tp_block_map(rows->n * sizeof(*rows->records)) : NULL;
	if (rows->block) {
		rows->records = (struct tp_record *)(void *)rows->block->bytes;
		merge(&runs, rows->records);
	}
	free(runs.all);
	free(runs.heads);
	for (uint64_t n = 0; n < rows->n_taken; n++) {
		tp_free_pieces(rows->taken[n].first);
		rows->taken[n].first = rows->taken[n].last = NULL;
	}
	return rows->records;
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
		Py_DECREF(made);
		return NULL;
	}
	return Py_BuildValue("(NK)", made, (unsigned long long)rows->n);
}
