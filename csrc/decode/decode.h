/* What the files of tracepoint._decode offer to its module. */
#ifndef TP_DECODE_H
#define TP_DECODE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "print.h"
#include "../page.h"

/* Print programs by the types of their records; any number of threads may use them at a time. */
struct tp_prints {
	struct tp_print_program *programs;
	uint32_t *ids;         /* of each program */
	uint32_t *first_notes; /* the first counter of each program, and how many there are of all */
	uint32_t n;
	bool is_big;
	uint32_t *by_id; /* the program of each type of record, by the number of the type */
	uint32_t n_ids;
	bool is_for_all; /* the first program is for records of any type */
};

#define TP_NO_PROGRAM UINT32_MAX

/* A record without a program: none for its type, or it is too short to have one. */
enum { TP_PRINT_UNKNOWN = 64 };

static inline uint32_t tp_program_for(const struct tp_prints *set, const unsigned char *record, uint32_t length)
{
	uint16_t id;

	if (set->is_for_all)
		return 0;
	if (length < 2)
		return TP_NO_PROGRAM;
	id = tp_record_id(record, set->is_big);
	return id < set->n_ids ? set->by_id[id] : TP_NO_PROGRAM;
}

/* Return what load_prints() made; NULL with an exception for another object. */
const struct tp_prints *tp_prints_of(PyObject *capsule);

/*
 * Notes on lines are counted by program and state: how many counters all programs have, the one of a line that a
 * program made, and back from a counter to id and state; false for one of lines without a note.
 */
static inline uint32_t tp_prints_notes(const struct tp_prints *prints)
{
	return prints->first_notes[prints->n];
}

static inline uint32_t tp_prints_note(const struct tp_prints *prints, uint32_t program, unsigned int state)
{
	uint32_t at = state & TP_PRINT_FIELDS ? ((state >> TP_PRINT_WHY) + 1) * TP_PRINT_NOTES : 0;

	return prints->first_notes[program] + at + state % TP_PRINT_NOTES;
}

bool tp_prints_noted(const struct tp_prints *prints, uint32_t note, uint32_t *id, unsigned int *state);

PyObject *tp_make_line_writer(PyObject *module, PyObject *args);
PyObject *tp_line_notes(PyObject *module, PyObject *capsule);
PyObject *tp_render_lines(PyObject *module, PyObject *args);
PyObject *tp_load_prints(PyObject *module, PyObject *args);
PyObject *tp_render_prints(PyObject *module, PyObject *args);

#endif
