/* SPDX-License-Identifier: MIT */
/*
 * hog - fills memory and goes over it again and again, so that a machine with less of it swaps.
 *
 * hog [-m MEGABYTES] [-r ROUNDS] [-s SECONDS] [-p PROCESSES] [-o]
 *
 * Every page holds a pattern that depends on the page and the round; it is checked before the next
 * round overwrites it. With -p, PROCESSES children share the pages and only check them. With -o the
 * pages are handed to the swap area after every round (MADV_PAGEOUT) instead of waiting until memory
 * is short. It ends after ROUNDS rounds, or with the first round that ends after SECONDS.
 *
 * A line has the words: pid, round, pages, minflt and majflt (the faults of that process in that round),
 * wrong (pages with another content than expected), seconds. Exit status: 0, or 1 for a wrong page.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE		4096UL
#define WORDS		(PAGE / sizeof(uint64_t))
#define PERIOD		8	/* words after which a page repeats itself: it can be compressed, but is not one number */

static uint64_t *memory;
static unsigned long pages = (64UL << 20) / PAGE;
static unsigned long rounds = 2, seconds = 3600, processes = 1;
static int is_paging_out;

static uint64_t pattern(unsigned long page, unsigned long round, unsigned long word)
{
	uint64_t value = (page * 1024 + round) * PERIOD + word % PERIOD + 1;

	value *= 0x9e3779b97f4a7c15UL;
	return value ^ value >> 32;
}

static void fill(unsigned long page, unsigned long round)
{
	for (unsigned long word = 0; word < WORDS; word++)
		memory[page * WORDS + word] = pattern(page, round, word);
}

static int is_wrong(unsigned long page, unsigned long round)
{
	for (unsigned long word = 0; word < WORDS; word++)
		if (memory[page * WORDS + word] != pattern(page, round, word))
			return 1;
	return 0;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* New pages are listed by processor: on one only, none is overlooked when they are paged out. */
static void stay_here(void)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof(here), &here);
}

/* Goes over all pages once: checks what round `old` wrote (unless 0), writes `new` (unless 0). */
static unsigned long go_over(unsigned long old, unsigned long new)
{
	struct rusage before, after;
	unsigned long wrong = 0;
	double start = now();

	getrusage(RUSAGE_SELF, &before);
	for (unsigned long page = 0; page < pages; page++) {
		if (old)
			wrong += is_wrong(page, old);
		if (new)
			fill(page, new);
	}
	getrusage(RUSAGE_SELF, &after);
	printf("pid=%d round=%lu pages=%lu minflt=%ld majflt=%ld wrong=%lu seconds=%.2f\n", getpid(), new ? new : old,
	       pages, after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt, wrong, now() - start);
	fflush(stdout);
	if (is_paging_out && new)
		madvise(memory, pages * PAGE, MADV_PAGEOUT);
	return wrong;
}

static unsigned long share(void)
{
	unsigned long wrong = go_over(0, 1);
	int status;

	for (unsigned long i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(go_over(1, 0) != 0);
		waitpid(pid, &status, 0);
		wrong += pid < 0 || status != 0;
	}
	return wrong;
}

static unsigned long number(const char *text, unsigned long most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || value == 0 || value > most) {
		fprintf(stderr, "hog: %s: a number from 1 to %lu is wanted\n", text, most);
		exit(2);
	}
	return value;
}

static void read_options(int count, char **words)
{
	int option;

	while ((option = getopt(count, words, "m:r:s:p:o")) != -1) {
		switch (option) {
		case 'm':
			pages = number(optarg, 1UL << 20) * ((1UL << 20) / PAGE);
			break;
		case 'r':
			rounds = number(optarg, 1000);
			break;
		case 's':
			seconds = number(optarg, 1UL << 20);
			break;
		case 'p':
			processes = number(optarg, 64);
			break;
		case 'o':
			is_paging_out = 1;
			break;
		default:
			exit(2);
		}
	}
}

int main(int count, char **words)
{
	unsigned long wrong = 0;
	double end;

	read_options(count, words);
	memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		perror("hog");
		return 2;
	}
	if (is_paging_out)
		stay_here();
	/* One fault for every page: what is counted is then easy to follow. */
	madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
	if (processes > 1)
		return share() != 0;
	end = now() + seconds;
	for (unsigned long round = 1; round <= rounds && (round == 1 || now() < end); round++)
		wrong += go_over(round - 1, round);
	return wrong != 0;
}
