/* tracepoint._core: the C core as an extension module. */
#include "module.h"

PyTypeObject *tp_filter_type;

/* ---- Filter ---- */

static PyObject *filter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "program", NULL };
	PyObject *program;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "S:Filter", names, &program))
		return NULL;
	if (tp_filter_check(PyBytes_AS_STRING(program), PyBytes_GET_SIZE(program))) {
		PyErr_SetString(PyExc_ValueError, "not a filter program");
		return NULL;
	}
	FilterObject *self = (FilterObject *)type->tp_alloc(type, 0);
	if (self) {
		Py_INCREF(program);
		self->program = program;
	}
	return (PyObject *)self;
}

static void filter_dealloc(PyObject *op)
{
	PyTypeObject *type = Py_TYPE(op);

	Py_XDECREF(((FilterObject *)op)->program);
	type->tp_free(op);
	Py_DECREF(type);
}

static PyObject *filter_matches(PyObject *op, PyObject *args)
{
	struct tp_filter_context context = { 0 };
	const char *comm = NULL;
	Py_ssize_t comm_len = 0;
	Py_buffer record;

	if (!PyArg_ParseTuple(args, "y*|Iy#:matches", &record, &context.cpu, &comm, &comm_len))
		return NULL;
	if (comm_len > TP_COMM_SIZE - 1)
		comm_len = TP_COMM_SIZE - 1;
	if (comm)
		memcpy(context.comm, comm, comm_len);
	const char *program = PyBytes_AS_STRING(((FilterObject *)op)->program);
	bool matches = tp_filter_matches(program, record.buf, record.len, &context);
	PyBuffer_Release(&record);
	return PyBool_FromLong(matches);
}

static PyMethodDef filter_methods[] = {
	{ "matches", filter_matches, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot filter_slots[] = {
	{ Py_tp_new, filter_new },
	{ Py_tp_dealloc, filter_dealloc },
	{ Py_tp_methods, filter_methods },
	{ 0, NULL },
};

PyType_Spec tp_filter_spec = {
	.name = "tracepoint._core.Filter",
	.basicsize = sizeof(FilterObject),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = filter_slots,
};

/* ---- faults ---- */

enum { MAX_FAULTS = 64 };

static PyObject *fault_list; /* the last MAX_FAULTS: (event, where, text) */
static _Atomic uint64_t n_faults;
static PyObject *fault_hook; /* called with (event, where, text) for the first fault of an event, or NULL */

int tp_faults_init(void)
{
	PyObject *collections = PyImport_ImportModule("collections");

	if (!collections || fault_list) {
		Py_XDECREF(collections);
		return fault_list ? 0 : -1;
	}
	PyObject *type = PyObject_GetAttrString(collections, "deque");
	PyObject *args = type ? Py_BuildValue("((),i)", MAX_FAULTS) : NULL;
	fault_list = args ? PyObject_CallObject(type, args) : NULL;
	Py_XDECREF(args);
	Py_XDECREF(type);
	Py_DECREF(collections);
	return fault_list ? 0 : -1;
}

/* Drop the exception that is set.  Returns whether it was Ctrl-C. */
static bool drop_exception(void)
{
	bool is_interrupt = PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);

	PyErr_Clear();
	return is_interrupt;
}

/* "ValueError: message" with 1000 characters of it at most; the type alone where making the text fails. */
static PyObject *exception_text(PyObject *type, PyObject *value, bool *is_interrupt)
{
	const char *name = type && PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "exception";
	PyObject *text = value ? PyUnicode_FromFormat("%s: %.1000S", name, value) : NULL;

	if (text)
		return text;
	*is_interrupt |= drop_exception();
	return PyUnicode_FromString(name);
}

/* Another thread may replace it meanwhile.  A new reference, or NULL. */
static PyObject *take_fault_hook(void)
{
	PyObject *hook;

	Py_BEGIN_CRITICAL_SECTION(fault_list);
	hook = Py_XNewRef(fault_hook);
	Py_END_CRITICAL_SECTION();
	return hook;
}

void tp_keep_fault(PyObject *event, const char *where, bool is_first)
{
	PyObject *type, *value, *traceback;

	PyErr_Fetch(&type, &value, &traceback);
	PyErr_NormalizeException(&type, &value, &traceback);
	bool is_interrupt = type && PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt);
	atomic_fetch_add(&n_faults, 1);
	PyObject *text = exception_text(type, value, &is_interrupt);
	PyObject *item = text ? Py_BuildValue("(OsO)", event, where, text) : NULL;
	PyObject *done = item ? PyObject_CallMethod(fault_list, "append", "(O)", item) : NULL;
	is_interrupt |= drop_exception();
	Py_XDECREF(done);
	PyObject *hook = is_first && item ? take_fault_hook() : NULL;
	done = hook ? PyObject_CallObject(hook, item) : NULL;
	is_interrupt |= drop_exception();
	Py_XDECREF(done);
	Py_XDECREF(hook);
	Py_XDECREF(item);
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
	/* Ctrl-C that came while a probe ran is the program's: it comes again at its next instruction. */
	if (is_interrupt)
		PyErr_SetInterrupt();
}

