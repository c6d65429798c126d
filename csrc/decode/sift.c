/*
 * Pages of the records that a sieve keeps: walked, filtered and laid out anew.
 *
 * The twin is src/tracepoint/tracefile/sieve.py, which writes with src/tracepoint/record/write.py: PageWriter.
 */
#include "sieve.h"

enum {
	EVENT_HEAD = 4,
	STAMP_EVENT = 8,
	DELTA_MASK = (1 << TP_DELTA_BITS) - 1,
	NO_CPU = -1,
};

struct fault {
	enum tp_fault kind;
	uint32_t size;
	uint64_t at;
};

/* The pages that are written: `used` bytes of events on the last, which begins at `page`. */
struct sifting {
	const struct tp_sieve *sieve;
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

static void put_head(struct sifting *to, uint32_t kind, uint32_t delta)
{
	bool is_big = to->sieve->layout.is_big;
	unsigned char *at = to->pages + to->page + to->sieve->layout.data_offset + to->used;

	tp_put_number(at, is_big ? kind << TP_DELTA_BITS | delta : delta << 5 | kind, 4, is_big);
	to->used += 4;
}

static void put_word(struct sifting *to, uint32_t word)
{
	tp_put_number(to->pages + to->page + to->sieve->layout.data_offset + to->used, word, 4, to->sieve->layout.is_big);
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
			tp_put_number(page + layout->data_offset + to->used, to->lost, layout->long_size, layout->is_big);
		}
		if (layout->long_size == 8)
			commit |= ~0ull << 32;
	}
	tp_put_number(page, to->stamp, 8, layout->is_big);
	tp_put_number(page + layout->commit_offset, commit, layout->long_size, layout->is_big);
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
		tp_put_number(payload, to->sieve->new_id[tp_record_id(data, is_big)], 2, is_big);
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
	} else if (to->keeps_losses && tp_is_in_window(to->sieve, to->own_cpu, to->gap.stamp)) {
		flush(to);
		write_loss_apart(to);
	}
}

static tp_always_inline void sift_record(void *arg, uint64_t stamp, uint32_t at, uint32_t size)
{
	struct sifting *to = arg;
	const unsigned char *data = to->base + at;
	bool is_kept = !to->has_failed && tp_sieve_keeps(to->sieve, to->page_cpu, stamp, data, size);

	if (tp_unlikely(to->gap.is_open))
		close_gap(to, is_kept);
	if (is_kept)
		write_record(to, stamp, data, size, to->page_cpu == to->own_cpu ? NO_CPU : to->page_cpu);
}

static void sift_mark(void *to, int32_t cpu)
{
	((struct sifting *)to)->page_cpu = cpu < 0 ? 0 : cpu;
}

/* Whether all records of a block are in the window. */
struct whole {
	const struct tp_sieve *sieve;
	int32_t cpu;
	bool is_outside;
};

static tp_always_inline void check_record(void *arg, uint64_t stamp, uint32_t at, uint32_t size)
{
	struct whole *whole = arg;

	(void)at;
	(void)size;
	whole->is_outside |= !tp_is_in_window(whole->sieve, whole->cpu, stamp);
}

static void check_mark(void *arg, int32_t cpu)
{
	(void)arg;
	(void)cpu;
}

/* Whether a block is kept as it is: pages without damage or losses, of which only the time is asked for. */
static bool keeps_all(const struct tp_sieve *sieve, const unsigned char *data, uint64_t size, int32_t cpu)
{
	const struct tp_layout *layout = &sieve->layout;
	uint64_t page_size = tp_page_size(layout), at;
	struct whole whole = { sieve, cpu, sieve->slot_of || sieve->new_id };

	for (at = 0; size - at >= page_size && !whole.is_outside; at += page_size) {
		struct tp_head head;

		tp_read_head(data, at, layout, &head);
		whole.is_outside |= head.lost || head.is_lost_unknown;
		tp_walk(data, at, layout, &head, check_record, check_mark, &whole);
		whole.is_outside |= head.fault != TP_FAULT_NONE;
	}
	return at == size && !whole.is_outside;
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
	int cpu, keeps_losses;
	bool is_whole = false;
	Py_buffer data;

	if (!PyArg_ParseTuple(args, "Oy*ip:sift_pages", &capsule, &data, &cpu, &keeps_losses))
		return NULL;
	done.keeps_losses = keeps_losses;
	done.sieve = tp_sieve_of(capsule);
	if (done.sieve) {
		Py_INCREF(capsule);
		Py_BEGIN_ALLOW_THREADS
		is_whole = keeps_all(done.sieve, data.buf, (uint64_t)data.len, cpu);
		if (!is_whole)
			sift(&done, data.buf, (uint64_t)data.len, cpu);
		Py_END_ALLOW_THREADS
		if (is_whole)
			pages = Py_NewRef(data.obj);
		else
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
