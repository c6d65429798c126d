/*
 * Putting the records of several CPUs in the order of time.
 *
 * The twin is src/tracepoint/decode/rows.py.
 */
#include "merge.h"

#define ROWS "tracepoint.rows"

enum { CACHE_LINE = 64 };

/* A run that follows another, and does not go back in time, goes on with it: so those of a CPU are mostly one. */
static bool start_run(struct tp_rows *rows, const struct tp_record *at)
{
	const struct tp_run *last = rows->n_runs ? &rows->runs[rows->n_runs - 1] : NULL;
	uint64_t before = 0;

	if (last && last->end[-1].stamp <= at->stamp) {
		before = last->before + (uint64_t)(last->end - last->at);
	} else {
		if (!tp_grow(&rows->firsts, &rows->first_room, rows->n_sequences + 2, sizeof(*rows->firsts)))
			return false;
		rows->firsts[rows->n_sequences++] = rows->n_runs;
	}
	if (!tp_grow(&rows->runs, &rows->run_room, rows->n_runs + 1, sizeof(*rows->runs)))
		return false;
	rows->runs[rows->n_runs++] = (struct tp_run){ at, at + 1, before };
	rows->firsts[rows->n_sequences] = rows->n_runs;
	return true;
}

static bool add_runs(struct tp_rows *rows, struct tp_piece *piece)
{
	const struct tp_record *records = tp_records_of(piece);
	uint64_t n = tp_n_records(piece);

	if (n && !start_run(rows, records))
		return false;
	for (uint64_t i = 1; piece->may_go_back && i < n; i++) {
		if (records[i].stamp >= records[i - 1].stamp)
			continue;
		rows->runs[rows->n_runs - 1].end = &records[i];
		if (!start_run(rows, &records[i]))
			return false;
	}
	if (n)
		rows->runs[rows->n_runs - 1].end = records + n;
	rows->n += n;
	return true;
}

/* How many records of a sequence are before a time, or with `is_after` not after it. */
static uint64_t count_before(const struct tp_rows *rows, uint64_t sequence, int64_t stamp, bool is_after)
{
	uint64_t low = rows->firsts[sequence], high = rows->firsts[sequence + 1];
	const struct tp_record *first, *last;
	const struct tp_run *run;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;
		int64_t found = rows->runs[middle].at->stamp;

		if (found < stamp || (is_after && found == stamp))
			low = middle;
		else
			high = middle;
	}
	run = &rows->runs[low];
	for (first = run->at, last = run->end; first < last;) {
		const struct tp_record *middle = first + (last - first) / 2;

		if (middle->stamp < stamp || (is_after && middle->stamp == stamp))
			first = middle + 1;
		else
			last = middle;
	}
	return run->before + (uint64_t)(first - run->at);
}

static uint64_t count_all_before(const struct tp_rows *rows, int64_t stamp, bool is_after)
{
	uint64_t n = 0;

	for (uint64_t sequence = 0; sequence < rows->n_sequences; sequence++)
		n += count_before(rows, sequence, stamp, is_after);
	return n;
}

