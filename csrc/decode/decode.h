/* What the files of tracepoint._decode offer to its module. */
#ifndef TP_DECODE_H
#define TP_DECODE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "print.h"

/* Print programs by the types of their records; any number of threads may use them at a time. */
struct tp_prints;

/* A record without a program: none for its type, or it is too short to have one. */
enum { TP_PRINT_UNKNOWN = 64 };

/* Return what load_prints() made; NULL with an exception for another object. */
const struct tp_prints *tp_prints_of(PyObject *capsule);
/* Append the line of a record; return what became of it: enum tp_print_state, or TP_PRINT_UNKNOWN. */
unsigned int tp_prints_record(const struct tp_prints *prints, const struct tp_print_texts *texts,
			      const unsigned char *record, uint32_t size, struct tp_print_out *out);

/*
 * Notes on lines are counted by program and state: how many counters all programs have, the one of a line that the
 * program for an id made, and back from a counter to id and state; false for one of lines without a note.
 */
uint32_t tp_prints_notes(const struct tp_prints *prints);
uint32_t tp_prints_note(const struct tp_prints *prints, uint32_t id, unsigned int state);
bool tp_prints_noted(const struct tp_prints *prints, uint32_t note, uint32_t *id, unsigned int *state);

PyObject *tp_render_lines(PyObject *module, PyObject *args);
PyObject *tp_load_prints(PyObject *module, PyObject *args);
PyObject *tp_render_prints(PyObject *module, PyObject *args);

#endif
