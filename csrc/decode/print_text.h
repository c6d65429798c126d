/* The line that is being made, and what is written to it.  The functions return false for what the twin must do. */
#ifndef TP_PRINT_TEXT_H
#define TP_PRINT_TEXT_H

#include <stdlib.h>
#include <string.h>

#include "print.h"

/* A text that is cut or padded later may be longer than a line for a while. */
enum { TP_PRINT_MOST = 4 * TP_PRINT_MAX_LINE };

struct line {
	struct tp_print_out *out;
	size_t start; /* of the line in `out` */
	bool is_out_of_memory;
};

/* Make room for `more` bytes; their number is never near SIZE_MAX. */
static inline bool line_room(struct line *line, size_t more)
{
	struct tp_print_out *out = line->out;

	if (out->n - line->start + more > TP_PRINT_MOST)
		return false;
	if (out->n + more > out->room) {
		size_t room = out->n + more + (out->n + more) / 2 + 4096;
		char *text = realloc(out->text, room);

		if (!text) {
			line->is_out_of_memory = true;
			return false;
		}
		out->text = text;
		out->room = room;
	}
	return true;
}

static inline bool line_add(struct line *line, const void *text, size_t size)
{
	if (!line_room(line, size))
		return false;
	if (size)
		memcpy(line->out->text + line->out->n, text, size);
	line->out->n += size;
	return true;
}

static inline bool line_fill(struct line *line, char with, size_t size)
{
	if (!line_room(line, size))
		return false;
	if (size)
		memset(line->out->text + line->out->n, with, size);
	line->out->n += size;
	return true;
}

/* A number without signs and zeros; `letter` is a conversion. */
bool line_digits(struct line *line, uint64_t value, char letter);

/* As lib/vsprintf.c: number(); the twin: conversion.format_number(). */
bool line_number(struct line *line, uint64_t value, char letter, unsigned int flags, int64_t width,
		 int64_t precision);

/* Cut and pad what came since `mark`; the twin: conversion.format_text(). */
bool line_pad(struct line *line, size_t mark, unsigned int flags, int64_t width, int64_t precision);

bool line_hex(struct line *line, const unsigned char *data, size_t size, char separator, unsigned int group);
bool line_numbers(struct line *line, const unsigned char *data, uint64_t n, unsigned int size, bool is_big);
bool line_bitmap(struct line *line, const unsigned char *data, uint64_t size, uint64_t n_bits, bool is_list,
		 unsigned int long_size, bool is_big);
bool line_ip4(struct line *line, const unsigned char *data, unsigned int how);
bool line_ip6(struct line *line, const unsigned char *data, unsigned int how);
bool line_mac(struct line *line, const unsigned char *data, unsigned int how);
bool line_uuid(struct line *line, const unsigned char *data, unsigned int how);

#endif
