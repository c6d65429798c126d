/*
 * From the stamps in the pages to the times a reader shows.
 *
 * The twin is src/tracepoint/tracefile/timing.py: TimeMap.
 */
#ifndef TP_DECODE_CLOCK_H
#define TP_DECODE_CLOCK_H

#include "columns.h"
#include "../hints.h"

/* A guest's clock at `time`: stamps from then on are `scaling` / 2**`fraction` of a host's, and `offset` more. */
struct tp_clock_sample {
	uint64_t time;
	int64_t offset;
	uint64_t scaling, fraction;
};

struct tp_samples {
	struct tp_clock_sample *samples;
	size_t n;
};

/* `shift` has the samples of each CPU; a cycle is `mult` / 2**`n_bits` ns, and `offset` ns is added. */
struct tp_clock {
	uint32_t mult, n_bits;
	uint64_t offset;
	bool interpolates;
	size_t n_cpus;
	struct tp_samples *shift;
};

/* Return the clock that tp_make_clock() made; NULL with an exception for another object. */
const struct tp_clock *tp_clock_of(PyObject *capsule);

/* Return a guest's stamp in the time of its host, modulo 2**128. */
unsigned __int128 tp_shift_stamp(const struct tp_samples *own, uint64_t stamp, bool interpolates);

static tp_always_inline int64_t tp_shown_time(const struct tp_clock *clock, uint64_t stamp, int32_t cpu)
{
	unsigned __int128 cycles = stamp;

	if ((uint32_t)cpu < clock->n_cpus)
		cycles = tp_shift_stamp(&clock->shift[cpu], stamp, clock->interpolates);
	/* At most 64 + 63 bits of the product count. */
	return (int64_t)((uint64_t)(cycles * clock->mult >> clock->n_bits) + clock->offset);
}

#endif
