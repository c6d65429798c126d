/* What the files of the extension share.  Only module*.c include Python.h. */
#ifndef TP_MODULE_H
#define TP_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

/* Firing and synchronize() both hold the GIL, where there is one. */
#ifndef Py_GIL_DISABLED
#define TP_ENTER_ORDER memory_order_relaxed
#endif

/* Python before 3.13 has the GIL instead. */
#ifndef Py_BEGIN_CRITICAL_SECTION
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

#include "filter.h"
#include "thread.h"

typedef struct {
	PyObject_HEAD
	struct tp_buffer *buffer;
} BufferObject;

typedef struct {
	PyObject_HEAD
	PyObject *program; /* bytes: the flat form */
} FilterObject;

extern PyTypeObject *tp_buffer_type;
extern PyTypeObject *tp_filter_type;

extern PyType_Spec tp_ring_spec;
extern PyType_Spec tp_buffer_spec;
extern PyType_Spec tp_filter_spec;
extern PyType_Spec tp_tracepoint_spec;

/* Names of threads: module_names.c. */
bool tp_name_of_this_thread(char ret[TP_NAME_SIZE]);
void tp_rename_rings(struct tp_buffer *buffer);

/* PyDict_GetItemRef() of Python 3.13: a new reference, or NULL, without an exception where there is no such key. */
static inline PyObject *tp_dict_get(PyObject *dict, PyObject *key)
{
	PyObject *found;

#if PY_VERSION_HEX >= 0x030D0000
	(void)PyDict_GetItemRef(dict, key, &found);
#else
	found = Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
	return found;
}

PyObject *tp_stats_dict(const struct tp_ring_stats *stats);

/*
 * Pages are copied first and become Python objects afterwards: making objects may run the garbage
 * collector, whose finalisers may fire a tracepoint, which may need the lock of the buffer.
 *
 * A ring may have 65534 pages: they are copied some at a time, without the GIL, so that other threads wait
 * neither for it nor for the lock of the buffer longer than for those.
 */
enum { TP_PAGES_AT_ONCE = 256 };

struct tp_peek {
	unsigned char *pages; /* room for TP_PAGES_AT_ONCE */
	size_t n_pages;       /* that the last step has copied */
	size_t n_left;        /* that may follow: what is written meanwhile waits for the next time */
	uint64_t cursor;      /* 0: nothing was copied yet */
};

/* One step in a ring that cannot go meanwhile. */
void tp_peek_some(struct tp_ring *ring, struct tp_peek *peek);
/*
 * All pages as a list, by as many steps as that takes: `step` runs without the GIL and calls tp_peek_some();
 * it returns false when the ring is not there.  NULL with an exception set, or with none: there was no ring.
 */
PyObject *tp_peek_all(bool (*step)(void *of, struct tp_peek *peek), void *of);
/* The page as bytes, or None where there was nothing to read. */
PyObject *tp_as_page(const unsigned char *page, int size);

/*
 * Keep the exception that is set: something of ours failed while the traced program ran, which must not
 * see it.  `where` names the part, such as "probe".
 */
void tp_keep_fault(PyObject *event, const char *where, bool is_first);
PyObject *tp_faults_get(PyObject *module, PyObject *unused);
PyObject *tp_faults_clear(PyObject *module, PyObject *unused);
int tp_faults_init(void);

/* Free the tables of events that were replaced and that nobody uses any more: module_fire.c. */
void tp_tables_collect(void);

PyObject *tp_poke(PyObject *module, PyObject *args);

#endif
