/*
 * The head of a page: how large its data is, and what was lost before it.
 *
 * The twin is src/tracepoint/record/page.py: read_page().
 */
#ifndef TP_DECODE_HEAD_H
#define TP_DECODE_HEAD_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../page.h"

enum { TP_MISSED_EVENTS_BIT = 31, TP_MISSED_STORED_BIT = 30, TP_SIZE_MASK = (1 << 27) - 1 };

/* As in struct PageLayout of src/tracepoint/record/layout.py. */
struct tp_layout {
	unsigned int data_offset, data_size, commit_offset, long_size;
	int is_big;
};

enum tp_fault { TP_FAULT_NONE, TP_FAULT_SIZE, TP_FAULT_CUT, TP_FAULT_REST, TP_FAULT_LEFT };

struct tp_head {
	uint64_t stamp, lost, fault_at;
	uint32_t size, fault_size;
	bool is_lost_unknown;
	enum tp_fault fault;
};

static inline uint64_t tp_number(const unsigned char *data, unsigned int size, bool is_big)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < size; i++)
		value |= (uint64_t)data[is_big ? size - 1 - i : i] << 8 * i;
	return value;
}

static inline void tp_put_number(unsigned char *to, uint64_t value, unsigned int size, bool is_big)
{
	for (unsigned int i = 0; i < size; i++)
		to[is_big ? size - 1 - i : i] = (unsigned char)(value >> 8 * i);
}

static inline uint32_t tp_page_size(const struct tp_layout *layout)
{
	return layout->data_offset + layout->data_size;
}

/* Whether offsets within a page of this layout stay inside it; sets ValueError if not. */
static inline bool tp_check_layout(const struct tp_layout *layout)
{
	if (layout->data_size && layout->data_size <= TP_SIZE_MASK + 1 && layout->data_offset <= 64 &&
	    (layout->long_size == 4 || layout->long_size == 8) && layout->commit_offset >= 8 &&
	    layout->commit_offset + layout->long_size <= layout->data_offset)
		return true;
	PyErr_SetString(PyExc_ValueError, "not a layout of pages");
	return false;
}

/* Read the head of the page at `at`; a size of 0 with a fault where it claims more than a page holds. */
static inline void tp_read_head(const unsigned char *data, uint64_t at, const struct tp_layout *layout,
				struct tp_head *ret)
{
	uint64_t commit = tp_number(data + at + layout->commit_offset, layout->long_size, layout->is_big);
	uint32_t size = commit & TP_SIZE_MASK;

	*ret = (struct tp_head){ .stamp = tp_number(data + at, 8, layout->is_big) };
	if (size > layout->data_size) {
		ret->fault = TP_FAULT_SIZE;
		ret->fault_size = size;
		ret->fault_at = at + layout->commit_offset;
		return;
	}
	ret->size = size;
	if (commit >> TP_MISSED_EVENTS_BIT & 1) {
		ret->is_lost_unknown = !(commit >> TP_MISSED_STORED_BIT & 1) ||
				       size + layout->long_size > layout->data_size;
		if (!ret->is_lost_unknown)
			ret->lost = tp_number(data + at + layout->data_offset + size, layout->long_size,
					      layout->is_big);
		if (ret->lost > INT64_MAX) {
			/* Not a count that a kernel makes. */
			ret->is_lost_unknown = true;
			ret->lost = 0;
		}
	}
}

/* Walk the events of the page at `at` whose head was read. */
static inline __attribute__((always_inline)) void tp_walk(const unsigned char *data, uint64_t at,
							  const struct tp_layout *layout, struct tp_head *head,
							  tp_take_record take, tp_take_mark mark, void *to)
{
	uint64_t start = at + layout->data_offset, stamp = head->stamp;
	uint32_t whole = head->size & ~3u, done;

	if (layout->is_big)
		done = tp_walk_page(data + start, whole, &stamp, true, take, mark, to);
	else
		done = tp_walk_page(data + start, whole, &stamp, false, take, mark, to);
	if (done < whole) {
		head->fault = TP_FAULT_CUT;
		head->fault_at = start + done;
	} else if (head->size % 4) {
		head->fault = TP_FAULT_REST;
		head->fault_at = start + head->size;
	}
}

/* Takes a mark of a CPU where those do not matter. */
static inline void tp_pass_mark(void *to, int32_t cpu)
{
	(void)to;
	(void)cpu;
}

#define TP_LAYOUT_CODES "(IIIIp)"
#define TP_LAYOUT_PLACES(layout) \
	&(layout).data_offset, &(layout).data_size, &(layout).commit_offset, &(layout).long_size, &(layout).is_big

static inline PyObject *tp_fault_text(const struct tp_head *head)
{
	switch (head->fault) {
	case TP_FAULT_SIZE:
		return PyUnicode_FromFormat("a page claims %u bytes of data", head->fault_size);
	case TP_FAULT_CUT:
		return PyUnicode_FromString("an event reaches past the end of the data");
	case TP_FAULT_REST:
		return PyUnicode_FromString("the data does not end with a whole word");
	case TP_FAULT_LEFT:
		return PyUnicode_FromFormat("%u bytes are left over after the last whole page", head->fault_size);
	default:
		return PyUnicode_FromString("");
	}
}

static inline PyObject *tp_lost_number(const struct tp_head *head)
{
	return head->is_lost_unknown ? PyLong_FromLong(-1) : PyLong_FromUnsignedLongLong(head->lost);
}

#endif
