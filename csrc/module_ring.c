/* One ring as a Python object; for the twin see src/tracepoint/runtime/rings/ring.py. */
#include "module.h"

#include <sys/mman.h>

typedef struct {
	PyObject_HEAD
	struct tp_ring ring;
	void *memory;
	Py_buffer view; /* of an attached ring */
	bool is_attached;
} RingObject;

static PyObject *ring_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "n_pages", "overwrite", NULL };
	unsigned int n_pages;
	int is_overwrite = 1;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "I|p:Ring", names, &n_pages, &is_overwrite))
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
	tp_ring_init(&self->ring, memory, n_pages, is_overwrite ? TP_RING_OVERWRITE : 0);
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
	int cpu = -1;

	if (!PyArg_ParseTuple(args, "Ky*|i:reserve", &stamp, &payload, &cpu))
		return NULL;
	if (is_readonly(self)) {
		PyBuffer_Release(&payload);
		return NULL;
	}
	unsigned char *to;
	Py_BEGIN_CRITICAL_SECTION(op);
	to = tp_ring_reserve(&self->ring, payload.len, stamp, cpu);
	if (to)
		memcpy(to, payload.buf, payload.len);
	Py_END_CRITICAL_SECTION();
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
	void *payload;

	Py_BEGIN_CRITICAL_SECTION(op);
	payload = token_payload(self, args, &length);
	if (payload)
		tp_ring_commit(&self->ring, payload);
	Py_END_CRITICAL_SECTION();
	return payload ? Py_NewRef(Py_None) : NULL;
}

static PyObject *ring_read(PyObject *op, PyObject *Py_UNUSED(unused))
{
	unsigned char page[TP_PAGE_SIZE] __attribute__((aligned(8)));
	int size;

	Py_BEGIN_CRITICAL_SECTION(op);
	size = tp_ring_read(&((RingObject *)op)->ring, page);
	Py_END_CRITICAL_SECTION();
	return tp_as_page(page, size);
}

static bool peek_step(void *of, struct tp_peek *peek)
{
	tp_peek_some(of, peek);
	return true;
}

static PyObject *ring_peek(PyObject *op, PyObject *Py_UNUSED(unused))
{
	return tp_peek_all(peek_step, &((RingObject *)op)->ring);
}

static PyObject *ring_clear(PyObject *op, PyObject *Py_UNUSED(unused))
{
	Py_BEGIN_CRITICAL_SECTION(op);
	tp_ring_clear(&((RingObject *)op)->ring);
	Py_END_CRITICAL_SECTION();
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
