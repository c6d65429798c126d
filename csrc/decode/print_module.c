/*
 * Print programs of many events, and the lines of many records, for Python.
 *
 * A set of programs is a capsule that never changes: any number of threads may render with it at a time.  Twin:
 * src/tracepoint/printk/printer.py.
 */
#include "decode.h"

static const char SET_NAME[] = "tracepoint._decode.prints";

#define ANY_ID UINT32_MAX

static void free_set(struct tp_prints *set)
{
	for (uint32_t n = 0; n < set->n; n++)
		tp_print_free(&set->programs[n]);
	free(set->programs);
	free(set->ids);
	free(set->first_notes);
	free(set->by_id);
	free(set);
}

static void free_capsule(PyObject *capsule)
{
	free_set(PyCapsule_GetPointer(capsule, SET_NAME));
}

/* Let records of a type have the program that is loaded next. */
static const char *take_id(struct tp_prints *set, unsigned int id)
{
	uint32_t *by_id;

	if (id == ANY_ID) {
		set->is_for_all = true;
		return set->n ? "one for all types beside others" : NULL;
	}
	if (id >= TP_N_IDS)
		return "an id of more than 16 bits";
	if (id >= set->n_ids) {
		by_id = realloc(set->by_id, (id + 1) * sizeof(*by_id));
		if (!by_id)
			return "";
		memset(by_id + set->n_ids, 0xff, (id + 1 - set->n_ids) * sizeof(*by_id));
		set->by_id = by_id;
		set->n_ids = id + 1;
	}
	set->by_id[id] = set->n;
	return NULL;
}

/* Load one (id, packed, slots). */
static bool load_one(struct tp_prints *set, PyObject *item, unsigned int facts)
{
	Py_buffer packed, slots;
	const char *why;
	unsigned int id;

	if (!PyTuple_Check(item)) {
		PyErr_SetString(PyExc_TypeError, "a program is a tuple");
		return false;
	}
	if (!PyArg_ParseTuple(item, "Iy*y*", &id, &packed, &slots))
		return false;
	why = take_id(set, id);
	if (!why)
		why = tp_print_load(&set->programs[set->n], packed.buf, (size_t)packed.len, slots.buf,
				    (size_t)slots.len, facts);
	PyBuffer_Release(&packed);
	PyBuffer_Release(&slots);
	if (!why) {
		uint32_t n_slots = set->programs[set->n].n_slots;

		set->first_notes[set->n + 1] = set->first_notes[set->n] + (n_slots + 1) * TP_PRINT_NOTES;
		set->ids[set->n++] = id;
	} else if (!*why)
		PyErr_NoMemory();
	else
		PyErr_Format(PyExc_ValueError, "print program %u: %s", id, why);
	return !why;
}

PyObject *tp_load_prints(PyObject *module, PyObject *args)
{
	PyObject *items, *capsule = NULL, *held;
	unsigned int facts;
	struct tp_prints *set;
	int is_big;

	(void)module;
	if (!PyArg_ParseTuple(args, "OIp:load_prints", &items, &facts, &is_big))
		return NULL;
	held = PySequence_Tuple(items);
	if (!held)
		return NULL;
	set = calloc(1, sizeof(*set));
	if (set) {
		set->programs = calloc((size_t)PyTuple_GET_SIZE(held) + 1, sizeof(*set->programs));
		set->ids = calloc((size_t)PyTuple_GET_SIZE(held) + 1, sizeof(*set->ids));
		set->first_notes = calloc((size_t)PyTuple_GET_SIZE(held) + 1, sizeof(*set->first_notes));
	}
	if (!set || !set->programs || !set->ids || !set->first_notes) {
		if (set)
			free_set(set);
		Py_DECREF(held);
		return PyErr_NoMemory();
	}
	set->is_big = is_big;
	bool is_loaded = true;

	for (Py_ssize_t n = 0; is_loaded && n < PyTuple_GET_SIZE(held); n++)
		is_loaded = load_one(set, PyTuple_GET_ITEM(held, n), facts);
	Py_DECREF(held);
	if (is_loaded)
		capsule = PyCapsule_New(set, SET_NAME, free_capsule);
	if (!capsule)
		free_set(set);
	return capsule;
}

/* What the records are, and what becomes of each. */
struct job {
	const struct tp_prints *set;
	Py_buffer known, data, offsets, lengths;
	struct tp_print_texts texts;
	size_t n;
	struct out {
		char *text;
		size_t n, room;
	} out;
	uint64_t *ends;
	unsigned char *states;
	uint16_t *whys; /* the slot of each record whose fields are shown */
};

bool tp_prints_noted(const struct tp_prints *prints, uint32_t note, uint32_t *id, unsigned int *state)
{
	uint32_t low = 0, high = prints->n, at;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (prints->first_notes[middle] <= note)
			low = middle;
		else
			high = middle;
	}
	at = note - prints->first_notes[low];
	*id = prints->ids[low];
	*state = at % TP_PRINT_NOTES;
	if (at >= TP_PRINT_NOTES)
		*state |= TP_PRINT_FIELDS | (at / TP_PRINT_NOTES - 1) << TP_PRINT_WHY;
	return at;
}

