/* From Python values to the fields of a record. */
#ifndef TP_CONVERT_H
#define TP_CONVERT_H

#include "location.h"
#include "module.h"

/* Kept equal to FieldKind in src/tracepoint/runtime/declare/plan.py. */
enum tp_field_kind {
	TP_FIELD_INT = 0,
	TP_FIELD_BOOL = 1,
	TP_FIELD_FLOAT = 2,
	TP_FIELD_CHARS = 3,   /* char[N]: cut to N - 1 bytes, then NULs */
	TP_FIELD_BYTES = 4,   /* N bytes as they are, NULs after them */
	TP_FIELD_ARRAY = 5,   /* N / element integers */
	TP_FIELD_STRING = 6,  /* bytes and a NUL, elsewhere in the record */
	TP_FIELD_DYNAMIC = 7, /* integers or bytes, elsewhere in the record */
	TP_FIELD_BITMASK = 8, /* words of a long, elsewhere in the record */
};

enum tp_field_flags {
	TP_FIELD_SIGNED = 1,
	TP_FIELD_REL = 2, /* __rel_loc instead of __data_loc */
};

struct tp_field {
	uint8_t kind;
	uint8_t flags;
	uint16_t offset;
	uint16_t size;    /* bytes of the field; of one element for TP_FIELD_DYNAMIC */
	uint16_t element; /* bytes of one element; for TP_FIELD_BITMASK the least number of words */
	uint16_t source;  /* which value */
	int64_t min;      /* of an integer field, as far as a long long goes */
	int64_t max;
	PyObject *name;
};

/* A record while it is made; `size` grows with the dynamic data, which goes to `dynamic`, up to `room`. */
struct tp_record {
	uint32_t size;
	uint32_t dynamic;
	uint32_t room;
	unsigned char *data;
};

static inline bool tp_field_is_dynamic(const struct tp_field *field)
{
	return field->kind >= TP_FIELD_STRING;
}

static inline int64_t tp_int_min(uint32_t size, bool is_signed)
{
	return is_signed ? -(1ll << (size * 8 - 2)) * 2 : 0;
}

static inline int64_t tp_int_max(uint32_t size, bool is_signed)
{
	return size == 8 ? INT64_MAX : (1ll << (size * 8 - is_signed)) - 1;
}

/* A small exact int is by far the most frequent; everything else takes the way round. */
static tp_always_inline bool tp_small_int(PyObject *object, int64_t *ret)
{
	if (!PyLong_CheckExact(object))
		return false;
#if PY_VERSION_HEX >= 0x030C0000
	if (!PyUnstable_Long_IsCompact((PyLongObject *)object))
		return false;
	*ret = PyUnstable_Long_CompactValue((PyLongObject *)object);
	return true;
#else
	Py_ssize_t size = Py_SIZE(object);
	if ((size_t)(size + 1) > 2)
		return false;
	/* Zero has a digit too: _PyLong_New() in Objects/longobject.c. */
	*ret = size * (int64_t)((PyLongObject *)object)->ob_digit[0];
	return true;
#endif
}

/* An exact str whose bytes follow its head, one per character and a final NUL. */
static tp_always_inline bool tp_is_plain_str(PyObject *object)
{
	const PyASCIIObject *text = (const PyASCIIObject *)object;

	/* & and not &&: one branch for what PyUnicode_IS_COMPACT_ASCII() takes two for. */
	return PyUnicode_CheckExact(object) && text->state.compact & text->state.ascii;
}

static tp_always_inline void tp_put_number(const struct tp_field *field, uint64_t number, struct tp_record *record)
{
	unsigned char *to = record->data + field->offset;

	if (field->size == 4)
		memcpy(to, &number, 4);
	else if (field->size == 8)
		memcpy(to, &number, 8);
	else if (field->size == 2)
		memcpy(to, &number, 2);
	else
		*to = (unsigned char)number;
}

/* Most strings are copied faster than by memcpy(): from both ends, meeting in the middle. */
static tp_always_inline void tp_copy_bytes(unsigned char *to, const char *from, size_t length)
{
	if (tp_likely(length - 8 <= 8)) {
		memcpy(to, from, 8);
		memcpy(to + length - 8, from + length - 8, 8);
	} else if (length - 16 <= 16) {
		memcpy(to, from, 16);
		memcpy(to + length - 16, from + length - 16, 16);
	} else {
		memcpy(to, from, length);
	}
}

/* Append `length` bytes and then `n_zeros` NULs for a field.  Returns whether there is room. */
static tp_always_inline bool tp_put_dynamic(const struct tp_field *field, const char *data, size_t length,
					    size_t n_zeros, struct tp_record *record)
{
	uint32_t at = record->dynamic;
	uint32_t start = field->flags & TP_FIELD_REL ? at - (field->offset + 4u) : at;
	uint32_t word = tp_location(start, (uint32_t)(length + n_zeros));

	if (tp_unlikely(length + n_zeros > record->room - record->size))
		return false;
	memcpy(record->data + field->offset, &word, sizeof(word));
	tp_copy_bytes(record->data + at, data, length);
	if (n_zeros)
		memset(record->data + at + length, 0, n_zeros);
	record->dynamic += length + n_zeros;
	record->size += length + n_zeros;
	return true;
}

/* Convert a value that needs no Python code to run.  Returns whether it was one, and there was room. */
static tp_always_inline bool tp_convert_quickly(const struct tp_field *field, PyObject *object,
						struct tp_record *record)
{
	int64_t number;

	if (field->kind == TP_FIELD_INT) {
		if (tp_unlikely(!tp_small_int(object, &number) || number < field->min || number > field->max))
			return false;
		tp_put_number(field, (uint64_t)number, record);
		return true;
	}
	if (field->kind == TP_FIELD_STRING && tp_is_plain_str(object))
		/* The NUL is copied along. */
		return tp_put_dynamic(field, PyUnicode_DATA(object), (size_t)PyUnicode_GET_LENGTH(object) + 1, 0,
				      record);
	return false;
}

int tp_convert_slowly(const struct tp_field *field, PyObject *object, struct tp_record *record);

/* Convert one value and put it into the record.  Returns 0, or -1 with an exception set. */
static inline int tp_convert(const struct tp_field *field, PyObject *object, struct tp_record *record)
{
	return tp_convert_quickly(field, object, record) ? 0 : tp_convert_slowly(field, object, record);
}

/* Whether a filter lets a record pass that the thread of `ring` made on `cpu`. */
static inline bool tp_filter_passes(const FilterObject *filter, const struct tp_record *record, int32_t cpu,
				    const struct tp_ring *ring)
{
	struct tp_filter_context context = { .cpu = (uint32_t)cpu };

	memcpy(context.comm, ring->head->comm, sizeof(context.comm));
	return tp_filter_matches(PyBytes_AS_STRING(filter->program), record->data, record->size, &context);
}

#endif
