/*
 * Columns handed over through the Arrow C data interface, https://arrow.apache.org/docs/format/CDataInterface.html.
 *
 * A node describes one array, its children and its dictionary; every struct that is given away holds a reference
 * to its node and may be released by any thread, with no interpreter around.
 * What is handed over is described by src/tracepoint/decode/arrow.py.  There is no twin: without this
 * module no Arrow data is handed over.
 */
#include "columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BUFFERS = 3, MAX_DEPTH = 4 };

/* The published ABI. */
struct ArrowSchema {
	const char *format, *name, *metadata;
	int64_t flags, n_children;
	struct ArrowSchema **children, *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length, null_count, offset, n_buffers, n_children;
	const void **buffers;
	struct ArrowArray **children, *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
	int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
	const char *(*get_last_error)(struct ArrowArrayStream *);
	void (*release)(struct ArrowArrayStream *);
	void *private_data;
};

struct node {
	size_t n_references;
	char *format, *name;
	int64_t flags, length, null_count, n_buffers, n_children;
	struct tp_block *blocks[MAX_BUFFERS];
	const void *buffers[MAX_BUFFERS];
	struct node **children, *dictionary;
};

/* The Python object that shows a block. */

struct buffer {
	PyObject_HEAD
	struct tp_block *block;
};

static int buffer_view(PyObject *self, Py_buffer *view, int flags)
{
	struct tp_block *block = ((struct buffer *)self)->block;

	return PyBuffer_FillInfo(view, self, block->bytes, (Py_ssize_t)block->size, 1, flags);
}

static Py_ssize_t buffer_length(PyObject *self)
{
	return (Py_ssize_t)((struct buffer *)self)->block->size;
}

static void buffer_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	tp_block_put(((struct buffer *)self)->block);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyType_Slot buffer_slots[] = {
	{ Py_tp_doc, "Memory of a column, read-only." },
	{ Py_tp_dealloc, buffer_dealloc },
	{ Py_sq_length, buffer_length },
	{ Py_bf_getbuffer, buffer_view },
	{ 0, NULL },
};

static PyType_Spec buffer_spec = {
	.name = "tracepoint._decode.Buffer",
	.basicsize = sizeof(struct buffer),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = buffer_slots,
};

int tp_add_buffer_type(PyObject *module)
{
	PyObject *type = PyType_FromModuleAndSpec(module, &buffer_spec, NULL);
	int result = type ? PyModule_AddObjectRef(module, "Buffer", type) : -1;

	Py_XDECREF(type);
	return result;
}

PyObject *tp_buffer_of(PyObject *module, struct tp_block *block)
{
	PyObject *type = PyObject_GetAttrString(module, "Buffer");
	struct buffer *made = type ? PyObject_New(struct buffer, (PyTypeObject *)type) : NULL;

	if (made)
		made->block = block;
	else
		tp_block_put(block);
	Py_XDECREF(type);
	return (PyObject *)made;
}

PyObject *tp_take_array(PyObject *module, void *array, uint64_t n, size_t item)
{
	void **items = array, *kept = n ? realloc(*items, n * item) : NULL;
	struct tp_block *block = n && !kept ? NULL : tp_block_adopt(kept, n * item);

	/* Of an array without items nothing is kept. */
	if (kept)
		*items = block ? NULL : kept;
	return block ? tp_buffer_of(module, block) : PyErr_NoMemory();
}

/* Nodes. */

static void node_put(struct node *node)
{
	if (!node || __atomic_sub_fetch(&node->n_references, 1, __ATOMIC_ACQ_REL))
		return;
	for (int64_t n = 0; node->children && n < node->n_children; n++)
		node_put(node->children[n]);
	for (int n = 0; n < MAX_BUFFERS; n++)
		tp_block_put(node->blocks[n]);
	node_put(node->dictionary);
	free(node->children);
	free(node->format);
	free(node->name);
	free(node);
}

