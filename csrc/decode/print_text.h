/*
 * The line that is being made, and what is written to it.  The functions return false for what the twin must do.
 *
 * A line has room for TP_PRINT_MOST bytes, and for what a copy in steps of 16 bytes writes beyond its end.
 */
#ifndef TP_PRINT_TEXT_H
#define TP_PRINT_TEXT_H

#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "print.h"

struct line {
	char *at, *start, *end;
};

/* Whether there is room for `more` bytes. */
static inline bool line_room(const struct line *line, size_t more)
{
	return more <= (size_t)(line->end - line->at);
}

static inline bool line_add(struct line *line, const void *text, size_t size)
{
	if (!line_room(line, size))
		return false;
	if (size)
		memcpy(line->at, text, size);
	line->at += size;
	return true;
}

/* Add bytes that TP_PRINT_PAD others follow: short texts without a call. */
static inline bool line_add_padded(struct line *line, const void *text, size_t size)
{
	if (!line_room(line, size))
		return false;
	line->at = tp_put_padded(line->at, text, size);
	return true;
}

static inline bool line_fill(struct line *line, char with, size_t size)
{
	if (!line_room(line, size))
		return false;
	if (size)
		memset(line->at, with, size);
	line->at += size;
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
