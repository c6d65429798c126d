/*
 * The C files without Python: rings, threads, filters.  Built with sanitizers by tests/c/test_c.py:
 *     cc -fsanitize=address,undefined -Icsrc tests/c/test_core.c csrc/{clock,ring,ring_read,thread,filter}.c -pthread
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "filter.h"
#include "ring_quick.h"
#include "thread.h"

#define CHECK(condition)                                                                  \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

static bool put(struct tp_ring *ring, uint64_t stamp, uint32_t number, int32_t cpu)
{
	unsigned char *to = tp_ring_reserve(ring, 16, stamp, cpu);

	if (!to)
		return false;
	memset(to, 0, 16);
	memcpy(to, &number, sizeof(number));
	tp_ring_commit(ring, to);
	return true;
}

static void test_ring_counts(uint32_t flags)
{
	struct tp_ring ring;
	struct tp_ring_stats stats;
	struct tp_page page;
	uint64_t n = 5000;
	void *memory = aligned_alloc(TP_PAGE_SIZE, tp_ring_size(3));

	memset(memory, 0, tp_ring_size(3));
	CHECK(!tp_ring_init(&ring, memory, 3, flags));
	for (uint64_t i = 0; i < n; i++)
		put(&ring, 1000 + i * 10, (uint32_t)i, (int32_t)(i / 700));
	while (tp_ring_read(&ring, &page) > 0)
		;
	tp_ring_stats(&ring, &stats);
	CHECK(stats.entries == 0 && stats.read + stats.overrun + stats.dropped == n && stats.read > 0);
	CHECK(flags & TP_RING_OVERWRITE ? stats.overrun > 0 : stats.dropped > 0);
	CHECK(!tp_ring_reserve(&ring, TP_MAX_PAYLOAD + 1, 1, -1));
	free(memory);
}

/* Whatever the head of a mapped file says, looking at it does no harm. */
static void test_damaged_rings(void)
{
	size_t size = tp_ring_size(4);
	unsigned char *memory = aligned_alloc(TP_PAGE_SIZE, size);
	struct tp_page *page = aligned_alloc(TP_PAGE_SIZE, TP_PAGE_SIZE);

	for (unsigned seed = 0; seed < 3000; seed++) {
		struct tp_ring ring;
		struct tp_ring_stats stats;
		uint64_t cursor = 0;
		memset(memory, 0, size);
		tp_ring_init(&ring, memory, 4, TP_RING_OVERWRITE);
		for (uint32_t i = 0; i < 900; i++)
			put(&ring, i * 100, i, (int32_t)(i & 1));
		srand(seed);
		for (int k = rand() % 8; k >= 0; k--)
			memory[16 + (size_t)rand() % (k & 1 ? 1024 : size - 16)] = (unsigned char)rand();
		if (tp_ring_attach(&ring, memory, size))
			continue;
		tp_ring_stats(&ring, &stats);
		for (int k = 0; k < 10 && tp_ring_peek(&ring, &cursor, page) > 0; k++)
			;
		for (int k = 0; k < 10 && tp_ring_read(&ring, page) > 0; k++)
			;
	}
	free(page);
	free(memory);
}

/* Where nobody says on which CPU a thread runs, a page begins with its own time all the same. */
static void test_quick_without_a_cpu(void)
{
	struct tp_ring ring;
	struct tp_page page;
	void *memory = aligned_alloc(TP_PAGE_SIZE, tp_ring_size(2));
	uint32_t at;

	memset(memory, 0, tp_ring_size(2));
	CHECK(!tp_ring_init(&ring, memory, 2, TP_RING_OVERWRITE));
	for (uint64_t i = 0; i < 300; i++) {
		CHECK(!tp_ring_begin_quickly(&ring, -1, 20, &at));
		CHECK(put(&ring, 7000 + i, (uint32_t)i, -1));
	}
	CHECK(tp_ring_read(&ring, &page) > 0);
	CHECK(load(&page.time_stamp) == 7000);
	CHECK(tp_ring_read(&ring, &page) > 0);
	CHECK(load(&page.time_stamp) > 7000 && load(&page.time_stamp) < 7300);
	free(memory);
}

enum { N_WRITERS = 4, N_EVENTS = 60000 };

