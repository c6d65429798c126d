/* Making, changing and asking tracepoint objects; for what happens when they fire see module_fire.c. */
#include "module_event.h"

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
	return tp_quick_init(self);
}

static PyObject *or_null(PyObject *object)
{
	return object == Py_None ? NULL : Py_XNewRef(object);
}

/*
 * The interpreter calls what PyType_Check() takes for a type without a detour (see module_event.h).  So the
 * event begins as one: not made ready, so that nothing is looked up in it or remembered of it, with no bases,
 * no names, and not to be built on or replaced.
 */
static int shape_as_type(EventObject *self, PyObject *name)
{
	PyTypeObject *shape = &self->shape;

	shape->tp_name = PyUnicode_AsUTF8(name);
	shape->tp_flags = Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION;
	shape->tp_bases = PyTuple_New(0);
	shape->tp_mro = PyTuple_New(0);
	shape->tp_dict = PyDict_New();
	shape->tp_vectorcall = tp_event_off;
	return shape->tp_name && shape->tp_bases && shape->tp_mro && shape->tp_dict ? 0 : -1;
}

/* `class Sub(event):` comes here, since the interpreter takes the event for a type. */
static int refuse_subclass(PyTypeObject *type, PyObject *args)
{
	PyObject *bases = PyTuple_GET_SIZE(args) == 3 ? PyTuple_GET_ITEM(args, 1) : NULL;
	PyObject *first = NULL;

	if (bases && PyTuple_Check(bases) && PyTuple_GET_SIZE(bases))
		first = PyTuple_GET_ITEM(bases, 0);
	if (!first || !Py_IS_TYPE(first, type))
		return 0;
	PyErr_Format(PyExc_TypeError, "%U is an event, not a class", ((EventObject *)first)->name);
	return -1;
}

