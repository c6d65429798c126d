/* The tracepoint object: called from the traced program, off or on. */
#define _GNU_SOURCE
#include "convert.h"

#include <sched.h>

enum { MAX_FIELDS = 256, MAX_ARGS = 64 };

enum entry_kind { ENTRY_RECORD, ENTRY_PROBE };

struct entry {
	enum entry_kind kind;
	PyObject *first;  /* record: the Buffer; probe: the function */
	PyObject *second; /* record: the Filter or NULL; probe: its data or NULL */
	uint32_t id;
};

/* What runs when the tracepoint fires, in order.  Never changed, only replaced as a whole. */
struct table {
	uint32_t references;
	uint32_t n_entries;
	bool has_record;
	struct entry entries[];
};

typedef struct {
	PyObject_HEAD
	vectorcallfunc vectorcall;
	struct table *table;
	PyObject *name;
	PyObject *parameters; /* tuple of str */
	PyObject *defaults;   /* dict of those that may be left out, or NULL */
	PyObject *assign;     /* callable giving the values, or NULL: the arguments are the values */
	PyObject *condition;  /* callable, or NULL */
	PyObject *control;    /* what answers for all other attributes */
	PyObject *weakrefs;
	struct tp_field *fields;
	uint32_t n_fields;
	uint32_t n_parameters;
	uint32_t size;    /* bytes of the fixed part with its tail padding */
	uint32_t dynamic; /* where dynamic data begins */
	bool has_holes;   /* bytes of the fixed part that no field covers */
	uint64_t n_faults;
	uint64_t n_nested;
} EventObject;

static void table_release(struct table *table)
{
	if (!table || --table->references)
		return;
	for (uint32_t i = 0; i < table->n_entries; i++) {
		Py_XDECREF(table->entries[i].first);
		Py_XDECREF(table->entries[i].second);
	}
	PyMem_Free(table);
}

/* ---- recording ---- */

/* Say which field it was. */
static void name_field(const struct tp_field *field)
{
	PyObject *type, *what, *traceback;

	PyErr_Fetch(&type, &what, &traceback);
	PyErr_Format(PyExc_ValueError, "field %U: %S", field->name, what ? what : Py_None);
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
	/* The dynamic data began before the end of the struct, whose padding now stands behind it. */
	if (record->dynamic < record->size)
		memset(record->data + record->dynamic, 0, record->size - record->dynamic);
	return true;
}

static bool passes(const FilterObject *filter, const struct tp_record *record, const char *comm)
{
	struct tp_filter_context context = { .cpu = (uint32_t)sched_getcpu() };

	memcpy(context.comm, comm, sizeof(context.comm));
	return tp_filter_matches(PyBytes_AS_STRING(filter->program), record->data, record->size, &context);
}

static void record_one(const struct entry *entry, struct tp_record *record, struct tp_thread *thread)
{
	struct tp_buffer *buffer = ((BufferObject *)entry->first)->buffer;
	uint16_t id = (uint16_t)entry->id;

	if (!atomic_load_explicit(&buffer->is_on, memory_order_relaxed))
		return;
	struct tp_ring *ring = tp_buffer_ring(buffer, thread);
	if (!ring)
		return;
	memcpy(record->data, &id, sizeof(id));
	if (entry->second && !passes((FilterObject *)entry->second, record, ring->head->comm))
		return;
	int clock = atomic_load_explicit(&buffer->clock, memory_order_relaxed);
	void *to = tp_ring_reserve(ring, record->size, tp_clock_now(clock, &buffer->counter));
	if (!to)
		return;
	memcpy(to, record->data, record->size);
	tp_ring_commit(ring, to);
}

/* ---- firing ---- */

static void fault(EventObject *self, const char *where)
{
	self->n_faults++;
	tp_keep_fault(self->name, where);
}

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

static void fire(EventObject *self, PyObject *const *args, struct tp_thread *thread)
{
	struct table *table = self->table;
	struct tp_record record;
	/* The record is made at the first entry that needs it, once for all buffers. */
	enum { NOT_YET, MADE, FAILED } state = NOT_YET;

	if (!table || (self->condition && !condition_holds(self, args)))
		return;
	table->references++;
	const struct entry *end = table->entries + table->n_entries;
	for (const struct entry *entry = table->entries; entry < end; entry++) {
		if (entry->kind == ENTRY_PROBE) {
			call_probe(self, entry, args);
			continue;
		}
		if (state == NOT_YET)
			state = get_record(self, args, thread->tid, &record) ? MADE : FAILED;
		if (state == MADE)
			record_one(entry, &record, thread);
	}
	table_release(table);
}

