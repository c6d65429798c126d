/*
 * Records of the scheduler out of columns, for a machine that Python holds.
 *
 * The twin is run_slowly() in src/tracepoint/analysis/sched/build.py.
 */
#include "sched_machine.h"

#define MACHINE "tracepoint.sched_machine"

enum { N_NUMBERS = 4, N_NAMES = 2, N_TYPES = 1 << 16, MAX_EVENTS = 255,  };
/* What the numbers of an event are. */
enum { TID, OTHER, STATE, PRIORITY, FLAGS = STATE };

struct numbers {
	Py_buffer values, validity;
	unsigned int size;
	bool is_there, is_signed;
};

/* Indices of words, and the numbers that the words have. */
struct names {
	Py_buffer values, numbers, validity;
	bool is_there;
};

struct event {
	enum sched_kind kind;
	struct numbers numbers[N_NUMBERS];
	struct names names[N_NAMES];
};

struct batch {
	uint64_t n_rows;
	Py_buffer stamps, cpus;
	struct numbers types;
	struct event *events;
	unsigned int n_events;
	uint8_t event_of[N_TYPES]; /* plus 1 */
};

static bool is_valid(const Py_buffer *validity, uint64_t row)
{
	return !validity->buf || ((const unsigned char *)validity->buf)[row >> 3] >> (row & 7) & 1;
}

static int64_t number_at(const struct numbers *column, uint64_t row)
{
	const unsigned char *at = (const unsigned char *)column->values.buf + row * column->size;
	uint16_t two;
	uint32_t four;
	int64_t eight;

	switch (column->size) {
	case 1:
		return column->is_signed ? (int8_t)*at : *at;
	case 2:
		memcpy(&two, at, sizeof(two));
		return column->is_signed ? (int16_t)two : two;
	case 4:
		memcpy(&four, at, sizeof(four));
		return column->is_signed ? (int32_t)four : (int64_t)four;
	default:
		memcpy(&eight, at, sizeof(eight));
		return eight;
	}
}

static int32_t name_at(const struct names *names, uint64_t row)
{
	uint32_t index;
	int32_t number;

	if (!names->is_there || !is_valid(&names->validity, row))
		return NOTHING;
	memcpy(&index, (const unsigned char *)names->values.buf + 4 * row, sizeof(index));
	if (index >= (uint64_t)names->numbers.len / 4)
		return NOTHING;
	memcpy(&number, (const unsigned char *)names->numbers.buf + 4 * (uint64_t)index, sizeof(number));
	return number;
}

/* Read a record; false where it ends before its fields do. */
static bool read_record(const struct batch *batch, const struct event *event, uint64_t row, struct sched_record *ret)
{
	int64_t found[N_NUMBERS] = { 0 };

	for (unsigned int n = 0; n < N_NUMBERS; n++) {
		if (!event->numbers[n].is_there)
			continue;
		if (!is_valid(&event->numbers[n].validity, row))
			return false;
		found[n] = number_at(&event->numbers[n], row);
	}
	*ret = (struct sched_record){
		.tid = (int32_t)found[TID], .other = (int32_t)found[OTHER], .priority = (int32_t)found[PRIORITY],
		.flags = (uint32_t)found[FLAGS],
		.name = name_at(&event->names[0], row), .other_name = name_at(&event->names[1], row),
	};
	memcpy(&ret->ts, (const unsigned char *)batch->stamps.buf + 8 * row, sizeof(ret->ts));
	memcpy(&ret->cpu, (const unsigned char *)batch->cpus.buf + 4 * row, sizeof(ret->cpu));
	return true;
}

