/* Lines while they are written: the sources of records, how far each is read, and where the next line goes. */
#ifndef TP_LINE_JOB_H
#define TP_LINE_JOB_H

#include "graph.h"

/* What comes between records: before number `n_before`, events were lost, or the CPU changed. */
struct change {
	int64_t n_before, is_cpu, value;
};

/*
 * How far a source is read; kept by the caller.  An entry that ends a block is held: whether it is a leaf is seen when
 * the next block is there, or when `is_last` says that none is.
 */
struct state {
	uint64_t at, n_changes, cpu, lost, is_started, is_last, is_held, held_stamp, held_cpu, held_lost;
	unsigned char held_head[8];
	uint64_t held_word_size, held_function;
	int64_t held_depth;
};

/* The records of a CPU, in the order in which they were written. */
struct source {
	Py_buffer data, stamps, offsets, lengths, changes, state;
	struct state *is;
	uint64_t n, n_changes, stamp; /* the last: of the record at hand */
};

/* What is left to the twin: the text of a record, or with `source` NO_SOURCE the name of the function at `index`. */
struct left {
	uint64_t place;
	int64_t source;
	uint64_t index;
};

enum { NO_SOURCE = -1 };

struct job {
	struct tp_line_writer *writer;
	struct source *sources;
	uint32_t n_sources, *heap, n_heap;
	struct tp_print_texts known;
	Py_buffer symbols, out;
	Py_ssize_t start; /* where the first line goes */
	char *at; /* where the next line goes */
	struct left *left;
	uint64_t n_left, left_room;
};

/* Write the line of the record at hand, or draw it in the graph; false without memory. */
bool tp_add_record(struct job *job, uint32_t source);

#endif
