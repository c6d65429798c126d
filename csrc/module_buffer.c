/* What an instance records into, as a Python object; for the twin see src/tracepoint/runtime/fire/twin.py. */
#include "module.h"

#include <errno.h>

PyTypeObject *tp_buffer_type;

static int clock_by_name(const char *name)
{
	for (int i = 0; i < TP_N_CLOCKS; i++)
		if (!strcmp(tp_clock_names[i], name) && (i != TP_CLOCK_X86_TSC || TP_HAS_TSC))
			return i;
	PyErr_Format(PyExc_ValueError, "no clock named %s", name);
	return -1;
}

/* What mkdir and echo say of a kernel that has no memory for one. */
static void no_buffer(void)
{
	PyObject *args = Py_BuildValue("(is)", ENOMEM, "no memory for a buffer, or too many of them");

	if (args)
		PyErr_SetObject(PyExc_OSError, args);
	Py_XDECREF(args);
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
		const char *folder = directory ? PyBytes_AS_STRING(directory) : NULL;
		uint32_t flags = is_overwrite ? TP_RING_OVERWRITE : 0;
		self->buffer = tp_buffer_create(n_pages, flags, clock, folder);
		if (!self->buffer) {
			/* Events hold buffers, and their control holds them: they go when the interpreter collects. */
			PyGC_Collect();
			self->buffer = tp_buffer_create(n_pages, flags, clock, folder);
		}
		if (!self->buffer) {
			Py_CLEAR(self);
			no_buffer();
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
	char comm[TP_NAME_SIZE];
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
		info->is_ended = tp_ring_owner(node, info->comm);
		tp_ring_stats(&node->ring, &info->stats);
	}
	pthread_mutex_unlock(&buffer->lock);
	*ret = infos;
	return infos ? n : -1;
}

static PyObject *buffer_rings(PyObject *op, PyObject *Py_UNUSED(unused))
{
	struct ring_info *infos;

	tp_rename_rings(((BufferObject *)op)->buffer);
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

struct wanted {
	struct tp_buffer *buffer;
	uint64_t serial;
};

static bool get_wanted(PyObject *op, PyObject *serial, struct wanted *ret)
{
	ret->buffer = ((BufferObject *)op)->buffer;
	ret->serial = PyLong_AsUnsignedLongLong(serial);
	return !PyErr_Occurred();
}

/* The ring, while the lock of the buffer is held, or NULL. */
static struct tp_ring *find_ring(const struct wanted *wanted)
{
	struct tp_ring_node *node = wanted->buffer->rings;

	while (node && node->serial != wanted->serial)
		node = node->next;
	return node ? &node->ring : NULL;
}

static PyObject *buffer_read(PyObject *op, PyObject *serial)
{
	unsigned char page[TP_PAGE_SIZE] __attribute__((aligned(8)));
	struct wanted wanted;

	if (!get_wanted(op, serial, &wanted))
		return NULL;
	pthread_mutex_lock(&wanted.buffer->lock);
	struct tp_ring *ring = find_ring(&wanted);
	int size = ring ? tp_ring_read(ring, page) : 0;
	pthread_mutex_unlock(&wanted.buffer->lock);
	if (ring)
		return tp_as_page(page, size);
	PyErr_SetObject(PyExc_KeyError, serial);
	return NULL;
}

static bool peek_step(void *of, struct tp_peek *peek)
{
	const struct wanted *wanted = of;

	pthread_mutex_lock(&wanted->buffer->lock);
	struct tp_ring *ring = find_ring(wanted);
	if (ring)
		tp_peek_some(ring, peek);
	pthread_mutex_unlock(&wanted->buffer->lock);
	return ring;
}

static PyObject *buffer_peek(PyObject *op, PyObject *serial)
{
	struct wanted wanted;
	PyObject *list = get_wanted(op, serial, &wanted) ? tp_peek_all(peek_step, &wanted) : NULL;

	if (!list && !PyErr_Occurred())
		PyErr_SetObject(PyExc_KeyError, serial);
	return list;
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
		to = tp_ring_reserve(ring, view.len, tp_clock_now(atomic_load(&buffer->clock), &buffer->counter),
				     tp_cpu_now());
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
	tp_buffer_set_clock(buffer, clock);
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
