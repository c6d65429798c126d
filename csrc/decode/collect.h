/* What collecting records and merging them share: the records of each event as they were found. */
#ifndef TP_COLLECT_H
#define TP_COLLECT_H

#include "columns.h"
#include "head.h"

#define TP_COLLECTOR "tracepoint.collector"

/*
 * A part of a block, filled from its start; more are chained, so that pointers stay valid.  Of records, it may be
 * that the time goes back within the piece.
 */
struct tp_piece {
	struct tp_piece *next;
	struct tp_block *block;
	size_t used, size;
	bool may_go_back;
	_Alignas(8) unsigned char bytes[];
};

struct tp_pool;

struct tp_pool *tp_pool_of(PyObject *capsule);
/* Return an empty piece of at least `size` bytes, NULL without memory; any thread may ask, without the GIL. */
struct tp_piece *tp_piece_create(struct tp_pool *pool, size_t size);
void tp_free_pieces(struct tp_piece *piece);

/*
 * The records of one event as they were found, from `first` on, and their bytes, one after the other, so that
 * filling reads on; the piece of bytes that was made last comes first.
 */
struct tp_slot {
	struct tp_piece *first, *last, *bytes;
};

static inline struct tp_record *tp_records_of(struct tp_piece *piece)
{
	return (struct tp_record *)(void *)piece->bytes;
}

static inline uint64_t tp_n_records(const struct tp_piece *piece)
{
	return piece->used / sizeof(struct tp_record);
}

void tp_empty_slot(struct tp_slot *slot);

/* Return a slot of a collector; NULL with an exception where there is none of this number. */
struct tp_slot *tp_slot_of(PyObject *capsule, unsigned int number);

#endif