const struct tp_prints *tp_prints_of(PyObject *capsule)
{
	return PyCapsule_GetPointer(capsule, SET_NAME);
}

static unsigned int render_one(struct job *job, size_t n, char **to)
{
	const unsigned char *data = job->data.buf;
	uint64_t at, size = (uint64_t)job->data.len;
	uint32_t length, program;

	memcpy(&at, (const char *)job->offsets.buf + n * sizeof(at), sizeof(at));
	memcpy(&length, (const char *)job->lengths.buf + n * sizeof(length), sizeof(length));
	if (at > size || length > size - at)
		return TP_PRINT_UNKNOWN;
	program = tp_program_for(job->set, data + at, length);
	return program == TP_NO_PROGRAM ? TP_PRINT_UNKNOWN :
					  tp_print_record(&job->set->programs[program], &job->texts, data + at, length, to);
}

/* Make room for a line; what is not written to costs nothing. */
static bool make_room(struct out *out)
{
	if (out->room - out->n >= TP_PRINT_ROOM)
		return true;
	size_t room = 2 * out->room + TP_PRINT_ROOM;
	char *text = realloc(out->text, room);

	if (!text)
		return false;
	out->text = text;
	out->room = room;
	return true;
}

static bool render_all(struct job *job)
{
	for (size_t n = 0; n < job->n; n++) {
		unsigned int state;
		char *at;

		if (!make_room(&job->out))
			return false;
		at = job->out.text + job->out.n;
		state = render_one(job, n, &at);
		job->out.n = (size_t)(at - job->out.text);
		job->states[n] = (unsigned char)state;
		job->whys[n] = (uint16_t)(state >> TP_PRINT_WHY);
		job->ends[n] = job->out.n;
	}
	return true;
}

/* The lines as strings, None for those that are left to the twin. */
static PyObject *strings_of(const struct job *job)
{
	PyObject *list = PyList_New((Py_ssize_t)job->n);
	const char *lines = job->out.text ? job->out.text : "";
	uint64_t start = 0;

	for (size_t n = 0; list && n < job->n; n++) {
		PyObject *text = Py_None;

		if (job->states[n] & (TP_PRINT_LEFT | TP_PRINT_UNKNOWN))
			Py_INCREF(text);
		else
			text = PyUnicode_DecodeUTF8(lines + start, (Py_ssize_t)(job->ends[n] - start),
						    "surrogateescape");
		if (!text)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, (Py_ssize_t)n, text);
		start = job->ends[n];
	}
	return list;
}

static PyObject *result_of(const struct job *job, bool wants_strings)
{
	const char *states = (const char *)job->states, *whys = (const char *)job->whys;
	Py_ssize_t n_states = (Py_ssize_t)job->n, whys_size = (Py_ssize_t)(job->n * sizeof(*job->whys));

	if (wants_strings)
		return Py_BuildValue("(Ny#y#)", strings_of(job), states, n_states, whys, whys_size);
	return Py_BuildValue("(y#y#y#y#)", job->out.text ? job->out.text : "", (Py_ssize_t)job->out.n,
			     (const char *)job->ends, (Py_ssize_t)(job->n * sizeof(*job->ends)), states, n_states, whys,
			     whys_size);
}

PyObject *tp_render_prints(PyObject *module, PyObject *args)
{
	PyObject *capsule, *made = NULL;
	struct job job = { 0 };
	int wants_strings;
	bool is_done;

	(void)module;
	if (!PyArg_ParseTuple(args, "Oy*y*y*y*p:render_prints", &capsule, &job.known, &job.data, &job.offsets,
			      &job.lengths, &wants_strings))
		return NULL;
	job.set = tp_prints_of(capsule);
	if (!job.set)
		goto out;
	job.n = (size_t)job.offsets.len / sizeof(uint64_t);
	if (job.offsets.len % (Py_ssize_t)sizeof(uint64_t) || (size_t)job.lengths.len != job.n * sizeof(uint32_t)) {
		PyErr_SetString(PyExc_ValueError, "other offsets than lengths");
		goto out;
	}
	if (!tp_print_take_texts(&job.texts, job.known.buf, (size_t)job.known.len)) {
		PyErr_SetString(PyExc_ValueError, "not a table of texts");
		goto out;
	}
	job.ends = malloc((job.n + 1) * sizeof(*job.ends));
	job.states = malloc(job.n + 1);
	job.whys = malloc((job.n + 1) * sizeof(*job.whys));
	if (!job.ends || !job.states || !job.whys) {
		PyErr_NoMemory();
		goto out;
	}
	Py_BEGIN_ALLOW_THREADS
	is_done = render_all(&job);
	Py_END_ALLOW_THREADS
	if (is_done)
		made = result_of(&job, wants_strings);
	else
		PyErr_NoMemory();
out:
	free(job.out.text);
	free(job.ends);
	free(job.states);
	free(job.whys);
	PyBuffer_Release(&job.known);
	PyBuffer_Release(&job.data);
	PyBuffer_Release(&job.offsets);
	PyBuffer_Release(&job.lengths);
	return made;
}