/* Take rows up to one whose state is not known; return it, or the end; UINT64_MAX without memory. */
static uint64_t run(struct sched_machine *m, const struct batch *batch, uint64_t row)
{
	for (; row < batch->n_rows; row++) {
		struct sched_record record;
		const struct event *event;
		int64_t type;

		if (!is_valid(&batch->types.validity, row))
			continue;
		type = number_at(&batch->types, row);
		if (type < 0 || type >= N_TYPES || !batch->event_of[type])
			continue;
		event = &batch->events[batch->event_of[type] - 1];
		if (!read_record(batch, event, row, &record))
			continue;
		if (event->kind == SCHED_SWITCH) {
			uint32_t known = tp_ids_find(&m->values, (uint64_t)number_at(&event->numbers[STATE], row));

			if (known == TP_NO_INDEX)
				return row;
			record.state = m->named[known];
		}
		if (!tp_sched_reserve(m))
			return UINT64_MAX;
		tp_sched_take(m, event->kind, &record);
	}
	return row;
}

/* What Python gives. */

static bool take_validity(PyObject *given, Py_buffer *validity, uint64_t n_rows)
{
	if (given == Py_None)
		return true;
	if (PyObject_GetBuffer(given, validity, PyBUF_SIMPLE))
		return false;
	if ((uint64_t)validity->len >= (n_rows + 7) / 8)
		return true;
	PyErr_SetString(PyExc_ValueError, "not a bit for each row");
	return false;
}

static bool take_numbers(PyObject *given, struct numbers *column, uint64_t n_rows)
{
	static const char codes[] = "bBhHiIqQ";
	const char *code, *place;
	PyObject *validity;

	if (given == Py_None)
		return true;
	if (!PyTuple_Check(given)) {
		PyErr_SetString(PyExc_TypeError, "not a column of numbers");
		return false;
	}
	if (!PyArg_ParseTuple(given, "y*sO", &column->values, &code, &validity))
		return false;
	place = *code && !code[1] ? strchr(codes, *code) : NULL;
	if (!place) {
		PyErr_SetString(PyExc_ValueError, "not the code of an integer");
		return false;
	}
	column->is_there = true;
	column->size = 1u << (place - codes) / 2;
	column->is_signed = (place - codes) % 2 == 0;
	if ((uint64_t)column->values.len / column->size >= n_rows)
		return take_validity(validity, &column->validity, n_rows);
	PyErr_SetString(PyExc_ValueError, "not a number for each row");
	return false;
}

static bool take_names(PyObject *given, struct names *names, uint64_t n_rows)
{
	PyObject *validity;

	if (given == Py_None)
		return true;
	if (!PyTuple_Check(given)) {
		PyErr_SetString(PyExc_TypeError, "not a column of names");
		return false;
	}
	if (!PyArg_ParseTuple(given, "y*y*O", &names->values, &names->numbers, &validity))
		return false;
	names->is_there = true;
	if ((uint64_t)names->values.len / 4 >= n_rows)
		return take_validity(validity, &names->validity, n_rows);
	PyErr_SetString(PyExc_ValueError, "not a name for each row");
	return false;
}

static bool take_event(PyObject *given, struct batch *batch)
{
	struct event *event = &batch->events[batch->n_events++];
	PyObject *numbers[N_NUMBERS], *names[N_NAMES];
	unsigned int type, kind;

	if (!PyTuple_Check(given)) {
		PyErr_SetString(PyExc_TypeError, "not an event");
		return false;
	}
	if (!PyArg_ParseTuple(given, "II(OOOO)(OO)", &type, &kind, &numbers[0], &numbers[1], &numbers[2],
			      &numbers[3], &names[0], &names[1]))
		return false;
	if (type >= N_TYPES || kind >= SCHED_N_KINDS) {
		PyErr_SetString(PyExc_ValueError, "not an event of the scheduler");
		return false;
	}
	event->kind = kind;
	batch->event_of[type] = (uint8_t)batch->n_events;
	for (unsigned int n = 0; n < N_NUMBERS; n++)
		if (!take_numbers(numbers[n], &event->numbers[n], batch->n_rows))
			return false;
	for (unsigned int n = 0; n < N_NAMES; n++)
		if (!take_names(names[n], &event->names[n], batch->n_rows))
			return false;
	if (event->numbers[TID].is_there && (kind != SCHED_SWITCH || event->numbers[STATE].is_there))
		return true;
	PyErr_SetString(PyExc_ValueError, "an event without its task");
	return false;
}

