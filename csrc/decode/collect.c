/*
 * Finding the records of chosen events in pages, and giving them the times that are shown.
 *
 * The twin is src/tracepoint/decode/rows.py.
 */
#include "collect.h"
#include "clock.h"
#include "sieve.h"

#include <errno.h>
#include <unistd.h>

enum { FIRST_PIECE = 1 << 11, LAST_PIECE = 1 << 18, FILE_BLOCK = 1 << 18 };

/*
 * `slot_of` gives the slot of an event's id; `base` is the data of the page at hand, `page_cpu` its CPU so far.
 * Records from `start` on and before `stop` are kept; `early` and `late` are the numbers, from 1, of the last page
 * with one before and of the first with one after them.  With a sieve only what it keeps counts as found.
 */
struct collector {
	struct tp_layout layout;
	int64_t start, stop;
	uint64_t n_pages, early, late;
	Py_buffer slots_of_ids;
	const uint16_t *slot_of;
	PyObject *held_pool, *held_sieve;
	struct tp_pool *pool;
	const struct tp_sieve *sieve;
	struct tp_slot *slots;
	unsigned int n_slots;
	const unsigned char *base;
	int32_t page_cpu;
	bool has_failed, is_busy;
};

/* Make room in a chain's next piece, larger than the one before. */
static struct tp_piece *next_piece(const struct collector *collector, const struct tp_piece *before, size_t size)
{
	size_t wanted = before ? 2 * before->size : FIRST_PIECE;

	wanted = wanted > LAST_PIECE ? LAST_PIECE : wanted;
	return tp_piece_create(collector->pool, size > wanted ? size : wanted);
}

/* Copy a record, whose size is a multiple of 4 or, in a damaged page, not. */
static tp_always_inline unsigned char *keep(struct collector *collector, struct tp_slot *slot,
					    const unsigned char *data, uint32_t size)
{
	struct tp_piece *piece = slot->bytes;
	unsigned char *to;

	if (tp_unlikely(!piece || piece->size - piece->used < size)) {
		piece = next_piece(collector, piece, size);
		if (!piece)
			return NULL;
		piece->next = slot->bytes;
		slot->bytes = piece;
	}
	to = piece->bytes + piece->used;
	memcpy(to, data, size);
	piece->used += size;
	return to;
}

static tp_always_inline bool add_record(struct collector *collector, struct tp_slot *slot, struct tp_record record)
{
	struct tp_piece *piece = slot->last;
	struct tp_record *to;

	if (tp_unlikely(!piece || piece->size - piece->used < sizeof(record))) {
		piece = next_piece(collector, piece, sizeof(record));
		if (!piece)
			return false;
		*(slot->last ? &slot->last->next : &slot->first) = piece;
		slot->last = piece;
	}
	to = (struct tp_record *)(void *)(piece->bytes + piece->used);
	if (tp_unlikely(piece->used && record.stamp < to[-1].stamp))
		piece->may_go_back = true;
	*to = record;
	piece->used += sizeof(record);
	return true;
}

void tp_empty_slot(struct tp_slot *slot)
{
	tp_free_pieces(slot->first);
	tp_free_pieces(slot->bytes);
	*slot = (struct tp_slot){ 0 };
}

/* Keep a record of slot `number` if it is in the window; return its bytes. */
static tp_always_inline unsigned char *take(struct collector *collector, uint32_t number, uint64_t stamp,
					    const unsigned char *data, uint32_t size)
{
	struct tp_slot *slot = &collector->slots[number];
	unsigned char *kept;

	if (tp_unlikely((int64_t)stamp < collector->start)) {
		collector->early = collector->n_pages;
		return NULL;
	}
	/* The last time that there is stands for no limit. */
	if (tp_unlikely((int64_t)stamp >= collector->stop && collector->stop != INT64_MAX)) {
		if (!collector->late)
			collector->late = collector->n_pages;
		return NULL;
	}
	kept = keep(collector, slot, data, size);
	if (tp_unlikely(!kept || !add_record(collector, slot, (struct tp_record){ (int64_t)stamp, kept, size,
										   collector->page_cpu })))
		collector->has_failed = true;
	return kept;
}

static tp_always_inline void take_record(void *to, uint64_t stamp, uint32_t at, uint32_t size)
{
	struct collector *collector = to;
	const unsigned char *data = collector->base + at;
	uint32_t number;

	if (size < 2)
		return;
	number = collector->slot_of[tp_record_id(data, collector->layout.is_big)];
	if (number < collector->n_slots)
		take(collector, number, stamp, data, size);
}

