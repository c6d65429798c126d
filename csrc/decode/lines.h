/* What all lines of a text share, and the context that each begins with. */
#ifndef TP_LINES_H
#define TP_LINES_H

#include "../page.h"
#include "decode.h"
#include "digits.h"

enum tp_lines_flag {
	TP_LINES_HAVE_CONTEXT = 1,
	TP_LINES_HAVE_IRQ_INFO = 2,
	TP_LINES_ARE_IN_NS = 4,
	TP_LINES_HAVE_OVERRUNS = 8,
	TP_LINES_ARE_BIG_ENDIAN = 16,
	TP_LINES_MAY_BE_LAZY = 32,
	TP_LINES_ARE_OF_REPORT = 64, /* with the columns of `trace-cmd report` */
};

struct tp_graph;

enum { TP_TASKS_AT_HAND = 1 << 10 };

/* Texts one after the other: number n ends at ends[n].  TP_PRINT_PAD bytes more can be read. */
struct tp_texts {
	uint64_t *ends, n;
	char *bytes;
};

/* The writer of the lines of one text; one thread at a time has it. */
struct tp_line_writer {
	PyObject *held; /* the print programs */
	const struct tp_prints *prints;
	struct tp_texts tasks, names, unknown; /* the last: before the pid of other tasks, before one below 0, and what follows */
	int32_t *pids;
	unsigned int flags;
	size_t room; /* what a line may need */
	uint64_t n_lines, *notes; /* how many lines with each kind of note: tp_prints_note() */
	uint64_t second_us; /* the second at hand, in microseconds */
	uint32_t second_size;
	char second[64]; /* as text, with what is around it */
	char flag_texts[256][4], count_texts[256][2];
	struct tp_task_at_hand {
		const char *text; /* NULL: none */
		uint32_t size;
		int32_t pid;
	} at_hand[TP_TASKS_AT_HAND];
	struct tp_graph *graph; /* NULL where calls are not drawn */
	bool is_busy;
};

/* Return the writer of a capsule, for this thread alone; NULL with an exception. */
struct tp_line_writer *tp_take_line_writer(PyObject *capsule);
/* Let other threads have it; NULL does nothing. */
void tp_put_line_writer(struct tp_line_writer *writer);

/* Write task, CPU, flags and time; `head` is what every record begins with. */
char *tp_put_context(char *at, struct tp_line_writer *writer, uint64_t stamp, uint64_t cpu,
		     const unsigned char head[8]);

/* Return the index of a task, the number of tasks when it is not known. */
uint64_t tp_find_task(const struct tp_line_writer *writer, int32_t pid);

/* Return a copy for free(), of which TP_PRINT_PAD bytes more can be read; NULL without memory. */
void *tp_copied(const Py_buffer *buffer);

/* Copy texts and check where they end; `*longest` becomes that of the longest when it is longer. */
bool tp_take_texts(struct tp_texts *texts, const Py_buffer *ends, const Py_buffer *bytes, size_t *longest);
void tp_drop_texts(struct tp_texts *texts);

/* Return the pid in the head of a record. */
static inline int32_t tp_pid_of(const struct tp_line_writer *writer, const unsigned char head[8])
{
	return (int32_t)tp_page_word(head + 4, writer->flags & TP_LINES_ARE_BIG_ENDIAN);
}

/* Write a number with at least `width` characters, filled from the left. */
static inline char *tp_put_number(char *at, uint64_t value, unsigned int width, char fill)
{
	char held[24 + TP_PRINT_PAD];
	size_t size = (size_t)(tp_put_decimal(held, value) - held);

	for (; size < width; width--)
		*at++ = fill;
	memcpy(at, held, size);
	return at + size;
}

/* Write text number n, nothing when there is none. */
static inline char *tp_put_text(char *at, const struct tp_texts *texts, uint64_t n)
{
	uint64_t start;

	if (n >= texts->n)
		return at;
	start = n ? texts->ends[n - 1] : 0;
	return tp_put_padded(at, texts->bytes + start, texts->ends[n] - start);
}

#endif
