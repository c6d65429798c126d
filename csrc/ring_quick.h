/*
 * Writing one event in one go, where nothing is in the way: the writer's page has begun and has room, the
 * event is on the CPU of the one before it, and the time since then fits its header.  Everything else is for
 * tp_ring_reserve().
 *
 *     unsigned char *to = tp_ring_begin_quickly(ring, cpu, size.bytes, &at);
 *     if (to && fill it && tp_ring_end_quickly(ring, at, to, size, stamp)) done;
 *
 * Nothing has happened to the ring until tp_ring_end_quickly() returned true.
 */
#ifndef TP_RING_QUICK_H
#define TP_RING_QUICK_H

#include "hints.h"
#include "ring_shared.h"

enum {
	TP_QUICK_MAX = 4 * TP_TYPE_DATA_MAX, /* bytes: a length that fits in the header itself */
	TP_QUICK_SLACK = 16,                 /* bytes after the event that may be written too */
};

/* What the length of an event makes of it. */
struct tp_quick_size {
	uint32_t words; /* as in the header */
	uint32_t bytes; /* of the page, with the header */
};

static tp_always_inline struct tp_quick_size tp_quick_size(uint32_t length)
{
	uint32_t words = (length + 3) / 4;

	/* 8 bytes would be 12 with the header: see tp_event_size(). */
	words += words == 2;
	return (struct tp_quick_size){ words, 4 + 4 * words };
}

/* Begin an event of at least `bytes`; `ret_at` is where in the page. */
static tp_always_inline unsigned char *tp_ring_begin_quickly(struct tp_ring *ring, int32_t cpu, uint32_t bytes,
							     uint32_t *ret_at)
{
	uint32_t at = *ret_at = ring->at;

	/* A page that has not begun bears no CPU yet, and one that may take no more has no room. */
	if (tp_unlikely(ring->depth || cpu != ring->cpu || at + bytes > TP_PAGE_DATA - TP_QUICK_SLACK))
		return NULL;
	if (tp_unlikely(ring->is_busy))
		return NULL;
	ring->is_busy = true;
	atomic_signal_fence(memory_order_seq_cst);
	return ring->page->data + at + 4;
}

/* How long an event may become that begins there; never less than what it was begun with. */
static tp_always_inline uint32_t tp_quick_room(uint32_t at)
{
	uint32_t room = TP_PAGE_DATA - TP_QUICK_SLACK - 4 - at;

	return room < TP_QUICK_MAX ? room : TP_QUICK_MAX;
}

static tp_always_inline void tp_ring_leave_quickly(struct tp_ring *ring)
{
	atomic_signal_fence(memory_order_seq_cst);
	ring->is_busy = false;
}

/* Commit what was filled in, and leave; false: it must be written the general way. */
static tp_always_inline bool tp_ring_end_quickly(struct tp_ring *ring, uint32_t at, unsigned char *to,
						 struct tp_quick_size size, uint64_t stamp)
{
	uint64_t delta = stamp - ring->stamp;
	bool is_quick = tp_likely(delta <= DELTA_MASK);

	if (is_quick) {
		uint32_t header = (uint32_t)delta << 5 | size.words;
		uint32_t end = at + size.bytes;
		memcpy(to - 4, &header, sizeof(header));
		ring->stamp = stamp;
		ring->at = end;
		add(&ring->note->n_entries, 1);
		add(&ring->head->n_written, 1);
		ring->end = end;
		store_release(&ring->page->commit, end);
	}
	tp_ring_leave_quickly(ring);
	return is_quick;
}

#endif
