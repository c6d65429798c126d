/* Moving the pages of a ring buffer to a file. */
#ifndef TP_DECODE_DRAIN_H
#define TP_DECODE_DRAIN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *tp_drain(PyObject *module, PyObject *args);
PyObject *tp_free_space(PyObject *module, PyObject *args);

#endif
