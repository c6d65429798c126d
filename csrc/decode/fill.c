/*
 * Copying the fields of records into columns, a block of records at a time so that they stay in the cache.
 *
 * The twin is src/tracepoint/decode/fill.py.
 */
#include "fill.h"
#include "head.h"
#include "../hints.h"
#include "../location.h"

enum { MERGED_ROWS = 256, LOCATION_SIZE = 4 };

static void set_null(const struct column *column, struct rest *rest, uint64_t row)
{
	column->validity->bytes[row >> 3] &= (unsigned char)~(1u << (row & 7));
	rest->n_nulls++;
}

/* Where the bytes of a field are in a record; false when the record does not hold them all. */
static bool locate(const struct column *column, bool is_big, const struct tp_record *record, uint64_t *at,
		   uint64_t *size)
{
	*at = column->offset;
	*size = column->size;
	if (column->place == PLACE_REST) {
		*size = record->size > *at ? record->size - *at : 0;
	} else if (column->place != PLACE_FIXED) {
		uint32_t word;

		if (*at + LOCATION_SIZE > record->size)
			return false;
		word = tp_page_word(record->data + *at, is_big);
		*at = tp_location_start(word) + (column->place == PLACE_REL_LOC ? *at + LOCATION_SIZE : 0);
		*size = tp_location_size(word);
	}
	return *at + *size <= record->size;
}

#define COPY(type)                                                                                                     \
	for (uint64_t n = first; n < last; n++)                                                                        \
		memcpy(to + n * sizeof(type), records[n - first].data + column->offset, sizeof(type));                         \
	return

/* Numbers in the byte order of this machine, where all records of a block hold them. */
static void copy_plain(const struct column *column, const struct tp_record *records, uint64_t first, uint64_t last)
{
	unsigned char *to = column->values->bytes;

	switch (column->size) {
	case 1:
		COPY(uint8_t);
	case 2:
		COPY(uint16_t);
	case 4:
		COPY(uint32_t);
	case 8:
		COPY(uint64_t);
	}
}

static void swap_bytes(unsigned char *data, unsigned int size)
{
	for (unsigned int low = 0, high = size - 1; low < high; low++, high--) {
		unsigned char held = data[low];

		data[low] = data[high];
		data[high] = held;
	}
}

/* `least` is the size of the shortest record of the block. */
static void copy_numbers(const struct column *column, bool is_big, const struct tp_record *records, uint64_t first,
			 uint64_t last, uint32_t least, struct rest *rest)
{
	bool is_swapped = is_big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	uint64_t end = (uint64_t)column->offset + column->size;

	if (!is_swapped && end <= least) {
		copy_plain(column, records, first, last);
		return;
	}
	for (uint64_t n = first; n < last; n++) {
		unsigned char *to = column->values->bytes + n * column->size;

		if (end > records[n - first].size) {
			memset(to, 0, column->size);
			set_null(column, rest, n);
			continue;
		}
		memcpy(to, records[n - first].data + column->offset, column->size);
		if (is_swapped)
			swap_bytes(to, column->size);
	}
}

