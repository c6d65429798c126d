/*
 * Moving the pages of one CPU's ring buffer to a file: splice(2) where it works, else read(2) and write(2).
 *
 * No page passes through Python, and none through this process where the kernel splices.  The twin, which must
 * leave the same file and the same counts: src/tracepoint/control/drain.py, drain_slowly().  A page is not looked
 * at while it is moved: a system call for each is an event for each where system calls are recorded.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "drain.h"

/* Why moving ended; as in class DrainEnd of the twin. */
enum { DRAIN_ENDED, DRAIN_NO_ROOM, DRAIN_SOURCE, DRAIN_TARGET };

/* What was moved, for others to read meanwhile: 8 bytes each. */
enum { MOVED_PAGES, MOVED_UNSAVED, N_MOVED };

/* A pipe of 1 MiB takes as many pages of 4096 bytes; what the user may not have is less. */
enum { PIPE_BYTES = 1 << 20, PIPE_SLOT = 4096, FIRST_WAIT_MS = 20, MOST_PAGE_BYTES = 1 << 27 };

struct drain {
	int source, target, end, pipe[2];
	size_t page_size;
	uint64_t at; /* where the next page goes in the file */
	uint64_t *counts;
	int64_t *room; /* pages that all CPUs together may still write */
	unsigned char *page;
	uint64_t pipe_pages;
	bool can_splice;
	int reason, error;
};

static void count(struct drain *drain, int what, uint64_t n)
{
	__atomic_fetch_add(&drain->counts[what], n, __ATOMIC_RELAXED);
}

static int64_t fail(struct drain *drain, int reason, int error)
{
	drain->reason = reason;
	drain->error = error;
	return -1;
}

