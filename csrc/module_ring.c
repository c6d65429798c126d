/* Rings and buffers as Python objects; for the twin see src/tracepoint/runtime/ring.py. */
#include "module.h"

#include <sys/mman.h>

PyTypeObject *tp_buffer_type;

PyObject *tp_stats_dict(const struct tp_ring_stats *stats)
{
	return Py_BuildValue("{sKsKsKsKsKsKsKsK}", "entries", (unsigned long long)stats->entries, "overrun",
			     (unsigned long long)stats->overrun, "commit_overrun",
			     (unsigned long long)stats->commit_overrun, "bytes", (unsigned long long)stats->bytes,
			     "dropped", (unsigned long long)stats->dropped, "read",
			     (unsigned long long)stats->read, "nested", (unsigned long long)stats->nested,
			     "oldest_stamp", (unsigned long long)stats->oldest_stamp);
}

/*
 * Pages are copied first and become Python objects afterwards: making objects may run the garbage
 * collector, whose finalisers may fire a tracepoint, which may need the lock of the buffer.
 */
struct copied {
	unsigned char *pages;
	size_t n_pages;
	bool is_out_of_memory;
};

static void copy_read(struct tp_ring *ring, struct copied *ret)
{
	ret->pages = aligned_alloc(TP_PAGE_SIZE, TP_PAGE_SIZE);
	ret->is_out_of_memory = !ret->pages;
	if (ret->pages)
		ret->n_pages = tp_ring_read(ring, ret->pages) > 0;
}

static void copy_peek(struct tp_ring *ring, struct copied *ret)
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

static PyObject *as_list(struct copied *copied)
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
static PyObject *as_page(struct copied *copied)
{
	PyObject *list = as_list(copied);
	PyObject *page = list && PyList_GET_SIZE(list) ? PyList_GET_ITEM(list, 0) : Py_None;

	if (!list)
		return NULL;
	Py_INCREF(page);
	Py_DECREF(list);
	return page;
}

/* ---- Ring ---- */

typedef struct {
	PyObject_HEAD
	struct tp_ring ring;
	void *memory;
	Py_buffer view; /* of an attached ring */
	bool is_attached;
} RingObject;

static PyObject *ring_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "n_pages", "overwrite", "absolute", NULL };
	unsigned int n_pages;
	int is_overwrite = 1, is_absolute = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "I|pp:Ring", names, &n_pages, &is_overwrite, &is_absolute))
		return NULL;
	if (n_pages < TP_MIN_PAGES || n_pages > TP_MAX_PAGES)
		return PyErr_Format(PyExc_ValueError, "a ring has %d to %d pages", TP_MIN_PAGES, TP_MAX_PAGES);
	RingObject *self = (RingObject *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	size_t size = tp_ring_size(n_pages);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		Py_DECREF(self);
		return PyErr_NoMemory();
	}
	self->memory = memory;
	uint32_t flags = (is_overwrite ? TP_RING_OVERWRITE : 0) | (is_absolute ? TP_RING_ABSOLUTE : 0);
	tp_ring_init(&self->ring, memory, n_pages, flags);
	return (PyObject *)self;
}

static PyObject *ring_attach(PyObject *type, PyObject *memory)
{
	PyTypeObject *cls = (PyTypeObject *)type;
	RingObject *self = (RingObject *)cls->tp_alloc(cls, 0);

	if (!self)
		return NULL;
	if (PyObject_GetBuffer(memory, &self->view, PyBUF_WRITABLE)) {
		Py_DECREF(self);
		return NULL;
	}
	self->is_attached = true;
	if ((uintptr_t)self->view.buf % 64 || tp_ring_attach(&self->ring, self->view.buf, self->view.len)) {
		Py_DECREF(self);
		PyErr_SetString(PyExc_ValueError, "the memory does not hold a ring");
		return NULL;
	}
	return (PyObject *)self;
}

static void ring_dealloc(PyObject *op)
{
	RingObject *self = (RingObject *)op;
	PyTypeObject *type = Py_TYPE(op);

	if (self->memory)
		munmap(self->memory, self->ring.size);
	if (self->is_attached)
		PyBuffer_Release(&self->view);
	type->tp_free(op);
	Py_DECREF(type);
}

static bool is_readonly(RingObject *self)
{
	if (self->is_attached)
		PyErr_SetString(PyExc_ValueError, "an attached ring can only be read");
	return self->is_attached;
}

