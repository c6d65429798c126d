/* Frames of zstd, with libzstd where the system has it. */
#ifndef TP_DECODE_ZSTD_H
#define TP_DECODE_ZSTD_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *tp_zstd_version(PyObject *module, PyObject *unused);
PyObject *tp_zstd_context(PyObject *module, PyObject *unused);
PyObject *tp_zstd_compress(PyObject *module, PyObject *args);
PyObject *tp_zstd_expand(PyObject *module, PyObject *args);

#endif
