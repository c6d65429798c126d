/* Firing: probes run and records are written, in order of priority. */
#include "module_event.h"

void tp_table_free(struct table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->n_entries; i++) {
		Py_XDECREF(table->entries[i].first);
		Py_XDECREF(table->entries[i].second);
	}
	PyMem_Free(table);
}

void tp_tables_collect(void)
{
	/* A finaliser may replace a table and come here again: it finds what was not taken yet. */
	struct tp_retired *retired = tp_take_retired();

	while (retired) {
		struct tp_retired *next = retired->next;
		tp_table_free((struct table *)retired);
		retired = next;
	}
}

/* ---- recording ---- */

/* Say which field it was; Ctrl-C and the like stay what they are. */
static void name_field(const struct tp_field *field)
{
	PyObject *type, *what, *traceback;

	if (!PyErr_ExceptionMatches(PyExc_Exception))
		return;
	PyErr_Fetch(&type, &what, &traceback);
	PyObject *text = what ? PyObject_Str(what) : NULL;
	if (text && PyUnicode_GET_LENGTH(text)) {
		PyErr_Format(PyExc_ValueError, "field %U: %U", field->name, text);
	} else if (text || !what || PyErr_ExceptionMatches(PyExc_Exception)) {
		/* A MemoryError has nothing to say, and some cannot say it. */
		const char *name = PyExceptionClass_Check(type) ? PyExceptionClass_Name(type) : "exception";
		PyErr_Format(PyExc_ValueError, "field %U: %s", field->name, name);
	}
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(what);
	Py_XDECREF(traceback);
}

/*
 * Make the record before any room is taken: an __index__ may fire this very tracepoint.  All but the
 * event's number, which each buffer has its own of.
 */
static bool make_record(EventObject *self, PyObject *const *sources, Py_ssize_t n_sources, int32_t tid,
			struct tp_record *record)
{
	const struct tp_field *field = self->fields, *end = field + self->n_fields;
	uint32_t words[2] = { 0, (uint32_t)tid };

	record->size = self->size;
	record->dynamic = self->dynamic;
	if (self->has_holes)
		memset(record->data, 0, self->size);
	memcpy(record->data, words, sizeof(words));
	for (; field < end; field++) {
		if (field->source >= n_sources) {
			PyErr_Format(PyExc_TypeError, "no value for field %U", field->name);
			return false;
		}
		if (tp_convert(field, sources[field->source], record)) {
			name_field(field);
			return false;
		}
	}
	/* The dynamic data began before the end of the struct, whose padding now follows it. */
	if (record->dynamic < record->size)
		memset(record->data + record->dynamic, 0, record->size - record->dynamic);
	return true;
}

static void fault(EventObject *self, const char *where)
{
	tp_keep_fault(self->name, where, atomic_fetch_add(&self->n_faults, 1) == 0);
}

static void record_one(EventObject *self, const struct entry *entry, struct tp_record *record,
		       struct tp_thread *thread, uint64_t begun)
{
	struct tp_buffer *buffer = ((BufferObject *)entry->first)->buffer;
	uint16_t id = (uint16_t)entry->id;

	if (!atomic_load_explicit(&buffer->is_on, memory_order_relaxed))
		return;
	struct tp_ring *ring = tp_buffer_ring(buffer, thread);
	if (!ring) {
		if (buffer->directory)
			PyErr_SetFromErrnoWithFilename(PyExc_OSError, buffer->directory);
		else
			PyErr_SetFromErrno(PyExc_OSError);
		fault(self, "ring");
		return;
	}
	memcpy(record->data, &id, sizeof(id));
	int32_t cpu = tp_cpu_at(thread->cpu);
	if (entry->second && !tp_filter_passes((FilterObject *)entry->second, record, cpu, ring))
		return;
	if (!tp_buffer_takes(buffer, begun))
		return;
	void *to = tp_ring_reserve(ring, record->size, tp_buffer_stamp(buffer, ring), cpu);
	if (!to)
		return;
	memcpy(to, record->data, record->size);
	tp_ring_commit(ring, to);
}

/* ---- firing ---- */