PyObject *tp_faults_get(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
	PyObject *list = PySequence_List(fault_list);

	return list ? Py_BuildValue("KN", (unsigned long long)atomic_load(&n_faults), list) : NULL;
}

PyObject *tp_faults_clear(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
	atomic_store(&n_faults, 0);
	return PyObject_CallMethod(fault_list, "clear", NULL);
}

static PyObject *set_fault_hook(PyObject *Py_UNUSED(module), PyObject *hook)
{
	PyObject *old;

	Py_BEGIN_CRITICAL_SECTION(fault_list);
	old = fault_hook;
	fault_hook = hook == Py_None ? NULL : Py_NewRef(hook);
	Py_END_CRITICAL_SECTION();
	Py_XDECREF(old);
	Py_RETURN_NONE;
}

/* ---- module functions ---- */

static PyObject *synchronize(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
	struct tp_thread *thread = tp_thread_get();
	struct timespec pause = { 0, 20000 };

	if (!thread)
		return PyErr_NoMemory();
	if (thread->depth) {
		PyErr_SetString(PyExc_RuntimeError, "synchronize() in a probe would wait for itself");
		return NULL;
	}
	uint64_t generation = tp_grace_begin();
	while (!tp_grace_over(generation)) {
		Py_BEGIN_ALLOW_THREADS
		nanosleep(&pause, NULL);
		Py_END_ALLOW_THREADS
		if (PyErr_CheckSignals())
			return NULL;
		if (pause.tv_nsec < 2000000)
			pause.tv_nsec *= 2;
	}
	tp_tables_collect();
	Py_RETURN_NONE;
}

static PyObject *noop(PyObject *Py_UNUSED(module), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(n))
{
	Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
	{ "synchronize", synchronize, METH_NOARGS, NULL },
	{ "faults", tp_faults_get, METH_NOARGS, NULL },
	{ "clear_faults", tp_faults_clear, METH_NOARGS, NULL },
	{ "set_fault_hook", set_fault_hook, METH_O, NULL },
	{ "poke", tp_poke, METH_VARARGS, NULL },
	{ "noop", (PyCFunction)(void (*)(void))noop, METH_FASTCALL, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyObject *add_type(PyObject *module, PyType_Spec *spec)
{
	PyObject *type = PyType_FromSpec(spec);

	if (type && PyModule_AddType(module, (PyTypeObject *)type))
		Py_CLEAR(type);
	return type;
}

static int module_exec(PyObject *module)
{
	static bool is_loaded;

	/* Rings, threads and faults belong to the process; a second interpreter would mix them up. */
	if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
		PyErr_SetString(PyExc_ImportError, "tracepoint._core works in the main interpreter only");
		return -1;
	}
	if (is_loaded) {
		PyErr_SetString(PyExc_ImportError, "tracepoint._core is already loaded in this process");
		return -1;
	}
	if (tp_threads_setup(tp_name_of_this_thread)) {
		PyErr_SetString(PyExc_OSError, "no thread key left");
		return -1;
	}
	if (tp_faults_init() || PyModule_AddIntConstant(module, "MAX_DEPTH", TP_MAX_DEPTH))
		return -1;
	PyObject *ring_type = add_type(module, &tp_ring_spec);
	PyObject *event_type = add_type(module, &tp_tracepoint_spec);
	tp_buffer_type = (PyTypeObject *)add_type(module, &tp_buffer_spec);
	tp_filter_type = (PyTypeObject *)add_type(module, &tp_filter_spec);
	bool is_ok = ring_type && event_type && tp_buffer_type && tp_filter_type;
	Py_XDECREF(ring_type);
	Py_XDECREF(event_type);
	is_loaded = is_ok;
	return is_ok ? 0 : -1;
}

static PyModuleDef_Slot module_slots[] = {
	{ Py_mod_exec, (void *)module_exec },
#if PY_VERSION_HEX >= 0x030C0000
	{ Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED },
#endif
#ifdef Py_GIL_DISABLED
	/* What one thread may change while others use it: docs/decisions/0024-speed.md. */
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
	{ 0, NULL },
};

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "tracepoint._core",
	.m_methods = functions,
	.m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__core(void)
{
	return PyModuleDef_Init(&module_def);
}
