#define _GNU_SOURCE
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__GLIBC__)
_Thread_local struct tp_thread *tp_this_thread __attribute__((tls_model("initial-exec")));
#else
_Thread_local struct tp_thread *tp_this_thread;
#endif
_Atomic uint64_t tp_generation = 1;
_Atomic bool tp_has_retired;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the lists below */
static struct tp_thread *threads;
static struct tp_retired *all_retired;
static struct tp_buffer *buffers[TP_MAX_BUFFERS];
static pthread_key_t thread_key;
static tp_name_hook name_hook;

static int32_t current_tid(void)
{
	return (int32_t)syscall(SYS_gettid);
}

int32_t tp_cpu_slowly(void)
{
	return sched_getcpu();
}

/* ---- threads ---- */

struct tp_thread *tp_thread_create(void)
{
	struct tp_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->tid = current_tid();
	thread->cpu = tp_cpu_place();
	pthread_mutex_lock(&lock);
	thread->next = threads;
	threads = thread;
	pthread_mutex_unlock(&lock);
	pthread_setspecific(thread_key, thread);
	tp_this_thread = thread;
	return thread;
}

static void unlink_thread(struct tp_thread *thread)
{
	for (struct tp_thread **at = &threads; *at; at = &(*at)->next) {
		if (*at == thread) {
			*at = thread->next;
			return;
		}
	}
}

/* A thread ends: its rings stay, with the name it had last. */
static void thread_ended(void *data)
{
	struct tp_thread *thread = data;

	pthread_mutex_lock(&lock);
	unlink_thread(thread);
	for (int i = 0; i < TP_MAX_BUFFERS; i++) {
		struct tp_ring_node *node = thread->rings[i];
		if (!node)
			continue;
		if (!node->is_named)
			prctl(PR_GET_NAME, node->ring.head->comm);
		node->ring.head->is_ended = 1;
		node->is_ended = true;
	}
	pthread_mutex_unlock(&lock);
	tp_this_thread = NULL;
	free(thread);
}

/* The end of a thread is recorded under the lock of threads alone. */
bool tp_ring_owner(const struct tp_ring_node *node, char comm[TP_NAME_SIZE])
{
	pthread_mutex_lock(&lock);
	memcpy(comm, node->ring.head->comm, TP_NAME_SIZE);
	bool is_ended = node->is_ended;
	pthread_mutex_unlock(&lock);
	return is_ended;
}

void tp_buffer_rename(struct tp_buffer *buffer, int32_t tid, const char name[TP_NAME_SIZE])
{
	pthread_mutex_lock(&buffer->lock);
	pthread_mutex_lock(&lock);
	for (struct tp_ring_node *node = buffer->rings; node; node = node->next)
		if (node->is_named && !node->is_ended && node->ring.head->tid == tid)
			memcpy(node->ring.head->comm, name, TP_NAME_SIZE);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&buffer->lock);
}

uint64_t tp_grace_begin(void)
{
	return atomic_fetch_add(&tp_generation, 1) + 1;
}

/* The generation in which the oldest tracepoint that still runs began; the lock is held. */
static uint64_t oldest_active(void)
{
	uint64_t oldest = UINT64_MAX;

	for (struct tp_thread *thread = threads; thread; thread = thread->next) {
		uint64_t active = atomic_load(&thread->active);
		if (active && active < oldest)
			oldest = active;
	}
	return oldest;
}

bool tp_grace_over(uint64_t generation)
{
	pthread_mutex_lock(&lock);
	bool is_over = oldest_active() >= generation;
	pthread_mutex_unlock(&lock);
	return is_over;
}

void tp_retire(struct tp_retired *retired)
{
	pthread_mutex_lock(&lock);
	retired->generation = tp_grace_begin();
	retired->next = all_retired;
	all_retired = retired;
	atomic_store(&tp_has_retired, true);
	pthread_mutex_unlock(&lock);
}

struct tp_retired *tp_take_retired(void)
{
	struct tp_retired *taken = NULL;