/* Cut a word off at its first zero byte; `*has_ended` says whether it has one, or the word before had. */
static inline uint64_t cut_word(uint64_t word, bool *has_ended)
{
	uint64_t zeros = (word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull;

	if (*has_ended)
		return 0;
	if (!zeros)
		return word;
	*has_ended = true;
	return word & (((zeros & -zeros) >> 7) - 1);
}

/*
 * Return where the index of the name of a task is kept, an array of 16 bytes: many records, few names.
 * What follows the NUL does not count.
 */
static inline struct name *name_place(struct name *names, const unsigned char *data)
{
	uint64_t words[2];
	bool has_ended = false;
	struct name *name;

	memcpy(words, data, sizeof(words));
	words[0] = cut_word(words[0], &has_ended);
	words[1] = cut_word(words[1], &has_ended);
	name = &names[(words[0] ^ words[1] * 0x9E3779B97F4A7C15ull) * 0xD1B54A32D192ED03ull >> (64 - NAME_BITS)];
	if (name->words[0] != words[0] || name->words[1] != words[1])
		*name = (struct name){ { words[0], words[1] }, NO_INDEX };
	return name;
}

static bool copy_texts(const struct column *column, bool is_big, const struct tp_record *records, uint64_t first,
		       uint64_t last, struct rest *rest)
{
	int32_t *to = (int32_t *)column->values->bytes;

	for (uint64_t n = first; n < last; n++) {
		const unsigned char *data, *end;
		uint64_t at, size;
		int64_t index;

		to[n] = 0;
		if (!locate(column, is_big, &records[n - first], &at, &size)) {
			set_null(column, rest, n);
			continue;
		}
		data = records[n - first].data + at;
		if (rest->names) {
			struct name *name = name_place(rest->names, data);

			if (name->index == NO_INDEX)
				name->index = tp_strings_add(&rest->strings, data, strnlen((const char *)data, size));
			if (name->index < 0)
				return false;
			to[n] = (int32_t)name->index;
			continue;
		}
		end = size ? memchr(data, 0, size) : NULL;
		index = tp_strings_add(&rest->strings, data, end ? (uint64_t)(end - data) : size);
		if (index < 0)
			return false;
		to[n] = (int32_t)index;
	}
	return true;
}

/* Offsets count elements from the begin of the slice; row n ends at offset n + 1. */
static bool copy_lists(const struct column *column, bool is_big, const struct tp_record *records, uint64_t first,
		       uint64_t last, struct rest *rest)
{
	bool is_swapped = column->element > 1 && is_big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	int64_t *to = (int64_t *)column->values->bytes;

	for (uint64_t n = first; n < last; n++) {
		uint64_t at, size;

		if (!locate(column, is_big, &records[n - first], &at, &size) || size % column->element) {
			set_null(column, rest, n);
		} else if (size) {
			if (!tp_grow(&rest->bytes, &rest->room, rest->n_bytes + size, 1))
				return false;
			memcpy(rest->bytes + rest->n_bytes, records[n - first].data + at, size);
			for (uint64_t item = 0; is_swapped && item < size; item += column->element)
				swap_bytes(rest->bytes + rest->n_bytes + item, column->element);
			rest->n_bytes += size;
		}
		to[n + 1] = (int64_t)(rest->n_bytes / column->element);
	}
	return true;
}

/* Masks: the numbers of the bits that are set, instead of the words that hold them. */
static bool copy_bits(const struct column *column, bool is_big, const struct tp_record *records, uint64_t first,
		      uint64_t last, struct rest *rest)
{
	int64_t *to = (int64_t *)column->values->bytes;

	for (uint64_t n = first; n < last; n++) {
		uint64_t at, size;

		if (!locate(column, is_big, &records[n - first], &at, &size) || size % column->element) {
			set_null(column, rest, n);
			size = 0;
		}
		for (uint64_t done = 0; done < size; done += column->element) {
			uint64_t word = tp_number(records[n - first].data + at + done, column->element, is_big);
			uint64_t room = (uint64_t)__builtin_popcountll(word) * sizeof(uint32_t);

			if (room && !tp_grow(&rest->bytes, &rest->room, rest->n_bytes + room, 1))
				return false;
			for (; word; word &= word - 1) {
				uint32_t bit = (uint32_t)(8 * done) + (uint32_t)__builtin_ctzll(word);

				memcpy(rest->bytes + rest->n_bytes, &bit, sizeof(bit));
				rest->n_bytes += sizeof(bit);
			}
		}
		to[n + 1] = (int64_t)(rest->n_bytes / sizeof(uint32_t));
	}
	return true;
}

static bool fill_block(const struct columns *columns, struct slice *slice, const struct tp_record *records,
		       uint64_t first, uint64_t last)
{
	uint32_t least = UINT32_MAX;

	for (uint64_t n = first; n < last; n++)
		least = records[n - first].size < least ? records[n - first].size : least;
	for (unsigned int c = 0; c < columns->n_columns; c++) {
		const struct column *column = &columns->columns[c];
		struct rest *rest = &slice->rests[c];

		switch (column->kind) {
		case KIND_STAMP:
			for (uint64_t n = first; n < last; n++)
				((int64_t *)column->values->bytes)[n] = records[n - first].stamp;
			break;
		case KIND_CPU:
			for (uint64_t n = first; n < last; n++)
				((int32_t *)column->values->bytes)[n] = records[n - first].cpu;
			break;
		case KIND_NUMBER:
			copy_numbers(column, columns->is_big, records, first, last, least, rest);
			break;
		case KIND_TEXT:
			if (!copy_texts(column, columns->is_big, records, first, last, rest))
				return false;
			break;
		case KIND_BITS:
			if (!copy_bits(column, columns->is_big, records, first, last, rest))
				return false;
			break;
		default:
			if (!copy_lists(column, columns->is_big, records, first, last, rest))
				return false;
		}
	}
	return true;
}

/* Merge the slice's records and copy their fields by turns, so that they stay in the cache. */
static bool fill_merging(const struct columns *columns, struct slice *slice)
{
	struct tp_cursor cursors[TP_MAX_SEQUENCES];
	struct tp_record records[MERGED_ROWS];
	uint64_t heap[TP_MAX_SEQUENCES];
	struct tp_merger merger;

	tp_merge_from(&merger, columns->rows, slice->first, cursors, heap);
	for (uint64_t at = slice->first, last; at < slice->last; at = last) {
		last = slice->last - at < MERGED_ROWS ? slice->last : at + MERGED_ROWS;
		tp_merge(&merger, records, last - at);
		if (!fill_block(columns, slice, records, at, last))
			return false;
	}
	return true;
}

bool tp_fill_slice(const struct columns *columns, struct slice *slice)
{
	if (slice->first == slice->last)
		return true;
	if (!columns->rows->records)
		return fill_merging(columns, slice);
	for (uint64_t at = slice->first, last; at < slice->last; at = last) {
		last = slice->last - at < MERGED_ROWS ? slice->last : at + MERGED_ROWS;
		if (!fill_block(columns, slice, columns->rows->records + at, at, last))
			return false;
	}
	return true;
}
