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

void tp_peek_some(struct tp_ring *ring, struct tp_peek *peek)
{
	/* Pages in slots, the reader's, and no more. */
	if (!peek->cursor)
		peek->n_left = ring->n_pages + 1;
	while (peek->n_pages < TP_PAGES_AT_ONCE && peek->n_left &&
	       tp_ring_peek(ring, &peek->cursor, peek->pages + peek->n_pages * TP_PAGE_SIZE) > 0) {
		peek->n_pages++;
		peek->n_left--;
	}
}

static bool append_pages(PyObject *list, const struct tp_peek *peek)
{
	for (size_t i = 0; i < peek->n_pages; i++) {
		const char *at = (const char *)peek->pages + i * TP_PAGE_SIZE;
		PyObject *page = PyBytes_FromStringAndSize(at, TP_PAGE_SIZE);
		int failed = page ? PyList_Append(list, page) : -1;
		Py_XDECREF(page);
		if (failed)
			return false;
	}
	return true;
}

PyObject *tp_peek_all(bool (*step)(void *of, struct tp_peek *peek), void *of)
{
	struct tp_peek peek = { .pages = aligned_alloc(TP_PAGE_SIZE, TP_PAGES_AT_ONCE * TP_PAGE_SIZE) };
	PyObject *list = peek.pages ? PyList_New(0) : PyErr_NoMemory();
	bool is_there = true, is_first = true;

	do {
		if (!list)
			break;
		peek.n_pages = 0;
		Py_BEGIN_ALLOW_THREADS
		is_there = step(of, &peek);
		Py_END_ALLOW_THREADS
		/* One that goes in the middle has given what it had. */
		if ((is_first && !is_there) || !append_pages(list, &peek))
			Py_CLEAR(list);
		is_first = false;
	} while (is_there && peek.n_pages == TP_PAGES_AT_ONCE);
	free(peek.pages);
	return list;
}

PyObject *tp_as_page(const unsigned char *page, int size)
{
	if (!size)
		Py_RETURN_NONE;
	return PyBytes_FromStringAndSize((const char *)page, TP_PAGE_SIZE);
}
