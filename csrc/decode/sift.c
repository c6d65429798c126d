/*
 * Pages of the chosen records only: walked, filtered and laid out anew.
 *
 * The twin is src/tracepoint/tracefile/sieve.py, which writes with src/tracepoint/record/write.py: PageWriter.
 */
#include "columns.h"
#include "head.h"
#include "../filter.h"
#include "../hints.h"

#define SIEVE "tracepoint.sieve"

enum {
	ALL_SLOT = 0xFFFE,
	NO_SLOT = 0xFFFF,
	EVENT_HEAD = 4,
	STAMP_EVENT = 8,
	DELTA_MASK = (1 << TP_DELTA_BITS) - 1,
	NO_CPU = -1,
};

/*
 * `slot_of` gives the program of an event's id: ALL_SLOT for none, NO_SLOT where no record is chosen.  `new_id`
 * gives the id that is written in its place, NULL for the same one.
 */
struct sieve {
	struct tp_layout layout;
	int64_t start, stop;
	unsigned int n_programs;
	uint16_t *slot_of, *new_id;
	void **programs;
};

struct fault {
	enum tp_fault kind;
	uint32_t size;
	uint64_t at;
};

/* The pages that are written: `used` bytes of events on the last, which begins at `page`. */
struct sifting {
	const struct sieve *sieve;
	const unsigned char *base;
	int32_t own_cpu, page_cpu;
	unsigned char *pages;
	uint64_t page, room, stamp, now, lost;
	uint32_t used;
	int32_t cpu; /* of the records written last; NO_CPU for the pages' own */
	bool is_lost_unknown, has_failed, keeps_losses;
	/* Losses before the next record, which may be left out; the stamp is that of the page after them. */
	struct {
		uint64_t lost, stamp;
		bool is_open, is_unknown;
	} gap;
	uint64_t n_too_long, n_faults, fault_room;
	struct fault *faults;
};

static void put_number(unsigned char *to, uint64_t value, unsigned int size, bool is_big)
{
	for (unsigned int i = 0; i < size; i++)
		to[is_big ? size - 1 - i : i] = (unsigned char)(value >> 8 * i);
}

static void put_head(struct sifting *to, uint32_t kind, uint32_t delta)
{
	bool is_big = to->sieve->layout.is_big;
	unsigned char *at = to->pages + to->page + to->sieve->layout.data_offset + to->used;

	put_number(at, is_big ? kind << TP_DELTA_BITS | delta : delta << 5 | kind, 4, is_big);
	to->used += 4;
}

static void put_word(struct sifting *to, uint32_t word)
{
	put_number(to->pages + to->page + to->sieve->layout.data_offset + to->used, word, 4, to->sieve->layout.is_big);
	to->used += 4;
}

/* The bytes for events of this page: a number of lost events stands after them. */
static uint32_t room_of(const struct sifting *to)
{
	const struct tp_layout *layout = &to->sieve->layout;

	return layout->data_size - (to->lost && !to->is_lost_unknown ? layout->long_size : 0);
}

static bool begin_page(struct sifting *to, uint64_t stamp)
{
	uint64_t size = tp_page_size(&to->sieve->layout);

	if (!tp_grow(&to->pages, &to->room, to->page + size, 1)) {
		to->has_failed = true;
		return false;
	}
	memset(to->pages + to->page, 0, size);
	to->stamp = stamp;
	return true;
}

static void end_page(struct sifting *to)
{
	const struct tp_layout *layout = &to->sieve->layout;
	unsigned char *page = to->pages + to->page;
	uint64_t commit = to->used;

	if (to->lost || to->is_lost_unknown) {
		commit |= 1u << TP_MISSED_EVENTS_BIT;
		if (!to->is_lost_unknown && to->used + layout->long_size <= layout->data_size) {
			commit |= 1u << TP_MISSED_STORED_BIT;
			put_number(page + layout->data_offset + to->used, to->lost, layout->long_size, layout->is_big);
		}
		if (layout->long_size == 8)
			commit |= ~0ull << 32;
	}
	put_number(page, to->stamp, 8, layout->is_big);
	put_number(page + layout->commit_offset, commit, layout->long_size, layout->is_big);
	to->page += tp_page_size(layout);
	to->used = 0;
	to->lost = 0;
	to->is_lost_unknown = false;
	to->cpu = NO_CPU;
}

