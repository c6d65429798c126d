/*
 * Threads that write, one that reads, and one that looks at the same rings through their files, as another
 * process would.  Built with ThreadSanitizer and with others by tests/c/test_c.py.
 */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ring_quick.h"
#include "thread.h"

#define CHECK(condition)                                                                  \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

#define WRITING "a thread writes"
#define ENDING "a thread ended"

enum { N_WRITERS = 4, N_PAGES = 6 };

static struct tp_buffer *buffer;
static const char *directory;
static uint32_t n_events;
static _Atomic int n_running;

/* What is written can be told from what is torn: the number, and the number again, all bits turned round. */
struct payload {
	uint64_t number;
	uint64_t inverse;
};

static bool write_quickly(struct tp_ring *ring, const struct payload *payload)
{
	struct tp_quick_size size = tp_quick_size(sizeof(*payload));
	uint64_t stamp = tp_buffer_stamp(buffer, ring);
	uint32_t at;
	unsigned char *to = tp_ring_begin_quickly(ring, tp_cpu_now(), size.bytes, &at);

	if (!to)
		return false;
	memcpy(to, payload, sizeof(*payload));
	return tp_ring_end_quickly(ring, at, to, size, stamp);
}

static void write_generally(struct tp_ring *ring, const struct payload *payload)
{
	void *to = tp_ring_reserve(ring, sizeof(*payload), tp_buffer_stamp(buffer, ring), tp_cpu_now());

	CHECK(to);
	memcpy(to, payload, sizeof(*payload));
	tp_ring_commit(ring, to);
}

static void *write_events(void *index)
{
	struct tp_thread *thread = tp_thread_get();
	bool is_quick = (uintptr_t)index & 1;

	CHECK(thread);
	prctl(PR_SET_NAME, WRITING);
	for (uint64_t i = 0; i < n_events; i++) {
		struct payload payload = { i, ~i };
		tp_thread_enter(thread);
		struct tp_ring *ring = tp_buffer_ring(buffer, thread);
		CHECK(ring);
		if (!is_quick || !write_quickly(ring, &payload))
			write_generally(ring, &payload);
		tp_thread_leave(thread);
	}
	prctl(PR_SET_NAME, ENDING);
	atomic_fetch_sub(&n_running, 1);
	return NULL;
}

/* Returns the number of events, each of which must be whole and later than the one before. */
static uint32_t check_page(struct tp_page *page, uint64_t *last)
{
	uint32_t end = (uint32_t)load(&page->commit) & COMMIT_MASK, n = 0;

	CHECK(end <= TP_PAGE_DATA);
	for (uint32_t at = 0; at + 8 <= end;) {
		uint32_t words[2];
		struct payload payload;
		memcpy(words, page->data + at, sizeof(words));
		uint32_t kind = words[0] & 31;
		if (kind == TP_TYPE_PADDING) {
			at += 4 + words[1];
		} else if (kind == TP_TYPE_TIME_EXTEND || kind == TP_TYPE_TIME_STAMP) {
			at += EXTEND_SIZE;
		} else {
			CHECK(kind == sizeof(payload) / 4);
			memcpy(&payload, page->data + at + 4, sizeof(payload));
			CHECK(payload.inverse == ~payload.number);
			CHECK(*last == UINT64_MAX || payload.number > *last);
			*last = payload.number;
			at += 4 + sizeof(payload);
			n++;
		}
	}
	return n;
}

static void peek(struct tp_ring *ring, struct tp_page *page)
{
	uint64_t cursor = 0, last = UINT64_MAX;

	while (tp_ring_peek(ring, &cursor, page) > 0)
		check_page(page, &last);
}

/* A ring is told to have the last name of its thread when that has ended. */
static void check_owner(const struct tp_ring_node *node)
{
	char comm[TP_NAME_SIZE];
	bool is_ended = tp_ring_owner(node, comm);

	CHECK(!strcmp(comm, is_ended ? ENDING : WRITING));
}

