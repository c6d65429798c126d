/* The tracepoint object: it begins in memory as a type does, so that the interpreter calls it directly. */
#ifndef TP_MODULE_EVENT_H
#define TP_MODULE_EVENT_H

#include "convert.h"
#include "ring_quick.h"

enum { MAX_FIELDS = 256, MAX_ARGS = 64 };

enum entry_kind { ENTRY_RECORD, ENTRY_PROBE };

struct entry {
	enum entry_kind kind;
	PyObject *first;  /* record: the Buffer; probe: the function */
	PyObject *second; /* record: the Filter or NULL; probe: its data or NULL */
	uint32_t id;
};

/* Which of the ways in module_quick.c; TP_QUICK_NONE: tp_event_on(), or the event is off. */
enum tp_quick_sort { TP_QUICK_NONE, TP_QUICK_INTEGERS, TP_QUICK_TEXT, TP_QUICK_MIXED, TP_QUICK_FILTERED };

/* Where module_quick.c records: what it needs of the one entry of a table, which keeps it alive. */
struct quick_target {
	struct tp_buffer *buffer;
	FilterObject *filter;
	uint32_t buffer_index;
	uint32_t id;
	enum tp_quick_sort sort;
};

/*
 * What runs when the tracepoint fires, in order.  Never changed, only replaced as a whole; the old one stays
 * until no tracepoint that began before runs any more.
 */
struct table {
	struct tp_retired retired; /* first */
	struct quick_target target;
	uint32_t n_entries;
	struct entry entries[];
};

/*
 * How module_quick.c makes an integer field.  It stores 8 bytes: what is too much is overwritten by the next
 * field, or is the hole after this one, or lies after the record.  A number of one digit fits 32 bits.
 */
struct quick_int {
	uint8_t source;
	uint16_t offset;
	uint32_t min;
	uint32_t range; /* max - min */
	uint64_t mask;  /* of the field's bits */
};

struct quick_string {
	uint8_t source;
	uint16_t offset;
};

/* What module_quick.c needs of an event, in one place. */
struct quick {
#ifndef Py_GIL_DISABLED
	struct quick_target target; /* the table's, where the rest is */
#endif
	bool is_possible;
	uint32_t n_args;
	uint32_t size;
	uint32_t dynamic;
	struct tp_quick_size whole;        /* of an event of integers; of others without their strings' bytes */
	struct quick_string text;          /* the first string */
	uint32_t text_max;                 /* bytes it may have when it is the only one */
	struct quick_int *ints, *ints_end; /* by offset */
	struct quick_string *strings, *strings_end;
};

/*
 * An event is an instance of Tracepoint, which is no subclass of `type`.  But its bytes begin as those of a
 * type, and Tracepoint has the flag by which PyType_Check() knows types: calling one goes from the CALL
 * instruction straight to tp_vectorcall (CALL_BUILTIN_CLASS in Python/bytecodes.c), while calling any other
 * object of ours takes the general way, two fifths more instructions.  Python code asks isinstance(), which
 * goes by the bases: it sees no type.  docs/decisions/0029-events-are-instances.md says what C code sees.
 */
typedef struct {
	PyTypeObject shape;
	_Atomic(struct table *) table;
	PyObject *name;
	PyObject *parameters; /* tuple of str */
	PyObject *defaults;   /* dict of those that may be left out, or NULL */
	PyObject *assign;     /* callable giving the values, or NULL: the arguments are the values */
	PyObject *condition;  /* callable, or NULL */
	PyObject *control;    /* what answers for all other attributes */
	struct tp_field *fields;
	uint32_t n_fields;
	uint32_t n_parameters;
	uint32_t size;    /* bytes of the fixed part with its tail padding */
	uint32_t dynamic; /* where dynamic data begins */
	bool has_holes;   /* bytes of the fixed part that no field covers */
	_Atomic uint64_t n_faults;
	_Atomic uint64_t n_nested;
	struct quick quick;
} EventObject;

static inline vectorcallfunc tp_event_call(const EventObject *self)
{
	return __atomic_load_n(&self->shape.tp_vectorcall, __ATOMIC_ACQUIRE);
}

static inline void tp_event_set_call(EventObject *self, vectorcallfunc call)
{
	__atomic_store_n(&self->shape.tp_vectorcall, call, __ATOMIC_RELEASE);
}

PyObject *tp_event_on(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *names);
PyObject *tp_event_off(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *names);
/* Find out whether an event can be recorded the quick way.  Returns 0, or -1 with an exception set. */
int tp_quick_init(EventObject *self);
void tp_quick_free(EventObject *self);
/* Fill in the target of a table that nobody uses yet. */
void tp_quick_aim(const EventObject *self, struct table *table);
/* What runs when the event is called, now that this is its table. */
vectorcallfunc tp_quick_choose(EventObject *self, const struct table *table);

void tp_table_free(struct table *table);

#endif
