/* The trace clocks by the kernel's names, read in user space. */
#ifndef TP_CLOCK_H
#define TP_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
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

static inline uint64_t tp_clock_now(enum tp_clock clock, _Atomic uint64_t *counter)
{
	switch (clock) {
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
		/* local, global and perf are the scheduler's clock in a kernel; here all are monotonic. */
		return tp_clock_ns(CLOCK_MONOTONIC);
	}
}

#endif
