/*
 * The lines of /proc/kallsyms that have no module: `ffffffff81000000 T _stext`.
 *
 * The twin is src/tracepoint/printk/kallsyms.py: _split_slowly().
 */
#include "columns.h"

enum { N_DIGITS = 16, KIND_AT = N_DIGITS + 1, NAME_AT = N_DIGITS + 3 };

static bool read_digits(const unsigned char *at, uint64_t *number)
{
	uint64_t found = 0;

	for (unsigned int n = 0; n < N_DIGITS; n++) {
		unsigned char c = at[n];
		unsigned int low = c | 0x20;

		if (c >= '0' && c <= '9')
			found = found << 4 | (c - '0');
		else if (low >= 'a' && low <= 'f')
			found = found << 4 | (low - 'a' + 10);
		else
			return false;
	}
	*number = found;
	return true;
}

static bool is_space(unsigned char c)
{
	return c <= ' ' || c >= 0x7F;
}

static uint64_t count_lines(const unsigned char *data, uint64_t size)
{
	uint64_t n = 0;

	for (uint64_t at = 0; at < size; at++)
		n += data[at] == '\n';
	return n;
}

/* Read each line; false where one is not as usual.  `*is_sorted`: no address is below the one before. */
static bool read_lines(const unsigned char *data, uint64_t size, uint64_t *addresses, uint32_t *starts, char *kinds,
		       bool *is_sorted)
{
	*is_sorted = true;
	for (uint64_t at = 0, n = 0; at < size; n++) {
		const unsigned char *end = memchr(data + at, '\n', size - at);

		if (!end || end - (data + at) <= NAME_AT || !read_digits(data + at, &addresses[n]) ||
		    data[at + N_DIGITS] != ' ' || is_space(data[at + KIND_AT]) || data[at + KIND_AT + 1] != ' ')
			return false;
		*is_sorted &= !n || addresses[n] >= addresses[n - 1];
		kinds[n] = (char)data[at + KIND_AT];
		starts[n] = (uint32_t)(at + NAME_AT);
		for (at += NAME_AT; data + at < end; at++)
			if (is_space(data[at]))
				return false;
		at++;
	}
	return true;
}

PyObject *tp_symbol_lines(PyObject *module, PyObject *args)
{
	PyObject *addresses = NULL, *starts = NULL, *kinds = NULL, *made = NULL;
	bool is_usual = false, is_sorted = false;
	Py_buffer data;
	uint64_t n;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*:symbol_lines", &data))
		return NULL;
	n = count_lines(data.buf, (uint64_t)data.len);
	addresses = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(n * sizeof(uint64_t)));
	starts = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(n * sizeof(uint32_t)));
	kinds = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
	if (addresses && starts && kinds && (uint64_t)data.len <= UINT32_MAX) {
		is_usual = read_lines(data.buf, (uint64_t)data.len, (uint64_t *)(void *)PyBytes_AS_STRING(addresses),
				      (uint32_t *)(void *)PyBytes_AS_STRING(starts), PyBytes_AS_STRING(kinds), &is_sorted);
	}
	if (is_usual)
		made = Py_BuildValue("(OOOO)", addresses, starts, kinds, is_sorted ? Py_True : Py_False);
	else if (!PyErr_Occurred())
		made = Py_NewRef(Py_None);
	Py_XDECREF(addresses);
	Py_XDECREF(starts);
	Py_XDECREF(kinds);
	PyBuffer_Release(&data);
	return made;
}