	pthread_mutex_lock(&lock);
	uint64_t oldest = oldest_active();
	for (struct tp_retired **at = &all_retired; *at;) {
		struct tp_retired *retired = *at;
		if (retired->generation > oldest) {
			at = &retired->next;
			continue;
		}
		*at = retired->next;
		retired->next = taken;
		taken = retired;
	}
	atomic_store(&tp_has_retired, all_retired != NULL);
	pthread_mutex_unlock(&lock);
	return taken;
}

/* ---- rings ---- */

static void *map_anonymous(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* A ring's file, which gets its name when the ring in it is complete. */
struct ring_file {
	int directory;
	char name[64];
	char temporary[96];
};

static void name_file(struct ring_file *file, int32_t tid, uint64_t serial)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(file->name, sizeof(file->name), "ring-%d-%d-%llu", (int)getpid(), (int)tid,
		 (unsigned long long)serial);
	/* Leftovers of a killed process must not be in the way: no such name comes twice. */
	snprintf(file->temporary, sizeof(file->temporary), ".%s-%lld-%ld", file->name, (long long)now.tv_sec,
		 now.tv_nsec);
}

static void *map_open_file(int fd, size_t size)
{
	/* Room on the disk now, so that no write can end in a SIGBUS later. */
	errno = posix_fallocate(fd, 0, (off_t)size);
	if (errno)
		return NULL;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static void *map_file(struct ring_file *file, const char *directory, size_t size)
{
	void *memory = NULL;

	file->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (file->directory < 0)
		return NULL;
	int fd = openat(file->directory, file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		memory = map_open_file(fd, size);
		close(fd);
		if (!memory)
			unlinkat(file->directory, file->temporary, 0);
	}
	if (!memory)
		close(file->directory);
	return memory;
}

/* Give a complete ring's file its name; false when another file has it. */
static bool publish_file(const struct ring_file *file)
{
	int directory = file->directory;
	bool is_done = !linkat(directory, file->temporary, directory, file->name, 0);

	/* A file system without hard links, where a rename could replace another's ring. */
	if (!is_done && errno != EEXIST && faccessat(directory, file->name, F_OK, AT_SYMLINK_NOFOLLOW))
		is_done = !renameat(directory, file->temporary, directory, file->name);
	unlinkat(directory, file->temporary, 0);
	close(directory);
	return is_done;
}

static void free_ring(struct tp_ring_node *node)
{
	munmap(node->ring.head, node->ring.size);
	free(node);
}

static void add_stats(struct tp_ring_stats *sum, const struct tp_ring_stats *more)
{
	sum->overrun += more->overrun;
	sum->commit_overrun += more->commit_overrun;
	sum->dropped += more->dropped;
	sum->read += more->read;
	sum->nested += more->nested;
}

/*
 * Give back the pages that an ended thread has never come to.  Up to the end of its first round the pages lie
 * in the order of their numbers; the reader's spare one, after them, is never looked into.
 */
static void trim_ring(struct tp_ring_node *node)
{
	struct tp_ring *ring = &node->ring;
	size_t step = (size_t)sysconf(_SC_PAGESIZE);
	size_t used = (unsigned char *)&ring->pages[ring->page_index + 1] - (unsigned char *)ring->head;

	node->is_trimmed = true;
	used = (used + step - 1) / step * step;
	if (ring->seq >= ring->n_pages || used >= ring->size)
		return;
	if (!munmap((unsigned char *)ring->head + used, ring->size - used))
		ring->size = used;
}

static void retire_ring(struct tp_buffer *buffer, struct tp_ring_node *node, struct tp_ring_stats *stats)
{
	/* Unread records count as overrun, as in a ring that wrapped. */
	stats->overrun += stats->entries;
	add_stats(&buffer->retired, stats);
	free_ring(node);
}

/* Give up rings of ended threads: those that were read, and the oldest when they have too many bytes. */
static void retire_rings(struct tp_buffer *buffer)
{
	size_t most = TP_ENDED_RINGS * tp_ring_size(buffer->n_pages), used = 0, n_kept = 0;

	if (buffer->next_serial < buffer->next_look)
		return;
	/* The list begins with the youngest. */
	for (struct tp_ring_node **at = &buffer->rings; *at;) {
		struct tp_ring_node *node = *at;
		struct tp_ring_stats stats;
		if (node->is_ended && !node->is_trimmed)
			trim_ring(node);
		tp_ring_stats(&node->ring, &stats);
		if (node->is_ended && stats.entries)
			used += node->ring.size;
		if (!node->is_ended || (stats.entries && used <= most)) {
			at = &node->next;
			n_kept++;
			continue;
		}
		*at = node->next;
		retire_ring(buffer, node, &stats);
	}
	/* Seldom where they are many, so that a thread costs the same with a thousand before it. */
	buffer->next_look = buffer->next_serial + 1 + n_kept / 16;
}

static struct tp_ring_node *create_ring(struct tp_buffer *buffer, struct tp_thread *thread, const char *name)
{
	size_t size = tp_ring_size(buffer->n_pages);
	struct tp_ring_node *node = aligned_alloc(TP_LINE, sizeof(*node));
	void *memory = NULL;

	if (!node)
		return NULL;
	memset(node, 0, sizeof(*node));
	node->serial = buffer->next_serial++;
	struct ring_file file = { 0 };
	if (buffer->directory) {
		name_file(&file, thread->tid, node->serial);
		memory = map_file(&file, buffer->directory, size);
	} else {
		memory = map_anonymous(size);
	}
	if (!memory) {
		int error = errno;
		free(node);
		errno = error;
		return NULL;
	}
	struct tp_ring_head *head = memory;
	head->pid = getpid();
	head->tid = thread->tid;
	head->clock = atomic_load(&buffer->clock);
	node->is_named = name;
	if (name)
		memcpy(head->comm, name, sizeof(head->comm));
	else
		prctl(PR_GET_NAME, head->comm);
	tp_ring_init(&node->ring, memory, buffer->n_pages, atomic_load(&buffer->flags));
	if (buffer->directory && !publish_file(&file)) {
		free_ring(node);
		return NULL;
	}
	return node;
}

struct tp_ring_node *tp_buffer_add_ring(struct tp_buffer *buffer, struct tp_thread *thread)
{
	char name[TP_NAME_SIZE];
	bool is_named = name_hook && thread->tid != getpid() && name_hook(name);

	pthread_mutex_lock(&buffer->lock);
	struct tp_ring_node *node = thread->rings[buffer->index];
	if (node) {
		/* The hook ran a finaliser that recorded. */
		pthread_mutex_unlock(&buffer->lock);
		return node;
	}
	pthread_mutex_lock(&lock);
	retire_rings(buffer);
	pthread_mutex_unlock(&lock);
	node = create_ring(buffer, thread, is_named ? name : NULL);
	if (node) {
		node->next = buffer->rings;
		buffer->rings = node;
		thread->rings[buffer->index] = node;
	} else {
		atomic_fetch_add(&buffer->n_dropped, 1);
	}
	pthread_mutex_unlock(&buffer->lock);
	return node;
}

/* ---- buffers ---- */

struct tp_buffer *tp_buffer_create(uint32_t n_pages, uint32_t flags, enum tp_clock clock, const char *directory)
{
	struct tp_buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer)
		return NULL;
	buffer->directory = directory ? strdup(directory) : NULL;
	pthread_mutex_init(&buffer->lock, NULL);
	buffer->n_pages = n_pages;
	atomic_store(&buffer->flags, flags);
	atomic_store(&buffer->clock, clock);
	atomic_store(&buffer->is_on, 1);
	pthread_mutex_lock(&lock);
	uint32_t index = 0;
	while (index < TP_MAX_BUFFERS && buffers[index])
		index++;
	if (index < TP_MAX_BUFFERS)
		buffers[index] = buffer;
	pthread_mutex_unlock(&lock);
	if (index < TP_MAX_BUFFERS && !(directory && !buffer->directory)) {
		buffer->index = index;
		return buffer;
	}
	free(buffer->directory);
	free(buffer);
	return NULL;
}