/* Take up to `n` pages of the room that all CPUs share. */
static uint64_t take_room(struct drain *drain, uint64_t n)
{
	int64_t there = __atomic_load_n(drain->room, __ATOMIC_RELAXED);

	while (there > 0) {
		uint64_t taken = (uint64_t)there < n ? (uint64_t)there : n;

		if (__atomic_compare_exchange_n(drain->room, &there, there - (int64_t)taken, true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return taken;
	}
	return 0;
}

static void give_room_back(struct drain *drain, uint64_t n)
{
	__atomic_fetch_add(drain->room, (int64_t)n, __ATOMIC_RELAXED);
}

/* A page that could be written in part only is cut off again: the file has whole pages. */
static int64_t refuse(struct drain *drain, int error, uint64_t n_unsaved)
{
	count(drain, MOVED_UNSAVED, n_unsaved);
	if (ftruncate(drain->target, (off_t)drain->at) || lseek(drain->target, (off_t)drain->at, SEEK_SET) < 0)
		error = errno;
	return fail(drain, DRAIN_TARGET, error);
}

static int64_t write_page(struct drain *drain, uint64_t n_after)
{
	size_t done = 0;

	while (done < drain->page_size) {
		ssize_t n = write(drain->target, drain->page + done, drain->page_size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return refuse(drain, n ? errno : ENOSPC, 1 + n_after);
		done += (size_t)n;
	}
	drain->at += drain->page_size;
	count(drain, MOVED_PAGES, 1);
	return 1;
}

static int64_t read_pages(struct drain *drain, uint64_t most)
{
	uint64_t n = 0;

	while (n < most) {
		ssize_t size = read(drain->source, drain->page, drain->page_size);

		if (size < 0 && errno == EINTR)
			continue;
		if (!size || (size < 0 && errno == EAGAIN))
			break;
		if (size != (ssize_t)drain->page_size)
			return fail(drain, DRAIN_SOURCE, size < 0 ? errno : EIO);
		if (write_page(drain, 0) < 0)
			return -1;
		n++;
	}
	return (int64_t)n;
}

/* Read a page out of the pipe, which has it. */
static bool read_pipe(struct drain *drain)
{
	size_t done = 0;

	while (done < drain->page_size) {
		ssize_t n = read(drain->pipe[0], drain->page + done, drain->page_size - done);

		if (n > 0)
			done += (size_t)n;
		else if (!n || errno != EINTR)
			return false;
	}
	return true;
}

/* Write what is in the pipe, through memory: this file takes no pipes. */
static int64_t empty_pipe(struct drain *drain, uint64_t n_pages)
{
	for (uint64_t n = 0; n < n_pages; n++) {
		if (!read_pipe(drain))
			return refuse(drain, EIO, n_pages - n);
		if (write_page(drain, n_pages - n - 1) < 0)
			return -1;
	}
	return (int64_t)n_pages;
}

static int64_t pipe_to_file(struct drain *drain, uint64_t n_pages)
{
	uint64_t size = n_pages * drain->page_size, done = 0, n_whole;
	int error = 0;

	while (done < size) {
		ssize_t n = splice(drain->pipe[0], NULL, drain->target, NULL, size - done, SPLICE_F_MOVE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EINVAL && !done) {
			drain->can_splice = false;
			return empty_pipe(drain, n_pages);
		}
		if (n <= 0) {
			error = n ? errno : ENOSPC;
			break;
		}
		done += (uint64_t)n;
	}
	n_whole = done / drain->page_size;
	drain->at += n_whole * drain->page_size;
	count(drain, MOVED_PAGES, n_whole);
	return error ? refuse(drain, error, n_pages - n_whole) : (int64_t)n_pages;
}

/* Move full pages; 0 when there is none now, -1 when it ends. */
static int64_t splice_pages(struct drain *drain, uint64_t most)
{
	ssize_t n = splice(drain->source, NULL, drain->pipe[1], NULL, most * drain->page_size,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n < 0 && (errno == EINVAL || errno == ENOSYS || errno == EBADF)) {
		/* A file system of a program, such as FUSE. */
		drain->can_splice = false;
		return read_pages(drain, most);
	}
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : fail(drain, DRAIN_SOURCE, errno);
	if ((size_t)n % drain->page_size)
		return fail(drain, DRAIN_SOURCE, EIO);
	return n ? pipe_to_file(drain, (uint64_t)n / drain->page_size) : 0;
}

static int64_t move_pages(struct drain *drain, uint64_t most, bool wants_part)
{
	uint64_t taken = take_room(drain, most < drain->pipe_pages ? most : drain->pipe_pages);
	uint64_t n_before = drain->counts[MOVED_PAGES];
	int64_t n;

	if (!taken)
		return fail(drain, DRAIN_NO_ROOM, 0);
	n = drain->can_splice ? splice_pages(drain, taken) : read_pages(drain, taken);
	if (!n && drain->can_splice && wants_part)
		n = read_pages(drain, taken);
	give_room_back(drain, taken - (drain->counts[MOVED_PAGES] - n_before));
	return n;
}

/*
 * Wait until there is much to read, the end or the time; return whether the end has come.  `is_idle` leaves the ring
 * buffer out: kernels say that there is something where no page is full.
 */
static bool wait_for_more(struct drain *drain, int wait_ms, bool is_idle, bool *is_ready)
{
	struct pollfd files[] = { { .fd = drain->end, .events = POLLIN },
				  { .fd = is_idle ? -1 : drain->source, .events = POLLIN } };
	int n = poll(files, 2, wait_ms);

	*is_ready = n > 0 && files[1].revents;
	return n > 0 && files[0].revents;
}

/* Move pages until the end, and then what is left, at most `n_ring` pages: others may go on writing. */
static void drain_pages(struct drain *drain, int most_wait_ms, uint64_t n_ring)
{
	int wait_ms = most_wait_ms < FIRST_WAIT_MS ? most_wait_ms : FIRST_WAIT_MS;
	bool is_ended = false, is_ready = false;
	uint64_t n_since = 0;
	int64_t n;

	while (!is_ended) {
		n = move_pages(drain, drain->pipe_pages, false);
		if (n < 0)
			return;
		n_since += (uint64_t)n;
		if ((uint64_t)n == drain->pipe_pages) {
			is_ended = wait_for_more(drain, 0, true, &is_ready);
			continue;
		}
		/* Where time ran out with much in the buffer, the next look comes earlier. */
		if (!is_ready && n_since > n_ring / 4)
			wait_ms = wait_ms > 1 ? wait_ms / 2 : 1;
		else if (!n_since)
			wait_ms = 2 * wait_ms < most_wait_ms ? 2 * wait_ms : most_wait_ms;
		is_ended = wait_for_more(drain, wait_ms, is_ready && !n, &is_ready);
		n_since = 0;
	}
	while (n_ring && (n = move_pages(drain, n_ring, true)) > 0)
		n_ring -= (uint64_t)n;
}

static bool prepare(struct drain *drain)
{
	int size;

	drain->pipe[0] = drain->pipe[1] = -1;
	drain->pipe_pages = PIPE_BYTES / drain->page_size + 1;
	drain->page = malloc(drain->page_size);
	if (!drain->page)
		return false;
	drain->can_splice = !pipe2(drain->pipe, O_CLOEXEC);
	if (!drain->can_splice)
		return true;
	size = fcntl(drain->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
	if (size < 0)
		size = fcntl(drain->pipe[1], F_GETPIPE_SZ);
	drain->pipe_pages = size < 0 ? 0 : (uint64_t)size / PIPE_SLOT;
	/* However large a page, it takes one slot of the pipe: see splice_to_pipe() in fs/splice.c. */
	if (!drain->pipe_pages) {
		drain->can_splice = false;
		drain->pipe_pages = 1;
	}
	return true;
}

static void finish(struct drain *drain)
{
	if (drain->pipe[0] >= 0) {
		close(drain->pipe[0]);
		close(drain->pipe[1]);
	}
	free(drain->page);
}

PyObject *tp_drain(PyObject *module, PyObject *args)
{
	struct drain drain = { .reason = DRAIN_ENDED };
	unsigned long long n_ring;
	Py_buffer counts, room;
	PyObject *made = NULL;
	Py_ssize_t page_size;
	int wait_ms;
	off_t at;

	(void)module;
	if (!PyArg_ParseTuple(args, "iiiniKw*w*:drain", &drain.source, &drain.target, &drain.end, &page_size, &wait_ms,
			      &n_ring, &counts, &room))
		return NULL;
	at = lseek(drain.target, 0, SEEK_CUR);
	if (counts.len != N_MOVED * sizeof(*drain.counts) || room.len != sizeof(*drain.room)) {
		PyErr_SetString(PyExc_ValueError, "not the counts of moved pages");
	} else if (at < 0) {
		PyErr_SetFromErrno(PyExc_OSError);
	} else if (page_size < 1 || page_size > MOST_PAGE_BYTES) {
		PyErr_Format(PyExc_ValueError, "pages of %zd bytes", page_size);
	} else {
		drain.at = (uint64_t)at;
		drain.page_size = (size_t)page_size;
		drain.counts = counts.buf;
		drain.room = room.buf;
		Py_BEGIN_ALLOW_THREADS
		if (prepare(&drain))
			drain_pages(&drain, wait_ms, n_ring);
		else
			fail(&drain, DRAIN_TARGET, ENOMEM);
		finish(&drain);
		Py_END_ALLOW_THREADS
		made = Py_BuildValue("(ii)", drain.reason, drain.error);
	}
	PyBuffer_Release(&counts);
	PyBuffer_Release(&room);
	return made;
}

/* Python has no fallocate(2) that makes holes. */
PyObject *tp_free_space(PyObject *module, PyObject *args)
{
	long long at, size;
	int handle, error;

	(void)module;
	if (!PyArg_ParseTuple(args, "iLL:free_space", &handle, &at, &size))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	error = fallocate(handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, size);
	Py_END_ALLOW_THREADS
	return PyBool_FromLong(!error);
}
