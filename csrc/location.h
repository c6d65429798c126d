/*
 * The word of a __data_loc or __rel_loc field: where in a record its bytes are, and how many.
 *
 * The twin is src/tracepoint/record/field.py: unpack_location(), pack_location().
 */
#ifndef TP_LOCATION_H
#define TP_LOCATION_H

#include <stdint.h>

/* Counted from the beginning of the record, of a __rel_loc from the end of its word. */
static inline uint32_t tp_location_start(uint32_t word)
{
	return word & 0xFFFF;
}

static inline uint32_t tp_location_size(uint32_t word)
{
	return word >> 16;
}

static inline uint32_t tp_location(uint32_t start, uint32_t size)
{
	return size << 16 | start;
}

#endif
