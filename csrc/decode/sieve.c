/*
 * Making a sieve: the filter programs that it runs are copied and checked.
 *
 * The twin is src/tracepoint/tracefile/sieve.py: Sieve.
 */
#include "sieve.h"

#define SIEVE "tracepoint.sieve"

const struct tp_sieve *tp_sieve_of(PyObject *capsule)
{
	return PyCapsule_GetPointer(capsule, SIEVE);
}

static void sieve_free(PyObject *capsule)
{
	struct tp_sieve *sieve = PyCapsule_GetPointer(capsule, SIEVE);

	for (unsigned int n = 0; sieve->programs && n < sieve->n_programs; n++)
		free(sieve->programs[n]);
	free(sieve->programs);
	free(sieve->slot_of);
	free(sieve->new_id);
	Py_XDECREF(sieve->held_clock);
	free(sieve);
}

static bool load_programs(struct tp_sieve *sieve, PyObject *programs)
{
	sieve->programs = calloc((size_t)PyTuple_GET_SIZE(programs) + 1, sizeof(*sieve->programs));
	if (!sieve->programs) {
		PyErr_NoMemory();
		return false;
	}
	for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(programs); n++) {
		char *bytes;
		Py_ssize_t size;

		if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(programs, n), &bytes, &size))
			return false;
		/* Copied, as a program is read at the alignment of its numbers. */
		sieve->programs[n] = malloc((size_t)size + 1);
		if (!sieve->programs[n]) {
			PyErr_NoMemory();
			return false;
		}
		memcpy(sieve->programs[n], bytes, (size_t)size);
		sieve->n_programs++;
		if (tp_filter_check(sieve->programs[n], (size_t)size)) {
			PyErr_SetString(PyExc_ValueError, "not a filter program");
			return false;
		}
	}
	return true;
}

/* Copy a number for each id; NULL for no bytes. */
static bool load_numbers(uint16_t **numbers, const Py_buffer *given)
{
	if (!given->len)
		return true;
	if (given->len != (Py_ssize_t)(TP_N_IDS * sizeof(**numbers))) {
		PyErr_SetString(PyExc_ValueError, "not one slot for each id");
		return false;
	}
	*numbers = malloc((size_t)given->len);
	if (!*numbers) {
		PyErr_NoMemory();
		return false;
	}
	memcpy(*numbers, given->buf, (size_t)given->len);
	return true;
}

static void check_slots(struct tp_sieve *sieve)
{
	for (unsigned int id = 0; sieve->slot_of && id < TP_N_IDS; id++)
		if (sieve->slot_of[id] >= sieve->n_programs && sieve->slot_of[id] != TP_SIEVE_ALL)
			sieve->slot_of[id] = TP_SIEVE_NONE;
}

/* Hold the clock that is given; None for stamps that are times. */
static bool hold_clock(struct tp_sieve *sieve, PyObject *clock)
{
	if (clock == Py_None)
		return true;
	sieve->clock = tp_clock_of(clock);
	if (sieve->clock)
		sieve->held_clock = Py_NewRef(clock);
	return sieve->clock;
}

PyObject *tp_sieve(PyObject *module, PyObject *args)
{
	struct tp_sieve *sieve = calloc(1, sizeof(*sieve));
	PyObject *made, *programs, *clock;
	Py_buffer slots, new_ids;

	(void)module;
	made = sieve ? PyCapsule_New(sieve, SIEVE, sieve_free) : PyErr_NoMemory();
	if (!made) {
		free(sieve);
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "y*y*O!" TP_LAYOUT_CODES "LLO:sieve", &slots, &new_ids, &PyTuple_Type, &programs,
			      TP_LAYOUT_PLACES(sieve->layout), &sieve->start, &sieve->stop, &clock)) {
		Py_DECREF(made);
		return NULL;
	}
	if (!tp_check_layout(&sieve->layout) || !hold_clock(sieve, clock) || !load_programs(sieve, programs) ||
	    !load_numbers(&sieve->slot_of, &slots) || !load_numbers(&sieve->new_id, &new_ids))
		Py_CLEAR(made);
	else
		check_slots(sieve);
	PyBuffer_Release(&new_ids);
	PyBuffer_Release(&slots);
	return made;
}
