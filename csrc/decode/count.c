/*
 * Counting the records of each event in pages, and finding what was lost or is damaged in them.
 *
 * The twin is src/tracepoint/decode/rows.py.
 */
#include "columns.h"
#include "head.h"
#include "../hints.h"

/* `n` has one more item than there are ids: records that are too short for one. */
struct counts {
	const unsigned char *base;
	uint64_t *n;
	int64_t first, last;
	bool goes_back, is_big;
};

static tp_always_inline void count_record(void *to, uint64_t stamp, uint32_t at, uint32_t size)
{
	struct counts *counts = to;

	counts->n[size < 2 ? TP_N_IDS : tp_record_id(counts->base + at, counts->is_big)]++;
	if ((int64_t)stamp < counts->first)
		counts->first = (int64_t)stamp;
	if ((int64_t)stamp > counts->last)
		counts->last = (int64_t)stamp;
	else if ((int64_t)stamp < counts->last)
		counts->goes_back = true;
}

/* Count the records of the whole pages; return the heads with losses or faults, NULL without memory. */
static struct tp_head *count_all(const unsigned char *data, uint64_t size, const struct tp_layout *layout,
				 struct counts *counts, uint64_t *n_heads)
{
	uint64_t page_size = tp_page_size(layout), room = 0, n = 0, at;
	struct tp_head *heads = NULL;

	for (at = 0; size - at >= page_size; at += page_size) {
		if (!tp_grow(&heads, &room, n + 2, sizeof(*heads)))
			goto error;
		tp_read_head(data, at, layout, &heads[n]);
		counts->base = data + at + layout->data_offset;
		tp_walk(data, at, layout, &heads[n], count_record, tp_pass_mark, counts);
		n += heads[n].fault || heads[n].lost || heads[n].is_lost_unknown;
	}
	if (!tp_grow(&heads, &room, n + 1, sizeof(*heads)))
		goto error;
	if (at < size)
		heads[n++] = (struct tp_head){ .fault = TP_FAULT_LEFT, .fault_size = size - at, .fault_at = at };
	*n_heads = n;
	return heads;
error:
	free(heads);
	return NULL;
}

static PyObject *heads_list(const struct tp_head *heads, uint64_t n)
{
	PyObject *list = PyList_New((Py_ssize_t)n);

	for (uint64_t i = 0; list && i < n; i++) {
		PyObject *made = Py_BuildValue("(KNNK)", (unsigned long long)heads[i].stamp, tp_lost_number(&heads[i]),
					       tp_fault_text(&heads[i]), (unsigned long long)heads[i].fault_at);

		if (!made)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, (Py_ssize_t)i, made);
	}
	return list;
}

PyObject *tp_count_pages(PyObject *module, PyObject *args)
{
	struct counts counts = { .first = INT64_MAX, .last = INT64_MIN };
	struct tp_head *heads = NULL;
	struct tp_layout layout;
	uint64_t n_heads = 0;
	PyObject *made = NULL;
	Py_buffer data, n;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*" TP_LAYOUT_CODES "w*:count_pages", &data, TP_LAYOUT_PLACES(layout), &n))
		return NULL;
	if (n.len != (Py_ssize_t)((TP_N_IDS + 1) * sizeof(*counts.n))) {
		PyErr_SetString(PyExc_ValueError, "not one count for each id");
	} else if (tp_check_layout(&layout)) {
		counts.is_big = layout.is_big;
		counts.n = n.buf;
		Py_BEGIN_ALLOW_THREADS
		heads = count_all(data.buf, (uint64_t)data.len, &layout, &counts, &n_heads);
		Py_END_ALLOW_THREADS
		if (heads)
			made = Py_BuildValue("(NLLN)", heads_list(heads, n_heads), (long long)counts.first,
					     (long long)counts.last, PyBool_FromLong(counts.goes_back));
		else
			PyErr_NoMemory();
	}
	free(heads);
	PyBuffer_Release(&n);
	PyBuffer_Release(&data);
	return made;
}
