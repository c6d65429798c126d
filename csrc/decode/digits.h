/* Numbers as digits and short texts, written where there is room for TP_PRINT_PAD bytes more than they have. */
#ifndef TP_DIGITS_H
#define TP_DIGITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "print.h"

/* The two digits of 0 to 99. */
static const char tp_pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
			       "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
			       "8081828384858687888990919293949596979899";

/* Copy a text of which TP_PRINT_PAD bytes more can be read; most have one step or two. */
static inline char *tp_put_padded(char *at, const void *text, size_t size)
{
	const char *from = text;

	memcpy(at, from, 16);
	if (size > 16) {
		memcpy(at + 16, from + 16, 16);
		if (size > 32)
			memcpy(at + 32, from + 32, size - 32);
	}
	return at + size;
}

static inline char *tp_put_pair(char *at, unsigned int value)
{
	memcpy(at, tp_pairs + 2 * value, 2);
	return at + 2;
}

/* Four digits. */
static inline char *tp_put_four(char *at, unsigned int value)
{
	return tp_put_pair(tp_put_pair(at, value / 100), value % 100);
}

/* A number below 10000 without leading zeros, and without branches: most numbers are small. */
static inline char *tp_put_small(char *at, unsigned int value)
{
	unsigned int n_zeros = (value < 10) + (value < 100) + (value < 1000);
	uint16_t pairs[2];
	uint32_t word;

	memcpy(&pairs[0], tp_pairs + 2 * (value / 100), 2);
	memcpy(&pairs[1], tp_pairs + 2 * (value % 100), 2);
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		word = ((uint32_t)pairs[1] << 16 | pairs[0]) >> 8 * n_zeros;
	else
		word = ((uint32_t)pairs[0] << 16 | pairs[1]) << 8 * n_zeros;
	memcpy(at, &word, sizeof(word));
	return at + sizeof(word) - n_zeros;
}

/* What is above 12 digits of a number: at most 8. */
static inline char *tp_put_top(char *at, uint64_t value)
{
	if (value < 10000)
		return tp_put_small(at, (unsigned int)value);
	return tp_put_four(tp_put_small(at, (unsigned int)(value / 10000)), (unsigned int)(value % 10000));
}

static inline char *tp_put_decimal(char *at, uint64_t value)
{
	uint64_t above;

	if (value < 10000)
		return tp_put_small(at, (unsigned int)value);
	above = value / 10000;
	if (above < 10000)
		return tp_put_four(tp_put_small(at, (unsigned int)above), (unsigned int)(value % 10000));
	above /= 10000;
	at = above < 10000 ? tp_put_small(at, (unsigned int)above) :
			     tp_put_four(tp_put_top(at, above / 10000), (unsigned int)(above % 10000));
	at = tp_put_four(at, (unsigned int)(value / 10000 % 10000));
	return tp_put_four(at, (unsigned int)(value % 10000));
}

/* The eight hex digits of a number as bytes, the highest first in memory. */
static inline uint64_t tp_hex_digits(uint32_t number)
{
	uint64_t all = number;

	all = (all << 16 | all) & 0x0000ffff0000ffff;
	all = (all << 8 | all) & 0x00ff00ff00ff00ff;
	all = (all << 4 | all) & 0x0f0f0f0f0f0f0f0f;
	/* Now each byte holds a nibble, the highest in the highest byte; those above 9 are letters. */
	uint64_t letters = ((all + 0x0606060606060606) >> 4) & 0x0101010101010101;

	all += 0x3030303030303030 + letters * ('a' - '0' - 10);
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? all : __builtin_bswap64(all);
}

/* At least `width` digits, at most 16. */
static inline char *tp_put_wide_hex(char *at, uint64_t value, unsigned int width)
{
	unsigned int size = value ? (67 - (unsigned int)__builtin_clzll(value)) / 4 : 1;
	uint64_t halves[2];

	if (size < width)
		size = width;
	value <<= 4 * (16 - size);
	halves[0] = tp_hex_digits((uint32_t)(value >> 32));
	halves[1] = tp_hex_digits((uint32_t)value);
	memcpy(at, halves, sizeof(halves));
	return at + size;
}

static inline char *tp_put_hex(char *at, uint64_t value)
{
	return tp_put_wide_hex(at, value, 1);
}

#endif
