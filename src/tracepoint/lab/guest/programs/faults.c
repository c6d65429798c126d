/* SPDX-License-Identifier: MIT */
/*
 * faults - makes page faults of every kind that a program can make, and counts what it got.
 *
 * faults [-t] [-n PAGES] [-f FILE] [KIND...]     (without a KIND: the first six)
 *
 * anon      writes to memory that was never touched
 * zero      reads memory that was never touched (the page of zeros), then writes to it
 * cow       writes, after a fork, to memory that parent and child share
 * stack     lets the stack grow
 * kernel    lets read(2) write to memory that was never touched: the kernel faults
 * efault    hands read(2) addresses where nothing is
 * file      reads a mapped file that is in the page cache (FILE is written first)
 * file-disk reads a mapped file that was dropped from the page cache
 * swap      reads memory that was handed to the swap area
 * name      hands access(2) file names that were handed to the swap area
 * frame     writes to memory that was never touched while the frame pointer points to a page that was
 *           handed to the swap area
 *
 * With -t, the kernel's tracing is on only while the faults are made.
 *
 * A line has the words: kind, pid, pages, minflt and majflt (by getrusage), perf-minor and perf-major
 * (by the perf counters, -1 where there are none), errors (calls that failed, or wrong bytes).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	4096UL
#define SIMPLE	6	/* kinds that need neither a file nor a swap area */

struct kind {
	const char *name;
	int (*prepare)(void);
	int (*run)(void);
};

static unsigned long pages = 64;
static const char *file_name;
static volatile char *memory;
static int zeros, switch_file = -1;

static volatile char *map(int flags, int file)
{
	void *room = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | flags, file, 0);

	if (room == MAP_FAILED) {
		perror("faults: mmap");
		exit(1);
	}
	/* One fault for every page. */
	madvise(room, pages * PAGE, MADV_NOHUGEPAGE);
	return room;
}

static int map_anonymous(void)
{
	memory = map(MAP_ANONYMOUS, -1);
	return 0;
}

static int write_all(void)
{
	for (unsigned long page = 0; page < pages; page++)
		memory[page * PAGE] = (char)(page + 1);
	return 0;
}

/* Reads a byte of every page; counts those that are not what write_all() wrote. */
static int read_all(void)
{
	int wrong = 0;

	for (unsigned long page = 0; page < pages; page++)
		wrong += memory[page * PAGE] != (char)(page + 1);
	return wrong;
}

static int fill(void)
{
	map_anonymous();
	return write_all();
}

static int read_zeros_then_write(void)
{
	int wrong = 0;

	for (unsigned long page = 0; page < pages; page++)
		wrong += memory[page * PAGE] != 0;
	return wrong + write_all();
}

