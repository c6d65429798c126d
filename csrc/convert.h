/* From Python values to the fields of a record; the only other file that knows both is module_event.c. */
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

struct tp_value {
	uint64_t number;
	const char *data;
	size_t length;   /* bytes that go into the record */
	PyObject *owner; /* keeps `data` alive, or NULL */
};

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

/* Returns 0, or -1 with an exception set.  ret->owner is NULL before. */
int tp_convert_slowly(const struct tp_field *field, PyObject *object, struct tp_value *ret);

static inline int tp_convert(const struct tp_field *field, PyObject *object, struct tp_value *ret)
{
	int64_t number;

	ret->owner = NULL;
	if (field->kind == TP_FIELD_INT && tp_small_int(object, &number) && number >= field->min &&
	    number <= field->max) {
		ret->number = (uint64_t)number;
		return 0;
	}
	if (field->kind == TP_FIELD_STRING && PyUnicode_CheckExact(object) && PyUnicode_IS_COMPACT_ASCII(object)) {
		ret->data = PyUnicode_DATA(object);
		ret->length = (size_t)PyUnicode_GET_LENGTH(object) + 1;
		return 0;
	}
	return tp_convert_slowly(field, object, ret);
}

static inline bool tp_field_is_dynamic(const struct tp_field *field)
{
	return field->kind >= TP_FIELD_STRING;
}

void tp_put_bytes(const struct tp_field *field, const struct tp_value *value, unsigned char *to, uint32_t *dynamic);

/* Write a field of the record at `to`; `dynamic` is where the next dynamic data goes, and is moved on. */
static inline void tp_put(const struct tp_field *field, const struct tp_value *value, unsigned char *to,
			  uint32_t *dynamic)
{
	if (field->kind > TP_FIELD_FLOAT)
		tp_put_bytes(field, value, to, dynamic);
	else if (field->size == 4)
		memcpy(to + field->offset, &value->number, 4);
	else if (field->size == 8)
		memcpy(to + field->offset, &value->number, 8);
	else if (field->size == 2)
		memcpy(to + field->offset, &value->number, 2);
	else
		to[field->offset] = (unsigned char)value->number;
}

#endif
