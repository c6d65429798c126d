/* Keeping the local clock in step with CLOCK_MONOTONIC. */
#include "clock.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
	/* Between two looks at CLOCK_MONOTONIC: the drift of the clock in between is its error. */
	STEP_NS = 1000000,
	/* The rate is measured over this time at least, and over no more than RATE_MAX_NS. */
	RATE_MIN_NS = 10000000,
	RATE_MAX_NS = 1000000000,
	/* A counter that is off by more after one step is not to be trusted. */
	TRUST_NS = 100000,
	N_TRIES = 4,
};

struct tp_tsc_scale tp_tsc_scale;

#if TP_HAS_TSC

enum trust { TRUST_UNKNOWN, TRUST_NO, TRUST_YES };

/* All below belong to the thread that has set is_taken. */
static atomic_flag is_taken = ATOMIC_FLAG_INIT;
static _Atomic int trust; /* enum trust; this one anybody may read */
static uint64_t rate_tsc, rate_ns; /* where measuring the rate began; 0: not yet */
static uint64_t rate;              /* nanoseconds of a cycle, times 2^32; 0: not known */
static uint64_t least_bracket = UINT64_MAX;

struct moment {
	uint64_t tsc;
	uint64_t ns;
};

/* The kernel itself keeps time by the counter, and this process may read it. */
static bool kernel_trusts_tsc(void)
{
	static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
	char text[8] = { 0 };
	int mode = 0;

	if (prctl(PR_GET_TSC, &mode) || mode != PR_TSC_ENABLE)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n == 4 && !memcmp(text, "tsc\n", 4);
}

/*
 * Both clocks at one moment: CLOCK_MONOTONIC between two readings of the counter.  A thread that is interrupted
 * in between tries again; false when every try was.
 */
static bool look(struct moment *ret)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < N_TRIES && best > least_bracket + least_bracket / 2; i++) {
		uint64_t before = __rdtsc();
		uint64_t ns = tp_clock_ns(CLOCK_MONOTONIC);
		uint64_t bracket = __rdtsc() - before;
		if (bracket < best) {
			best = bracket;
			ret->tsc = before + bracket / 2;
			ret->ns = ns;
		}
	}
	if (best < least_bracket)
		least_bracket = best;
	return best / 8 <= least_bracket;
}

static void publish(const struct moment *now, uint64_t ns, uint64_t mult, uint64_t end)
{
	struct tp_tsc_scale *scale = &tp_tsc_scale;
	uint32_t sequence = atomic_load_explicit(&scale->sequence, memory_order_relaxed);

	atomic_store_explicit(&scale->sequence, sequence + 1, memory_order_release);
	atomic_store_explicit(&scale->tsc, now->tsc, memory_order_release);
	atomic_store_explicit(&scale->ns, ns, memory_order_release);
	atomic_store_explicit(&scale->mult, mult, memory_order_release);
	atomic_store_explicit(&scale->end, end, memory_order_release);
	atomic_store_explicit(&scale->sequence, sequence + 2, memory_order_release);
}

static void measure_rate(const struct moment *now)
{
	uint64_t passed = now->ns - rate_ns;

	if (passed >= RATE_MIN_NS && now->tsc > rate_tsc)
		rate = (uint64_t)(((unsigned __int128)passed << 32) / (now->tsc - rate_tsc));
	if (!rate_ns || passed >= RATE_MAX_NS) {
		rate_tsc = now->tsc;
		rate_ns = now->ns;
	}
}

/* What the scale says of `tsc`, or of its last moment when that is past. */
static uint64_t told(uint64_t tsc)
{
	uint64_t cycles = tsc - atomic_load_explicit(&tp_tsc_scale.tsc, memory_order_relaxed);
	uint64_t end = atomic_load_explicit(&tp_tsc_scale.end, memory_order_relaxed);
	uint64_t mult = atomic_load_explicit(&tp_tsc_scale.mult, memory_order_relaxed);

	cycles = cycles < end ? cycles : end;
	return atomic_load_explicit(&tp_tsc_scale.ns, memory_order_relaxed) + (cycles * mult >> 32);
}

/*
 * Begin a new step at CLOCK_MONOTONIC's time, but never before a time already returned: a clock
 * that ran ahead runs slower for one step instead.
 */
static uint64_t begin_step(const struct moment *now)
{
	uint64_t last = told(now->tsc);
	uint64_t ns = last > now->ns ? last : now->ns;
	uint64_t ahead = ns - now->ns;

	measure_rate(now);
	/* Between 20 MHz and 20 GHz. */
	if (ahead > TRUST_NS || (rate && (rate >> 32 >= 50 || rate < (1ull << 32) / 20))) {
		trust = TRUST_NO;
		publish(now, 0, 0, 0);
		return now->ns;
	}
	if (!rate)
		return now->ns;
	uint64_t mult = rate - rate / STEP_NS * ahead;
	publish(now, ns, mult, ((uint64_t)STEP_NS << 32) / rate);
	return ns;
}

uint64_t tp_clock_local_slowly(void)
{
	uint64_t ns = tp_clock_ns(CLOCK_MONOTONIC);
	struct moment now = { 0 };

	/* Another thread may be doing this or below this signal handler. */
	if (trust == TRUST_NO || atomic_flag_test_and_set_explicit(&is_taken, memory_order_acquire))
		return ns;
	if (trust == TRUST_UNKNOWN)
		trust = kernel_trusts_tsc() ? TRUST_YES : TRUST_NO;
	bool is_early = !rate && rate_ns && ns - rate_ns < RATE_MIN_NS;
	if (trust == TRUST_YES && !is_early && look(&now))
		ns = begin_step(&now);
	atomic_flag_clear_explicit(&is_taken, memory_order_release);
	return ns;
}

void tp_clock_reset(bool may_use_tsc)
{
	trust = may_use_tsc ? TRUST_UNKNOWN : TRUST_NO;
	rate = rate_ns = rate_tsc = 0;
	atomic_store(&tp_tsc_scale.end, 0);
	atomic_store(&tp_tsc_scale.sequence, 0);
	atomic_store(&tp_tsc_scale.ns, 0);
	atomic_flag_clear(&is_taken);
}

#else

uint64_t tp_clock_local_slowly(void)
{
	return tp_clock_ns(CLOCK_MONOTONIC);
}

void tp_clock_reset(bool may_use_tsc)
{
	(void)may_use_tsc;
}

#endif

bool tp_clock_is_tsc(void)
{
	return atomic_load(&tp_tsc_scale.end) > 0;
}