static void flush(struct sifting *to)
{
	if (to->used)
		end_page(to);
}

static void put_mark(struct sifting *to, int32_t cpu)
{
	put_head(to, TP_TYPE_PADDING, 1);
	put_word(to, TP_CPU_MARK_SIZE - 4);
	put_word(to, (uint32_t)cpu);
	to->now++;
}

/* Say when the next event is where 27 bits do not hold the time since the last. */
static void move_to(struct sifting *to, uint64_t stamp)
{
	uint64_t low = (1ull << TP_STAMP_BITS) - 1, delta = stamp - to->now;
	bool is_back = stamp < to->now;

	if ((is_back ? stamp >> TP_STAMP_BITS != to->now >> TP_STAMP_BITS : delta > low) ||
	    to->used + STAMP_EVENT > room_of(to)) {
		flush(to);
		return;
	}
	if (is_back)
		delta = stamp & low;
	put_head(to, is_back ? TP_TYPE_TIME_STAMP : TP_TYPE_TIME_EXTEND, delta & DELTA_MASK);
	put_word(to, (uint32_t)(delta >> TP_DELTA_BITS));
	to->now = stamp;
}

/* Put an event of `size` bytes, for which there is room. */
static void put_event(struct sifting *to, uint32_t size, uint32_t delta, const unsigned char *data, uint32_t length)
{
	uint32_t after = to->used + size;
	bool is_big = to->sieve->layout.is_big;
	unsigned char *payload;

	if (size - EVENT_HEAD > 4 * TP_TYPE_DATA_MAX) {
		put_head(to, 0, delta);
		put_word(to, size - EVENT_HEAD);
	} else {
		put_head(to, (size - EVENT_HEAD) / 4, delta);
	}
	payload = to->pages + to->page + to->sieve->layout.data_offset + to->used;
	memcpy(payload, data, length);
	if (to->sieve->new_id && length >= 2)
		put_number(payload, to->sieve->new_id[tp_record_id(data, is_big)], 2, is_big);
	to->used = after;
}

static void write_record(struct sifting *to, uint64_t stamp, const unsigned char *data, uint32_t length, int32_t cpu)
{
	uint32_t size = tp_event_size(length);
	uint64_t delta;

	if (size + (cpu == NO_CPU ? STAMP_EVENT : TP_CPU_MARK_SIZE) > to->sieve->layout.data_size) {
		to->n_too_long++;
		return;
	}
	if (cpu != to->cpu && to->used) {
		if (cpu == NO_CPU || to->used + TP_CPU_MARK_SIZE > room_of(to))
			flush(to);
		else
			put_mark(to, cpu);
	}
	delta = stamp - to->now;
	if (to->used && delta > DELTA_MASK) {
		move_to(to, stamp);
		delta = 0;
	}
	if (to->used && to->used + size > room_of(to))
		flush(to);
	if (!to->used) {
		delta = 0;
		if (!begin_page(to, cpu == NO_CPU ? stamp : stamp - 1))
			return;
		if (cpu != NO_CPU)
			put_mark(to, cpu);
	}
	put_event(to, size, (uint32_t)delta, data, length);
	to->now = stamp;
	to->cpu = cpu;
}

static bool is_in_window(const struct sieve *sieve, uint64_t stamp)
{
	return (int64_t)stamp >= sieve->start && (int64_t)stamp < sieve->stop;
}

/* A sum that the page cannot hold is not known either. */
static bool is_sum_unknown(const struct sifting *to, uint64_t sum)
{
	return sum > INT64_MAX || (to->sieve->layout.long_size == 4 && sum > UINT32_MAX);
}