static struct node *node_get(struct node *node)
{
	__atomic_add_fetch(&node->n_references, 1, __ATOMIC_RELAXED);
	return node;
}

/* Return the block of our own buffer, or a new one with the bytes of another object. */
static struct tp_block *block_of(PyObject *module, PyObject *object)
{
	PyObject *type = PyObject_GetAttrString(module, "Buffer");
	struct tp_block *block = NULL;
	Py_buffer view;

	if (type && Py_IS_TYPE(object, (PyTypeObject *)type)) {
		block = tp_block_get(((struct buffer *)object)->block);
	} else if (type && !PyObject_GetBuffer(object, &view, PyBUF_SIMPLE)) {
		block = tp_block_create((size_t)view.len);
		if (!block)
			PyErr_NoMemory();
		else if (view.len)
			memcpy(block->bytes, view.buf, (size_t)view.len);
		PyBuffer_Release(&view);
	}
	Py_XDECREF(type);
	return block;
}

static bool read_buffers(PyObject *module, struct node *node, PyObject *buffers)
{
	node->n_buffers = PyTuple_GET_SIZE(buffers);
	if (node->n_buffers > MAX_BUFFERS) {
		PyErr_SetString(PyExc_ValueError, "more buffers than an array has");
		return false;
	}
	for (int64_t n = 0; n < node->n_buffers; n++) {
		PyObject *object = PyTuple_GET_ITEM(buffers, n);

		if (object == Py_None)
			continue;
		node->blocks[n] = block_of(module, object);
		if (!node->blocks[n])
			return false;
		node->buffers[n] = node->blocks[n]->bytes;
	}
	return true;
}

/* Read (format, name, flags, length, null count, buffers, children, dictionary or None). */
static struct node *read_node(PyObject *module, PyObject *spec, int depth)
{
	struct node *node = calloc(1, sizeof(*node));
	PyObject *buffers, *children, *dictionary;
	const char *format, *name;

	if (!node)
		return (struct node *)PyErr_NoMemory();
	node->n_references = 1;
	if (depth > MAX_DEPTH) {
		PyErr_SetString(PyExc_ValueError, "arrays are nested too deeply");
		goto error;
	}
	if (!PyArg_ParseTuple(spec, "ssLLLO!O!O", &format, &name, &node->flags, &node->length, &node->null_count,
			      &PyTuple_Type, &buffers, &PyTuple_Type, &children, &dictionary))
		goto error;
	node->format = strdup(format);
	node->name = strdup(name);
	node->children = calloc((size_t)PyTuple_GET_SIZE(children) + 1, sizeof(struct node *));
	if (!node->format || !node->name || !node->children) {
		PyErr_NoMemory();
		goto error;
	}
	if (!read_buffers(module, node, buffers))
		goto error;
	for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(children); n++) {
		node->children[n] = read_node(module, PyTuple_GET_ITEM(children, n), depth + 1);
		if (!node->children[n])
			goto error;
		node->n_children++;
	}
	if (dictionary != Py_None) {
		node->dictionary = read_node(module, dictionary, depth + 1);
		if (!node->dictionary)
			goto error;
	}
	return node;
error:
	node_put(node);
	return NULL;
}

/* Structs given away.  One that is not released yet owns its children, its dictionary and a reference. */

#define DEFINE_RELEASE(type, function)                                                                                 \
	static void function(struct type *given)                                                                       \
	{                                                                                                              \
		for (int64_t n = 0; n < given->n_children && given->children; n++) {                                   \
			if (given->children[n] && given->children[n]->release)                                         \
				given->children[n]->release(given->children[n]);                                       \
			free(given->children[n]);                                                                      \
		}                                                                                                      \
		free(given->children);                                                                                 \
		if (given->dictionary && given->dictionary->release)                                                   \
			given->dictionary->release(given->dictionary);                                                 \
		free(given->dictionary);                                                                               \
		node_put(given->private_data);                                                                         \
		given->release = NULL;                                                                                 \
	}