static bool use_raw(EventObject *self, PyObject *bytes, int32_t tid, struct tp_record *record)
{
	Py_ssize_t size = PyBytes_GET_SIZE(bytes);

	if (size < self->size || size > TP_MAX_PAYLOAD) {
		PyErr_Format(PyExc_ValueError, "a record of %zd bytes", size);
		return false;
	}
	record->size = (uint32_t)size;
	memcpy(record->data, PyBytes_AS_STRING(bytes), size);
	memcpy(record->data + 4, &tid, sizeof(tid));
	return true;
}

/* A record of what `assign` makes of the arguments: the values, or the whole record as bytes. */
static bool assign_record(EventObject *self, PyObject *const *args, int32_t tid, struct tp_record *record)
{
	PyObject *answer = PyObject_Vectorcall(self->assign, args, self->n_parameters, NULL);
	bool is_raw = answer && PyBytes_CheckExact(answer);
	PyObject *values = answer && !is_raw ? PySequence_Tuple(answer) : NULL;
	bool is_made;

	if (is_raw)
		is_made = use_raw(self, answer, tid, record);
	else
		is_made = values && make_record(self, ((PyTupleObject *)values)->ob_item, PyTuple_GET_SIZE(values),
						tid, record);
	if (!is_made)
		fault(self, is_raw || values ? "record" : "assign");
	Py_XDECREF(answer);
	Py_XDECREF(values);
	return is_made;
}

static bool get_record(EventObject *self, PyObject *const *args, int32_t tid, struct tp_record *record)
{
	if (self->assign)
		return assign_record(self, args, tid, record);
	if (make_record(self, args, self->n_parameters, tid, record))
		return true;
	fault(self, "record");
	return false;
}

static void call_probe(EventObject *self, const struct entry *entry, PyObject *const *args)
{
	PyObject *with_data[MAX_ARGS + 1];
	size_t n = self->n_parameters;

	if (entry->second) {
		with_data[0] = entry->second;
		memcpy(with_data + 1, args, n * sizeof(*args));
		args = with_data;
		n++;
	}
	PyObject *answer = PyObject_Vectorcall(entry->first, args, n, NULL);
	if (!answer)
		fault(self, "probe");
	Py_XDECREF(answer);
}

static bool condition_holds(EventObject *self, PyObject *const *args)
{
	PyObject *answer = PyObject_Vectorcall(self->condition, args, self->n_parameters, NULL);
	int holds = answer ? PyObject_IsTrue(answer) : -1;

	Py_XDECREF(answer);
	if (holds < 0)
		fault(self, "condition");
	return holds > 0;
}

static void fire(EventObject *self, PyObject *const *args, struct tp_thread *thread, uint64_t begun)
{
	/* Read after tp_thread_enter(): until tp_thread_leave() it stays, whatever replaces it. */
	const struct table *table = atomic_load(&self->table);
	unsigned char data[TP_PAGE_SIZE] __attribute__((aligned(8)));
	struct tp_record record = { .room = TP_MAX_PAYLOAD, .data = data };
	/* The record is made at the first entry that needs it, once for all buffers. */
	enum { NOT_YET, MADE, FAILED } state = NOT_YET;

	if (!table || (self->condition && !condition_holds(self, args)))
		return;
	const struct entry *end = table->entries + table->n_entries;
	for (const struct entry *entry = table->entries; entry < end; entry++) {
		if (entry->kind == ENTRY_PROBE) {
			call_probe(self, entry, args);
			continue;
		}
		if (state == NOT_YET)
			state = get_record(self, args, thread->tid, &record) ? MADE : FAILED;
		if (state == MADE)
			record_one(self, entry, &record, thread, begun);
	}
}

/* A default that is called when the event fires gives its value; otherwise it is the value.  A new reference. */
static PyObject *default_of(EventObject *self, PyObject *name)
{
	PyObject *found = self->defaults ? tp_dict_get(self->defaults, name) : NULL;

	if (found && PyCallable_Check(found))
		Py_SETREF(found, PyObject_CallNoArgs(found));
	else if (!found && !PyErr_Occurred())
		PyErr_Format(PyExc_TypeError, "argument %U is missing", name);
	return found;
}