/* Give a loss a page of its own; what was lost before the next record stays before it. */
static void write_loss_apart(struct sifting *to)
{
	uint64_t lost = to->lost;
	bool is_unknown = to->is_lost_unknown;

	to->lost = to->gap.lost;
	to->is_lost_unknown = to->gap.is_unknown;
	if (begin_page(to, to->gap.stamp))
		end_page(to);
	to->lost = lost;
	to->is_lost_unknown = is_unknown;
}

/* Write a loss: before the record that follows, or on its own where that is left out. */
static void close_gap(struct sifting *to, bool is_kept)
{
	to->gap.is_open = false;
	if (is_kept) {
		flush(to);
		to->lost += to->gap.lost;
		to->is_lost_unknown |= to->gap.is_unknown || is_sum_unknown(to, to->lost);
	} else if (to->keeps_losses && is_in_window(to->sieve, to->gap.stamp)) {
		flush(to);
		write_loss_apart(to);
	}
}

static tp_always_inline bool keeps(const struct sifting *to, uint64_t stamp, const unsigned char *data, uint32_t size)
{
	const struct sieve *sieve = to->sieve;
	uint16_t slot = ALL_SLOT;

	if (!is_in_window(sieve, stamp) || tp_unlikely(to->has_failed))
		return false;
	if (sieve->slot_of) {
		if (size < 2)
			return false;
		slot = sieve->slot_of[tp_record_id(data, sieve->layout.is_big)];
	}
	if (slot == NO_SLOT)
		return false;
	if (slot != ALL_SLOT) {
		struct tp_filter_context context = { .cpu = (uint32_t)to->page_cpu };

		return tp_filter_matches(sieve->programs[slot], data, size, &context);
	}
	return true;
}

static tp_always_inline void sift_record(void *arg, uint64_t stamp, uint32_t at, uint32_t size)
{
	struct sifting *to = arg;
	const unsigned char *data = to->base + at;
	bool is_kept = keeps(to, stamp, data, size);

	if (tp_unlikely(to->gap.is_open))
		close_gap(to, is_kept);
	if (is_kept)
		write_record(to, stamp, data, size, to->page_cpu == to->own_cpu ? NO_CPU : to->page_cpu);
}

static void sift_mark(void *to, int32_t cpu)
{
	((struct sifting *)to)->page_cpu = cpu < 0 ? 0 : cpu;
}

static void lose(struct sifting *to, const struct tp_head *head)
{
	if (!head->lost && !head->is_lost_unknown)
		return;
	if (!to->gap.is_open)
		to->gap.lost = to->gap.is_unknown = 0;
	to->gap.lost += head->lost;
	to->gap.is_unknown |= head->is_lost_unknown || is_sum_unknown(to, to->gap.lost);
	to->gap.stamp = head->stamp;
	to->gap.is_open = true;
}

static void note_fault(struct sifting *to, enum tp_fault kind, uint32_t size, uint64_t at)
{
	if (!tp_grow(&to->faults, &to->fault_room, to->n_faults + 1, sizeof(*to->faults)))
		to->has_failed = true;
	else
		to->faults[to->n_faults++] = (struct fault){ kind, size, at };
}

static void sift(struct sifting *to, const unsigned char *data, uint64_t size, int32_t cpu)
{
	const struct tp_layout *layout = &to->sieve->layout;
	uint64_t page_size = tp_page_size(layout), at;

	to->own_cpu = cpu;
	to->cpu = NO_CPU;
	for (at = 0; size - at >= page_size && !to->has_failed; at += page_size) {
		struct tp_head head;

		tp_read_head(data, at, layout, &head);
		lose(to, &head);
		to->base = data + at + layout->data_offset;
		to->page_cpu = cpu;
		tp_walk(data, at, layout, &head, sift_record, sift_mark, to);
		if (head.fault)
			note_fault(to, head.fault, head.fault_size, head.fault_at);
	}
	if (at < size)
		note_fault(to, TP_FAULT_LEFT, (uint32_t)(size - at), at);
	if (to->gap.is_open)
		close_gap(to, false);
	flush(to);
	/* Losses after the last record have a page of their own. */
	if ((to->lost || to->is_lost_unknown) && begin_page(to, to->now))
		end_page(to);
}

