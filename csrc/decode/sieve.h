/*
 * Which records are chosen: by time, by event, and by a filter of each event.
 *
 * The twin is src/tracepoint/tracefile/sieve.py: Sieve._keeps().
 */
#ifndef TP_DECODE_SIEVE_H
#define TP_DECODE_SIEVE_H

#include "clock.h"
#include "columns.h"
#include "head.h"
#include "../filter.h"
#include "../hints.h"

enum { TP_SIEVE_ALL = 0xFFFE, TP_SIEVE_NONE = 0xFFFF };

/*
 * `slot_of` gives the program of an event's id: TP_SIEVE_ALL for none, TP_SIEVE_NONE where no record is chosen.
 * `new_id` gives the id that is written in its place, NULL for the same one.  The window is one of stamps, with a
 * `clock` of the times that it gives.
 */
struct tp_sieve {
	struct tp_layout layout;
	int64_t start, stop;
	unsigned int n_programs;
	uint16_t *slot_of, *new_id;
	void **programs;
	PyObject *held_clock;
	const struct tp_clock *clock;
};

/* Return the sieve that tp_sieve() made; NULL with an exception for another object. */
const struct tp_sieve *tp_sieve_of(PyObject *capsule);

static inline bool tp_is_in_window(const struct tp_sieve *sieve, int32_t cpu, uint64_t stamp)
{
	int64_t time = tp_unlikely(sieve->clock) ? tp_shown_time(sieve->clock, stamp, cpu) : (int64_t)stamp;

	return time >= sieve->start && time < sieve->stop;
}

static tp_always_inline bool tp_sieve_keeps(const struct tp_sieve *sieve, int32_t cpu, uint64_t stamp,
					    const unsigned char *data, uint32_t size)
{
	struct tp_filter_context context = { .cpu = (uint32_t)cpu };
	uint16_t slot;

	if (!tp_is_in_window(sieve, cpu, stamp))
		return false;
	if (!sieve->slot_of)
		return true;
	if (size < 2)
		return false;
	slot = sieve->slot_of[tp_record_id(data, sieve->layout.is_big)];
	if (slot >= TP_SIEVE_ALL)
		return slot == TP_SIEVE_ALL;
	return tp_filter_matches(sieve->programs[slot], data, size, &context);
}

#endif
