/*
 * One column of several that follow each other in time: numbers of words, and ends of lists, that go on.
 *
 * The rest is in src/tracepoint/decode/join.py.
 */
#include "columns.h"

/* Return int32 indices as a table, also of int32, has them; 0 for one that is not in the table. */
PyObject *tp_remap(PyObject *module, PyObject *args)
{
	struct tp_block *block = NULL;
	Py_buffer indices, table;
	uint64_t n, n_words;

	if (!PyArg_ParseTuple(args, "y*y*:remap", &indices, &table))
		return NULL;
	n = (uint64_t)indices.len / 4;
	n_words = (uint64_t)table.len / 4;
	block = tp_block_create(n * 4);
	if (block) {
		Py_BEGIN_ALLOW_THREADS
		for (uint64_t i = 0; i < n; i++) {
			uint32_t index, found = 0;

			memcpy(&index, (const unsigned char *)indices.buf + 4 * i, sizeof(index));
			if (index < n_words)
				memcpy(&found, (const unsigned char *)table.buf + 4 * (uint64_t)index, sizeof(found));
			memcpy(block->bytes + 4 * i, &found, sizeof(found));
		}
		Py_END_ALLOW_THREADS
	}
	PyBuffer_Release(&indices);
	PyBuffer_Release(&table);
	return block ? tp_buffer_of(module, block) : PyErr_NoMemory();
}

/* Add the ends of one part, which begin with a 0, to those before; return the last. */
static int64_t add_ends(unsigned char *to, const unsigned char *from, uint64_t n, int64_t before)
{
	int64_t end = 0;

	for (uint64_t i = 0; i < n; i++) {
		int64_t sum;

		memcpy(&end, from + 8 * i, sizeof(end));
		sum = (int64_t)((uint64_t)before + (uint64_t)end);
		memcpy(to + 8 * i, &sum, sizeof(sum));
	}
	return (int64_t)((uint64_t)before + (uint64_t)end);
}

static bool is_ends(const Py_buffer *part)
{
	if (part->len >= 8 && part->len % 8 == 0)
		return true;
	PyErr_SetString(PyExc_ValueError, "not an array of ends");
	return false;
}

PyObject *tp_join_ends(PyObject *module, PyObject *parts)
{
	struct tp_block *block = NULL;
	uint64_t total = 1, at = 1;
	Py_ssize_t n = 0, n_held = 0;
	Py_buffer *held;
	int64_t last = 0;

	if (!PyTuple_Check(parts)) {
		PyErr_SetString(PyExc_TypeError, "not a tuple of ends");
		return NULL;
	}
	n = PyTuple_GET_SIZE(parts);
	held = calloc((size_t)n + 1, sizeof(*held));
	if (!held)
		return PyErr_NoMemory();
	for (; n_held < n; n_held++) {
		if (PyObject_GetBuffer(PyTuple_GET_ITEM(parts, n_held), &held[n_held], PyBUF_SIMPLE))
			goto out;
		if (!is_ends(&held[n_held])) {
			n_held++;
			goto out;
		}
		total += (uint64_t)held[n_held].len / 8 - 1;
	}
	block = tp_block_create(total * 8);
	if (!block) {
		PyErr_NoMemory();
		goto out;
	}
	memset(block->bytes, 0, 8);
	for (Py_ssize_t part = 0; part < n; part++) {
		uint64_t n_ends = (uint64_t)held[part].len / 8 - 1;

		last = add_ends(block->bytes + 8 * at, (const unsigned char *)held[part].buf + 8, n_ends, last);
		at += n_ends;
	}
out:
	for (Py_ssize_t part = 0; part < n_held; part++)
		PyBuffer_Release(&held[part]);
	free(held);
	return block ? tp_buffer_of(module, block) : NULL;
}