/* The parent of a cow run is this process: it keeps the pages shared while its child writes. */
static int fork_and_wait(void)
{
	int status;
	pid_t pid;

	fill();
	pid = fork();
	if (pid == 0)
		return 0;
	waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static int grow_by(unsigned long n)
{
	volatile char room[PAGE];

	room[0] = (char)n;
	return n ? grow_by(n - 1) + (room[0] != (char)n) : 0;
}

static int grow(void)
{
	return grow_by(pages);
}

static int open_files(void)
{
	map_anonymous();
	zeros = open("/dev/zero", O_RDONLY);
	return zeros < 0;
}

static int kernel_writes(void)
{
	int failed = 0;

	for (unsigned long page = 0; page < pages; page++)
		failed += read(zeros, (void *)(memory + page * PAGE), 1) != 1;
	return failed;
}

static int bad_addresses(void)
{
	int refused = 0;

	for (unsigned long page = 0; page < pages; page++)
		refused += read(zeros, (void *)(page * 8), 1) < 0 && errno == EFAULT;
	return refused;
}

static int map_file(void)
{
	int file;
	char block[PAGE];

	if (!file_name) {
		fputs("faults: file and file-disk need -f FILE\n", stderr);
		exit(2);
	}
	file = open(file_name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	for (unsigned long page = 0; file >= 0 && page < pages; page++) {
		memset(block, (int)page + 1, sizeof(block));
		if (write(file, block, sizeof(block)) != sizeof(block))
			file = -1;
	}
	if (file < 0 || fsync(file) < 0) {
		perror(file_name);
		exit(1);
	}
	memory = map(0, file);
	return file;
}

static int map_cached_file(void)
{
	map_file();
	return 0;
}

static int map_dropped_file(void)
{
	int file = map_file();

	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	/* Without reading ahead, every page is read when it is touched. */
	madvise((void *)memory, pages * PAGE, MADV_RANDOM);
	return 0;
}

static int is_swapped(volatile void *address)
{
	int file = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;

	if (pread(file, &entry, sizeof(entry), (uintptr_t)address / PAGE * sizeof(entry)) != sizeof(entry))
		entry = 0;
	close(file);
	return entry >> 62 & 1;
}

/* Hands pages to the swap area; those that another processor has not listed yet take another try. */
static int page_out(volatile char *room, unsigned long n)
{
	unsigned long left = n;

	for (int tries = 0; tries < 20 && left; tries++) {
		if (madvise((void *)room, n * PAGE, MADV_PAGEOUT) != 0)
			return -1;
		left = 0;
		for (unsigned long page = 0; page < n; page++)
			left += !is_swapped(room + page * PAGE);
		if (left)
			usleep(1000);
	}
	errno = ENOSPC;
	return left ? -1 : 0;
}

static int swap_out(void)
{
	fill();
	return page_out(memory, pages);
}

/* A name of a file in every page; none of them is there. */
static int swap_out_names(void)
{
	map_anonymous();
	for (unsigned long page = 0; page < pages; page++)
		memcpy((char *)memory + page * PAGE, "/nowhere", 9);
	return page_out(memory, pages);
}

static int ask_for_names(void)
{
	int found = 0;

	for (unsigned long page = 0; page < pages; page++)
		found += access((char *)memory + page * PAGE, F_OK) == 0 || errno != ENOENT;
	return found;
}

static volatile unsigned long *frame;

/* A frame whose caller is not known ends the chain; it has a page of its own. */
static int make_frame(void)
{
	map_anonymous();
	frame = (void *)map(MAP_ANONYMOUS, -1);
	frame[0] = 0;
	frame[1] = 0x1000;
	return page_out((volatile char *)frame, 1);
}

static int write_with_frame(void)
{
	for (unsigned long page = 0; page < pages; page++)
		__asm__ volatile("movq %%rbp, %%rbx; movq %0, %%rbp; movb $1, (%1); movq %%rbx, %%rbp"
				 :: "r"(frame), "r"(memory + page * PAGE) : "rbx", "memory");
	return 0;
}

static const struct kind kinds[] = {
	{ "anon", map_anonymous, write_all },
	{ "zero", map_anonymous, read_zeros_then_write },
	{ "cow", fork_and_wait, write_all },
	{ "stack", NULL, grow },
	{ "kernel", open_files, kernel_writes },
	{ "efault", open_files, bad_addresses },
	{ "file", map_cached_file, read_all },
	{ "file-disk", map_dropped_file, read_all },
	{ "swap", swap_out, read_all },
	{ "name", swap_out_names, ask_for_names },
	{ "frame", make_frame, write_with_frame },
};

static int open_counter(uint64_t which)
{
	struct perf_event_attr wanted = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(wanted), .config = which,
					  .disabled = 1 };

	return (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0);
}

static long read_counter(int counter)
{
	uint64_t value;

	return counter >= 0 && read(counter, &value, sizeof(value)) == sizeof(value) ? (long)value : -1;
}

static void trace(const char *on)
{
	if (switch_file >= 0 && write(switch_file, on, 1) != 1)
		perror("faults: tracing_on");
}

/* New pages are listed by processor: on one only, none is overlooked when they are swapped out. */
static void stay_here(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
}

static void run(const struct kind *kind)
{
	struct rusage before, after;
	int minor, major, errors;

	stay_here();
	if (kind->prepare && kind->prepare() != 0)
		fprintf(stderr, "faults: %s could not be prepared: %s\n", kind->name, strerror(errno));
	minor = open_counter(PERF_COUNT_SW_PAGE_FAULTS_MIN);
	major = open_counter(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	/* What is called below is called once before, so that its own pages are there. */
	trace("0");
	getrusage(RUSAGE_SELF, &after);
	getrusage(RUSAGE_SELF, &before);
	ioctl(minor, PERF_EVENT_IOC_ENABLE, 0);
	ioctl(major, PERF_EVENT_IOC_ENABLE, 0);
	trace("1");
	errors = kind->run();
	trace("0");
	ioctl(minor, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(major, PERF_EVENT_IOC_DISABLE, 0);
	getrusage(RUSAGE_SELF, &after);
	printf("%-9s pid=%d pages=%lu minflt=%ld majflt=%ld perf-minor=%ld perf-major=%ld errors=%d\n", kind->name,
	       getpid(), pages, after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt,
	       read_counter(minor), read_counter(major), errors);
	if (frame)
		printf("%-9s pid=%d swapped=%d\n", kind->name, getpid(), is_swapped(frame));
	fflush(stdout);
}

static const struct kind *find(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	fprintf(stderr, "faults: no kind %s\n", name);
	exit(2);
}

int main(int count, char **words)
{
	int option, status;

	while ((option = getopt(count, words, "tn:f:")) != -1) {
		if (option == 't')
			switch_file = open("/sys/kernel/tracing/tracing_on", O_WRONLY);
		else if (option == 'n' && strtoul(optarg, NULL, 10) - 1 < 1UL << 20)
			pages = strtoul(optarg, NULL, 10);
		else if (option == 'f')
			file_name = optarg;
		else
			return 2;
	}
	for (int i = optind; i < count; i++)
		find(words[i]);
	for (int i = 0; i < (optind < count ? count - optind : SIMPLE); i++) {
		const struct kind *kind = optind < count ? find(words[optind + i]) : &kinds[i];
		pid_t pid = fork();

		if (pid == 0) {
			raise(SIGSTOP);
			run(kind);
			_exit(0);
		}
		/* After a fork the first writes of this process are faults too: they come before those of the child. */
		waitpid(pid, &status, WUNTRACED);
		kill(pid, SIGCONT);
		waitpid(pid, &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			return 1;
	}
	return 0;
}
