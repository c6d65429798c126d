/* What collecting records and merging them share: the records of each event as they were found. */
#ifndef TP_COLLECT_H
#define TP_COLLECT_H

#include "columns.h"
#include "head.h"

#define TP_COLLECTOR "tracepoint.collector"

/* Bytes copied out of pages; more are chained, so that pointers stay valid. */
struct tp_arena {
	struct tp_arena *next;
	size_t used, size;
	unsigned char bytes[];
};

/* The records of one event, as they were found, and their bytes: one after the other, so that filling reads on. */
struct tp_slot {
	struct tp_record *records;
	uint64_t n, room;
	struct tp_arena *arena;
};

void tp_free_arenas(struct tp_slot *slot);

/* Return a slot of a collector; NULL with an exception where there is none of this number. */
struct tp_slot *tp_slot_of(PyObject *capsule, unsigned int number);

#endif