/*
 * Put keyword arguments and defaults in their places; `made` gets the references of its own, the rest is
 * the caller's.  Returns false with an exception set.
 */
static bool bind(EventObject *self, PyObject *const *args, Py_ssize_t n_args, PyObject *names, PyObject **ret,
		 PyObject **made)
{
	Py_ssize_t n_names = names ? PyTuple_GET_SIZE(names) : 0;

	if (n_args > self->n_parameters) {
		PyErr_Format(PyExc_TypeError, "takes %u arguments, %zd were given", self->n_parameters, n_args);
		return false;
	}
	for (uint32_t i = 0; i < self->n_parameters; i++)
		ret[i] = i < n_args ? args[i] : NULL;
	for (Py_ssize_t k = 0; k < n_names; k++) {
		PyObject *name = PyTuple_GET_ITEM(names, k);
		Py_ssize_t at = PySequence_Index(self->parameters, name);
		if (at < 0 || ret[at]) {
			PyErr_Clear();
			PyErr_Format(PyExc_TypeError, "argument %U is unknown or given twice", name);
			return false;
		}
		ret[at] = args[n_args + k];
	}
	for (uint32_t i = 0; i < self->n_parameters; i++) {
		if (ret[i])
			continue;
		ret[i] = *made = default_of(self, PyTuple_GET_ITEM(self->parameters, i));
		if (!*made++)
			return false;
	}
	return true;
}

static void fire_bound(EventObject *self, PyObject *const *args, Py_ssize_t n_args, PyObject *names,
		       struct tp_thread *thread, uint64_t begun)
{
	PyObject *bound[MAX_ARGS], *made[MAX_ARGS + 1] = { NULL };

	if (bind(self, args, n_args, names, bound, made))
		fire(self, bound, thread, begun);
	else
		fault(self, "call");
	for (PyObject **one = made; *one; one++)
		Py_DECREF(*one);
}

/*
 * Put keyword arguments in their places where each parameter has one value and the names are the same
 * objects, as those of a call in code are: compilers intern them.  Else leave it to bind().
 */
static bool place_keywords(EventObject *self, PyObject *const *args, Py_ssize_t n_args, PyObject *names,
			   PyObject **ret)
{
	Py_ssize_t n_names = PyTuple_GET_SIZE(names), n = self->n_parameters;

	if (n_args + n_names != n)
		return false;
	memcpy(ret, args, n_args * sizeof(*ret));
	memset(ret + n_args, 0, n_names * sizeof(*ret));
	for (Py_ssize_t k = 0; k < n_names; k++) {
		PyObject *name = PyTuple_GET_ITEM(names, k);
		Py_ssize_t at = n_args;

		while (at < n && PyTuple_GET_ITEM(self->parameters, at) != name)
			at++;
		if (at == n || ret[at])
			return false;
		ret[at] = args[n_args + k];
	}
	return true;
}

PyObject *tp_event_on(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *names)
{
	EventObject *self = (EventObject *)op;
	PyObject *placed[MAX_ARGS];

	if (names && place_keywords(self, args, PyVectorcall_NARGS(nargsf), names, placed))
		return tp_event_call(self)(op, placed, self->n_parameters, NULL);
	struct tp_thread *thread = tp_thread_get();
	Py_ssize_t n_args = PyVectorcall_NARGS(nargsf);

	if (!thread || thread->depth >= TP_MAX_DEPTH) {
		atomic_fetch_add(&self->n_nested, 1);
		Py_RETURN_NONE;
	}
	uint64_t begun = atomic_load_explicit(&tp_generation, memory_order_relaxed);
	tp_thread_enter(thread);
	if (n_args == self->n_parameters && !names)
		fire(self, args, thread, begun);
	else
		fire_bound(self, args, n_args, names, thread, begun);
	tp_thread_leave(thread);
	if (atomic_load_explicit(&tp_has_retired, memory_order_relaxed) && !thread->depth)
		tp_tables_collect();
	Py_RETURN_NONE;
}

PyObject *tp_event_off(PyObject *Py_UNUSED(op), PyObject *const *Py_UNUSED(args), size_t Py_UNUSED(nargsf),
			PyObject *Py_UNUSED(names))
{
	Py_RETURN_NONE;
}