static struct tp_buffer *buffer;
static _Atomic int n_running;

static void *write_events(void *unused)
{
	struct tp_thread *thread = tp_thread_get();

	for (uint32_t i = 0; i < N_EVENTS; i++) {
		tp_thread_enter(thread);
		struct tp_ring *ring = tp_buffer_ring(buffer, thread);
		put(ring, tp_clock_now(TP_CLOCK_MONO, &buffer->counter), i, tp_cpu_now());
		tp_thread_leave(thread);
	}
	atomic_fetch_sub(&n_running, 1);
	return unused;
}

static void drain(void)
{
	struct tp_page *page = aligned_alloc(TP_PAGE_SIZE, TP_PAGE_SIZE);

	pthread_mutex_lock(&buffer->lock);
	for (struct tp_ring_node *node = buffer->rings; node; node = node->next)
		while (tp_ring_read(&node->ring, page) > 0)
			;
	pthread_mutex_unlock(&buffer->lock);
	free(page);
}

static void test_threads(void)
{
	pthread_t threads[N_WRITERS];
	struct tp_ring_stats stats;

	CHECK(!tp_threads_setup(NULL));
	buffer = tp_buffer_create(8, TP_RING_OVERWRITE, TP_CLOCK_MONO, NULL);
	CHECK(buffer);
	atomic_store(&n_running, N_WRITERS);
	for (int i = 0; i < N_WRITERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, write_events, NULL));
	while (atomic_load(&n_running))
		drain();
	for (int i = 0; i < N_WRITERS; i++)
		pthread_join(threads[i], NULL);
	drain();
	tp_buffer_stats(buffer, &stats);
	CHECK(stats.read + stats.overrun + stats.dropped == (uint64_t)N_WRITERS * N_EVENTS);
	tp_buffer_destroy(buffer);
}

/* The grace period without any lock: a table that was replaced is not read once it is over. */
static _Atomic(int *) table;
static _Atomic int is_stopped;

static void *read_table(void *unused)
{
	struct tp_thread *thread = tp_thread_get();

	while (!atomic_load(&is_stopped)) {
		tp_thread_enter(thread);
		CHECK(*atomic_load(&table) == 42);
		tp_thread_leave(thread);
	}
	return unused;
}

static void test_grace(double seconds)
{
	pthread_t threads[N_WRITERS];
	time_t end = time(NULL) + (time_t)seconds;
	unsigned n_rounds = 0;

	atomic_store(&table, malloc(sizeof(int)));
	*atomic_load(&table) = 42;
	for (int i = 0; i < N_WRITERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, read_table, NULL));
	do {
		int *next = malloc(sizeof(int));
		*next = 42;
		int *old = atomic_exchange(&table, next);
		uint64_t generation = tp_grace_begin();
		while (!tp_grace_over(generation))
			;
		*old = 0;
		free(old);
	} while (++n_rounds < 2000 || time(NULL) < end);
	atomic_store(&is_stopped, 1);
	for (int i = 0; i < N_WRITERS; i++)
		pthread_join(threads[i], NULL);
	free(atomic_load(&table));
	printf("%u grace periods\n", n_rounds);
}

/* Whatever the bytes of a filter program, it is refused or it ends. */
static void test_damaged_filters(void)
{
	struct tp_filter_context context = { .cpu = 1, .comm = "ab" };
	unsigned char *record = calloc(1, 96);

	for (unsigned seed = 0; seed < 20000; seed++) {
		size_t size = seed % 200;
		unsigned char *program = malloc(size + 1);
		srand(seed);
		for (size_t i = 0; i < size; i++)
			program[i] = (unsigned char)(rand() % 5 ? rand() % 3 : rand());
		memcpy(program, "TPF1", size < 4 ? size : 4);
		if (!tp_filter_check(program, size))
			tp_filter_matches(program, record, 96, &context);
		free(program);
	}
	free(record);
}

int main(int n_args, char **args)
{
	test_ring_counts(TP_RING_OVERWRITE);
	test_ring_counts(0);
	test_damaged_rings();
	test_quick_without_a_cpu();
	test_damaged_filters();
	test_threads();
	test_grace(n_args > 1 ? atof(args[1]) : 0);
	puts("ok");
	return 0;
}
