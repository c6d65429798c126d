/*
 * Firing the most frequent way: one buffer records, the arguments are integers and strings.  The record is
 * made where it stays, and no Python code can run in between, so there is no nesting to watch, nothing to
 * wait for in synchronize() and no table to hold.  Whatever is out of the ordinary is left to tp_event_on().
 */
#include "location.h"
#include "module_event.h"

/* ---- making ready ---- */

static struct quick_int make_int(const struct tp_field *field)
{
	int64_t min = field->min > INT32_MIN ? field->min : INT32_MIN;
	int64_t max = field->max < INT32_MAX ? field->max : INT32_MAX;

	return (struct quick_int){ .source = (uint8_t)field->source,
				   .offset = field->offset,
				   .min = (uint32_t)min,
				   .range = (uint32_t)(max - min),
				   .mask = field->size == 8 ? UINT64_MAX : (1ull << field->size * 8) - 1 };
}

static bool is_possible(const EventObject *self)
{
	uint32_t end = 8;
	bool was_int = true;

	if (self->assign || self->condition || self->size - self->dynamic >= 8 || self->size > TP_QUICK_MAX)
		return false;
	for (uint32_t i = 0; i < self->n_fields; i++) {
		const struct tp_field *field = &self->fields[i];
		bool is_int = field->kind == TP_FIELD_INT;
		if (!is_int && (field->kind != TP_FIELD_STRING || field->flags & TP_FIELD_REL))
			return false;
		/* In the order of their places, with holes after integers only. */
		if (field->source >= self->n_parameters || field->offset < end || (field->offset > end && !was_int))
			return false;
		was_int = is_int;
		end = field->offset + (is_int ? field->size : 4u);
	}
	return end == self->dynamic;
}

int tp_quick_init(EventObject *self)
{
	struct quick *quick = &self->quick;
	const struct tp_field *field = self->fields;

	quick->is_possible = is_possible(self);
	quick->ints = quick->ints_end = PyMem_Calloc(self->n_fields + 1, sizeof(*quick->ints));
	quick->strings = quick->strings_end = PyMem_Calloc(self->n_fields + 1, sizeof(*quick->strings));
	if (!quick->ints || !quick->strings) {
		PyErr_NoMemory();
		return -1;
	}
	quick->n_args = self->n_parameters;
	quick->size = self->size;
	quick->dynamic = self->dynamic;
	quick->whole = tp_quick_size(self->size);
	quick->text_max = TP_QUICK_MAX - self->size;
	for (; quick->is_possible && field < self->fields + self->n_fields; field++) {
		if (field->kind == TP_FIELD_INT)
			*quick->ints_end++ = make_int(field);
		else
			*quick->strings_end++ = (struct quick_string){ (uint8_t)field->source, field->offset };
	}
	quick->text = *quick->strings;
	return 0;
}

void tp_quick_free(EventObject *self)
{
	PyMem_Free(self->quick.ints);
	PyMem_Free(self->quick.strings);
}

/* ---- firing ---- */

/* As in struct tp_record. */
struct place {
	unsigned char *data;
	uint32_t size;
	uint32_t dynamic;
	uint32_t room; /* what `size` may become */
};

/* A string as it will be copied, its NUL counted. */
struct text {
	const char *from;
	size_t length;
};

static tp_always_inline bool put_int(const struct quick_int *step, PyObject *object, unsigned char *data)
{
	int64_t number;

	if (tp_unlikely(!tp_small_int(object, &number) || (uint32_t)number - step->min > step->range))
		return false;
	uint64_t bits = (uint64_t)number & step->mask;
	memcpy(data + step->offset, &bits, sizeof(bits));
	return true;
}

/* Look at a string that may have `most` bytes. */
static tp_always_inline bool look_at(PyObject *object, uint32_t most, struct text *ret)
{
	if (tp_unlikely(!tp_is_plain_str(object)))
		return false;
	ret->from = (const char *)((PyASCIIObject *)object + 1);
	ret->length = (size_t)PyUnicode_GET_LENGTH(object) + 1;
	return tp_likely(ret->length <= most);
}