static bool take_batch(struct batch *batch, PyObject *types, PyObject *events)
{
	Py_ssize_t n = PyTuple_GET_SIZE(events);

	batch->n_rows = (uint64_t)batch->stamps.len / 8;
	batch->events = calloc((size_t)n + 1, sizeof(*batch->events));
	if (!batch->events) {
		PyErr_NoMemory();
		return false;
	}
	if ((uint64_t)batch->cpus.len / 4 < batch->n_rows || types == Py_None || n > MAX_EVENTS) {
		PyErr_SetString(PyExc_ValueError, "not the columns of records");
		return false;
	}
	if (!take_numbers(types, &batch->types, batch->n_rows))
		return false;
	for (Py_ssize_t i = 0; i < n; i++)
		if (!take_event(PyTuple_GET_ITEM(events, i), batch))
			return false;
	return true;
}

static void release_batch(struct batch *batch)
{
	PyBuffer_Release(&batch->stamps);
	PyBuffer_Release(&batch->cpus);
	PyBuffer_Release(&batch->types.values);
	PyBuffer_Release(&batch->types.validity);
	for (unsigned int n = 0; n < batch->n_events; n++) {
		struct event *event = &batch->events[n];

		for (unsigned int i = 0; i < N_NUMBERS; i++) {
			PyBuffer_Release(&event->numbers[i].values);
			PyBuffer_Release(&event->numbers[i].validity);
		}
		for (unsigned int i = 0; i < N_NAMES; i++) {
			PyBuffer_Release(&event->names[i].values);
			PyBuffer_Release(&event->names[i].numbers);
			PyBuffer_Release(&event->names[i].validity);
		}
	}
	free(batch->events);
	free(batch);
}

void tp_sched_release(struct sched_machine *m)
{
	__atomic_store_n(&m->is_used, false, __ATOMIC_RELEASE);
}

struct sched_machine *tp_sched_hold(PyObject *capsule)
{
	struct sched_machine *m = PyCapsule_GetPointer(capsule, MACHINE);

	if (!m)
		return NULL;
	if (__atomic_exchange_n(&m->is_used, true, __ATOMIC_ACQUIRE)) {
		PyErr_SetString(PyExc_ValueError, "the machine is in use");
		return NULL;
	}
	if (!m->is_finished)
		return m;
	tp_sched_release(m);
	PyErr_SetString(PyExc_ValueError, "the machine has given its rows");
	return NULL;
}

PyObject *tp_sched_run(PyObject *module, PyObject *args)
{
	struct batch *batch = calloc(1, sizeof(*batch));
	PyObject *capsule, *types, *events, *made = NULL;
	struct sched_machine *m = NULL;
	unsigned long long row;
	uint64_t reached;

	(void)module;
	if (!batch)
		return PyErr_NoMemory();
	if (!PyArg_ParseTuple(args, "O(Oy*y*)O!K:sched_run", &capsule, &types, &batch->stamps, &batch->cpus,
			      &PyTuple_Type, &events, &row) ||
	    !take_batch(batch, types, events))
		goto out;
	m = tp_sched_hold(capsule);
	if (!m)
		goto out;
	Py_BEGIN_ALLOW_THREADS
	reached = run(m, batch, row);
	Py_END_ALLOW_THREADS
	tp_sched_release(m);
	made = reached == UINT64_MAX ? PyErr_NoMemory() : PyLong_FromUnsignedLongLong(reached);
out:
	release_batch(batch);
	return made;
}

static bool set_class(struct sched_machine *m, uint32_t number, unsigned int class)
{
	/* Numbers come one after the other. */
	if (!tp_grow(&m->classes, &m->class_room, number + 1, sizeof(*m->classes)))
		return false;
	m->classes[number] = (uint8_t)class;
	if (number >= m->n_classes)
		m->n_classes = number + 1;
	return true;
}