/* Take what the sieve keeps, under the id that it gives. */
static tp_always_inline void take_chosen(void *to, uint64_t stamp, uint32_t at, uint32_t size)
{
	struct collector *collector = to;
	const struct tp_sieve *sieve = collector->sieve;
	const unsigned char *data = collector->base + at;
	unsigned char *kept;
	uint32_t number;
	uint16_t id;

	if (size < 2)
		return;
	id = tp_record_id(data, collector->layout.is_big);
	if (sieve->new_id)
		id = sieve->new_id[id];
	number = collector->slot_of[id];
	if (number >= collector->n_slots || !tp_sieve_keeps(sieve, collector->page_cpu, stamp, data, size))
		return;
	kept = take(collector, number, stamp, data, size);
	if (kept && sieve->new_id)
		tp_put_number(kept, id, sizeof(id), collector->layout.is_big);
}

static void take_mark(void *to, int32_t cpu)
{
	((struct collector *)to)->page_cpu = cpu < 0 ? 0 : cpu;
}

static void collect(struct collector *collector, const unsigned char *data, uint64_t size, int32_t cpu)
{
	uint64_t page_size = tp_page_size(&collector->layout);

	for (uint64_t at = 0; size - at >= page_size && !collector->has_failed; at += page_size) {
		struct tp_head head;

		tp_read_head(data, at, &collector->layout, &head);
		collector->base = data + at + collector->layout.data_offset;
		collector->page_cpu = cpu;
		collector->n_pages++;
		if (collector->sieve)
			tp_walk(data, at, &collector->layout, &head, take_chosen, take_mark, collector);
		else
			tp_walk(data, at, &collector->layout, &head, take_record, take_mark, collector);
	}
}

static void collector_free(PyObject *capsule)
{
	struct collector *collector = PyCapsule_GetPointer(capsule, TP_COLLECTOR);

	for (unsigned int n = 0; collector->slots && n < collector->n_slots; n++)
		tp_empty_slot(&collector->slots[n]);
	Py_XDECREF(collector->held_pool);
	Py_XDECREF(collector->held_sieve);
	if (collector->slots_of_ids.obj)
		PyBuffer_Release(&collector->slots_of_ids);
	free(collector->slots);
	free(collector);
}

/* Look at the slot of each event where it is; false with an exception where there is not one for each id. */
static bool load_slots(struct collector *collector)
{
	const Py_buffer *slots = &collector->slots_of_ids;

	if (slots->len != (Py_ssize_t)(TP_N_IDS * sizeof(*collector->slot_of)) ||
	    (uintptr_t)slots->buf % sizeof(*collector->slot_of)) {
		PyErr_SetString(PyExc_ValueError, "not one slot for each id");
		return false;
	}
	collector->slot_of = slots->buf;
	collector->slots = calloc(collector->n_slots + 1, sizeof(*collector->slots));
	if (!collector->slots)
		PyErr_NoMemory();
	return collector->slots != NULL;
}

/* Hold what is shared: the pool, and a sieve or None; false with an exception for other objects. */
static bool hold(struct collector *collector, PyObject *pool, PyObject *sieve)
{
	collector->pool = tp_pool_of(pool);
	if (!collector->pool)
		return false;
	collector->held_pool = Py_NewRef(pool);
	if (sieve == Py_None)
		return true;
	collector->sieve = tp_sieve_of(sieve);
	if (!collector->sieve)
		return false;
	collector->held_sieve = Py_NewRef(sieve);
	return true;
}

PyObject *tp_collector(PyObject *module, PyObject *args)
{
	struct collector *collector = calloc(1, sizeof(*collector));
	PyObject *made, *pool, *sieve;

	(void)module;
	if (!collector)
		return PyErr_NoMemory();
	made = PyCapsule_New(collector, TP_COLLECTOR, collector_free);
	if (!made) {
		free(collector);
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "OOy*I" TP_LAYOUT_CODES "LL:collector", &pool, &sieve, &collector->slots_of_ids,
			      &collector->n_slots, TP_LAYOUT_PLACES(collector->layout), &collector->start,
			      &collector->stop)) {
		Py_DECREF(made);
		return NULL;
	}
	if (!hold(collector, pool, sieve) || !load_slots(collector) || !tp_check_layout(&collector->layout))
		Py_CLEAR(made);
	return made;
}

/* Mark a collector as used by this thread; sets an exception when it is used by another, or none. */
static struct collector *acquire(PyObject *capsule)
{
	struct collector *collector = PyCapsule_GetPointer(capsule, TP_COLLECTOR);

	if (collector && __atomic_exchange_n(&collector->is_busy, true, __ATOMIC_ACQUIRE)) {
		PyErr_SetString(PyExc_RuntimeError, "a collector is used by two threads");
		collector = NULL;
	}
	return collector;
}

static void release(struct collector *collector)
{
	__atomic_store_n(&collector->is_busy, false, __ATOMIC_RELEASE);
}