static tp_always_inline void put_text(uint32_t offset, struct text text, struct place *place)
{
	uint32_t word = tp_location(place->dynamic, (uint32_t)text.length);

	memcpy(place->data + offset, &word, sizeof(word));
	tp_copy_bytes(place->data + place->dynamic, text.from, text.length);
	place->dynamic += (uint32_t)text.length;
	place->size += (uint32_t)text.length;
}

static tp_always_inline bool put_strings(const struct quick *quick, PyObject *const *args, struct place *place)
{
	const struct quick_string *string = quick->strings;
	struct text text;

	for (; string < quick->strings_end; string++) {
		if (tp_unlikely(!look_at(args[string->source], place->room - place->size, &text)))
			return false;
		put_text(string->offset, text, place);
	}
	return true;
}

static tp_always_inline bool fill(const struct quick *quick, PyObject *const *args, uint64_t common,
				  enum tp_quick_sort sort, struct text text, struct place *place)
{
	const struct quick_int *number = quick->ints, *end = quick->ints_end;

	memcpy(place->data, &common, sizeof(common));
	for (; number < end; number++)
		if (tp_unlikely(!put_int(number, args[number->source], place->data)))
			return false;
	if (sort == TP_QUICK_INTEGERS)
		return true;
	if (sort == TP_QUICK_TEXT)
		put_text(quick->text.offset, text, place);
	else if (tp_unlikely(!put_strings(quick, args, place)))
		return false;
	/* The struct's padding, and what rounds the event up to words: TP_QUICK_SLACK is for them. */
	memset(place->data + place->dynamic, 0, TP_QUICK_SLACK);
	return true;
}

static tp_always_inline uint64_t now(const struct quick_target *target, int clock)
{
	if (tp_likely(clock == TP_CLOCK_MONO))
		return tp_clock_ns(CLOCK_MONOTONIC);
	return tp_clock_now(clock, &target->buffer->counter);
}

/* Make the record at a time that is known; TP_QUICK_FILTERED asks for it only when the filter lets the record pass. */
static tp_always_inline bool make(const struct quick *quick, const struct quick_target *target,
				  PyObject *const *args, enum tp_quick_sort sort, const struct tp_thread *thread,
				  struct tp_ring *ring, int clock, uint64_t stamp)
{
	struct tp_quick_size size = quick->whole;
	int32_t cpu = tp_cpu_at(thread->cpu);
	struct text text = { 0 };
	uint32_t at;

	/* The only string determines the length of the event before it begins. */
	if (sort == TP_QUICK_TEXT) {
		if (tp_unlikely(!look_at(args[quick->text.source], quick->text_max, &text)))
			return false;
		/* Not 8, which tp_quick_size() would watch for: 8 come before, and 4 describe the string. */
		uint32_t words = (quick->size + (uint32_t)text.length + 3) / 4;
		size = (struct tp_quick_size){ words, 4 + 4 * words };
	}
	unsigned char *to = tp_ring_begin_quickly(ring, cpu, size.bytes, &at);
	if (tp_unlikely(!to))
		return false;
	struct place place = { to, quick->size, quick->dynamic, tp_quick_room(at) };
	uint64_t common = (uint64_t)(uint32_t)thread->tid << 32 | target->id;
	if (tp_unlikely(!fill(quick, args, common, sort, text, &place))) {
		tp_ring_leave_quickly(ring);
		return false;
	}
	if (sort == TP_QUICK_FILTERED) {
		struct tp_record record = { .size = place.size, .data = place.data };
		if (!tp_filter_passes(target->filter, &record, cpu, ring)) {
			tp_ring_leave_quickly(ring);
			return true;
		}
		stamp = now(target, clock);
	}
	if (sort == TP_QUICK_MIXED || sort == TP_QUICK_FILTERED)
		size = tp_quick_size(place.size);
	return tp_ring_end_quickly(ring, at, to, size, stamp);
}

