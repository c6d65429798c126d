/*
 * tracepoint._decode: records out of the pages of ring buffers, and the lines that print programs make of them.
 *
 * It has no state of its own: any interpreter may load it, and the GIL is released while bytes are read.
 * The twin, which must give the same: src/tracepoint/record/pages.py, read_pages_slowly().
 */
#include "columns.h"
#include "decode.h"
#include "drain.h"
#include "head.h"
#include "sched_machine.h"
#include "zstd.h"

struct page {
	struct tp_head head;
	uint64_t first, first_mark, n_records, n_marks;
};

struct mark {
	uint64_t n_before;
	int32_t cpu;
};

/* What was found; each array has room for what the page at hand can add. */
struct found {
	uint64_t *stamps, *offsets;
	uint32_t *lengths;
	struct page *pages;
	struct mark *marks;
	uint64_t n, room, n_pages, n_marks, mark_room;
	uint64_t base; /* of the data of the page at hand, in the buffer */
};

static bool grow(void **array, uint64_t n, size_t item)
{
	void *made = n > SIZE_MAX / item ? NULL : realloc(*array, n * item);

	if (!made)
		return false;
	tp_ask_huge(made, n * item);
	*array = made;
	return true;
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

static bool read_page(const unsigned char *data, uint64_t at, const struct tp_layout *layout, struct found *found)
{
	struct page *page = &found->pages[found->n_pages++];

	*page = (struct page){ .first = found->n, .first_mark = found->n_marks };
	tp_read_head(data, at, layout, &page->head);
	if (page->head.fault)
		return true;
	/* The shortest event that is kept has 8 bytes. */
	if (!make_room(found, page->head.size / 8 + 1))
		return false;
	found->base = at + layout->data_offset;
	tp_walk(data, at, layout, &page->head, take_record, take_mark, found);
	page->n_records = found->n - page->first;
	page->n_marks = found->n_marks - page->first_mark;
	return true;
}

static bool read_all(const unsigned char *data, uint64_t size, const struct tp_layout *layout, struct found *found)
{
	uint64_t n_pages = size / tp_page_size(layout), left = size % tp_page_size(layout);

	if (!grow((void **)&found->pages, n_pages + 1, sizeof(*found->pages)) || !make_room(found, 1))
		return false;
	for (uint64_t n = 0; n < n_pages; n++)
		if (!read_page(data, n * tp_page_size(layout), layout, found))
			return false;
	if (left)
		found->pages[found->n_pages++] = (struct page){
			.head = { .fault = TP_FAULT_LEFT, .fault_size = left, .fault_at = size - left },
			.first = found->n,
		};
	return true;
}

static PyObject *marks_of(const struct found *found, const struct page *page)
{
	PyObject *marks = PyTuple_New((Py_ssize_t)page->n_marks);

	for (uint64_t n = 0; marks && n < page->n_marks; n++) {
		const struct mark *mark = &found->marks[page->first_mark + n];
		PyObject *made = Py_BuildValue("(Ki)", (unsigned long long)(mark->n_before - page->first), mark->cpu);

		if (!made)
			Py_CLEAR(marks);
		else
			PyTuple_SET_ITEM(marks, (Py_ssize_t)n, made);
	}
	return marks;
}

/* The pages before which something was lost, with marks or with a fault, as (number of the first record, page). */
static PyObject *noted_of(const struct found *found)
{
	PyObject *noted = PyList_New(0);

	for (uint64_t n = 0; noted && n < found->n_pages; n++) {
		const struct page *page = &found->pages[n];
		PyObject *item;

		if (!page->head.lost && !page->head.is_lost_unknown && !page->n_marks && !page->head.fault)
			continue;
		item = Py_BuildValue("(KK)", (unsigned long long)page->first, (unsigned long long)n);
		if (!item || PyList_Append(noted, item))
			Py_CLEAR(noted);
		Py_XDECREF(item);
	}
	return noted;
}

static PyObject *heads_of(const struct found *found)
{
	PyObject *heads = PyList_New((Py_ssize_t)found->n_pages);

	for (uint64_t n = 0; heads && n < found->n_pages; n++) {
		const struct page *page = &found->pages[n];
		const struct tp_head *head = &page->head;
		PyObject *made = Py_BuildValue("(KKNKNNK)", (unsigned long long)head->stamp,
					       (unsigned long long)head->size, tp_lost_number(head),
					       (unsigned long long)page->n_records, marks_of(found, page),
					       tp_fault_text(head), (unsigned long long)head->fault_at);

		if (!made)
			Py_CLEAR(heads);
		else
			PyList_SET_ITEM(heads, (Py_ssize_t)n, made);
	}
	return heads;
}

static PyObject *read_pages(PyObject *module, PyObject *args)
{
	struct found found = { 0 };
	struct tp_layout layout;
	PyObject *made = NULL;
	Py_buffer data;
	bool is_read;

	if (!PyArg_ParseTuple(args, "y*IIIIp:read_pages", &data, &layout.data_offset, &layout.data_size,
			      &layout.commit_offset, &layout.long_size, &layout.is_big))
		return NULL;
	if (!tp_check_layout(&layout))
		goto out;
	Py_BEGIN_ALLOW_THREADS
	is_read = read_all(data.buf, (uint64_t)data.len, &layout, &found);
	Py_END_ALLOW_THREADS
	if (is_read)
		made = Py_BuildValue("(NNNNN)", tp_take_array(module, &found.stamps, found.n, sizeof(*found.stamps)),
				     tp_take_array(module, &found.offsets, found.n, sizeof(*found.offsets)),
				     tp_take_array(module, &found.lengths, found.n, sizeof(*found.lengths)),
				     heads_of(&found), noted_of(&found));
	else
		PyErr_NoMemory();
	free(found.stamps);
	free(found.offsets);
	free(found.lengths);
	free(found.pages);
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
	{ "line_writer", tp_make_line_writer, METH_VARARGS,
	  "line_writer(prints, *tables, flags, graph): what render_lines() takes, and the room that it needs" },
	{ "render_lines", tp_render_lines, METH_VARARGS,
	  "render_lines(writer, texts, out, start, sources): the end of the lines in out, and what is left" },
	{ "line_notes", tp_line_notes, METH_O, "line_notes(writer): how many lines have which notes" },
	{ "drain", tp_drain, METH_VARARGS,
	  "drain(source, target, end, page_size, wait_ms, n_ring, counts, room): why it ended, and the error" },
	{ "free_space", tp_free_space, METH_VARARGS, "free_space(handle, at, size): whether the file has a hole now" },
	{ "zstd_version", tp_zstd_version, METH_NOARGS, "zstd_version(): of libzstd; empty where there is none" },
	{ "zstd_context", tp_zstd_context, METH_NOARGS, "zstd_context(): for zstd_compress of one thread" },
	{ "zstd_compress", tp_zstd_compress, METH_VARARGS,
	  "zstd_compress(context, data, level): a frame; ValueError" },
	{ "zstd_expand", tp_zstd_expand, METH_VARARGS, "zstd_expand(data, room): of frames; ValueError" },
	TP_COLUMN_METHODS,
	TP_SCHED_METHODS,
	{ NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot module_slots[] = {
	{ Py_mod_exec, tp_add_buffer_type },
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
