#include "convert.h"

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
	*ret = 0;
	if (size == 4)
		memcpy(ret, &narrow, sizeof(narrow));
	else
		memcpy(ret, &wide, sizeof(wide));
	return 0;
}

static int set_owner(struct tp_value *ret, PyObject *bytes)
{
	if (!bytes)
		return -1;
	ret->owner = bytes;
	ret->data = PyBytes_AS_STRING(bytes);
	ret->length = PyBytes_GET_SIZE(bytes);
	return 0;
}

static int convert_text(PyObject *object, struct tp_value *ret)
{
	Py_ssize_t length;

	if (PyUnicode_Check(object)) {
		ret->data = PyUnicode_AsUTF8AndSize(object, &length);
		ret->length = length;
		if (ret->data)
			return 0;
		/* Lone surrogates, as in file names: the bytes they stand for. */
		PyErr_Clear();
		return set_owner(ret, PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape"));
	}
	if (PyBytes_Check(object)) {
		ret->data = PyBytes_AS_STRING(object);
		ret->length = PyBytes_GET_SIZE(object);
		return 0;
	}
	if (object == Py_None) {
		/* What the kernel stores for a NULL string (include/trace/stages/stage5_get_offsets.h). */
		ret->data = "(null)";
		ret->length = 6;
		return 0;
	}
	if (PyObject_CheckBuffer(object))
		return set_owner(ret, PyBytes_FromObject(object));
	PyErr_Format(PyExc_TypeError, "expected str or bytes, not %.100s", Py_TYPE(object)->tp_name);
	return -1;
}

static int convert_bytes(const struct tp_field *field, PyObject *object, struct tp_value *ret)
{
	if (!PyObject_CheckBuffer(object)) {
		PyErr_Format(PyExc_TypeError, "expected bytes, not %.100s", Py_TYPE(object)->tp_name);
		return -1;
	}
	if (set_owner(ret, PyBytes_FromObject(object)))
		return -1;
	if (tp_field_is_dynamic(field)) {
		unsigned element = field->kind == TP_FIELD_BITMASK ? 8 : field->element;
		if (ret->length % element) {
			PyErr_Format(PyExc_ValueError, "%zu bytes are not whole elements of %u", ret->length,
				     element);
			return -1;
		}
	} else if (ret->length > field->size) {
		PyErr_Format(PyExc_ValueError, "%zu bytes for %u", ret->length, (unsigned)field->size);
		return -1;
	}
	return 0;
}

static int convert_elements(const struct tp_field *field, PyObject *object, struct tp_value *ret)
{
	if (PyObject_CheckBuffer(object))
		return convert_bytes(field, object, ret);
	PyObject *items = PySequence_Tuple(object);
	if (!items)
		return -1;
	Py_ssize_t n = PyTuple_GET_SIZE(items);
	PyObject *bytes = NULL;
	if (field->kind == TP_FIELD_ARRAY && n * field->element > field->size)
		PyErr_Format(PyExc_ValueError, "%zd elements for %u", n, field->size / field->element);
	else if (n > UINT16_MAX)
		PyErr_Format(PyExc_ValueError, "%zd elements are too many", n);
	else
		bytes = PyBytes_FromStringAndSize(NULL, n * field->element);
	for (Py_ssize_t i = 0; bytes && i < n; i++) {
		uint64_t number = 0;
		if (convert_int(PyTuple_GET_ITEM(items, i), field->element, field->flags & TP_FIELD_SIGNED,
				&number))
			Py_CLEAR(bytes);
		else
			memcpy(PyBytes_AS_STRING(bytes) + i * field->element, &number, field->element);
	}
	Py_DECREF(items);
	return set_owner(ret, bytes);
}

/* An int whose bits are the mask, or the whole words as bytes. */
static int convert_bitmask(const struct tp_field *field, PyObject *object, struct tp_value *ret)
{
	if (PyObject_CheckBuffer(object))
		return convert_bytes(field, object, ret);
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
	return set_owner(ret, bytes);
}

int tp_convert_slowly(const struct tp_field *field, PyObject *object, struct tp_value *ret)
{
	int status;

	switch (field->kind) {
	case TP_FIELD_INT:
		return convert_int(object, field->size, field->flags & TP_FIELD_SIGNED, &ret->number);
	case TP_FIELD_BOOL:
		status = PyObject_IsTrue(object);
		ret->number = status;
		return status < 0 ? -1 : 0;
	case TP_FIELD_FLOAT:
		return convert_float(object, field->size, &ret->number);
	case TP_FIELD_CHARS:
		status = convert_text(object, ret);
		if (!status && ret->length >= field->size)
			ret->length = field->size - 1u;
		return status;
	case TP_FIELD_BYTES:
		return convert_bytes(field, object, ret);
	case TP_FIELD_ARRAY:
	case TP_FIELD_DYNAMIC:
		return convert_elements(field, object, ret);
	case TP_FIELD_STRING:
		status = convert_text(object, ret);
		ret->length++;
		return status;
	default:
		return convert_bitmask(field, object, ret);
	}
}

static void put_location(const struct tp_field *field, uint32_t at, size_t length, unsigned char *to)
{
	if (field->flags & TP_FIELD_REL)
		at -= field->offset + 4u;
	uint32_t word = (uint32_t)length << 16 | at;
	memcpy(to + field->offset, &word, sizeof(word));
}

void tp_put_bytes(const struct tp_field *field, const struct tp_value *value, unsigned char *to, uint32_t *dynamic)
{
	switch (field->kind) {
	case TP_FIELD_STRING:
		put_location(field, *dynamic, value->length, to);
		memcpy(to + *dynamic, value->data, value->length - 1);
		to[*dynamic + value->length - 1] = 0;
		*dynamic += value->length;
		return;
	case TP_FIELD_DYNAMIC:
	case TP_FIELD_BITMASK:
		put_location(field, *dynamic, value->length, to);
		memcpy(to + *dynamic, value->data, value->length);
		*dynamic += value->length;
		return;
	default:
		memcpy(to + field->offset, value->data, value->length);
		memset(to + field->offset + value->length, 0, field->size - value->length);
	}
}