static void free_rings(struct tp_buffer *buffer)
{
	while (buffer->rings) {
		struct tp_ring_node *node = buffer->rings;
		buffer->rings = node->next;
		free_ring(node);
	}
}

/* The caller has made sure that no tracepoint records into it any more. */
void tp_buffer_destroy(struct tp_buffer *buffer)
{
	pthread_mutex_lock(&lock);
	buffers[buffer->index] = NULL;
	for (struct tp_thread *thread = threads; thread; thread = thread->next)
		thread->rings[buffer->index] = NULL;
	pthread_mutex_unlock(&lock);
	free_rings(buffer);
	pthread_mutex_destroy(&buffer->lock);
	free(buffer->directory);
	free(buffer);
}

void tp_buffer_stats(struct tp_buffer *buffer, struct tp_ring_stats *ret)
{
	pthread_mutex_lock(&buffer->lock);
	*ret = buffer->retired;
	ret->dropped += atomic_load(&buffer->n_dropped);
	for (struct tp_ring_node *node = buffer->rings; node; node = node->next) {
		struct tp_ring_stats stats;
		tp_ring_stats(&node->ring, &stats);
		add_stats(ret, &stats);
		ret->entries += stats.entries;
		ret->bytes += stats.bytes;
		if (stats.oldest_stamp && (!ret->oldest_stamp || stats.oldest_stamp < ret->oldest_stamp))
			ret->oldest_stamp = stats.oldest_stamp;
	}
	pthread_mutex_unlock(&buffer->lock);
}