static PyObject *ring_reserve(PyObject *op, PyObject *args)
{
	RingObject *self = (RingObject *)op;
	unsigned long long stamp;
	Py_buffer payload;

	if (!PyArg_ParseTuple(args, "Ky*:reserve", &stamp, &payload))
		return NULL;
	if (is_readonly(self)) {
		PyBuffer_Release(&payload);
		return NULL;
	}
	unsigned char *to = tp_ring_reserve(&self->ring, payload.len, stamp);
	if (to)
		memcpy(to, payload.buf, payload.len);
	size_t length = payload.len;
	PyBuffer_Release(&payload);
	if (!to)
		Py_RETURN_NONE;
	return Py_BuildValue("nn", (Py_ssize_t)(to - (unsigned char *)self->memory), (Py_ssize_t)length);
}

/* A token is what reserve() gave; anything else must not reach memory. */
static void *token_payload(RingObject *self, PyObject *args, Py_ssize_t *length)
{
	Py_ssize_t offset;

	if (!PyArg_ParseTuple(args, "(nn)", &offset, length) || is_readonly(self))
		return NULL;
	Py_ssize_t first = (unsigned char *)self->ring.pages - (unsigned char *)self->memory;
	if (offset < first || *length < 0 || *length > TP_MAX_PAYLOAD ||
	    offset + *length > (Py_ssize_t)self->ring.size || !self->ring.depth) {
		PyErr_SetString(PyExc_ValueError, "not what reserve() returned");
		return NULL;
	}
	return (unsigned char *)self->memory + offset;
}

static PyObject *ring_commit(PyObject *op, PyObject *args)
{
	RingObject *self = (RingObject *)op;
	Py_ssize_t length;
	void *payload = token_payload(self, args, &length);

	if (!payload)
		return NULL;
	tp_ring_commit(&self->ring, payload);
	Py_RETURN_NONE;
}

static PyObject *ring_discard(PyObject *op, PyObject *args)
{
	RingObject *self = (RingObject *)op;
	Py_ssize_t length;
	void *payload = token_payload(self, args, &length);

	if (!payload)
		return NULL;
	tp_ring_discard(&self->ring, payload, length);
	Py_RETURN_NONE;
}

static PyObject *ring_read(PyObject *op, PyObject *Py_UNUSED(unused))
{
	struct copied copied = { 0 };

	copy_read(&((RingObject *)op)->ring, &copied);
	return as_page(&copied);
}

static PyObject *ring_peek(PyObject *op, PyObject *Py_UNUSED(unused))
{
	struct copied copied = { 0 };

	copy_peek(&((RingObject *)op)->ring, &copied);
	return as_list(&copied);
}

static PyObject *ring_clear(PyObject *op, PyObject *Py_UNUSED(unused))
{
	tp_ring_clear(&((RingObject *)op)->ring);
	Py_RETURN_NONE;
}

static PyObject *ring_stats(PyObject *op, PyObject *Py_UNUSED(unused))
{
	struct tp_ring_stats stats;

	tp_ring_stats(&((RingObject *)op)->ring, &stats);
	return tp_stats_dict(&stats);
}

static PyObject *ring_owner(PyObject *op, PyObject *Py_UNUSED(unused))
{
	const struct tp_ring_head *head = ((RingObject *)op)->ring.head;
	size_t n = strnlen(head->comm, sizeof(head->comm));

	return Py_BuildValue("{sisisy#sIsO}", "pid", head->pid, "tid", head->tid, "comm", head->comm,
			     (Py_ssize_t)n, "clock", head->clock, "is_ended",
			     head->is_ended ? Py_True : Py_False);
}

static PyMethodDef ring_methods[] = {
	{ "attach", ring_attach, METH_O | METH_CLASS, NULL },
	{ "reserve", ring_reserve, METH_VARARGS, NULL },
	{ "commit", ring_commit, METH_VARARGS, NULL },
	{ "discard", ring_discard, METH_VARARGS, NULL },
	{ "read", ring_read, METH_NOARGS, NULL },
	{ "peek", ring_peek, METH_NOARGS, NULL },
	{ "clear", ring_clear, METH_NOARGS, NULL },
	{ "stats", ring_stats, METH_NOARGS, NULL },
	{ "owner", ring_owner, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot ring_slots[] = {
	{ Py_tp_new, ring_new },
	{ Py_tp_dealloc, ring_dealloc },
	{ Py_tp_methods, ring_methods },
	{ 0, NULL },
};

PyType_Spec tp_ring_spec = {
	.name = "tracepoint._core.Ring",
	.basicsize = sizeof(RingObject),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = ring_slots,
};

/* ---- Buffer ---- */

static int clock_by_name(const char *name)
{
	for (int i = 0; i < TP_N_CLOCKS; i++)
		if (!strcmp(tp_clock_names[i], name) && (i != TP_CLOCK_X86_TSC || TP_HAS_TSC))
			return i;
	PyErr_Format(PyExc_ValueError, "no clock named %s", name);
	return -1;
}

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "n_pages", "overwrite", "clock", "directory", NULL };
	unsigned int n_pages;
	int is_overwrite = 1;
	const char *clock_name = "local";
	PyObject *directory = NULL;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "I|psO&:Buffer", names, &n_pages, &is_overwrite, &clock_name,
					 PyUnicode_FSConverter, &directory))
		return NULL;
	int clock = clock_by_name(clock_name);
	BufferObject *self = NULL;
	if (clock >= 0 && (n_pages < TP_MIN_PAGES || n_pages > TP_MAX_PAGES))
		PyErr_Format(PyExc_ValueError, "a ring has %d to %d pages", TP_MIN_PAGES, TP_MAX_PAGES);
	else if (clock >= 0)
		self = (BufferObject *)type->tp_alloc(type, 0);
	if (self) {
		self->buffer = tp_buffer_create(n_pages, is_overwrite ? TP_RING_OVERWRITE : 0, clock,
						directory ? PyBytes_AS_STRING(directory) : NULL);
		if (!self->buffer) {
			Py_CLEAR(self);
			PyErr_Format(PyExc_RuntimeError, "no more than %d buffers", TP_MAX_BUFFERS);
		}
	}
	Py_XDECREF(directory);
	return (PyObject *)self;
}