static void sieve_free(PyObject *capsule)
{
	struct sieve *sieve = PyCapsule_GetPointer(capsule, SIEVE);

	for (unsigned int n = 0; sieve->programs && n < sieve->n_programs; n++)
		free(sieve->programs[n]);
	free(sieve->programs);
	free(sieve->slot_of);
	free(sieve->new_id);
	free(sieve);
}

static bool load_programs(struct sieve *sieve, PyObject *programs)
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

static void check_slots(struct sieve *sieve)
{
	for (unsigned int id = 0; sieve->slot_of && id < TP_N_IDS; id++)
		if (sieve->slot_of[id] >= sieve->n_programs && sieve->slot_of[id] != ALL_SLOT)
			sieve->slot_of[id] = NO_SLOT;
}

PyObject *tp_sieve(PyObject *module, PyObject *args)
{
	struct sieve *sieve = calloc(1, sizeof(*sieve));
	PyObject *made, *programs;
	Py_buffer slots, new_ids;

	(void)module;
	made = sieve ? PyCapsule_New(sieve, SIEVE, sieve_free) : PyErr_NoMemory();
	if (!made) {
		free(sieve);
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "y*y*O!" TP_LAYOUT_CODES "LL:sieve", &slots, &new_ids, &PyTuple_Type, &programs,
			      TP_LAYOUT_PLACES(sieve->layout), &sieve->start, &sieve->stop)) {
		Py_DECREF(made);
		return NULL;
	}
	if (!tp_check_layout(&sieve->layout) || !load_programs(sieve, programs) ||
	    !load_numbers(&sieve->slot_of, &slots) || !load_numbers(&sieve->new_id, &new_ids))
		Py_CLEAR(made);
	else
		check_slots(sieve);
	PyBuffer_Release(&new_ids);
	PyBuffer_Release(&slots);
	return made;
}

static PyObject *faults_of(const struct sifting *done)
{
	PyObject *list = PyList_New((Py_ssize_t)done->n_faults);

	for (uint64_t n = 0; list && n < done->n_faults; n++) {
		struct tp_head head = { .fault = done->faults[n].kind, .fault_size = done->faults[n].size };
		PyObject *made = Py_BuildValue("(NK)", tp_fault_text(&head), (unsigned long long)done->faults[n].at);

		if (!made)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, (Py_ssize_t)n, made);
	}
	return list;
}

/* Hand the pages over; `done` keeps them where that fails. */
static PyObject *pages_of(PyObject *module, struct sifting *done)
{
	unsigned char *kept = done->page ? realloc(done->pages, done->page) : NULL;
	struct tp_block *block;

	if (done->page && !kept)
		return PyErr_NoMemory();
	if (kept)
		done->pages = kept;
	block = tp_block_adopt(kept, done->page);
	if (!block)
		return PyErr_NoMemory();
	if (kept)
		done->pages = NULL;
	return tp_buffer_of(module, block);
}

PyObject *tp_sift_pages(PyObject *module, PyObject *args)
{
	struct sifting done = { 0 };
	PyObject *capsule, *pages = NULL, *made = NULL;
	Py_buffer data;
	int cpu, keeps_losses;

	if (!PyArg_ParseTuple(args, "Oy*ip:sift_pages", &capsule, &data, &cpu, &keeps_losses))
		return NULL;
	done.keeps_losses = keeps_losses;
	done.sieve = PyCapsule_GetPointer(capsule, SIEVE);
	if (done.sieve) {
		Py_INCREF(capsule);
		Py_BEGIN_ALLOW_THREADS
		sift(&done, data.buf, (uint64_t)data.len, cpu);
		Py_END_ALLOW_THREADS
		pages = done.has_failed ? PyErr_NoMemory() : pages_of(module, &done);
		if (pages)
			made = Py_BuildValue("(NNK)", pages, faults_of(&done), (unsigned long long)done.n_too_long);
		Py_DECREF(capsule);
	}
	free(done.pages);
	free(done.faults);
	PyBuffer_Release(&data);
	return made;
}
