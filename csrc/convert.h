/* From Python values to the fields of a record. */
#ifndef TP_CONVERT_H
#define TP_CONVERT_H

#include "module.h"

/* Kept equal to FieldKind in src/tracepoint/runtime/plan.py. */
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

/* A record while it is made; `size` grows with the dynamic data, which goes to `dynamic`. */
struct tp_record {
	uint32_t size;
	uint32_t dynamic;
	_Alignas(8) unsigned char data[TP_PAGE_SIZE];
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
static inline bool tp_small_int(PyObject *object, int64_t *ret)
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
	if (size < -1 || size > 1)
		return false;
	*ret = size ? size * (int64_t)((PyLongObject *)object)->ob_digit[0] : 0;
	return true;
#endif
}

static inline void tp_put_number(const struct tp_field *field, uint64_t number, struct tp_record *record)
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

int tp_record_too_long(void);

/* Append `length` bytes and then `n_zeros` NULs for a field.  Returns 0, or -1 with an exception. */
static inline int tp_put_dynamic(const struct tp_field *field, const char *data, size_t length, size_t n_zeros,
				 struct tp_record *record)
{
	uint32_t at = record->dynamic;
	uint32_t start = field->flags & TP_FIELD_REL ? at - (field->offset + 4u) : at;
	uint32_t word = (uint32_t)(length + n_zeros) << 16 | start;

	if (length + n_zeros > TP_MAX_PAYLOAD - record->size)
		return tp_record_too_long();
	memcpy(record->data + field->offset, &word, sizeof(word));
	memcpy(record->data + at, data, length);
	if (n_zeros)
		memset(record->data + at + length, 0, n_zeros);
	record->dynamic += length + n_zeros;
	record->size += length + n_zeros;
	return 0;
}

int tp_convert_slowly(const struct tp_field *field, PyObject *object, struct tp_record *record);

/* Convert one value and put it into the record.  Returns 0, or -1 with an exception set. */
static inline int tp_convert(const struct tp_field *field, PyObject *object, struct tp_record *record)
{
	int64_t number;

	if (field->kind == TP_FIELD_INT && tp_small_int(object, &number) && number >= field->min &&
	    number <= field->max) {
		tp_put_number(field, (uint64_t)number, record);
		return 0;
	}
	if (field->kind == TP_FIELD_STRING && PyUnicode_CheckExact(object) && PyUnicode_IS_COMPACT_ASCII(object))
		/* Its data ends with a NUL, which is copied along. */
		return tp_put_dynamic(field, PyUnicode_DATA(object), (size_t)PyUnicode_GET_LENGTH(object) + 1, 0, record);
	return tp_convert_slowly(field, object, record);
}

#endif