static void buffer_dealloc(PyObject *op)
{
	BufferObject *self = (BufferObject *)op;
	PyTypeObject *type = Py_TYPE(op);

	if (self->buffer)
		tp_buffer_destroy(self->buffer);
	type->tp_free(op);
	Py_DECREF(type);
}

struct ring_info {
	uint64_t serial;
	int32_t tid;
	bool is_ended;
	char comm[16];
	struct tp_ring_stats stats;
};

/* Returns how many, or -1; the caller frees `ret`. */
static Py_ssize_t copy_infos(struct tp_buffer *buffer, struct ring_info **ret)
{
	Py_ssize_t n = 0;

	pthread_mutex_lock(&buffer->lock);
	for (struct tp_ring_node *node = buffer->rings; node; node = node->next)
		n++;
	struct ring_info *infos = calloc(n + 1, sizeof(*infos));
	struct ring_info *info = infos;
	for (struct tp_ring_node *node = buffer->rings; infos && node; node = node->next, info++) {
		info->serial = node->serial;
		info->tid = node->ring.head->tid;
		info->is_ended = node->is_ended;
		memcpy(info->comm, node->ring.head->comm, sizeof(info->comm));
		tp_ring_stats(&node->ring, &info->stats);
	}
	pthread_mutex_unlock(&buffer->lock);
	*ret = infos;
	return infos ? n : -1;
}

static PyObject *buffer_rings(PyObject *op, PyObject *Py_UNUSED(unused))
{
	struct ring_info *infos;
	Py_ssize_t n = copy_infos(((BufferObject *)op)->buffer, &infos);
	PyObject *rings = n < 0 ? PyErr_NoMemory() : PyList_New(0);

	for (Py_ssize_t i = 0; rings && i < n; i++) {
		struct ring_info *info = &infos[i];
		Py_ssize_t len = strnlen(info->comm, sizeof(info->comm));
		PyObject *item = Py_BuildValue("KiOy#N", (unsigned long long)info->serial, info->tid,
					       info->is_ended ? Py_True : Py_False, info->comm, len,
					       tp_stats_dict(&info->stats));
		if (!item || PyList_Append(rings, item))
			Py_CLEAR(rings);
		Py_XDECREF(item);
	}
	free(infos);
	return rings;
}

static bool copy_of_ring(PyObject *op, PyObject *serial, void (*copy)(struct tp_ring *, struct copied *),
			 struct copied *ret)
{
	struct tp_buffer *buffer = ((BufferObject *)op)->buffer;
	unsigned long long wanted = PyLong_AsUnsignedLongLong(serial);

	if (PyErr_Occurred())
		return false;
	pthread_mutex_lock(&buffer->lock);
	struct tp_ring_node *node = buffer->rings;
	while (node && node->serial != wanted)
		node = node->next;
	if (node)
		copy(&node->ring, ret);
	pthread_mutex_unlock(&buffer->lock);
	if (!node)
		PyErr_SetObject(PyExc_KeyError, serial);
	return node;
}

static PyObject *buffer_read(PyObject *op, PyObject *serial)
{
	struct copied copied = { 0 };

	return copy_of_ring(op, serial, copy_read, &copied) ? as_page(&copied) : NULL;
}

static PyObject *buffer_peek(PyObject *op, PyObject *serial)
{
	struct copied copied = { 0 };

	return copy_of_ring(op, serial, copy_peek, &copied) ? as_list(&copied) : NULL;
}

static PyObject *buffer_clear(PyObject *op, PyObject *Py_UNUSED(unused))
{
	tp_buffer_clear(((BufferObject *)op)->buffer);
	Py_RETURN_NONE;
}

