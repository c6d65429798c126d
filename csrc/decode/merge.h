/* The records of one event in the order of time, merged while they are read: any part of them, by any thread. */
#ifndef TP_DECODE_MERGE_H
#define TP_DECODE_MERGE_H

#include "collect.h"

/* Records whose time does not go back; `before` are those of the runs before it that it goes on with. */
struct tp_run {
	const struct tp_record *at, *end;
	uint64_t before;
};

/* Of more sequences than this, as only damaged pages make, all records are merged at once. */
enum { TP_MAX_SEQUENCES = 256 };

/*
 * The records of one event; what was taken from collectors owns them.  `runs` from firsts[n] to firsts[n + 1] go
 * on with each other, mostly all of a CPU: they are sequence n.  `records` are all in order, where those are many.
 */
struct tp_rows {
	struct tp_run *runs;
	uint64_t *firsts;
	uint64_t n, n_runs, n_sequences, run_room, first_room;
	struct tp_record *records;
	struct tp_block *block;
	struct tp_slot *taken;
	uint64_t n_taken;
};

struct tp_rows *tp_rows_of(PyObject *capsule);

/* Where reading a sequence is: at a record of a run, and the run after the last. */
struct tp_cursor {
	const struct tp_record *at, *end;
	uint64_t run, last;
};

/* The next records of sequences: a heap of the numbers of those that are not at their end. */
struct tp_merger {
	const struct tp_rows *rows;
	struct tp_cursor *cursors;
	uint64_t *heap, n;
};

/* Begin with row `rank`, with room for as many cursors and numbers as there are sequences. */
void tp_merge_from(struct tp_merger *merger, const struct tp_rows *rows, uint64_t rank, struct tp_cursor *cursors,
		   uint64_t *heap);
/* Copy the next `n` records, which there must be. */
void tp_merge(struct tp_merger *merger, struct tp_record *to, uint64_t n);

#endif
