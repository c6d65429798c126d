/*
 * tracepoint._decode: records out of the pages of ring buffers, and the lines that print programs make of them.
 *
 * It has no state of its own: any interpreter may load it, and the GIL is released while bytes are read.
 * The twin, which must give the same: src/tracepoint/record/pages.py, read_pages_slowly().
 */
#include "decode.h"

#include "../page.h"

enum { MISSED_EVENTS_BIT = 31, MISSED_STORED_BIT = 30, SIZE_MASK = (1 << 27) - 1 };

/* As in struct PageLayout of src/tracepoint/record/layout.py. */
struct layout {
	unsigned int data_offset, data_size, commit_offset, long_size;
	int is_big;
};

enum fault { FAULT_NONE, FAULT_SIZE, FAULT_CUT, FAULT_REST, FAULT_LEFT };

struct head {
	uint64_t stamp, lost, fault_at, first, first_mark;
	uint64_t n_records, n_marks, size;
	uint32_t fault_size;
	bool is_lost_unknown;
	enum fault fault;
};

struct mark {
	uint64_t n_before;
	int32_t cpu;
};

/* What was found; each array has room for what the page at hand can add. */
struct found {
	uint64_t *stamps, *offsets;
	uint32_t *lengths;
	struct head *heads;
	struct mark *marks;
	uint64_t n, room, n_heads, n_marks, mark_room;
	uint64_t base; /* of the data of the page at hand, in the buffer */
};

static uint64_t number(const unsigned char *data, unsigned int size, bool is_big)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < size; i++)
		value |= (uint64_t)data[is_big ? size - 1 - i : i] << 8 * i;
	return value;
}

static bool grow(void **array, uint64_t n, size_t item)
{
	void *made = n > SIZE_MAX / item ? NULL : realloc(*array, n * item);

	if (made)
		*array = made;
	return made != NULL;
}

/* Make room for `more` records and marks: half as much again, so that growing stays cheap. */
static bool make_room(struct found *found, uint64_t more)
{
	if (found->n + more > found->room) {
		uint64_t room = (found->n + more) + (found->n + more) / 2;

		if (!grow((void **)&found->stamps, room, sizeof(*found->stamps)) ||
		    !grow((void **)&found->offsets, room, sizeof(*found->offsets)) ||
		    !grow((void **)&found->lengths, room, sizeof(*found->lengths)))
			return false;
		found->room = room;
	}
	if (found->n_marks + more > found->mark_room) {
		uint64_t room = (found->n_marks + more) + found->n_marks;

		if (!grow((void **)&found->marks, room, sizeof(*found->marks)))
			return false;
		found->mark_room = room;
	}
	return true;
}

static void take_record(void *to, uint64_t stamp, uint32_t at, uint32_t size)
{
	struct found *found = to;

	found->stamps[found->n] = stamp;
	found->offsets[found->n] = found->base + at;
	found->lengths[found->n++] = size;
}

static void take_mark(void *to, int32_t cpu)
{
	struct found *found = to;

	found->marks[found->n_marks++] = (struct mark){ found->n, cpu };
}

static bool read_page(const unsigned char *data, uint64_t at, const struct layout *layout, struct found *found)
{
	struct head *head = &found->heads[found->n_heads++];
	uint64_t commit = number(data + at + layout->commit_offset, layout->long_size, layout->is_big);
	uint64_t start = at + layout->data_offset;
	uint32_t size = commit & SIZE_MASK, done;

	*head = (struct head){ .stamp = number(data + at, 8, layout->is_big), .first = found->n,
			       .first_mark = found->n_marks };
	if (size > layout->data_size) {
		head->fault = FAULT_SIZE;
		head->fault_size = size;
		head->fault_at = at + layout->commit_offset;
		return true;
	}
	if (commit >> MISSED_EVENTS_BIT & 1) {
		head->is_lost_unknown = !(commit >> MISSED_STORED_BIT & 1) ||
					size + layout->long_size > layout->data_size;
		if (!head->is_lost_unknown)
			head->lost = number(data + start + size, layout->long_size, layout->is_big);
	}
	head->size = size;
	/* The shortest event that is kept has 8 bytes. */
	if (!make_room(found, size / 8 + 1))
		return false;
	uint64_t stamp = head->stamp;

	found->base = start;
	if (layout->is_big)
		done = tp_walk_page(data + start, size & ~3u, &stamp, true, take_record, take_mark, found);
	else
		done = tp_walk_page(data + start, size & ~3u, &stamp, false, take_record, take_mark, found);
	head->n_records = found->n - head->first;
	head->n_marks = found->n_marks - head->first_mark;
	if (done < (size & ~3u)) {
		head->fault = FAULT_CUT;
		head->fault_at = start + done;
	} else if (size % 4) {
		head->fault = FAULT_REST;
		head->fault_at = start + size;
	}
	return true;
}

