/*
 * Walking the events of a page of a ring buffer, of any byte order: the one walker of both modules.
 *
 * The twin is src/tracepoint/record/page.py: _walk().
 */
#ifndef TP_PAGE_H
#define TP_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* include/linux/ring_buffer.h: enum ring_buffer_type. */
enum {
	TP_TYPE_DATA_MAX = 28,
	TP_TYPE_PADDING = 29,
	TP_TYPE_TIME_EXTEND = 30,
	TP_TYPE_TIME_STAMP = 31,
	TP_DELTA_BITS = 27,
	TP_STAMP_BITS = 59,
	/* A padding event of this many bytes holds the number of a CPU; no other has this size. */
	TP_CPU_MARK_SIZE = 12,
	/* A record begins with the number of its event, of 16 bits. */
	TP_N_IDS = 1 << 16,
	/* How many bytes before it is walked memory is asked for; the bytes need not be there. */
	TP_AHEAD = 2048,
};

/* What is done with each event: `at` is the offset of the payload in the data, `size` its bytes. */
typedef void (*tp_take_record)(void *to, uint64_t stamp, uint32_t at, uint32_t size);
typedef void (*tp_take_mark)(void *to, int32_t cpu);

static inline uint32_t tp_page_word(const unsigned char *data, bool is_big)
{
	uint32_t word;

	memcpy(&word, data, sizeof(word));
	return is_big == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) ? word : __builtin_bswap32(word);
}

/* The number of the event of a record of at least 2 bytes. */
static inline uint16_t tp_record_id(const unsigned char *record, bool is_big)
{
	return (uint16_t)(is_big ? record[0] << 8 | record[1] : record[1] << 8 | record[0]);
}

/*
 * How many bytes an event takes whose payload has `length`: as rb_calculate_event_length(), which leaves out 12,
 * so that an event can become padding.
 */
static inline uint32_t tp_event_size(uint32_t length)
{
	uint32_t size = length ? (length + 3) & ~3u : 4;

	size += size > 4 * TP_TYPE_DATA_MAX ? 8 : 4;
	return size == 12 ? 16 : size;
}

/*
 * Take the events of `size` bytes, a multiple of 4; `*stamp` is the time before them, and after.
 * Return where an event is cut off, or `size`.
 */
static inline __attribute__((always_inline)) uint32_t tp_walk_page(const unsigned char *data, uint32_t size,
								   uint64_t *stamp, bool is_big,
								   tp_take_record take, tp_take_mark mark,
								   void *to)
{
	uint64_t now = *stamp;
	uint32_t at = 0;

	while (at < size) {
		uint32_t word = tp_page_word(data + at, is_big);
		uint32_t kind = is_big ? word >> TP_DELTA_BITS : word & 31;
		uint32_t delta = is_big ? word & ((1u << TP_DELTA_BITS) - 1) : word >> 5;
		uint32_t left = size - at, array;

		__builtin_prefetch((const void *)((uintptr_t)data + at + TP_AHEAD));
		if (kind && kind <= TP_TYPE_DATA_MAX) {
			if (4 * kind + 4 > left)
				break;
			now += delta;
			take(to, now, at + 4, 4 * kind);
			at += 4 * kind + 4;
			continue;
		}
		if (kind == TP_TYPE_PADDING && !delta) {
			at = size;
			break;
		}
		if (left < 8)
			break;
		array = tp_page_word(data + at + 4, is_big);
		if (kind == TP_TYPE_TIME_EXTEND) {
			now += ((uint64_t)array << TP_DELTA_BITS) + delta;
			at += 8;
		} else if (kind == TP_TYPE_TIME_STAMP) {
			uint64_t low = (1ull << TP_STAMP_BITS) - 1;

			now = (now & ~low) | ((((uint64_t)array << TP_DELTA_BITS) + delta) & low);
			at += 8;
		} else {
			if (array < 4 || array > left - 4)
				break;
			now += delta;
			if (kind != TP_TYPE_PADDING)
				take(to, now, at + 8, array - 4);
			else if (array + 4 == TP_CPU_MARK_SIZE)
				mark(to, (int32_t)tp_page_word(data + at + 8, is_big));
			at += 4 + ((array + 3) & ~3u);
		}
	}
	*stamp = now;
	return at;
}

#endif
