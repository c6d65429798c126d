/* From pages in memory to Python objects. */
#include "module.h"

PyObject *tp_stats_dict(const struct tp_ring_stats *stats)
{
	return Py_BuildValue("{sKsKsKsKsKsKsKsK}", "entries", (unsigned long long)stats->entries, "overrun",
			     (unsigned long long)stats->overrun, "commit_overrun",
			     (unsigned long long)stats->commit_overrun, "bytes", (unsigned long long)stats->bytes,
			     "dropped", (unsigned long long)stats->dropped, "read",
			     (unsigned long long)stats->read, "nested", (unsigned long long)stats->nested,
			     "oldest_stamp", (unsigned long long)stats->oldest_stamp);
}

void tp_copy_read(struct tp_ring *ring, struct tp_copied *ret)
{
	ret->pages = aligned_alloc(TP_PAGE_SIZE, TP_PAGE_SIZE);
	ret->is_out_of_memory = !ret->pages;
	if (ret->pages)
		ret->n_pages = tp_ring_read(ring, ret->pages) > 0;
}

void tp_copy_peek(struct tp_ring *ring, struct tp_copied *ret)
{
	uint64_t cursor = 0;
	/* Pages in slots, the reader's, and no more: what is written meanwhile waits for the next time. */
	size_t max = ring->n_pages + 1;

	ret->pages = aligned_alloc(TP_PAGE_SIZE, max * TP_PAGE_SIZE);
	ret->is_out_of_memory = !ret->pages;
	while (ret->pages && ret->n_pages < max &&
	       tp_ring_peek(ring, &cursor, ret->pages + ret->n_pages * TP_PAGE_SIZE) > 0)
		ret->n_pages++;
}

PyObject *tp_as_list(struct tp_copied *copied)
{
	PyObject *list = copied->is_out_of_memory ? PyErr_NoMemory() : PyList_New(0);

	for (size_t i = 0; list && i < copied->n_pages; i++) {
		const char *at = (const char *)copied->pages + i * TP_PAGE_SIZE;
		PyObject *page = PyBytes_FromStringAndSize(at, TP_PAGE_SIZE);
		if (!page || PyList_Append(list, page))
			Py_CLEAR(list);
		Py_XDECREF(page);
	}
	free(copied->pages);
	return list;
}

/* The page, or None where there was nothing to read. */
PyObject *tp_as_page(struct tp_copied *copied)
{
	PyObject *list = tp_as_list(copied);
	PyObject *page = list && PyList_GET_SIZE(list) ? PyList_GET_ITEM(list, 0) : Py_None;

	if (!list)
		return NULL;
	Py_INCREF(page);
	Py_DECREF(list);
	return page;
}
