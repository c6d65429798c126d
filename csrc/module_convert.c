#include "convert.h"

#include <math.h>

static int out_of_range(PyObject *object, uint32_t size, bool is_signed)
{
	PyErr_Format(PyExc_OverflowError, "%S does not fit %c%u", object, is_signed ? 's' : 'u', size * 8);
	return -1;
}

static int convert_int(PyObject *object, uint32_t size, bool is_signed, uint64_t *ret)
{
	PyObject *index = PyNumber_Index(object);
	int overflow;
	int status = 0;

	if (!index)
		return -1;
	int64_t value = PyLong_AsLongLongAndOverflow(index, &overflow);
	*ret = (uint64_t)value;
	if (overflow > 0 && !is_signed && size == 8) {
		*ret = PyLong_AsUnsignedLongLong(index);
		if (PyErr_Occurred()) {
			PyErr_Clear();
			status = out_of_range(index, size, is_signed);
		}
	} else if (overflow || value < tp_int_min(size, is_signed) || value > tp_int_max(size, is_signed)) {
		status = out_of_range(index, size, is_signed);
	}
	Py_DECREF(index);
	return status;
}

static int convert_float(PyObject *object, uint32_t size, uint64_t *ret)
{
	double wide = PyFloat_AsDouble(object);
	float narrow = (float)wide;

	if (wide == -1.0 && PyErr_Occurred())
		return -1;
	if (size == 4 && isinf(narrow) && !isinf(wide)) {
		PyErr_SetString(PyExc_OverflowError, "the number is too large for a float");
		return -1;
	}
	*ret = 0;
	if (size == 4)
		memcpy(ret, &narrow, sizeof(narrow));
	else
		memcpy(ret, &wide, sizeof(wide));
	return 0;
}

/* ---- bytes ---- */

static int put_dynamic(const struct tp_field *field, const char *data, size_t length, size_t n_zeros,
		       struct tp_record *record)
{
	if (tp_put_dynamic(field, data, length, n_zeros, record))
		return 0;
	PyErr_Format(PyExc_ValueError, "the record would be longer than %d bytes", TP_MAX_PAYLOAD);
	return -1;
}

static void put_fixed(const struct tp_field *field, const char *data, size_t length, struct tp_record *record)
{
	memcpy(record->data + field->offset, data, length);
	memset(record->data + field->offset + length, 0, field->size - length);
}

static int put_text(const struct tp_field *field, const char *data, size_t length, struct tp_record *record)
{
	if (field->kind == TP_FIELD_STRING)
		return put_dynamic(field, data, length, 1, record);
	put_fixed(field, data, length < field->size ? length : field->size - 1u, record);
	return 0;
}

/* Put what a new bytes object holds, and drop it. */
static int put_text_of(const struct tp_field *field, PyObject *bytes, struct tp_record *record)
{
	int status = -1;

	if (bytes)
		status = put_text(field, PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes), record);
	Py_XDECREF(bytes);
	return status;
}

static int convert_text(const struct tp_field *field, PyObject *object, struct tp_record *record)
{
	Py_ssize_t length;

	if (PyUnicode_Check(object)) {
		const char *data = PyUnicode_AsUTF8AndSize(object, &length);
		if (data)
			return put_text(field, data, length, record);
		/* Lone surrogates, as in file names: the bytes they represent. */
		PyErr_Clear();
		return put_text_of(field, PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape"), record);
	}
	if (PyBytes_Check(object))
		return put_text(field, PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object), record);
	if (object == Py_None)
		/* What the kernel stores for a NULL string (include/trace/stages/stage5_get_offsets.h). */
		return put_text(field, "(null)", 6, record);
	if (PyObject_CheckBuffer(object))
		return put_text_of(field, PyBytes_FromObject(object), record);
	PyErr_Format(PyExc_TypeError, "expected str or bytes, not %.100s", Py_TYPE(object)->tp_name);
	return -1;
}

static int put_bytes(const struct tp_field *field, const char *data, size_t length, struct tp_record *record)
{
	if (tp_field_is_dynamic(field)) {
		unsigned element = field->kind == TP_FIELD_BITMASK ? 8 : field->element;
		if (length % element == 0)
			return put_dynamic(field, data, length, 0, record);
		PyErr_Format(PyExc_ValueError, "%zu bytes are not whole elements of %u", length, element);
		return -1;
	}
	if (length > field->size) {
		PyErr_Format(PyExc_ValueError, "%zu bytes for %u", length, (unsigned)field->size);
		return -1;
	}
	put_fixed(field, data, length, record);
	return 0;
}

/* Put what a new bytes object holds, and drop it. */
static int put_bytes_of(const struct tp_field *field, PyObject *bytes, struct tp_record *record)
{
	int status = -1;

	if (bytes)
		status = put_bytes(field, PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes), record);
	Py_XDECREF(bytes);
	return status;
}