void tp_buffer_clear(struct tp_buffer *buffer)
{
	atomic_store(&buffer->cleared, tp_grace_begin());
	pthread_mutex_lock(&buffer->lock);
	memset(&buffer->retired, 0, sizeof(buffer->retired));
	atomic_store(&buffer->n_dropped, 0);
	for (struct tp_ring_node *node = buffer->rings; node; node = node->next)
		tp_ring_clear(&node->ring);
	pthread_mutex_unlock(&buffer->lock);
}

void tp_buffer_set_clock(struct tp_buffer *buffer, enum tp_clock clock)
{
	atomic_store(&buffer->clock, clock);
	tp_buffer_clear(buffer);
	/* Other processes read the clock from the files. */
	pthread_mutex_lock(&buffer->lock);
	for (struct tp_ring_node *node = buffer->rings; node; node = node->next)
		node->ring.head->clock = clock;
	pthread_mutex_unlock(&buffer->lock);
}

void tp_buffer_set_flags(struct tp_buffer *buffer, uint32_t flags)
{
	pthread_mutex_lock(&buffer->lock);
	atomic_store(&buffer->flags, flags);
	for (struct tp_ring_node *node = buffer->rings; node; node = node->next)
		atomic_store(&node->ring.head->flags, flags);
	pthread_mutex_unlock(&buffer->lock);
}

/* ---- fork ---- */

static void before_fork(void)
{
	/* In the order of tp_buffer_add_ring(). */
	for (int i = 0; i < TP_MAX_BUFFERS; i++)
		if (buffers[i])
			pthread_mutex_lock(&buffers[i]->lock);
	pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < TP_MAX_BUFFERS; i++)
		if (buffers[i])
			pthread_mutex_unlock(&buffers[i]->lock);
}

/*
 * The child has one thread and starts with nothing: the parent's events are the parent's, and a mapped
 * file must have one writer.
 */
static void after_fork_in_child(void)
{
	struct tp_thread *self = tp_this_thread;

	tp_clock_reset(true);
	for (int i = 0; i < TP_MAX_BUFFERS; i++) {
		struct tp_buffer *buffer = buffers[i];
		if (!buffer)
			continue;
		free_rings(buffer);
		memset(&buffer->retired, 0, sizeof(buffer->retired));
		atomic_store(&buffer->n_dropped, 0);
		pthread_mutex_init(&buffer->lock, NULL);
	}
	while (threads) {
		struct tp_thread *thread = threads;
		threads = thread->next;
		if (thread != self)
			free(thread);
	}
	if (self) {
		self->tid = current_tid();
		memset(self->rings, 0, sizeof(self->rings));
		self->next = NULL;
		threads = self;
	}
	pthread_mutex_init(&lock, NULL);
}

int tp_threads_setup(tp_name_hook hook)
{
	static bool is_done;

	name_hook = hook;
	if (is_done)
		return 0;
	if (pthread_key_create(&thread_key, thread_ended))
		return -EAGAIN;
	if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child))
		return -ENOMEM;
	is_done = true;
	return 0;
}