/* Return the earliest time at which `rank` records, more than none, are not after it. */
static int64_t time_of(const struct tp_rows *rows, uint64_t rank)
{
	int64_t low = INT64_MAX, high = INT64_MIN;

	for (uint64_t n = 0; n < rows->n_runs; n++) {
		low = rows->runs[n].at->stamp < low ? rows->runs[n].at->stamp : low;
		high = rows->runs[n].end[-1].stamp > high ? rows->runs[n].end[-1].stamp : high;
	}
	while (low < high) {
		int64_t middle = (int64_t)((uint64_t)low + ((uint64_t)high - (uint64_t)low) / 2);

		if (count_all_before(rows, middle, true) >= rank)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static struct tp_cursor cursor_at(const struct tp_rows *rows, uint64_t sequence, uint64_t place)
{
	uint64_t run = rows->firsts[sequence], last = rows->firsts[sequence + 1];

	while (run + 1 < last && rows->runs[run + 1].before <= place)
		run++;
	return (struct tp_cursor){ rows->runs[run].at + (place - rows->runs[run].before), rows->runs[run].end, run,
				   last };
}

/* Whether sequence `a` comes first; of equal times the one of the lower CPU, which was added before. */
static inline bool is_before(const struct tp_cursor *cursors, uint64_t a, uint64_t b)
{
	int64_t first = cursors[a].at->stamp, second = cursors[b].at->stamp;

	return first < second || (first == second && a < b);
}

static inline void sift(const struct tp_cursor *cursors, uint64_t *heap, uint64_t n, uint64_t at)
{
	for (uint64_t child; (child = 2 * at + 1) < n; at = child) {
		uint64_t held = heap[at];

		if (child + 1 < n && is_before(cursors, heap[child + 1], heap[child]))
			child++;
		if (!is_before(cursors, heap[child], held))
			return;
		heap[at] = heap[child];
		heap[child] = held;
	}
}

void tp_merge_from(struct tp_merger *merger, const struct tp_rows *rows, uint64_t rank, struct tp_cursor *cursors,
		   uint64_t *heap)
{
	int64_t stamp = rank ? time_of(rows, rank) : INT64_MIN;
	uint64_t left = rank - (rank ? count_all_before(rows, stamp, false) : 0);

	*merger = (struct tp_merger){ .rows = rows, .cursors = cursors, .heap = heap };
	for (uint64_t n = 0; n < rows->n_sequences; n++) {
		uint64_t place = rank ? count_before(rows, n, stamp, false) : 0;
		uint64_t equal = rank ? count_before(rows, n, stamp, true) - place : 0;

		/* Of equal times those of the first sequences come first. */
		equal = equal < left ? equal : left;
		left -= equal;
		cursors[n] = cursor_at(rows, n, place + equal);
		if (cursors[n].at < cursors[n].end)
			heap[merger->n++] = n;
	}
	for (uint64_t i = merger->n / 2; i-- > 0;)
		sift(cursors, heap, merger->n, i);
}

void tp_merge(struct tp_merger *merger, struct tp_record *to, uint64_t n)
{
	struct tp_cursor *cursors = merger->cursors;
	uint64_t *heap = merger->heap;

	for (const struct tp_record *end = to + n; to < end; to++) {
		struct tp_cursor *cursor = &cursors[heap[0]];

		*to = *cursor->at++;
		/* The bytes that are copied next come from other places of other CPUs. */
		__builtin_prefetch(to->data);
		__builtin_prefetch((const void *)((uintptr_t)to->data + CACHE_LINE));
		if (cursor->at == cursor->end) {
			if (++cursor->run < cursor->last) {
				cursor->at = merger->rows->runs[cursor->run].at;
				cursor->end = merger->rows->runs[cursor->run].end;
			} else {
				heap[0] = heap[--merger->n];
			}
		}
		sift(cursors, heap, merger->n, 0);
	}
}

static void rows_free(PyObject *capsule)
{
	struct tp_rows *rows = PyCapsule_GetPointer(capsule, ROWS);

	tp_block_put(rows->block);
	for (uint64_t n = 0; n < rows->n_taken; n++)
		tp_empty_slot(&rows->taken[n]);
	free(rows->taken);
	free(rows->runs);
	free(rows->firsts);
	free(rows);
}

struct tp_rows *tp_rows_of(PyObject *capsule)
{
	return PyCapsule_GetPointer(capsule, ROWS);
}

/* Merge all records at once: to find a place among so many sequences takes longer. */
static bool merge_all(struct tp_rows *rows)
{
	struct tp_cursor *cursors = malloc(rows->n_sequences * sizeof(*cursors));
	uint64_t *heap = malloc(rows->n_sequences * sizeof(*heap));
	struct tp_merger merger;

	rows->block = cursors && heap ? tp_block_map(rows->n * sizeof(*rows->records)) : NULL;
	if (rows->block) {
		rows->records = (struct tp_record *)(void *)rows->block->bytes;
		tp_merge_from(&merger, rows, 0, cursors, heap);
		tp_merge(&merger, rows->records, rows->n);
	}
	free(cursors);
	free(heap);
	return rows->records;
}

/* Find the runs of what was taken out of the collectors, so that no other thread finds it there. */
static bool find_runs(struct tp_rows *rows)
{
	for (uint64_t n = 0; n < rows->n_taken; n++)
		for (struct tp_piece *piece = rows->taken[n].first; piece; piece = piece->next)
			if (!add_runs(rows, piece))
				return false;
	return rows->n_sequences <= TP_MAX_SEQUENCES || merge_all(rows);
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
		is_done = find_runs(rows);
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