/* Put keyword arguments and defaults in their places.  Returns false with an exception set. */
static bool bind(EventObject *self, PyObject *const *args, Py_ssize_t n_args, PyObject *names, PyObject **ret)
{
	Py_ssize_t n_names = names ? PyTuple_GET_SIZE(names) : 0;

	if (n_args > self->n_parameters) {
		PyErr_Format(PyExc_TypeError, "%zd arguments for %u", n_args, self->n_parameters);
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
		PyObject *name = PyTuple_GET_ITEM(self->parameters, i);
		if (!ret[i] && self->defaults)
			ret[i] = PyDict_GetItemWithError(self->defaults, name);
		if (!ret[i]) {
			if (!PyErr_Occurred())
				PyErr_Format(PyExc_TypeError, "argument %U is missing", name);
			return false;
		}
	}
	return true;
}

static PyObject *event_on(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *names)
{
	EventObject *self = (EventObject *)op;
	struct tp_thread *thread = tp_thread_get();
	Py_ssize_t n_args = PyVectorcall_NARGS(nargsf);
	PyObject *bound[MAX_ARGS];

	if (!thread || thread->depth >= TP_MAX_DEPTH) {
		self->n_nested++;
		Py_RETURN_NONE;
	}
	tp_thread_enter(thread);
	if (n_args == self->n_parameters && !names)
		fire(self, args, thread);
	else if (bind(self, args, n_args, names, bound))
		fire(self, bound, thread);
	else
		fault(self, "call");
	tp_thread_leave(thread);
	Py_RETURN_NONE;
}

static PyObject *event_off(PyObject *Py_UNUSED(op), PyObject *const *Py_UNUSED(args), size_t Py_UNUSED(nargsf),
			   PyObject *Py_UNUSED(names))
{
	Py_RETURN_NONE;
}

/* ---- making and changing ---- */

/* (name, kind, flags, offset, size, element, source) */
static int parse_field(PyObject *item, uint32_t record_size, struct tp_field *ret)
{
	unsigned int kind, flags, offset, size, element, source;

	if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "UIIIIII", &ret->name, &kind, &flags, &offset, &size,
						      &element, &source))
		return -1;
	bool is_dynamic = kind >= TP_FIELD_STRING;
	uint32_t room = is_dynamic ? 4 : size;
	bool is_number = kind <= TP_FIELD_FLOAT;
	bool is_ok = kind <= TP_FIELD_BITMASK && size && offset >= 8 && size <= TP_MAX_PAYLOAD &&
		     offset + room <= record_size && element <= 64 && source < MAX_FIELDS;
	if (is_number)
		is_ok = is_ok && (size == 1 || size == 2 || size == 4 || size == 8);
	if (kind == TP_FIELD_FLOAT)
		is_ok = is_ok && size >= 4;
	if (kind == TP_FIELD_ARRAY || kind == TP_FIELD_DYNAMIC)
		is_ok = is_ok && (element == 1 || element == 2 || element == 4 || element == 8);
	if (!is_ok) {
		PyErr_Format(PyExc_ValueError, "field %U does not fit the record", ret->name);
		return -1;
	}
	ret->kind = kind;
	ret->flags = flags;
	ret->offset = offset;
	ret->size = size;
	ret->element = element;
	ret->source = source;
	if (is_number) {
		ret->min = tp_int_min(size, flags & TP_FIELD_SIGNED);
		ret->max = tp_int_max(size, flags & TP_FIELD_SIGNED);
	}
	Py_INCREF(ret->name);
	return 0;
}

