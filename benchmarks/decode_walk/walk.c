/*
 * The least that reading can cost: pages of a mapped file, and eleven columns of one event, one CPU after the other.
 *
 * walk FILE ID (OFFSET SIZE)...: prints the rows and the CPU seconds of walking and filling, the median of 7 turns.
 * For pages of 4 KiB of a little-endian machine of 64 bits, without damage: this is a measure, not a reader.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

enum { PAGE = 4096, HEAD = 16, N_TURNS = 7, MOST = 1 << 24 };

static int64_t *ts, *state;
static int32_t *cpus, *prev_pid, *prev_prio, *next_pid, *next_prio, *common_pid;
static uint8_t *flags, *preempt;
static char (*prev_comm)[16], (*next_comm)[16];

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t fill(const unsigned char *r, int64_t stamp, int cpu, uint64_t row)
{
	ts[row] = stamp;
	cpus[row] = cpu;
	flags[row] = r[2];
	preempt[row] = r[3];
	memcpy(&common_pid[row], r + 4, 4);
	memcpy(prev_comm[row], r + 8, 16);
	memcpy(&prev_pid[row], r + 24, 4);
	memcpy(&prev_prio[row], r + 28, 4);
	memcpy(&state[row], r + 32, 8);
	memcpy(next_comm[row], r + 40, 16);
	memcpy(&next_pid[row], r + 56, 4);
	memcpy(&next_prio[row], r + 60, 4);
	return row + 1;
}

static uint64_t walk(const unsigned char *page, int cpu, uint16_t id, uint64_t row)
{
	uint32_t size = (uint32_t) * (const uint64_t *)(const void *)(page + 8) & 0x7FFFFFF, at = 0;
	int64_t now = *(const int64_t *)(const void *)page;

	while (at < size) {
		const unsigned char *event = page + HEAD + at;
		uint32_t word = *(const uint32_t *)(const void *)event, kind = word & 31, delta = word >> 5;

		if (kind && kind <= 28) {
			now += delta;
			if (*(const uint16_t *)(const void *)(event + 4) == id)
				row = fill(event + 4, now, cpu, row);
			at += 4 + 4 * kind;
		} else if (kind == 30) {
			now += ((int64_t)((const uint32_t *)(const void *)event)[1] << 27) + delta;
			at += 8;
		} else if (kind == 31) {
			now = ((int64_t)((const uint32_t *)(const void *)event)[1] << 27) + delta;
			at += 8;
		} else if (kind == 29 && !delta) {
			break;
		} else {
			uint32_t length = ((const uint32_t *)(const void *)event)[1];

			now += delta;
			if (kind != 29 && *(const uint16_t *)(const void *)(event + 8) == id)
				row = fill(event + 8, now, cpu, row);
			at += 4 + ((length + 3) & ~3u);
		}
	}
	return row;
}

static int compare(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

#define MAKE(name) (name = malloc((size_t)MOST * sizeof(*name)))

int main(int n, char **words)
{
	int file = n > 2 ? open(words[1], O_RDONLY) : -1;
	double taken[N_TURNS];
	struct stat about;
	uint64_t row = 0;

	if (file < 0 || fstat(file, &about))
		return 1;
	for (int turn = 0; turn < N_TURNS; turn++) {
		double begin = seconds();
		unsigned char *data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, file, 0);

		if (data == MAP_FAILED || !MAKE(ts) || !MAKE(state) || !MAKE(cpus) || !MAKE(prev_pid) || !MAKE(prev_prio) ||
		    !MAKE(next_pid) || !MAKE(next_prio) || !MAKE(common_pid) || !MAKE(flags) || !MAKE(preempt) ||
		    !MAKE(prev_comm) || !MAKE(next_comm))
			return 1;
		row = 0;
		for (int w = 3; w + 1 < n; w += 2)
			for (uint64_t at = strtoull(words[w], NULL, 10), end = at + strtoull(words[w + 1], NULL, 10); at < end; at += PAGE)
				row = walk(data + at, (w - 3) / 2, (uint16_t)atoi(words[2]), row);
		munmap(data, (size_t)about.st_size);
		free(ts), free(state), free(cpus), free(prev_pid), free(prev_prio), free(next_pid), free(next_prio);
		free(common_pid), free(flags), free(preempt), free(prev_comm), free(next_comm);
		taken[turn] = seconds() - begin;
	}
	qsort(taken, N_TURNS, sizeof(*taken), compare);
	printf("%llu %f\n", (unsigned long long)row, taken[N_TURNS / 2]);
	return 0;
}
