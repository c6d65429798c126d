/* What the files of tracepoint._decode offer to its module. */
#ifndef TP_DECODE_H
#define TP_DECODE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *tp_load_prints(PyObject *module, PyObject *args);
PyObject *tp_render_prints(PyObject *module, PyObject *args);

#endif