DEFINE_RELEASE(ArrowSchema, release_schema)
DEFINE_RELEASE(ArrowArray, release_array)

/* Give the children and the dictionary away too; all is released again without memory. */
#define GIVE_NESTED(type, give)                                                                                        \
	do {                                                                                                           \
		ret->children = calloc((size_t)node->n_children + 1, sizeof(*ret->children));                          \
		if (!ret->children)                                                                                    \
			goto error;                                                                                    \
		for (int64_t n = 0; n < node->n_children; n++) {                                                       \
			ret->children[n] = calloc(1, sizeof(struct type));                                             \
			if (!ret->children[n] || !give(node->children[n], ret->children[n]))                           \
				goto error;                                                                            \
		}                                                                                                      \
		if (node->dictionary) {                                                                                \
			ret->dictionary = calloc(1, sizeof(struct type));                                              \
			if (!ret->dictionary || !give(node->dictionary, ret->dictionary))                              \
				goto error;                                                                            \
		}                                                                                                      \
	} while (0)

static bool give_schema(struct node *node, struct ArrowSchema *ret)
{
	*ret = (struct ArrowSchema){
		.format = node->format, .name = node->name, .flags = node->flags, .n_children = node->n_children,
		.release = release_schema, .private_data = node_get(node),
	};
	GIVE_NESTED(ArrowSchema, give_schema);
	return true;
error:
	release_schema(ret);
	return false;
}

static bool give_array(struct node *node, struct ArrowArray *ret)
{
	*ret = (struct ArrowArray){
		.length = node->length, .null_count = node->null_count, .n_buffers = node->n_buffers,
		.n_children = node->n_children, .buffers = node->buffers,
		.release = release_array, .private_data = node_get(node),
	};
	GIVE_NESTED(ArrowArray, give_array);
	return true;
error:
	release_array(ret);
	return false;
}

/*
 * A stream of one array, or of those that a Python iterator gives, each made when it is asked for: then the array
 * `node` says only what they are.
 */

struct stream {
	struct node *node;
	PyObject *module, *parts;
	bool is_given;
	char error[200];
};

static int stream_schema(struct ArrowArrayStream *self, struct ArrowSchema *ret)
{
	return give_schema(((struct stream *)self->private_data)->node, ret) ? 0 : ENOMEM;
}

/* Keep the text of the exception. */
static int note_exception(struct stream *stream)
{
	PyObject *type, *value, *trace, *text;

	PyErr_Fetch(&type, &value, &trace);
	text = value ? PyObject_Str(value) : NULL;
	snprintf(stream->error, sizeof(stream->error), "%s", (text ? PyUnicode_AsUTF8(text) : NULL) ?: "reading failed");
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	PyErr_Clear();
	return EIO;
}

/* Give the next array of the iterator away; none is a released one. */
static int next_part(struct stream *stream, struct ArrowArray *ret)
{
	PyGILState_STATE state = PyGILState_Ensure();
	PyObject *spec = PyIter_Next(stream->parts);
	struct node *node = spec ? read_node(stream->module, spec, 0) : NULL;
	int failed = 0;

	*ret = (struct ArrowArray){ 0 };
	if (PyErr_Occurred())
		failed = note_exception(stream);
	else if (node && !give_array(node, ret))
		failed = ENOMEM;
	node_put(node);
	Py_XDECREF(spec);
	PyGILState_Release(state);
	return failed;
}

static int stream_next(struct ArrowArrayStream *self, struct ArrowArray *ret)
{
	struct stream *stream = self->private_data;

	if (stream->parts)
		return next_part(stream, ret);
	if (stream->is_given) {
		*ret = (struct ArrowArray){ 0 };
		return 0;
	}
	if (!give_array(stream->node, ret))
		return ENOMEM;
	stream->is_given = true;
	return 0;
}

static const char *stream_error(struct ArrowArrayStream *self)
{
	const struct stream *stream = self->private_data;

	return stream->error[0] ? stream->error : "no memory is left";
}

