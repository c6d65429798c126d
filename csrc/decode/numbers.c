/*
 * Arrays of numbers: sorted, added, counted up, and where one is null.
 *
 * The twin is src/tracepoint/decode/numbers.py.
 */
#include "columns.h"
#include "sum.h"

enum { DIGIT_BITS = 11, N_DIGITS = 6, N_VALUES = 1 << DIGIT_BITS };

static unsigned int digit_of(int64_t value, unsigned int digit)
{
	/* The sign bit the other way round: negative numbers come first. */
	uint64_t key = (uint64_t)value ^ 1ull << 63;

	return key >> (digit * DIGIT_BITS) & (N_VALUES - 1);
}

/* Sort digit by digit, the lowest first, each time from one array to the other; return the one that has them. */
static int64_t *sort(int64_t *from, int64_t *to, uint64_t n, uint64_t (*counts)[N_VALUES])
{
	for (uint64_t i = 0; i < n; i++)
		for (unsigned int digit = 0; digit < N_DIGITS; digit++)
			counts[digit][digit_of(from[i], digit)]++;
	for (unsigned int digit = 0; digit < N_DIGITS; digit++) {
		uint64_t at = 0;
		int64_t *swapped = to;

		/* All have the same digit here. */
		if (!n || counts[digit][digit_of(from[0], digit)] == n)
			continue;
		for (unsigned int value = 0; value < N_VALUES; value++) {
			uint64_t count = counts[digit][value];

			counts[digit][value] = at;
			at += count;
		}
		for (uint64_t i = 0; i < n; i++)
			to[counts[digit][digit_of(from[i], digit)]++] = from[i];
		to = from;
		from = swapped;
	}
	return from;
}

PyObject *tp_sum_number(struct tp_sum sum)
{
	PyObject *high, *low, *bits, *shifted, *made = NULL;

	if (sum.high == ((int64_t)sum.low < 0 ? -1 : 0))
		return PyLong_FromLongLong((int64_t)sum.low);
	high = PyLong_FromLongLong(sum.high);
	low = PyLong_FromUnsignedLongLong(sum.low);
	bits = PyLong_FromLong(64);
	shifted = high && low && bits ? PyNumber_Lshift(high, bits) : NULL;
	if (shifted)
		made = PyNumber_Add(shifted, low);
	Py_XDECREF(high);
	Py_XDECREF(low);
	Py_XDECREF(bits);
	Py_XDECREF(shifted);
	return made;
}

PyObject *tp_sort_numbers(PyObject *module, PyObject *args)
{
	struct tp_block *blocks[2] = { NULL, NULL };
	uint64_t (*counts)[N_VALUES] = NULL, n;
	struct tp_sum sum = { 0 };
	PyObject *made = NULL;
	Py_buffer given;
	int64_t *sorted = NULL;

	if (!PyArg_ParseTuple(args, "y*:sort_numbers", &given))
		return NULL;
	n = (uint64_t)given.len / 8;
	blocks[0] = tp_block_create(8 * n);
	blocks[1] = tp_block_create(8 * n);
	counts = calloc(N_DIGITS, sizeof(*counts));
	if (!blocks[0] || !blocks[1] || !counts) {
		PyErr_NoMemory();
		goto out;
	}
	Py_BEGIN_ALLOW_THREADS
	if (n)
		memcpy(blocks[0]->bytes, given.buf, 8 * n);
	sorted = sort((int64_t *)blocks[0]->bytes, (int64_t *)blocks[1]->bytes, n, counts);
	for (uint64_t i = 0; i < n; i++)
		tp_sum_add(&sum, sorted[i]);
	Py_END_ALLOW_THREADS
	made = Py_BuildValue("(NN)", tp_buffer_of(module, tp_block_get(blocks[sorted != (int64_t *)blocks[0]->bytes])),
			     tp_sum_number(sum));
out:
	tp_block_put(blocks[0]);
	tp_block_put(blocks[1]);
	free(counts);
	PyBuffer_Release(&given);
	return made;
}

static int64_t number_at(const unsigned char *data, uint64_t at, unsigned int size)
{
	int32_t four;
	int64_t eight;

	if (size == 1)
		return (int8_t)data[at];
	if (size == 4) {
		memcpy(&four, data + 4 * at, sizeof(four));
		return four;
	}
	memcpy(&eight, data + 8 * at, sizeof(eight));
	return eight;
}

/* Clear the bits of the numbers that are null; return how many. */
static uint64_t clear_nulls(const unsigned char *data, uint64_t n, unsigned int size, int64_t null, unsigned char *bits)
{
	uint64_t n_nulls = 0;

	for (uint64_t i = 0; i < n; i++)
		if (number_at(data, i, size) == null) {
			bits[i >> 3] &= (unsigned char)~(1u << (i & 7));
			n_nulls++;
		}
	return n_nulls;
}

PyObject *tp_null_bits(PyObject *module, PyObject *args)
{
	struct tp_block *block = NULL;
	PyObject *made = NULL;
	unsigned int size;
	uint64_t n, n_nulls;
	Py_buffer given;
	long long null;

	if (!PyArg_ParseTuple(args, "y*IL:null_bits", &given, &size, &null))
		return NULL;
	if (size != 1 && size != 4 && size != 8) {
		PyErr_SetString(PyExc_ValueError, "not an array of int8, int32 or int64");
		goto out;
	}
	n = (uint64_t)given.len / size;
	block = tp_block_create((n + 7) / 8);
	if (!block) {
		PyErr_NoMemory();
		goto out;
	}
	Py_BEGIN_ALLOW_THREADS
	memset(block->bytes, 0xFF, block->size);
	n_nulls = clear_nulls(given.buf, n, size, null, block->bytes);
	Py_END_ALLOW_THREADS
	made = Py_BuildValue("(KN)", (unsigned long long)n_nulls, tp_buffer_of(module, block));
out:
	PyBuffer_Release(&given);
	return made;
}

PyObject *tp_count_up(PyObject *module, PyObject *args)
{
	struct tp_block *block;
	unsigned long long n;

	if (!PyArg_ParseTuple(args, "K:count_up", &n))
		return NULL;
	block = n > SIZE_MAX / 8 ? NULL : tp_block_create(8 * n);
	if (!block)
		return PyErr_NoMemory();
	for (uint64_t i = 0; i < n; i++)
		((int64_t *)(void *)block->bytes)[i] = (int64_t)i;
	return tp_buffer_of(module, block);
}

PyObject *tp_add_lengths(PyObject *module, PyObject *args)
{
	struct tp_block *block = NULL;
	Py_buffer starts, lengths;
	uint64_t n;

	if (!PyArg_ParseTuple(args, "y*y*:add_lengths", &starts, &lengths))
		return NULL;
	n = (uint64_t)(starts.len < lengths.len ? starts.len : lengths.len) / 8;
	block = tp_block_create(8 * n);
	for (uint64_t i = 0; block && i < n; i++) {
		int64_t start, length;

		memcpy(&start, (const unsigned char *)starts.buf + 8 * i, sizeof(start));
		memcpy(&length, (const unsigned char *)lengths.buf + 8 * i, sizeof(length));
		/* -1: the end is not known. */
		start = length == -1 ? start : (int64_t)((uint64_t)start + (uint64_t)length);
		memcpy(block->bytes + 8 * i, &start, sizeof(start));
	}
	PyBuffer_Release(&starts);
	PyBuffer_Release(&lengths);
	return block ? tp_buffer_of(module, block) : PyErr_NoMemory();
}