PyObject *tp_sched_state(PyObject *module, PyObject *args)
{
	unsigned int number, class;
	struct sched_machine *m;
	unsigned long long value;
	PyObject *capsule;
	uint32_t at;
	bool is_done;

	(void)module;
	if (!PyArg_ParseTuple(args, "OKII:sched_state", &capsule, &value, &number, &class))
		return NULL;
	m = tp_sched_hold(capsule);
	if (!m)
		return NULL;
	if (!number || number > m->n_classes || class > CLASS_DEAD) {
		tp_sched_release(m);
		PyErr_SetString(PyExc_ValueError, "not the number of a state");
		return NULL;
	}
	is_done = tp_ids_reserve(&m->values, 1) &&
		  tp_grow(&m->named, &m->named_room, m->values.n + 1, sizeof(*m->named)) &&
		  set_class(m, number, class);
	if (is_done) {
		at = tp_ids_add(&m->values, value);
		m->named[at] = (int32_t)number;
	}
	tp_sched_release(m);
	return is_done ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

/* A machine is made, and ends. */

static bool take_gaps(PyObject *starts, PyObject *stops, struct sched_gaps *gaps)
{
	Py_buffer from = { 0 }, to = { 0 };
	bool is_taken = false;

	if (gaps->starts || PyObject_GetBuffer(starts, &from, PyBUF_SIMPLE) ||
	    PyObject_GetBuffer(stops, &to, PyBUF_SIMPLE) || from.len != to.len || from.len % 8) {
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_ValueError, "not the times of losses");
		goto out;
	}
	gaps->starts = malloc((size_t)from.len + 1);
	gaps->stops = malloc((size_t)from.len + 1);
	if (!gaps->starts || !gaps->stops) {
		PyErr_NoMemory();
		goto out;
	}
	memcpy(gaps->starts, from.buf, (size_t)from.len);
	memcpy(gaps->stops, to.buf, (size_t)to.len);
	gaps->n = (uint64_t)from.len / 8;
	is_taken = true;
out:
	PyBuffer_Release(&from);
	PyBuffer_Release(&to);
	return is_taken;
}

static bool take_all_gaps(struct sched_machine *m, PyObject *by_cpu)
{
	for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(by_cpu); n++) {
		PyObject *starts, *stops;
		int cpu;

		if (!PyArg_ParseTuple(PyTuple_GET_ITEM(by_cpu, n), "iOO", &cpu, &starts, &stops))
			return false;
		if (!tp_sched_reserve(m)) {
			PyErr_NoMemory();
			return false;
		}
		if (!take_gaps(starts, stops, &tp_sched_cpu(m, cpu)->gaps))
			return false;
	}
	return true;
}

static void free_machine(PyObject *capsule)
{
	tp_sched_free(PyCapsule_GetPointer(capsule, MACHINE));
}

PyObject *tp_sched_machine(PyObject *module, PyObject *args)
{
	PyObject *by_cpu, *starts, *stops, *made;
	struct sched_machine *m = tp_sched_create();
	int has_wakings, has_wakes, has_new;

	(void)module;
	made = m ? PyCapsule_New(m, MACHINE, free_machine) : PyErr_NoMemory();
	if (!made) {
		if (m)
			tp_sched_free(m);
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "pppO!(OO):sched_machine", &has_wakings, &has_wakes, &has_new, &PyTuple_Type,
			      &by_cpu, &starts, &stops) ||
	    !take_all_gaps(m, by_cpu) || !take_gaps(starts, stops, &m->gaps))
		goto error;
	m->has_wakings = has_wakings;
	m->has_wakes = has_wakes;
	m->has_new = has_new;
	if (!set_class(m, STATE_RUNNING, CLASS_RUNNING) || !set_class(m, STATE_RUNNABLE, CLASS_RUNNABLE)) {
		PyErr_NoMemory();
		goto error;
	}
	return made;
error:
	Py_DECREF(made);
	return NULL;
}