static uint64_t drain(uint64_t *last)
{
	struct tp_page *page = aligned_alloc(TP_PAGE_SIZE, TP_PAGE_SIZE);
	struct tp_ring_stats stats;
	uint64_t n = 0;

	pthread_mutex_lock(&buffer->lock);
	for (struct tp_ring_node *node = buffer->rings; node; node = node->next) {
#if !defined(__SANITIZE_THREAD__)
		/* It copies a page that may be written meanwhile and then looks whether it was: a race that is meant. */
		peek(&node->ring, page);
#endif
		check_owner(node);
		tp_ring_stats(&node->ring, &stats);
		while (tp_ring_read(&node->ring, page) > 0)
			n += check_page(page, &last[node->serial % N_WRITERS]);
	}
	pthread_mutex_unlock(&buffer->lock);
	free(page);
	return n;
}

/* What another process does: the file mapped, and nothing of the writer's but what is in it. */
static void look_at(const char *name)
{
	char path[4096];
	struct stat info;
	struct tp_ring ring;
	struct tp_page *page = aligned_alloc(TP_PAGE_SIZE, TP_PAGE_SIZE);

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	int fd = open(path, O_RDWR);
	CHECK(fd >= 0 && !fstat(fd, &info));
	if (!info.st_size) {
		/* It was opened a moment ago. */
		close(fd);
		free(page);
		return;
	}
	void *memory = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED);
	/* It may be in the making. */
	if (!tp_ring_attach(&ring, memory, (size_t)info.st_size))
		for (int i = 0; i < 20; i++)
			peek(&ring, page);
	munmap(memory, (size_t)info.st_size);
	close(fd);
	free(page);
}

static void *look(void *unused)
{
	while (atomic_load(&n_running)) {
		DIR *folder = opendir(directory);
		struct dirent *entry;
		CHECK(folder);
		while ((entry = readdir(folder)))
			if (!strncmp(entry->d_name, "ring-", 5))
				look_at(entry->d_name);
		closedir(folder);
	}
	return unused;
}

static void *wait_for_grace(void *unused)
{
	while (atomic_load(&n_running)) {
		uint64_t generation = tp_grace_begin();
		while (!tp_grace_over(generation))
			;
		usleep(100);
	}
	return unused;
}

int main(int n_args, char **args)
{
	pthread_t threads[N_WRITERS], others[2];
	struct tp_ring_stats stats;
	uint64_t last[N_WRITERS], n_read = 0;

	CHECK(n_args == 3);
	directory = args[1];
	n_events = (uint32_t)atoi(args[2]);
	memset(last, 0xff, sizeof(last));
	CHECK(!tp_threads_setup(NULL));
	buffer = tp_buffer_create(N_PAGES, TP_RING_OVERWRITE, TP_CLOCK_LOCAL, directory);
	CHECK(buffer);
	atomic_store(&n_running, N_WRITERS);
	for (uintptr_t i = 0; i < N_WRITERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, write_events, (void *)i));
	CHECK(!pthread_create(&others[0], NULL, look, NULL));
	CHECK(!pthread_create(&others[1], NULL, wait_for_grace, NULL));
	while (atomic_load(&n_running))
		n_read += drain(last);
	for (int i = 0; i < N_WRITERS; i++)
		pthread_join(threads[i], NULL);
	pthread_join(others[0], NULL);
	pthread_join(others[1], NULL);
	n_read += drain(last);
	tp_buffer_stats(buffer, &stats);
	CHECK(stats.read == n_read && n_read > 0);
	CHECK(stats.read + stats.overrun + stats.dropped == (uint64_t)N_WRITERS * n_events);
	printf("%llu of %llu read\n", (unsigned long long)n_read, (unsigned long long)N_WRITERS * n_events);
	tp_buffer_destroy(buffer);
	puts("ok");
	return 0;
}