static int convert_bytes(const struct tp_field *field, PyObject *object, struct tp_record *record)
{
	if (PyObject_CheckBuffer(object))
		return put_bytes_of(field, PyBytes_FromObject(object), record);
	PyErr_Format(PyExc_TypeError, "expected bytes, not %.100s", Py_TYPE(object)->tp_name);
	return -1;
}

/* The elements of a tuple as bytes; a new object. */
static PyObject *pack_elements(const struct tp_field *field, PyObject *items)
{
	Py_ssize_t n = PyTuple_GET_SIZE(items);

	if (field->kind == TP_FIELD_ARRAY && n * field->element > field->size)
		return PyErr_Format(PyExc_ValueError, "%zd elements for %u", n, field->size / field->element);
	if (n > UINT16_MAX)
		return PyErr_Format(PyExc_ValueError, "%zd elements are too many", n);
	PyObject *bytes = PyBytes_FromStringAndSize(NULL, n * field->element);
	for (Py_ssize_t i = 0; bytes && i < n; i++) {
		uint64_t number;
		if (convert_int(PyTuple_GET_ITEM(items, i), field->element, field->flags & TP_FIELD_SIGNED, &number))
			Py_CLEAR(bytes);
		else
			memcpy(PyBytes_AS_STRING(bytes) + i * field->element, &number, field->element);
	}
	return bytes;
}

/* As PySequence_Tuple(), but it ends where `max` items and one more were taken.  A new object. */
static PyObject *take_items(PyObject *object, Py_ssize_t max)
{
	PyObject *list, *item, *items = NULL;

	if (PyList_CheckExact(object) || PyTuple_CheckExact(object))
		return PySequence_Tuple(object);
	if (PyIter_Check(object)) {
		PyErr_SetString(PyExc_TypeError, "an iterator would be used up; give a list of what it gives");
		return NULL;
	}
	PyObject *iterator = PyObject_GetIter(object);
	if (!iterator)
		return NULL;
	list = PyList_New(0);
	while (list && PyList_GET_SIZE(list) <= max && (item = PyIter_Next(iterator))) {
		if (PyList_Append(list, item))
			Py_CLEAR(list);
		Py_DECREF(item);
	}
	if (list && !PyErr_Occurred())
		items = PyList_AsTuple(list);
	Py_XDECREF(list);
	Py_DECREF(iterator);
	return items;
}

static int convert_elements(const struct tp_field *field, PyObject *object, struct tp_record *record)
{
	if (PyObject_CheckBuffer(object))
		return convert_bytes(field, object, record);
	Py_ssize_t max = field->kind == TP_FIELD_ARRAY ? field->size / field->element : UINT16_MAX;
	PyObject *items = take_items(object, max);
	int status = items ? put_bytes_of(field, pack_elements(field, items), record) : -1;
	Py_XDECREF(items);
	return status;
}

/* An int whose bits are the mask, or the whole words as bytes. */
static int convert_bitmask(const struct tp_field *field, PyObject *object, struct tp_record *record)
{
	if (PyObject_CheckBuffer(object))
		return convert_bytes(field, object, record);
	PyObject *index = PyNumber_Index(object);
	PyObject *n_bits = index ? PyObject_CallMethod(index, "bit_length", NULL) : NULL;
	size_t size = n_bits ? (PyLong_AsSize_t(n_bits) + 63) / 64 * 8 : 0;
	PyObject *bytes = NULL;

	Py_XDECREF(n_bits);
	if (size < field->element * 8u)
		size = field->element * 8u;
	if (size > UINT16_MAX)
		PyErr_Format(PyExc_ValueError, "a mask of %zu bytes is too long", size);
	else if (n_bits)
		bytes = PyObject_CallMethod(index, "to_bytes", "ns", (Py_ssize_t)size, "little");
	Py_XDECREF(index);
	return put_bytes_of(field, bytes, record);
}

int tp_convert_slowly(const struct tp_field *field, PyObject *object, struct tp_record *record)
{
	uint64_t number = 0;
	int status;

	switch (field->kind) {
	case TP_FIELD_INT:
		status = convert_int(object, field->size, field->flags & TP_FIELD_SIGNED, &number);
		break;
	case TP_FIELD_BOOL:
		status = PyObject_IsTrue(object);
		number = status > 0;
		break;
	case TP_FIELD_FLOAT:
		status = convert_float(object, field->size, &number);
		break;
	case TP_FIELD_CHARS:
	case TP_FIELD_STRING:
		return convert_text(field, object, record);
	case TP_FIELD_BYTES:
		return convert_bytes(field, object, record);
	case TP_FIELD_ARRAY:
	case TP_FIELD_DYNAMIC:
		return convert_elements(field, object, record);
	default:
		return convert_bitmask(field, object, record);
	}
	if (status < 0)
		return -1;
	tp_put_number(field, number, record);
	return 0;
}