static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "name",     "parameters", "fields",	"size",	   "dynamic",
				 "defaults", "assign",	   "condition", "control", NULL };
	PyObject *name, *parameters, *fields, *defaults = NULL, *assign = NULL, *condition = NULL, *control = NULL;
	unsigned int size = 8, dynamic = 8;

	if (refuse_subclass(type, args))
		return NULL;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UO!O!|IIOOOO:Tracepoint", names, &name, &PyTuple_Type,
					 &parameters, &PyTuple_Type, &fields, &size, &dynamic, &defaults, &assign,
					 &condition, &control))
		return NULL;
	if (PyTuple_GET_SIZE(parameters) > MAX_ARGS)
		return PyErr_Format(PyExc_ValueError, "%U has more than %d parameters", name, MAX_ARGS);
	EventObject *self = (EventObject *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	self->name = Py_NewRef(name);
	self->parameters = Py_NewRef(parameters);
	self->n_parameters = (uint32_t)PyTuple_GET_SIZE(parameters);
	self->defaults = or_null(defaults);
	self->assign = or_null(assign);
	self->condition = or_null(condition);
	self->control = or_null(control);
	self->size = size;
	self->dynamic = dynamic;
	if (shape_as_type(self, name) || parse_fields(self, fields)) {
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
	for (Py_ssize_t i = 0; i < n; i++) {
		if (parse_entry(PyTuple_GET_ITEM(entries, i), &table->entries[i])) {
			tp_table_free(table);
			return NULL;
		}
		table->n_entries++;
	}
	tp_quick_aim(self, table);
	struct table *old;
	Py_BEGIN_CRITICAL_SECTION(op);
	old = atomic_exchange(&self->table, table);
	tp_event_set_call(self, tp_quick_choose(self, table));
	Py_END_CRITICAL_SECTION();
	if (old)
		tp_retire(&old->retired);
	tp_tables_collect();
	Py_RETURN_NONE;
}

static int event_bool(PyObject *op)
{
	return tp_event_call((EventObject *)op) != tp_event_off;
}

/* Everything that is not the mechanism is the control object's: register, enable, filter, ... */
static PyObject *event_getattro(PyObject *op, PyObject *name)
{
	EventObject *self = (EventObject *)op;

	/* Looked up first: an unseen AttributeError takes longer than all the rest.  Types have modules too. */
	if (self->control && (!_PyType_Lookup(Py_TYPE(op), name) ||
			      !PyUnicode_CompareWithASCIIString(name, "__module__")))
		return PyObject_GetAttr(self->control, name);
	return PyObject_GenericGetAttr(op, name);
}

/* On the type, because help() asks object.__getattribute__(). */
static PyObject *event_doc(PyObject *op, void *Py_UNUSED(unused))
{
	EventObject *self = (EventObject *)op;

	return self->control ? PyObject_GetAttrString(self->control, "__doc__") : Py_NewRef(Py_None);
}

/* The attributes of the control object are not the event's own. */
static PyObject *event_dict(PyObject *op, void *Py_UNUSED(unused))
{
	return PyErr_Format(PyExc_AttributeError, "%U has no __dict__", ((EventObject *)op)->name);
}

/* What a user may ask for: the names of the control object beside the mechanism's own. */
static PyObject *event_dir(PyObject *op, PyObject *Py_UNUSED(unused))
{
	EventObject *self = (EventObject *)op;
	PyObject *names = Py_BuildValue("[sssss]", "__call__", "name", "parameters", "n_faults", "n_nested");
	PyObject *more = !names ? NULL : self->control ? PyObject_Dir(self->control) : PyList_New(0);
	PyObject *all = more ? PySequence_InPlaceConcat(names, more) : NULL;

	Py_XDECREF(names);
	Py_XDECREF(more);
	return all;
}

static int event_setattro(PyObject *op, PyObject *name, PyObject *value)
{
	EventObject *self = (EventObject *)op;

	if (!PyUnicode_CompareWithASCIIString(name, "control"))
		return PyObject_GenericSetAttr(op, name, value);
	PyObject *control = self->control ? self->control : Py_None;
	/* A misspelt `event.fliter = ...` would set no filter and let everything pass. */
	PyObject *known = PyObject_GetAttr(control, name);
	if (!known)
		return -1;
	Py_DECREF(known);
	return PyObject_SetAttr(control, name, value);
}

static PyObject *event_repr(PyObject *op)
{
	return PyUnicode_FromFormat("<tracepoint %U>", ((EventObject *)op)->name);
}

static PyObject *event_self(PyObject *op, PyObject *Py_UNUSED(memo))
{
	return Py_NewRef(op);
}

static PyObject *event_reduce(PyObject *op, PyObject *Py_UNUSED(unused))
{
	PyObject *named = PyImport_ImportModule("tracepoint.runtime.declare.named");
	PyObject *found = named ? PyObject_CallMethod(named, "reduced", "(O)", op) : NULL;

	Py_XDECREF(named);
	return found;
}

/* It has the shape of a type: isinstance() and the like would say no where they must say that it is none. */
static PyObject *event_refuse(PyObject *op, PyObject *Py_UNUSED(args))
{
	return PyErr_Format(PyExc_TypeError, "%U is an event, not a class", ((EventObject *)op)->name);
}

static int event_traverse(PyObject *op, visitproc visit, void *arg)
{
	EventObject *self = (EventObject *)op;

	Py_VISIT(Py_TYPE(op));
	Py_VISIT(self->defaults);
	Py_VISIT(self->assign);
	Py_VISIT(self->condition);
	Py_VISIT(self->control);
	const struct table *table = atomic_load(&self->table);
	for (uint32_t i = 0; table && i < table->n_entries; i++) {
		Py_VISIT(table->entries[i].first);
		Py_VISIT(table->entries[i].second);
	}
	return 0;
}

static int event_clear(PyObject *op)
{
	EventObject *self = (EventObject *)op;

	tp_event_set_call(self, tp_event_off);
	/* Who fires the event holds it: nobody does, and the table may go at once. */
	tp_table_free(atomic_exchange(&self->table, NULL));
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
	PyObject_ClearWeakRefs(op);
	event_clear(op);
	for (uint32_t i = 0; i < self->n_fields; i++)
		Py_DECREF(self->fields[i].name);
	PyMem_Free(self->fields);
	tp_quick_free(self);
	Py_XDECREF(self->shape.tp_bases);
	Py_XDECREF(self->shape.tp_mro);
	Py_XDECREF(self->shape.tp_dict);
	Py_XDECREF(self->parameters);
	Py_XDECREF(self->name);
	type->tp_free(op);
	Py_DECREF(type);
}

static PyMethodDef event_methods[] = {
	{ "set_entries", event_set_entries, METH_O, NULL },
	{ "__dir__", event_dir, METH_NOARGS, NULL },
	{ "__reduce__", event_reduce, METH_NOARGS, NULL },
	{ "__copy__", event_self, METH_NOARGS, NULL },
	{ "__deepcopy__", event_self, METH_O, NULL },
	{ "__mro_entries__", event_refuse, METH_O, NULL },
	{ "__instancecheck__", event_refuse, METH_O, NULL },
	{ "__subclasscheck__", event_refuse, METH_O, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef event_getset[] = {
	{ "__doc__", event_doc, NULL, NULL, NULL },
	{ "__dict__", event_dict, NULL, NULL, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyMemberDef event_members[] = {
	{ "__vectorcalloffset__", T_PYSSIZET, offsetof(EventObject, shape.tp_vectorcall), READONLY, NULL },
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(EventObject, shape.tp_weaklist), READONLY, NULL },
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
	{ Py_tp_getset, event_getset },
	{ 0, NULL },
};

PyType_Spec tp_tracepoint_spec = {
	.name = "tracepoint._core.Tracepoint",
	.basicsize = sizeof(EventObject),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
		 Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_TYPE_SUBCLASS,
	.slots = event_slots,
};
