/*
 * The names that Python gives its threads.  The kernel does not know them before CPython 3.14: there all
 * threads have the name of the program.  The twin of this is src/tracepoint/runtime/fire/this_thread.py.
 */
#include "module.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

/* threading._active: the running threads by their identifiers. */
static PyObject *active_threads(void)
{
	static _Atomic(PyObject *) known;
	PyObject *active = atomic_load(&known), *none = NULL;

	if (active)
		return active;
	PyObject *threading = PyImport_ImportModule("threading");
	active = threading ? PyObject_GetAttrString(threading, "_active") : NULL;
	Py_XDECREF(threading);
	if (active && !PyDict_Check(active))
		Py_CLEAR(active);
	/* Without the GIL another thread may have been faster. */
	if (active && !atomic_compare_exchange_strong(&known, &none, active))
		Py_SETREF(active, Py_NewRef(none));
	PyErr_Clear();
	return active;
}

/* As much of a text as fits, in whole characters, and none that would break a line. */
static void copy_name(const char *text, Py_ssize_t n, char ret[TP_NAME_SIZE])
{
	if (n > TP_NAME_SIZE - 1)
		for (n = TP_NAME_SIZE - 1; n > 0 && (text[n] & 0xc0) == 0x80;)
			n--;
	memset(ret, 0, TP_NAME_SIZE);
	for (Py_ssize_t i = 0; i < n; i++)
		ret[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
}

/* Fill in the name of a threading.Thread; false for one that represents a foreign thread. */
static bool name_of(PyObject *thread, char ret[TP_NAME_SIZE])
{
	bool is_foreign = !strcmp(Py_TYPE(thread)->tp_name, "_DummyThread");
	/* Not `name`, which is Python code and could let another thread run. */
	PyObject *name = is_foreign ? NULL : PyObject_GetAttrString(thread, "_name");
	Py_ssize_t n = 0;
	const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &n) : NULL;

	if (text && n)
		copy_name(text, n, ret);
	Py_XDECREF(name);
	PyErr_Clear();
	return text && n;
}

/* Whether the thread still has the name of its program: one that was set in the kernel counts. */
static bool has_name_of_program(void)
{
	char mine[TP_NAME_SIZE] = "", program[TP_NAME_SIZE] = "";
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, program, sizeof(program));

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return true;
	program[n - 1] = '\0';
	prctl(PR_GET_NAME, mine);
	return !strcmp(mine, program);
}

/* The hook of tp_threads_setup(): the name of this thread, which holds the GIL. */
bool tp_name_of_this_thread(char ret[TP_NAME_SIZE])
{
	PyObject *active = active_threads(), *thread = NULL;

	if (!active || !has_name_of_program())
		return false;
	PyObject *ident = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
	if (ident)
		thread = tp_dict_get(active, ident);
	Py_XDECREF(ident);
	PyErr_Clear();
	bool is_found = thread && name_of(thread, ret);
	Py_XDECREF(thread);
	return is_found;
}

/* Names that were set later: give them to the rings of a buffer. */
void tp_rename_rings(struct tp_buffer *buffer)
{
	PyObject *active = active_threads();
	PyObject *threads = active ? PyDict_Values(active) : NULL;
	char name[TP_NAME_SIZE];

	for (Py_ssize_t i = 0; threads && i < PyList_GET_SIZE(threads); i++) {
		PyObject *thread = PyList_GET_ITEM(threads, i);
		PyObject *number = PyObject_GetAttrString(thread, "_native_id");
		long tid = number && PyLong_Check(number) ? PyLong_AsLong(number) : -1;
		Py_XDECREF(number);
		PyErr_Clear();
		if (tid > 0 && name_of(thread, name))
			tp_buffer_rename(buffer, (int32_t)tid, name);
	}
	Py_XDECREF(threads);
	PyErr_Clear();
}
