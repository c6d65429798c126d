/*
 * One line of standard input is one round: prints the nanoseconds of an empty turn of the loop, of demo:plain
 * and of demo:text, each the mean of N_EVENTS.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "demo.h"

#include <stdio.h>
#include <time.h>

enum { N_EVENTS = 4000 };

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(void)
{
	char line[16];

	while (fgets(line, sizeof(line), stdin)) {
		double begin = now();
		for (int i = 0; i < N_EVENTS; i++)
			__asm__ volatile("" ::: "memory");
		double empty = now();
		for (int i = 0; i < N_EVENTS; i++)
			lttng_ust_tracepoint(demo, plain, 1, 2, i);
		double plain = now();
		for (int i = 0; i < N_EVENTS; i++)
			lttng_ust_tracepoint(demo, text, "some text", 1, 2, i);
		double text = now();
		printf("%.3f %.3f %.3f\n", (empty - begin) / N_EVENTS, (plain - empty) / N_EVENTS,
		       (text - plain) / N_EVENTS);
		fflush(stdout);
	}
	return 0;
}