static PyObject *buffer_stats(PyObject *op, PyObject *Py_UNUSED(unused))
{
	struct tp_ring_stats stats;

	tp_buffer_stats(((BufferObject *)op)->buffer, &stats);
	return tp_stats_dict(&stats);
}

static PyObject *buffer_now(PyObject *op, PyObject *Py_UNUSED(unused))
{
	struct tp_buffer *buffer = ((BufferObject *)op)->buffer;
	int clock = atomic_load(&buffer->clock);

	if (clock == TP_CLOCK_COUNTER)
		return PyLong_FromUnsignedLongLong(atomic_load(&buffer->counter));
	return PyLong_FromUnsignedLongLong(tp_clock_now(clock, &buffer->counter));
}

static PyObject *buffer_write(PyObject *op, PyObject *record)
{
	struct tp_buffer *buffer = ((BufferObject *)op)->buffer;
	struct tp_thread *thread = tp_thread_get();
	Py_buffer view;

	if (PyObject_GetBuffer(record, &view, PyBUF_SIMPLE))
		return NULL;
	struct tp_ring *ring = thread && atomic_load(&buffer->is_on) ? tp_buffer_ring(buffer, thread) : NULL;
	unsigned char *to = NULL;
	if (ring && view.len >= 8)
		to = tp_ring_reserve(ring, view.len, tp_clock_now(atomic_load(&buffer->clock), &buffer->counter));
	if (to) {
		memcpy(to, view.buf, view.len);
		memcpy(to + 4, &thread->tid, sizeof(thread->tid));
		tp_ring_commit(ring, to);
	}
	PyBuffer_Release(&view);
	return PyBool_FromLong(to != NULL);
}

static PyObject *buffer_get_on(PyObject *op, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(atomic_load(&((BufferObject *)op)->buffer->is_on));
}

static int buffer_set_on(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
	int is_on = value ? PyObject_IsTrue(value) : -1;

	if (is_on >= 0)
		atomic_store(&((BufferObject *)op)->buffer->is_on, is_on);
	return is_on < 0 ? -1 : 0;
}

static PyObject *buffer_get_overwrite(PyObject *op, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(atomic_load(&((BufferObject *)op)->buffer->flags) & TP_RING_OVERWRITE);
}

static int buffer_set_overwrite(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
	int is_overwrite = value ? PyObject_IsTrue(value) : -1;

	if (is_overwrite >= 0)
		tp_buffer_set_flags(((BufferObject *)op)->buffer, is_overwrite ? TP_RING_OVERWRITE : 0);
	return is_overwrite < 0 ? -1 : 0;
}

static PyObject *buffer_get_clock(PyObject *op, void *Py_UNUSED(closure))
{
	return PyUnicode_FromString(tp_clock_names[atomic_load(&((BufferObject *)op)->buffer->clock)]);
}

static int buffer_set_clock(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
	struct tp_buffer *buffer = ((BufferObject *)op)->buffer;
	const char *name = value ? PyUnicode_AsUTF8(value) : NULL;
	int clock = name ? clock_by_name(name) : -1;

	if (clock < 0)
		return -1;
	/* Times of two clocks do not belong in one buffer: tracing_set_clock() in kernel/trace/trace.c. */
	atomic_store(&buffer->clock, clock);
	tp_buffer_clear(buffer);
	return 0;
}

static PyObject *buffer_get_n_pages(PyObject *op, void *Py_UNUSED(closure))
{
	return PyLong_FromUnsignedLong(((BufferObject *)op)->buffer->n_pages);
}

static PyGetSetDef buffer_getset[] = {
	{ "is_on", buffer_get_on, buffer_set_on, NULL, NULL },
	{ "overwrite", buffer_get_overwrite, buffer_set_overwrite, NULL, NULL },
	{ "clock", buffer_get_clock, buffer_set_clock, NULL, NULL },
	{ "n_pages", buffer_get_n_pages, NULL, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef buffer_methods[] = {
	{ "rings", buffer_rings, METH_NOARGS, NULL }, { "read", buffer_read, METH_O, NULL },
	{ "peek", buffer_peek, METH_O, NULL },	      { "clear", buffer_clear, METH_NOARGS, NULL },
	{ "stats", buffer_stats, METH_NOARGS, NULL }, { "now", buffer_now, METH_NOARGS, NULL },
	{ "write", buffer_write, METH_O, NULL },      { NULL, NULL, 0, NULL },
};

static PyType_Slot buffer_slots[] = {
	{ Py_tp_new, buffer_new },
	{ Py_tp_dealloc, buffer_dealloc },
	{ Py_tp_methods, buffer_methods },
	{ Py_tp_getset, buffer_getset },
	{ 0, NULL },
};

PyType_Spec tp_buffer_spec = {
	.name = "tracepoint._core.Buffer",
	.basicsize = sizeof(BufferObject),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = buffer_slots,
};