static int parse_fields(EventObject *self, PyObject *fields)
{
	Py_ssize_t n = PyTuple_GET_SIZE(fields);
	uint32_t covered = 8;

	if (n > MAX_FIELDS || self->size < 8 || self->size > TP_MAX_PAYLOAD || self->dynamic > self->size ||
	    self->dynamic < 8) {
		PyErr_SetString(PyExc_ValueError, "the record is too long, too short or has too many fields");
		return -1;
	}
	self->fields = PyMem_Calloc(n + 1, sizeof(*self->fields));
	if (!self->fields) {
		PyErr_NoMemory();
		return -1;
	}
	for (Py_ssize_t i = 0; i < n; i++) {
		if (parse_field(PyTuple_GET_ITEM(fields, i), self->size, &self->fields[i]))
			return -1;
		self->n_fields++;
		covered += tp_field_is_dynamic(&self->fields[i]) ? 4 : self->fields[i].size;
	}
	self->has_holes = covered != self->size;
	return 0;
}

static PyObject *or_null(PyObject *object)
{
	return object == Py_None ? NULL : Py_XNewRef(object);
}

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "name",     "parameters", "fields",	"size",	   "dynamic",
				 "defaults", "assign",	   "condition", "control", NULL };
	PyObject *name, *parameters, *fields, *defaults = NULL, *assign = NULL, *condition = NULL, *control = NULL;
	unsigned int size = 8, dynamic = 8;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UO!O!|IIOOOO:Tracepoint", names, &name, &PyTuple_Type,
					 &parameters, &PyTuple_Type, &fields, &size, &dynamic, &defaults, &assign,
					 &condition, &control))
		return NULL;
	if (PyTuple_GET_SIZE(parameters) > MAX_ARGS)
		return PyErr_Format(PyExc_ValueError, "%U has more than %d parameters", name, MAX_ARGS);
	EventObject *self = (EventObject *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	self->vectorcall = event_off;
	self->name = Py_NewRef(name);
	self->parameters = Py_NewRef(parameters);
	self->n_parameters = (uint32_t)PyTuple_GET_SIZE(parameters);
	self->defaults = or_null(defaults);
	self->assign = or_null(assign);
	self->condition = or_null(condition);
	self->control = or_null(control);
	self->size = size;
	self->dynamic = dynamic;
	if (parse_fields(self, fields)) {
		Py_DECREF(self);
		return NULL;
	}
	return (PyObject *)self;
}

/* ("record", buffer, id, filter or None) or ("probe", function, data...) with no data or one. */
static int parse_entry(PyObject *item, struct entry *ret)
{
	const char *kind = PyTuple_Check(item) && PyTuple_GET_SIZE(item) >= 2 ?
				   PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0)) :
				   NULL;
	PyObject *first, *second = NULL;

	if (kind && !strcmp(kind, "probe") && PyTuple_GET_SIZE(item) <= 3) {
		first = PyTuple_GET_ITEM(item, 1);
		second = PyTuple_GET_SIZE(item) == 3 ? PyTuple_GET_ITEM(item, 2) : NULL;
		ret->kind = ENTRY_PROBE;
	} else if (kind && !strcmp(kind, "record")) {
		if (!PyArg_ParseTuple(item, "sO!IO", &kind, tp_buffer_type, &first, &ret->id, &second))
			return -1;
		second = second == Py_None ? NULL : second;
		if (second && !Py_IS_TYPE(second, tp_filter_type))
			return PyErr_Format(PyExc_TypeError, "a Filter is needed"), -1;
		ret->kind = ENTRY_RECORD;
	} else {
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_TypeError, "an entry is a probe or a record");
		return -1;
	}
	ret->first = Py_NewRef(first);
	ret->second = Py_XNewRef(second);
	return 0;
}

static PyObject *event_set_entries(PyObject *op, PyObject *entries)
{
	EventObject *self = (EventObject *)op;

	if (!PyTuple_Check(entries))
		return PyErr_Format(PyExc_TypeError, "entries are a tuple");
	Py_ssize_t n = PyTuple_GET_SIZE(entries);
	struct table *table = PyMem_Calloc(1, sizeof(*table) + n * sizeof(struct entry));
	if (!table)
		return PyErr_NoMemory();
	table->references = 1;
	for (Py_ssize_t i = 0; i < n; i++) {
		if (parse_entry(PyTuple_GET_ITEM(entries, i), &table->entries[i])) {
			table_release(table);
			return NULL;
		}
		table->n_entries++;
	}
	struct table *old = self->table;
	self->table = table;
	self->vectorcall = n ? event_on : event_off;
	table_release(old);
	Py_RETURN_NONE;
}

