/* Shared by the writing and the reading side of a ring; no other file includes it. */
#ifndef TP_RING_SHARED_H
#define TP_RING_SHARED_H

#include <string.h>

#include "page.h"
#include "ring.h"

enum {
	MISSED_EVENTS_BIT = 31,
	MISSED_STORED_BIT = 30,
	COMMIT_MASK = (1 << 27) - 1,
	DELTA_MASK = (1 << TP_DELTA_BITS) - 1,
	EXTEND_SIZE = 8,
	INDEX_BITS = 16,
	SLOT_FREE = 1 << INDEX_BITS,
	SEQ_SHIFT = INDEX_BITS + 1,
};

#define load(p) atomic_load_explicit(p, memory_order_relaxed)
#define load_acquire(p) atomic_load_explicit(p, memory_order_acquire)
#define store(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define store_release(p, v) atomic_store_explicit(p, v, memory_order_release)
/* For counters with a single writer: no locked instruction. */
#define add(p, v) store(p, load(p) + (v))

static inline uint64_t slot_word(uint64_t seq, uint64_t is_free, uint32_t index)
{
	return seq << SEQ_SHIFT | (is_free ? SLOT_FREE : 0) | index;
}

static inline uint64_t slot_seq(uint64_t word)
{
	return word >> SEQ_SHIFT;
}

static inline bool slot_is_free(uint64_t word)
{
	return word & SLOT_FREE;
}

static inline uint32_t slot_index(uint64_t word)
{
	return word & (SLOT_FREE - 1);
}

/*
 * Which CPU the following events come from: a padding event, which every reader of the kernel's pages passes
 * over, with the number after its length.  Padding of this size comes from nowhere else: see tp_event_size().
 * Its time is one unit after what was before, because padding without a delta ends a page.
 */
static inline unsigned char *put_cpu_mark(unsigned char *at, uint32_t cpu)
{
	uint32_t words[3] = { TP_TYPE_PADDING | 1u << 5, TP_CPU_MARK_SIZE - 4, cpu };

	memcpy(at, words, sizeof(words));
	return at + sizeof(words);
}

#endif