static bool read_all(const unsigned char *data, uint64_t size, const struct layout *layout, struct found *found)
{
	uint64_t page_size = (uint64_t)layout->data_offset + layout->data_size;
	uint64_t n_pages = size / page_size, left = size % page_size;

	if (!grow((void **)&found->heads, n_pages + 1, sizeof(*found->heads)) || !make_room(found, 1))
		return false;
	for (uint64_t n = 0; n < n_pages; n++)
		if (!read_page(data, n * page_size, layout, found))
			return false;
	if (left)
		found->heads[found->n_heads++] = (struct head){ .fault = FAULT_LEFT, .fault_size = left,
								.first = found->n, .fault_at = size - left };
	return true;
}

static PyObject *fault_text(const struct head *head)
{
	switch (head->fault) {
	case FAULT_SIZE:
		return PyUnicode_FromFormat("a page claims %u bytes of data", head->fault_size);
	case FAULT_CUT:
		return PyUnicode_FromString("an event reaches past the end of the data");
	case FAULT_REST:
		return PyUnicode_FromString("the data does not end with a whole word");
	case FAULT_LEFT:
		return PyUnicode_FromFormat("%u bytes are left over after the last whole page", head->fault_size);
	default:
		return PyUnicode_FromString("");
	}
}

static PyObject *marks_of(const struct found *found, const struct head *head)
{
	PyObject *marks = PyTuple_New((Py_ssize_t)head->n_marks);

	for (uint64_t n = 0; marks && n < head->n_marks; n++) {
		const struct mark *mark = &found->marks[head->first_mark + n];
		PyObject *made = Py_BuildValue("(Ki)", (unsigned long long)(mark->n_before - head->first), mark->cpu);

		if (!made)
			Py_CLEAR(marks);
		else
			PyTuple_SET_ITEM(marks, (Py_ssize_t)n, made);
	}
	return marks;
}

static PyObject *heads_of(const struct found *found)
{
	PyObject *heads = PyList_New((Py_ssize_t)found->n_heads);

	for (uint64_t n = 0; heads && n < found->n_heads; n++) {
		const struct head *head = &found->heads[n];
		PyObject *lost = head->is_lost_unknown ? PyLong_FromLong(-1) : PyLong_FromUnsignedLongLong(head->lost);
		PyObject *made = Py_BuildValue("(KKNKNNK)", (unsigned long long)head->stamp,
					       (unsigned long long)head->size, lost,
					       (unsigned long long)head->n_records, marks_of(found, head),
					       fault_text(head), (unsigned long long)head->fault_at);

		if (!made)
			Py_CLEAR(heads);
		else
			PyList_SET_ITEM(heads, (Py_ssize_t)n, made);
	}
	return heads;
}

static PyObject *column(const void *items, uint64_t n, size_t item)
{
	return PyBytes_FromStringAndSize(items, (Py_ssize_t)(n * item));
}

static PyObject *read_pages(PyObject *module, PyObject *args)
{
	struct found found = { 0 };
	struct layout layout;
	PyObject *made = NULL;
	Py_buffer data;
	bool is_read;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*IIIIp:read_pages", &data, &layout.data_offset, &layout.data_size,
			      &layout.commit_offset, &layout.long_size, &layout.is_big))
		return NULL;
	if (!layout.data_size || layout.data_size > SIZE_MASK + 1 || layout.data_offset > 64 ||
	    (layout.long_size != 4 && layout.long_size != 8) || layout.commit_offset < 8 ||
	    layout.commit_offset + layout.long_size > layout.data_offset) {
		PyErr_SetString(PyExc_ValueError, "not a layout of pages");
		goto out;
	}
	Py_BEGIN_ALLOW_THREADS
	is_read = read_all(data.buf, (uint64_t)data.len, &layout, &found);
	Py_END_ALLOW_THREADS
	if (is_read)
		made = Py_BuildValue("(NNNN)", column(found.stamps, found.n, sizeof(*found.stamps)),
				     column(found.offsets, found.n, sizeof(*found.offsets)),
				     column(found.lengths, found.n, sizeof(*found.lengths)), heads_of(&found));
	else
		PyErr_NoMemory();
	free(found.stamps);
	free(found.offsets);
	free(found.lengths);
	free(found.heads);
	free(found.marks);
out:
	PyBuffer_Release(&data);
	return made;
}

static PyMethodDef functions[] = {
	{ "read_pages", read_pages, METH_VARARGS,
	  "read_pages(data, data_offset, data_size, commit_offset, long_size, is_big_endian)" },
	{ "load_prints", tp_load_prints, METH_VARARGS,
	  "load_prints(programs of (id, packed, slots), facts, is_big_endian): what render_prints() takes" },
	{ "render_prints", tp_render_prints, METH_VARARGS,
	  "render_prints(prints, texts, data, offsets, lengths, wants_strings): lines and states" },
	{ NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot module_slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
	{ Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED },
#endif
#if PY_VERSION_HEX >= 0x030D0000
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
	{ 0, NULL },
};

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "tracepoint._decode",
	.m_methods = functions,
	.m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__decode(void)
{
	return PyModuleDef_Init(&module_def);
}