static tp_always_inline bool record_to(const struct quick *quick, const struct quick_target *target,
				       PyObject *const *args, enum tp_quick_sort sort, struct tp_thread *thread)
{
	struct tp_ring_node *node = thread->rings[target->buffer_index];
	if (tp_unlikely(!node || !atomic_load_explicit(&target->buffer->is_on, memory_order_relaxed)))
		return false;
	int clock = atomic_load_explicit(&target->buffer->clock, memory_order_relaxed);
	if (tp_unlikely(clock == TP_CLOCK_COUNTER))
		/* It counts how often it is asked, which is once for an event. */
		return false;
	/* First: the counter waits for what was begun before it, and what follows need not wait for the counter. */
	uint64_t stamp = sort == TP_QUICK_FILTERED ? 0 : now(target, clock);
	return make(quick, target, args, sort, thread, &node->ring, clock, stamp);
}

static tp_always_inline bool record(const EventObject *self, PyObject *const *args, enum tp_quick_sort sort)
{
	struct tp_thread *thread = tp_this_thread;

	if (tp_unlikely(!thread || thread->depth >= TP_MAX_DEPTH))
		return false;
#ifdef Py_GIL_DISABLED
	/* Another thread may replace the table meanwhile, also with one that this way is not for. */
	uint64_t begun = atomic_load_explicit(&tp_generation, memory_order_relaxed);
	tp_thread_enter(thread);
	const struct table *table = atomic_load(&self->table);
	bool is_done = table && table->target.sort == sort && tp_buffer_takes(table->target.buffer, begun) &&
		       record_to(&self->quick, &table->target, args, sort, thread);
	tp_thread_leave(thread);
	return is_done;
#else
	return record_to(&self->quick, &self->quick.target, args, sort, thread);
#endif
}

static tp_always_inline PyObject *call(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *names,
				       enum tp_quick_sort sort)
{
	const EventObject *self = (EventObject *)op;
	uint32_t n_args = self->quick.n_args;

	if (tp_unlikely(names || PyVectorcall_NARGS(nargsf) != n_args))
		return tp_event_on(op, args, nargsf, names);
	if (tp_unlikely(!record(self, args, sort)))
		return tp_event_on(op, args, n_args, NULL);
	Py_RETURN_NONE;
}

static PyObject *call_integers(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *names)
{
	return call(op, args, nargsf, names, TP_QUICK_INTEGERS);
}

static PyObject *call_text(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *names)
{
	return call(op, args, nargsf, names, TP_QUICK_TEXT);
}

static PyObject *call_mixed(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *names)
{
	return call(op, args, nargsf, names, TP_QUICK_MIXED);
}

static PyObject *call_filtered(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *names)
{
	return call(op, args, nargsf, names, TP_QUICK_FILTERED);
}

static enum tp_quick_sort sort_of(const EventObject *self, const struct table *table)
{
	const struct quick *quick = &self->quick;

	if (!quick->is_possible || table->n_entries != 1 || table->entries->kind != ENTRY_RECORD)
		return TP_QUICK_NONE;
	if (table->entries->second)
		return TP_QUICK_FILTERED;
	/* Without fields nothing would write what rounds the event up: call_mixed() clears that. */
	if (quick->strings == quick->strings_end)
		return quick->ints == quick->ints_end ? TP_QUICK_MIXED : TP_QUICK_INTEGERS;
	return quick->strings + 1 == quick->strings_end ? TP_QUICK_TEXT : TP_QUICK_MIXED;
}

void tp_quick_aim(const EventObject *self, struct table *table)
{
	struct quick_target *target = &table->target;
	const struct entry *entry = table->entries;

	target->sort = sort_of(self, table);
	if (target->sort == TP_QUICK_NONE)
		return;
	target->buffer = ((BufferObject *)entry->first)->buffer;
	target->buffer_index = target->buffer->index;
	target->id = (uint16_t)entry->id;
	target->filter = (FilterObject *)entry->second;
}

vectorcallfunc tp_quick_choose(EventObject *self, const struct table *table)
{
	static const vectorcallfunc calls[] = { [TP_QUICK_NONE] = tp_event_on,
						[TP_QUICK_INTEGERS] = call_integers,
						[TP_QUICK_TEXT] = call_text,
						[TP_QUICK_MIXED] = call_mixed,
						[TP_QUICK_FILTERED] = call_filtered };

	if (!table->n_entries)
		return tp_event_off;
#ifndef Py_GIL_DISABLED
	self->quick.target = table->target;
#endif
	return calls[table->target.sort];
}
