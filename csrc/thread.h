/*
 * Threads and the rings they write to.
 *
 * A buffer is what one trace instance records into: a ring for every thread, made when the thread first
 * records.  The ring of a thread that ended stays until it was read, as far as the rings of all ended threads
 * fit the space of TP_ENDED_RINGS.
 */
#ifndef TP_THREAD_H
#define TP_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "cpu.h"
#include "ring.h"

enum {
	TP_MAX_BUFFERS = 1024, /* an instance has one, and so has an event with triggers */
	TP_MAX_DEPTH = 4, /* as the kernel's levels: normal, softirq, irq, nmi */
	TP_ENDED_RINGS = 64, /* whose bytes the rings of ended threads may have */
	TP_NAME_SIZE = 16, /* of a thread's name, with its end */
};

struct tp_buffer;

struct tp_ring_node {
	_Alignas(TP_LINE) struct tp_ring ring;
	struct tp_ring_node *next;
	uint64_t serial;
	bool is_ended;
	bool is_trimmed; /* it ended, and has no more memory than it used */
	bool is_named; /* by tp_name_hook, not by the kernel */
};

struct tp_buffer {
	pthread_mutex_t lock; /* the list of rings, and reading; never taken to write an event */
	struct tp_ring_node *rings;
	struct tp_ring_stats retired; /* of rings that are gone */
	_Atomic int is_on;
	_Atomic int clock;
	_Atomic uint32_t flags; /* enum tp_ring_flags for new rings */
	_Atomic uint64_t counter;
	_Atomic uint64_t n_dropped; /* no memory for a ring */
	_Atomic uint64_t cleared;   /* generation in which it was cleared last */
	uint64_t next_serial;
	uint64_t next_look; /* serial at which rings of ended threads are looked at again */
	uint32_t n_pages;
	uint32_t index;
	char *directory; /* of the mapped files, or NULL */
};

struct tp_thread {
	struct tp_thread *next;
	int32_t tid;
	uint32_t depth;
	const volatile int32_t *cpu; /* tp_cpu_place() */
	_Atomic uint64_t active; /* generation in which the outermost tracepoint began; 0: none runs */
	struct tp_ring_node *rings[TP_MAX_BUFFERS];
};

#if defined(__GLIBC__)
extern _Thread_local struct tp_thread *tp_this_thread __attribute__((tls_model("initial-exec")));
#else
extern _Thread_local struct tp_thread *tp_this_thread;
#endif

struct tp_thread *tp_thread_create(void);

static inline struct tp_thread *tp_thread_get(void)
{
	struct tp_thread *thread = tp_this_thread;

	return thread ? thread : tp_thread_create();
}

extern _Atomic uint64_t tp_generation;

/*
 * The store must not pass the load of the probe table that follows.  Where a global lock is held from
 * here to there, and by who waits for the grace period, the lock sees to that: module.h says so.
 */
#ifndef TP_ENTER_ORDER
#define TP_ENTER_ORDER memory_order_seq_cst
#endif

static inline void tp_thread_enter(struct tp_thread *thread)
{
	uint64_t generation = atomic_load_explicit(&tp_generation, memory_order_relaxed);

	if (thread->depth++ == 0)
		atomic_store_explicit(&thread->active, generation, TP_ENTER_ORDER);
}

static inline void tp_thread_leave(struct tp_thread *thread)
{
	if (--thread->depth == 0)
		atomic_store_explicit(&thread->active, 0, memory_order_release);
}

/* Begin a grace period; it is over when tp_grace_over() says so. */
uint64_t tp_grace_begin(void);
bool tp_grace_over(uint64_t generation);

/* What was replaced, and is freed when no tracepoint that began before runs any more. */
struct tp_retired {
	struct tp_retired *next;
	uint64_t generation;
};

extern _Atomic bool tp_has_retired;

void tp_retire(struct tp_retired *retired);
/* A list of those that nobody uses any more, for the caller to free. */
struct tp_retired *tp_take_retired(void);

struct tp_buffer *tp_buffer_create(uint32_t n_pages, uint32_t flags, enum tp_clock clock, const char *directory);
void tp_buffer_destroy(struct tp_buffer *buffer);
/* NULL with errno set where no ring can be made; the event is counted as dropped. */
struct tp_ring_node *tp_buffer_add_ring(struct tp_buffer *buffer, struct tp_thread *thread);

/* Fills in the name of the thread whose ring it is, and returns whether it ended; the buffer's lock is held.
*/ bool tp_ring_owner(const struct tp_ring_node *node, char comm[TP_NAME_SIZE]);
/* A running thread whose name came from the hook has another name now. */
void tp_buffer_rename(struct tp_buffer *buffer, int32_t tid, const char name[TP_NAME_SIZE]);
void tp_buffer_stats(struct tp_buffer *buffer, struct tp_ring_stats *ret);
/* Empty all rings; events that began before are not recorded: see tp_buffer_takes(). */
void tp_buffer_clear(struct tp_buffer *buffer);
void tp_buffer_set_clock(struct tp_buffer *buffer, enum tp_clock clock);
void tp_buffer_set_flags(struct tp_buffer *buffer, uint32_t flags);

static inline struct tp_ring *tp_buffer_ring(struct tp_buffer *buffer, struct tp_thread *thread)
{
	struct tp_ring_node *node = thread->rings[buffer->index];

	if (!node)
		node = tp_buffer_add_ring(buffer, thread);
	return node ? &node->ring : NULL;
}

/* Whether an event that began in a generation (tp_generation) may be recorded: not when the buffer was cleared since. */
static inline bool tp_buffer_takes(const struct tp_buffer *buffer, uint64_t begun)
{
	return begun >= atomic_load_explicit(&buffer->cleared, memory_order_relaxed);
}

enum { TP_MAX_STEP_BACK = 1000000 };

/*
 * The time of the next event of a ring.  The local clock may differ from itself by less than a microsecond
 * where CLOCK_MONOTONIC replaces the counter; within one ring it never goes back.
 */
static inline uint64_t tp_buffer_stamp(struct tp_buffer *buffer, const struct tp_ring *ring)
{
	int clock = atomic_load_explicit(&buffer->clock, memory_order_relaxed);
	uint64_t stamp = tp_clock_now(clock, &buffer->counter);

	if (clock == TP_CLOCK_LOCAL && stamp < ring->stamp && ring->stamp - stamp < TP_MAX_STEP_BACK)
		return ring->stamp;
	return stamp;
}

/* Fills in the name that a language gives this thread; false where the kernel's counts. */
typedef bool (*tp_name_hook)(char name[TP_NAME_SIZE]);

/*
 * Once per process: what must happen at fork and when threads end.  Returns 0 or a negative errno.  The
 * hook is called without a lock when a ring is made, and not for the first thread, which has the name of
 * the process.
 */
int tp_threads_setup(tp_name_hook hook);

#endif
