/* The trace clocks by the kernel's names, read in user space. */
#ifndef TP_CLOCK_H
#define TP_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "hints.h"

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#define TP_HAS_TSC 1
#else
#define TP_HAS_TSC 0
#endif

/* In the order of the kernel's trace_clocks[] (kernel/trace/trace.c). */
enum tp_clock {
	TP_CLOCK_LOCAL,
	TP_CLOCK_GLOBAL,
	TP_CLOCK_COUNTER,
	TP_CLOCK_UPTIME,
	TP_CLOCK_PERF,
	TP_CLOCK_MONO,
	TP_CLOCK_MONO_RAW,
	TP_CLOCK_BOOT,
	TP_CLOCK_TAI,
	TP_CLOCK_X86_TSC,
	TP_N_CLOCKS,
};

static const char *const tp_clock_names[TP_N_CLOCKS] = {
	"local", "global", "counter", "uptime", "perf", "mono", "mono_raw", "boot", "tai", "x86-tsc",
};

static inline uint64_t tp_clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * The local clock: CLOCK_MONOTONIC by way of the processor's counter, as the kernel's own local clock is
 * (sched_clock() in arch/x86/kernel/tsc.c), at half the price of asking the kernel's page for it.  Until
 * `end` cycles have passed since `tsc` the time is `ns` + cycles * `mult` / 2^32; then clock.c measures
 * anew.  `end` is 0 while the counter is not used: always, where the kernel does not trust it either.
 *
 * Guarded by `sequence`, which is odd while the rest changes.  Every store of the writer is a release and
 * every load of a reader an acquire, so that the second load of `sequence` cannot come before the others.
 */
struct tp_tsc_scale {
	_Atomic uint32_t sequence;
	_Atomic uint64_t tsc;
	_Atomic uint64_t end;
	_Atomic uint64_t ns;
	_Atomic uint64_t mult;
};

extern struct tp_tsc_scale tp_tsc_scale;

uint64_t tp_clock_local_slowly(void);
/* Start over: in the child of a fork, or with the counter forbidden, which tests and benchmarks want. */
void tp_clock_reset(bool may_use_tsc);
/* Whether the local clock is read from the counter by now. */
bool tp_clock_is_tsc(void);

static inline uint64_t tp_clock_local(void)
{
#if TP_HAS_TSC
	const struct tp_tsc_scale *scale = &tp_tsc_scale;
	uint32_t sequence = atomic_load_explicit(&scale->sequence, memory_order_acquire);
	uint64_t begin = atomic_load_explicit(&scale->tsc, memory_order_acquire);
	uint64_t end = atomic_load_explicit(&scale->end, memory_order_acquire);
	uint64_t ns = atomic_load_explicit(&scale->ns, memory_order_acquire);
	uint64_t mult = atomic_load_explicit(&scale->mult, memory_order_acquire);
	uint64_t cycles = __rdtsc() - begin;

	if (tp_likely(cycles < end && !(sequence & 1) &&
		      sequence == atomic_load_explicit(&scale->sequence, memory_order_relaxed)))
		return ns + (cycles * mult >> 32);
#endif
	return tp_clock_local_slowly();
}

static inline uint64_t tp_clock_now(enum tp_clock clock, _Atomic uint64_t *counter)
{
	switch (clock) {
	case TP_CLOCK_LOCAL:
		return tp_clock_local();
	case TP_CLOCK_COUNTER:
		return atomic_fetch_add_explicit(counter, 1, memory_order_relaxed) + 1;
	case TP_CLOCK_UPTIME:
		/* Hundredths of a second, as USER_HZ has them. */
		return tp_clock_ns(CLOCK_BOOTTIME) / 10000000;
	case TP_CLOCK_MONO_RAW:
		return tp_clock_ns(CLOCK_MONOTONIC_RAW);
	case TP_CLOCK_BOOT:
		return tp_clock_ns(CLOCK_BOOTTIME);
	case TP_CLOCK_TAI:
		return tp_clock_ns(CLOCK_TAI);
	case TP_CLOCK_X86_TSC:
#if TP_HAS_TSC
		return __rdtsc();
#endif
	default:
		/* global and perf are ordered between processors, as CLOCK_MONOTONIC is. */
		return tp_clock_ns(CLOCK_MONOTONIC);
	}
}

#endif
