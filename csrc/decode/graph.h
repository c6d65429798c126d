/*
 * The layout of function_graph: calls as nested blocks, other records as comments among them.
 *
 * kernel/trace/trace_functions_graph.c.  The twin is GraphLayout in src/tracepoint/tracefile/graph.py.
 */
#ifndef TP_GRAPH_H
#define TP_GRAPH_H

#include "lines.h"

enum tp_graph_flag {
	TP_GRAPH_HAS_CPU = 1,
	TP_GRAPH_HAS_OVERHEAD = 2,
	TP_GRAPH_HAS_TASK = 4,
	TP_GRAPH_HAS_DURATION = 8,
	TP_GRAPH_HAS_TIME = 16,
	TP_GRAPH_HAS_IRQS = 32,
	TP_GRAPH_HAS_TAIL = 64,
	TP_GRAPH_HAS_OVERRUN = 128,
	TP_GRAPH_HAS_VALUE = 256,
	TP_GRAPH_VALUE_IS_HEX = 512,
	TP_GRAPH_IS_FROM_6_13 = 1024,
};

/* What a type of record is in the graph: from TP_GRAPH_CALL on an entry or a return, of that format. */
enum tp_graph_kind { TP_GRAPH_PLAIN = 0, TP_GRAPH_COMMENT = 1, TP_GRAPH_CALL = 2 };

/* What an entry or a return says; the last three are those of a return. */
struct tp_call {
	bool is_entry;
	uint64_t function;
	int64_t depth;
	uint64_t duration, overrun, value;
};

/* A record: `word` are the bytes where its pid is, as many as it has. */
struct tp_graph_record {
	uint64_t stamp, cpu, lost;
	unsigned char head[8];
	uint32_t word_size;
};

/* The name of a function that is not known yet, left out of a text; NULL when there is none. */
struct tp_graph_gap {
	char *at;
	uint64_t address;
};

/* Take what Python gives for a graph, after the tables of lines; false with an exception. */
bool tp_take_graph(struct tp_line_writer *writer, PyObject *given);
void tp_free_graph(struct tp_graph *graph);

enum tp_graph_kind tp_graph_kind(const struct tp_graph *graph, unsigned int id);
/* Read an entry or a return; false for all other records, and for those that are cut off or cannot be. */
bool tp_read_call(const struct tp_line_writer *writer, unsigned int id, const unsigned char *record, uint32_t size,
		  struct tp_call *ret);

/* Write an entry, with the return that ends a leaf, or a return; NULL when there is no memory. */
char *tp_put_call(char *at, struct tp_line_writer *writer, const struct tp_print_texts *known,
		  const struct tp_graph_record *record, const struct tp_call *call, const struct tp_call *end,
		  struct tp_graph_gap *gap);
/* Write what is before the text of a comment; NULL when there is no memory. */
char *tp_put_comment_start(char *at, struct tp_line_writer *writer, const struct tp_graph_record *record);

#endif
