/*
 * Arithmetic of print programs: numbers of the integer types of C, which wrap as the kernel's do.
 *
 * A type is log2 of its bytes, and 4 more where it has a sign.  Twin: src/tracepoint/printk/twin.
 */
#ifndef TP_PRINT_NUMBER_H
#define TP_PRINT_NUMBER_H

#include "print.h"

#include <string.h>

enum { MAX_WIDTH = 1 << 14 };

static inline uint64_t wrap(uint64_t value, unsigned int type)
{
	switch (type) {
	case 0:
		return (uint8_t)value;
	case 1:
		return (uint16_t)value;
	case 2:
		return (uint32_t)value;
	case 4:
		return (uint64_t)(int64_t)(int8_t)value;
	case 5:
		return (uint64_t)(int64_t)(int16_t)value;
	case 6:
		return (uint64_t)(int64_t)(int32_t)value;
	default:
		return value;
	}
}

static inline uint64_t swapped(uint64_t value, unsigned int type)
{
	return __builtin_bswap64(value) >> (64 - (8u << (type & 3)));
}

/* Read a number of the record's byte order; its bytes are there. */
static inline uint64_t load(const unsigned char *at, unsigned int type, bool is_big)
{
	bool must_swap = is_big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	uint64_t value = 0;

	switch (type & 3) {
	case 0:
		value = *at;
		break;
	case 1: {
		uint16_t half;
		memcpy(&half, at, sizeof(half));
		value = half;
		break;
	}
	case 2: {
		uint32_t word;
		memcpy(&word, at, sizeof(word));
		value = word;
		break;
	}
	default:
		memcpy(&value, at, sizeof(value));
	}
	return wrap(must_swap ? swapped(value, type) : value, type);
}

static inline bool divide(uint64_t *a, uint64_t b, unsigned int type, bool wants_rest)
{
	if (!b)
		return false;
	if (!(type & 4))
		*a = wants_rest ? *a % b : *a / b;
	else if ((int64_t)b == -1)
		*a = wants_rest ? 0 : 0 - *a;
	else
		*a = (uint64_t)(wants_rest ? (int64_t)*a % (int64_t)b : (int64_t)*a / (int64_t)b);
	return true;
}

static inline uint64_t shift(uint64_t a, uint64_t b, unsigned int type, bool is_left)
{
	unsigned int by = b & ((8u << (type & 3)) - 1);

	if (is_left)
		return a << by;
	return type & 4 ? (uint64_t)((int64_t)a >> by) : a >> by;
}

static inline bool is_less(uint64_t a, uint64_t b, unsigned int type)
{
	return type & 4 ? (int64_t)a < (int64_t)b : a < b;
}

/* Compare two numbers of a type, or choose one of them. */
static inline uint64_t compare(unsigned int code, uint64_t a, uint64_t b, unsigned int type)
{
	switch (code) {
	case TP_PR_EQUAL:
		return a == b;
	case TP_PR_UNEQUAL:
		return a != b;
	case TP_PR_LESS:
		return is_less(a, b, type);
	case TP_PR_GREATER:
		return is_less(b, a, type);
	case TP_PR_AT_MOST:
		return !is_less(b, a, type);
	case TP_PR_AT_LEAST:
		return !is_less(a, b, type);
	case TP_PR_MIN:
		return is_less(b, a, type) ? b : a;
	default:
		return is_less(a, b, type) ? b : a;
	}
}

/* Compute `*a op b`, both of a type; false for a division by 0. */
static inline bool compute(unsigned int code, uint64_t *a, uint64_t b, unsigned int type)
{
	switch (code) {
	case TP_PR_ADD:
		*a += b;
		break;
	case TP_PR_SUBTRACT:
		*a -= b;
		break;
	case TP_PR_MULTIPLY:
		*a *= b;
		break;
	case TP_PR_DIVIDE:
	case TP_PR_REMAINDER:
		if (!divide(a, b, type, code == TP_PR_REMAINDER))
			return false;
		break;
	case TP_PR_AND:
		*a &= b;
		break;
	case TP_PR_OR:
		*a |= b;
		break;
	case TP_PR_XOR:
		*a ^= b;
		break;
	case TP_PR_SHIFT_LEFT:
	case TP_PR_SHIFT_RIGHT:
		*a = shift(*a, b, type, code == TP_PR_SHIFT_LEFT);
		break;
	default:
		*a = compare(code, *a, b, type);
		return true;
	}
	*a = wrap(*a, type);
	return true;
}

static inline bool jiffies_to(uint64_t *jiffies, uint64_t hz, uint64_t scale, unsigned int type)
{
	unsigned __int128 number = (unsigned __int128)*jiffies * scale;

	if (!hz || (int64_t)hz < 0)
		return false;
	*jiffies = wrap((uint64_t)(scale % hz ? (number + hz - 1) / hz : number / hz), type);
	return true;
}

static inline uint64_t width_of(uint64_t number)
{
	int64_t value = (int64_t)number;

	value = value < -MAX_WIDTH ? -MAX_WIDTH : value > MAX_WIDTH ? MAX_WIDTH : value;
	return value == -1 ? 1 : (uint64_t)value;
}

#endif