static void stream_release(struct ArrowArrayStream *self)
{
	struct stream *stream = self->private_data;

	/* What the interpreter held is gone with it. */
	if (stream->parts && Py_IsInitialized()) {
		PyGILState_STATE state = PyGILState_Ensure();

		Py_DECREF(stream->parts);
		Py_DECREF(stream->module);
		PyGILState_Release(state);
	}
	node_put(stream->node);
	free(stream);
	self->release = NULL;
}

static bool give_stream(struct node *node, struct ArrowArrayStream *ret)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return false;
	stream->node = node_get(node);
	*ret = (struct ArrowArrayStream){ stream_schema, stream_next, stream_error, stream_release, stream };
	return true;
}

/* Capsules: data that was not taken is released with them. */

#define DEFINE_CAPSULE(type, capsule_name, give, function)                                                             \
	static void function##_free(PyObject *capsule)                                                                 \
	{                                                                                                              \
		struct type *given = PyCapsule_GetPointer(capsule, capsule_name);                                      \
                                                                                                                       \
		if (given->release)                                                                                    \
			given->release(given);                                                                         \
		free(given);                                                                                           \
	}                                                                                                              \
                                                                                                                       \
	static PyObject *function(struct node *node)                                                                   \
	{                                                                                                              \
		struct type *given = calloc(1, sizeof(*given));                                                        \
		PyObject *capsule;                                                                                     \
                                                                                                                       \
		if (!given || !give(node, given)) {                                                                    \
			free(given);                                                                                   \
			return PyErr_NoMemory();                                                                       \
		}                                                                                                      \
		capsule = PyCapsule_New(given, capsule_name, function##_free);                                         \
		if (!capsule) {                                                                                        \
			given->release(given);                                                                         \
			free(given);                                                                                   \
		}                                                                                                      \
		return capsule;                                                                                        \
	}

DEFINE_CAPSULE(ArrowSchema, "arrow_schema", give_schema, schema_capsule)
DEFINE_CAPSULE(ArrowArray, "arrow_array", give_array, array_capsule)
DEFINE_CAPSULE(ArrowArrayStream, "arrow_array_stream", give_stream, stream_capsule)

static PyObject *pair_capsules(struct node *node)
{
	return Py_BuildValue("(NN)", schema_capsule(node), array_capsule(node));
}

static PyObject *hand_over(PyObject *module, PyObject *spec, PyObject *(*make)(struct node *))
{
	struct node *node = read_node(module, spec, 0);
	PyObject *made = node ? make(node) : NULL;

	node_put(node);
	return made;
}

PyObject *tp_arrow_schema(PyObject *module, PyObject *spec)
{
	return hand_over(module, spec, schema_capsule);
}

PyObject *tp_arrow_array(PyObject *module, PyObject *spec)
{
	return hand_over(module, spec, pair_capsules);
}

PyObject *tp_arrow_stream(PyObject *module, PyObject *spec)
{
	return hand_over(module, spec, stream_capsule);
}

PyObject *tp_arrow_parts(PyObject *module, PyObject *args)
{
	PyObject *spec, *parts, *made;

	if (!PyArg_ParseTuple(args, "OO:arrow_parts", &spec, &parts))
		return NULL;
	if (!PyIter_Check(parts))
		return PyErr_Format(PyExc_TypeError, "parts are an iterator, not %R", parts);
	/* A thread that was not made by Python asks the main interpreter for its lock. */
	if (PyInterpreterState_Get() != PyInterpreterState_Main())
		return PyErr_Format(PyExc_NotImplementedError, "arrays made one by one, in a sub-interpreter");
	made = tp_arrow_stream(module, spec);
	if (made) {
		struct ArrowArrayStream *given = PyCapsule_GetPointer(made, "arrow_array_stream");
		struct stream *stream = given->private_data;

		stream->module = Py_NewRef(module);
		stream->parts = Py_NewRef(parts);
	}
	return made;
}