static int event_bool(PyObject *op)
{
	return ((EventObject *)op)->vectorcall == event_on;
}

/* Everything that is not the mechanism is the control object's: register, enable, filter, ... */
static PyObject *event_getattro(PyObject *op, PyObject *name)
{
	EventObject *self = (EventObject *)op;
	PyObject *found = PyObject_GenericGetAttr(op, name);

	if (found || !self->control || !PyErr_ExceptionMatches(PyExc_AttributeError))
		return found;
	PyErr_Clear();
	return PyObject_GetAttr(self->control, name);
}

static int event_setattro(PyObject *op, PyObject *name, PyObject *value)
{
	EventObject *self = (EventObject *)op;

	if (self->control && PyUnicode_CompareWithASCIIString(name, "control"))
		return PyObject_SetAttr(self->control, name, value);
	return PyObject_GenericSetAttr(op, name, value);
}

static PyObject *event_repr(PyObject *op)
{
	return PyUnicode_FromFormat("<tracepoint %U>", ((EventObject *)op)->name);
}

static int event_traverse(PyObject *op, visitproc visit, void *arg)
{
	EventObject *self = (EventObject *)op;

	Py_VISIT(Py_TYPE(op));
	Py_VISIT(self->defaults);
	Py_VISIT(self->assign);
	Py_VISIT(self->condition);
	Py_VISIT(self->control);
	for (uint32_t i = 0; self->table && i < self->table->n_entries; i++) {
		Py_VISIT(self->table->entries[i].first);
		Py_VISIT(self->table->entries[i].second);
	}
	return 0;
}

static int event_clear(PyObject *op)
{
	EventObject *self = (EventObject *)op;
	struct table *table = self->table;

	self->vectorcall = event_off;
	self->table = NULL;
	table_release(table);
	Py_CLEAR(self->defaults);
	Py_CLEAR(self->assign);
	Py_CLEAR(self->condition);
	Py_CLEAR(self->control);
	return 0;
}

static void event_dealloc(PyObject *op)
{
	EventObject *self = (EventObject *)op;
	PyTypeObject *type = Py_TYPE(op);

	PyObject_GC_UnTrack(op);
	if (self->weakrefs)
		PyObject_ClearWeakRefs(op);
	event_clear(op);
	for (uint32_t i = 0; i < self->n_fields; i++)
		Py_DECREF(self->fields[i].name);
	PyMem_Free(self->fields);
	Py_XDECREF(self->parameters);
	Py_XDECREF(self->name);
	type->tp_free(op);
	Py_DECREF(type);
}

static PyMethodDef event_methods[] = {
	{ "set_entries", event_set_entries, METH_O, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyMemberDef event_members[] = {
	{ "__vectorcalloffset__", T_PYSSIZET, offsetof(EventObject, vectorcall), READONLY, NULL },
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(EventObject, weakrefs), READONLY, NULL },
	{ "control", T_OBJECT, offsetof(EventObject, control), 0, NULL },
	{ "name", T_OBJECT, offsetof(EventObject, name), READONLY, NULL },
	{ "parameters", T_OBJECT, offsetof(EventObject, parameters), READONLY, NULL },
	{ "n_faults", T_ULONGLONG, offsetof(EventObject, n_faults), READONLY, NULL },
	{ "n_nested", T_ULONGLONG, offsetof(EventObject, n_nested), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot event_slots[] = {
	{ Py_tp_new, event_new },
	{ Py_tp_dealloc, event_dealloc },
	{ Py_tp_traverse, event_traverse },
	{ Py_tp_clear, event_clear },
	{ Py_tp_call, PyVectorcall_Call },
	{ Py_tp_getattro, event_getattro },
	{ Py_tp_setattro, event_setattro },
	{ Py_tp_repr, event_repr },
	{ Py_nb_bool, event_bool },
	{ Py_tp_methods, event_methods },
	{ Py_tp_members, event_members },
	{ 0, NULL },
};

PyType_Spec tp_tracepoint_spec = {
	.name = "tracepoint._core.Tracepoint",
	.basicsize = sizeof(EventObject),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = event_slots,
};