/* Return how many pages were read, and the numbers of those with records outside the window: 0 for none. */
PyObject *tp_collected(PyObject *module, PyObject *capsule)
{
	struct collector *collector = acquire(capsule);
	PyObject *made;

	(void)module;
	if (!collector)
		return NULL;
	made = Py_BuildValue("(KKK)", (unsigned long long)collector->n_pages, (unsigned long long)collector->early,
			     (unsigned long long)collector->late);
	release(collector);
	return made;
}

PyObject *tp_collect_pages(PyObject *module, PyObject *args)
{
	struct collector *collector;
	PyObject *capsule;
	Py_buffer data;
	int cpu;

	(void)module;
	if (!PyArg_ParseTuple(args, "Oy*i:collect_pages", &capsule, &data, &cpu))
		return NULL;
	collector = acquire(capsule);
	if (collector) {
		Py_BEGIN_ALLOW_THREADS
		collect(collector, data.buf, (uint64_t)data.len, cpu);
		Py_END_ALLOW_THREADS
		if (collector->has_failed)
			PyErr_NoMemory();
		release(collector);
	}
	PyBuffer_Release(&data);
	return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/*
 * Collect a part of a file, a block that stays in the cache at a time: no page is mapped, and the GIL is not asked for
 * between blocks.  Return how many bytes of whole pages there were, a negative errno where it cannot be read.
 */
static int64_t collect_file(struct collector *collector, int fd, uint64_t at, uint64_t size, int32_t cpu)
{
	uint64_t page_size = tp_page_size(&collector->layout), done = 0;
	uint64_t room = FILE_BLOCK / page_size * page_size;
	unsigned char *block;

	room = room ? room : page_size;
	block = malloc(room);
	if (!block)
		return -ENOMEM;
	while (done < size && !collector->has_failed) {
		uint64_t wanted = size - done < room ? size - done : room, held = 0;

		while (held < wanted) {
			ssize_t n = pread(fd, block + held, wanted - held, (off_t)(at + done + held));

			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0) {
				free(block);
				return -errno;
			}
			if (!n)
				break;
			held += (uint64_t)n;
		}
		collect(collector, block, held, cpu);
		done += held;
		if (held < wanted)
			break;
	}
	free(block);
	return (int64_t)done;
}

PyObject *tp_collect_file(PyObject *module, PyObject *args)
{
	struct collector *collector;
	unsigned long long at, size;
	int64_t done = 0;
	PyObject *capsule;
	int fd, cpu;

	(void)module;
	if (!PyArg_ParseTuple(args, "OiKKi:collect_file", &capsule, &fd, &at, &size, &cpu))
		return NULL;
	collector = acquire(capsule);
	if (!collector)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	done = collect_file(collector, fd, at, size, cpu);
	Py_END_ALLOW_THREADS
	if (collector->has_failed)
		done = -ENOMEM;
	release(collector);
	if (done == -ENOMEM)
		return PyErr_NoMemory();
	if (done < 0) {
		errno = (int)-done;
		return PyErr_SetFromErrno(PyExc_OSError);
	}
	return PyLong_FromLongLong(done);
}

/* Put the shown time in place of the stamp. */
static void show_times(struct tp_piece *piece, const struct tp_clock *clock)
{
	struct tp_record *records = tp_records_of(piece);

	/* A sum of 64 bits may wrap around, and a shift may go back. */
	piece->may_go_back = true;
	for (uint64_t n = 0; n < tp_n_records(piece); n++)
		records[n].stamp = tp_shown_time(clock, (uint64_t)records[n].stamp, records[n].cpu);
}

PyObject *tp_show_times(PyObject *module, PyObject *args)
{
	PyObject *capsule, *given;
	struct collector *collector;
	const struct tp_clock *clock;

	(void)module;
	if (!PyArg_ParseTuple(args, "OO:show_times", &capsule, &given))
		return NULL;
	clock = tp_clock_of(given);
	collector = clock ? acquire(capsule) : NULL;
	if (!collector)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	for (unsigned int n = 0; n < collector->n_slots; n++)
		for (struct tp_piece *piece = collector->slots[n].first; piece; piece = piece->next)
			show_times(piece, clock);
	Py_END_ALLOW_THREADS
	release(collector);
	Py_RETURN_NONE;
}

struct tp_slot *tp_slot_of(PyObject *capsule, unsigned int number)
{
	struct collector *collector = PyCapsule_GetPointer(capsule, TP_COLLECTOR);

	if (collector && number >= collector->n_slots) {
		PyErr_SetString(PyExc_IndexError, "no such slot");
		return NULL;
	}
	return collector ? &collector->slots[number] : NULL;
}
