/*
 * Frames of zstd, with libzstd where the system has it: a library for Python takes a tenth of all that a short
 * recording costs to load, and may not be installed.
 *
 * The library is looked up when it is first asked for, so that the module needs none to be built or loaded.
 */
#include "zstd.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#define CONTEXT "tracepoint._decode.zstd"

/* As zstd.h of the library declares them: its stable interface since 1.0. */
struct zstd {
	const char *(*version)(void);
	size_t (*bound)(size_t size);
	void *(*make)(void);
	size_t (*free)(void *context);
	size_t (*compress)(void *context, void *to, size_t room, const void *from, size_t size, int level);
	size_t (*expand)(void *to, size_t room, const void *from, size_t size);
	unsigned (*is_error)(size_t code);
	const char *(*error_name)(size_t code);
};

/* Of the process, for all interpreters: set once, `is_there` with all functions or not at all. */
static struct zstd library;
static bool is_there;
static pthread_once_t is_sought = PTHREAD_ONCE_INIT;

/* Find one function of the library. */
static bool find(void *handle, const char *name, void *function)
{
	/* POSIX has dlsym() return functions as addresses of objects. */
	return (*(void **)function = dlsym(handle, name)) != NULL;
}

static void seek(void)
{
	void *handle = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);

	is_there = handle && find(handle, "ZSTD_versionString", &library.version) &&
		   find(handle, "ZSTD_compressBound", &library.bound) &&
		   find(handle, "ZSTD_isError", &library.is_error) &&
		   find(handle, "ZSTD_getErrorName", &library.error_name) &&
		   find(handle, "ZSTD_createCCtx", &library.make) &&
		   find(handle, "ZSTD_freeCCtx", &library.free) &&
		   find(handle, "ZSTD_compressCCtx", &library.compress) &&
		   find(handle, "ZSTD_decompress", &library.expand);
}

/* Return whether there is a library. */
static bool loaded(void)
{
	pthread_once(&is_sought, seek);
	return is_there;
}

PyObject *tp_zstd_version(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyUnicode_FromString(loaded() ? library.version() : "");
}

/* Return the bytes that `made` was given, shortened to those that there are; an error of the library is ours. */
static PyObject *shortened(PyObject *made, size_t size)
{
	if (library.is_error(size)) {
		PyErr_SetString(PyExc_ValueError, library.error_name(size));
		Py_DECREF(made);
		return NULL;
	}
	/* Where that fails, `made` is NULL. */
	_PyBytes_Resize(&made, (Py_ssize_t)size);
	return made;
}

static void free_context(PyObject *capsule)
{
	library.free(PyCapsule_GetPointer(capsule, CONTEXT));
}

/* What the library needs to compress, for one thread at a time: made once, as a chunk takes less than that. */
PyObject *tp_zstd_context(PyObject *module, PyObject *unused)
{
	void *context;

	(void)module;
	(void)unused;
	if (!loaded())
		return PyErr_Format(PyExc_ValueError, "no libzstd.so.1");
	context = library.make();
	return context ? PyCapsule_New(context, CONTEXT, free_context) : PyErr_NoMemory();
}

PyObject *tp_zstd_compress(PyObject *module, PyObject *args)
{
	PyObject *made = NULL, *capsule;
	Py_buffer from;
	void *context;
	size_t size;
	int level;

	(void)module;
	if (!PyArg_ParseTuple(args, "Oy*i:zstd_compress", &capsule, &from, &level))
		return NULL;
	context = PyCapsule_GetPointer(capsule, CONTEXT);
	if (context) {
		size = library.bound((size_t)from.len);
		made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
	}
	if (made) {
		Py_BEGIN_ALLOW_THREADS
		size = library.compress(context, PyBytes_AS_STRING(made), size, from.buf, (size_t)from.len, level);
		Py_END_ALLOW_THREADS
		made = shortened(made, size);
	}
	PyBuffer_Release(&from);
	return made;
}

PyObject *tp_zstd_expand(PyObject *module, PyObject *args)
{
	PyObject *made = NULL;
	Py_buffer from;
	Py_ssize_t room;
	size_t size;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*n:zstd_expand", &from, &room))
		return NULL;
	if (room < 0 || !loaded())
		PyErr_SetString(PyExc_ValueError, room < 0 ? "less than no bytes" : "no libzstd.so.1");
	else
		made = PyBytes_FromStringAndSize(NULL, room);
	if (made) {
		Py_BEGIN_ALLOW_THREADS
		size = library.expand(PyBytes_AS_STRING(made), (size_t)room, from.buf, (size_t)from.len);
		Py_END_ALLOW_THREADS
		made = shortened(made, size);
	}
	PyBuffer_Release(&from);
	return made;
}
