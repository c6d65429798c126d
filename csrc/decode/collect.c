/*
 * Finding the records of chosen events in pages, and putting those of several CPUs in the order of time.
 *
 * The twin is src/tracepoint/decode/rows.py.
 */
#include "columns.h"
#include "head.h"
#include "../hints.h"

#include <sys/mman.h>

#define COLLECTOR "tracepoint.collector"
#define ROWS "tracepoint.rows"

enum { N_IDS = 1 << 16, NO_SLOT = 0xFFFF, FIRST_ARENA = 1 << 14, LAST_ARENA = 1 << 20 };

/* Bytes copied out of pages; more are chained, so that pointers stay valid. */
struct arena {
	struct arena *next;
	size_t used, size;
	unsigned char bytes[];
};

/* The records of one event, as they were found, and their bytes: one after the other, so that filling reads on. */
struct slot {
	struct tp_record *records;
	uint64_t n, room;
	struct arena *arena;
};

/*
 * `slot_of` gives the slot of an event's id; `base` is the data of the page at hand, `page_cpu` its CPU so far.
 * Records from `start` on and before `stop` are kept; `early` and `late` are the numbers, from 1, of the last page
 * with one before and of the first with one after them.
 */
struct collector {
	struct tp_layout layout;
	int64_t start, stop;
	uint64_t n_pages, early, late;
	uint16_t *slot_of;
	struct slot *slots;
	unsigned int n_slots;
	const unsigned char *base;
	int32_t page_cpu;
	bool has_failed, is_busy;
};

void tp_ask_huge(void *array, size_t size)
{
#ifdef MADV_HUGEPAGE
	uintptr_t step = 4096, start = ((uintptr_t)array + step - 1) & ~(step - 1);
	uintptr_t end = ((uintptr_t)array + size) & ~(step - 1);

	/* Refused where the pages of the machine are larger: then nothing is won, and nothing lost. */
	if (size >= TP_HUGE_SIZE && end > start)
		(void)madvise((void *)start, end - start, MADV_HUGEPAGE);
#else
	(void)array;
	(void)size;
#endif
}

bool tp_grow(void *array, uint64_t *room, uint64_t n, size_t item)
{
	uint64_t wanted = n + n / 2 + 16;
	void *made;

	if (n <= *room)
		return true;
	made = wanted > SIZE_MAX / item ? NULL : realloc(*(void **)array, wanted * item);
	if (!made)
		return false;
	tp_ask_huge(made, wanted * item);
	*(void **)array = made;
	*room = wanted;
	return true;
}

static bool add_arena(struct slot *slot, uint32_t size)
{
	size_t wanted = slot->arena ? 2 * slot->arena->size : FIRST_ARENA;
	size_t room = size > wanted ? size : wanted > LAST_ARENA ? LAST_ARENA : wanted;
	struct arena *arena = malloc(sizeof(*arena) + room);

	if (!arena)
		return false;
	*arena = (struct arena){ .next = slot->arena, .size = room };
	slot->arena = arena;
	return true;
}

/* Copy a record, whose size is a multiple of 4 or, in a damaged page, not. */
static tp_always_inline const unsigned char *keep(struct slot *slot, const unsigned char *data, uint32_t size)
{
	unsigned char *to;

	if (tp_unlikely(!slot->arena || slot->arena->size - slot->arena->used < size) && !add_arena(slot, size))
		return NULL;
	to = slot->arena->bytes + slot->arena->used;
	memcpy(to, data, size);
	slot->arena->used += size;
	return to;
}

static void free_arenas(struct slot *slot)
{
	while (slot->arena) {
		struct arena *arena = slot->arena;

		slot->arena = arena->next;
		free(arena);
	}
}

static inline uint32_t id_of(const unsigned char *data, bool is_big)
{
	return is_big ? (uint32_t)data[0] << 8 | data[1] : (uint32_t)data[1] << 8 | data[0];
}

static tp_always_inline void take_record(void *to, uint64_t stamp, uint32_t at, uint32_t size)
{
	struct collector *collector = to;
	const unsigned char *data = collector->base + at;
	struct slot *slot;
	uint32_t number;

	if (size < 2)
		return;
	number = collector->slot_of[id_of(data, collector->layout.is_big)];
	if (number == NO_SLOT)
		return;
	if (tp_unlikely((int64_t)stamp < collector->start)) {
		collector->early = collector->n_pages;
		return;
	}
	if (tp_unlikely((int64_t)stamp >= collector->stop)) {
		if (!collector->late)
			collector->late = collector->n_pages;
		return;
	}
	slot = &collector->slots[number];
	if (tp_unlikely(slot->n == slot->room && !tp_grow(&slot->records, &slot->room, slot->n + 1,
							  sizeof(*slot->records)))) {
		collector->has_failed = true;
		return;
	}
	data = keep(slot, data, size);
	if (tp_unlikely(!data)) {
		collector->has_failed = true;
		return;
	}
	slot->records[slot->n++] = (struct tp_record){ (int64_t)stamp, data, size, collector->page_cpu };
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
		tp_walk(data, at, &collector->layout, &head, take_record, take_mark, collector);
	}
}

static void collector_free(PyObject *capsule)
{
	struct collector *collector = PyCapsule_GetPointer(capsule, COLLECTOR);

	for (unsigned int n = 0; collector->slots && n < collector->n_slots; n++) {
		free(collector->slots[n].records);
		free_arenas(&collector->slots[n]);
	}
	free(collector->slots);
	free(collector->slot_of);
	free(collector);
}

PyObject *tp_collector(PyObject *module, PyObject *args)
{
	struct collector *collector = calloc(1, sizeof(*collector));
	PyObject *made;
	Py_buffer slots;

	(void)module;
	if (!collector)
		return PyErr_NoMemory();
	made = PyCapsule_New(collector, COLLECTOR, collector_free);
	if (!made) {
		free(collector);
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "y*I" LAYOUT_CODES "LL:collector", &slots, &collector->n_slots,
			      LAYOUT_PLACES(collector->layout), &collector->start, &collector->stop)) {
		Py_DECREF(made);
		return NULL;
	}
	collector->slot_of = malloc(N_IDS * sizeof(*collector->slot_of));
	collector->slots = calloc(collector->n_slots + 1, sizeof(*collector->slots));
	if (!collector->slot_of || !collector->slots)
		PyErr_NoMemory();
	else if (slots.len != (Py_ssize_t)(N_IDS * sizeof(*collector->slot_of)))
		PyErr_SetString(PyExc_ValueError, "not one slot for each id");
	else if (tp_check_layout(&collector->layout)) {
		memcpy(collector->slot_of, slots.buf, (size_t)slots.len);
		for (unsigned int id = 0; id < N_IDS; id++)
			if (collector->slot_of[id] >= collector->n_slots)
				collector->slot_of[id] = NO_SLOT;
	}
	PyBuffer_Release(&slots);
	if (PyErr_Occurred())
		Py_CLEAR(made);
	return made;
}

/* Mark a collector as used by this thread; sets an exception when it is used by another, or none. */
static struct collector *acquire(PyObject *capsule)
{
	struct collector *collector = PyCapsule_GetPointer(capsule, COLLECTOR);

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

/* Counting. */

/* `n` has one more item than there are ids: records that are too short for one. */
struct counts {
	const unsigned char *base;
	uint64_t *n;
	int64_t first, last;
	bool is_big;
};

static tp_always_inline void count_record(void *to, uint64_t stamp, uint32_t at, uint32_t size)
{
	struct counts *counts = to;

	counts->n[size < 2 ? N_IDS : id_of(counts->base + at, counts->is_big)]++;
	if ((int64_t)stamp < counts->first)
		counts->first = (int64_t)stamp;
	if ((int64_t)stamp > counts->last)
		counts->last = (int64_t)stamp;
}

static void pass_mark(void *to, int32_t cpu)
{
	(void)to;
	(void)cpu;
}

/* Count the records of the whole pages; return the heads with losses or faults, NULL without memory. */
static struct tp_head *count_all(const unsigned char *data, uint64_t size, const struct tp_layout *layout,
				 struct counts *counts, uint64_t *n_heads)
{
	uint64_t page_size = tp_page_size(layout), room = 0, n = 0, at;
	struct tp_head *heads = NULL;

	for (at = 0; size - at >= page_size; at += page_size) {
		if (!tp_grow(&heads, &room, n + 2, sizeof(*heads)))
			goto error;
		tp_read_head(data, at, layout, &heads[n]);
		counts->base = data + at + layout->data_offset;
		tp_walk(data, at, layout, &heads[n], count_record, pass_mark, counts);
		n += heads[n].fault || heads[n].lost || heads[n].is_lost_unknown;
	}
	if (!tp_grow(&heads, &room, n + 1, sizeof(*heads)))
		goto error;
	if (at < size)
		heads[n++] = (struct tp_head){ .fault = TP_FAULT_LEFT, .fault_size = size - at, .fault_at = at };
	*n_heads = n;
	return heads;
error:
	free(heads);
	return NULL;
}

static PyObject *heads_list(const struct tp_head *heads, uint64_t n)
{
	PyObject *list = PyList_New((Py_ssize_t)n);

	for (uint64_t i = 0; list && i < n; i++) {
		PyObject *made = Py_BuildValue("(KNNK)", (unsigned long long)heads[i].stamp, tp_lost_number(&heads[i]),
					       tp_fault_text(&heads[i]), (unsigned long long)heads[i].fault_at);

		if (!made)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, (Py_ssize_t)i, made);
	}
	return list;
}

PyObject *tp_count_pages(PyObject *module, PyObject *args)
{
	struct counts counts = { .first = INT64_MAX, .last = INT64_MIN };
	struct tp_head *heads = NULL;
	struct tp_layout layout;
	uint64_t n_heads = 0;
	PyObject *made = NULL;
	Py_buffer data, n;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*" LAYOUT_CODES "w*:count_pages", &data, LAYOUT_PLACES(layout), &n))
		return NULL;
	if (n.len != (Py_ssize_t)((N_IDS + 1) * sizeof(*counts.n))) {
		PyErr_SetString(PyExc_ValueError, "not one count for each id");
	} else if (tp_check_layout(&layout)) {
		counts.is_big = layout.is_big;
		counts.n = n.buf;
		Py_BEGIN_ALLOW_THREADS
		heads = count_all(data.buf, (uint64_t)data.len, &layout, &counts, &n_heads);
		Py_END_ALLOW_THREADS
		if (heads)
			made = Py_BuildValue("(NLL)", heads_list(heads, n_heads), (long long)counts.first,
					     (long long)counts.last);
		else
			PyErr_NoMemory();
	}
	free(heads);
	PyBuffer_Release(&n);
	PyBuffer_Release(&data);
	return made;
}

/* Merging: runs of records whose time does not go back, taken in turn. */

struct run {
	const struct tp_record *at, *end;
};

struct runs {
	struct run *all;
	uint64_t n, room, n_records;
};

static bool add_runs(struct runs *runs, const struct tp_record *records, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (!i || records[i].stamp < records[i - 1].stamp) {
			if (!tp_grow(&runs->all, &runs->room, runs->n + 1, sizeof(*runs->all)))
				return false;
			runs->all[runs->n++] = (struct run){ &records[i], NULL };
		}
		runs->all[runs->n - 1].end = &records[i + 1];
	}
	runs->n_records += n;
	return true;
}

/* Whether run `a` comes first; of equal times the one of the lower CPU, which was added before. */
static bool is_before(const struct run *all, uint64_t a, uint64_t b)
{
	int64_t first = all[a].at->stamp, second = all[b].at->stamp;

	return first < second || (first == second && a < b);
}

static void sift(const struct run *all, uint64_t *heap, uint64_t n, uint64_t at)
{
	for (uint64_t child; (child = 2 * at + 1) < n; at = child) {
		uint64_t held = heap[at];

		if (child + 1 < n && is_before(all, heap[child + 1], heap[child]))
			child++;
		if (!is_before(all, heap[child], held))
			return;
		heap[at] = heap[child];
		heap[child] = held;
	}
}

static bool merge(struct runs *runs, struct tp_record *to)
{
	uint64_t n = runs->n, *heap = malloc((n + 1) * sizeof(*heap));

	if (!heap)
		return false;
	for (uint64_t i = 0; i < n; i++)
		heap[i] = i;
	for (uint64_t i = n / 2; i-- > 0;)
		sift(runs->all, heap, n, i);
	while (n) {
		struct run *run = &runs->all[heap[0]];

		*to++ = *run->at++;
		if (run->at == run->end)
			heap[0] = heap[--n];
		sift(runs->all, heap, n, 0);
	}
	free(heap);
	return true;
}

static void rows_free(PyObject *capsule)
{
	struct tp_rows *rows = PyCapsule_GetPointer(capsule, ROWS);

	free(rows->records);
	for (uint64_t n = 0; n < rows->n_taken; n++)
		free_arenas(&rows->taken[n]);
	free(rows->taken);
	free(rows);
}

struct tp_rows *tp_rows_of(PyObject *capsule)
{
	return PyCapsule_GetPointer(capsule, ROWS);
}

/* Put the shown time in place of the stamp, where it is stamp * mult / 2**n_bits + offset. */
static void scale_stamps(struct slot *slot, uint32_t mult, uint32_t n_bits, uint64_t offset)
{
	for (uint64_t n = 0; n < slot->n; n++) {
		unsigned __int128 scaled = (unsigned __int128)(uint64_t)slot->records[n].stamp * mult;

		slot->records[n].stamp = (int64_t)((uint64_t)(scaled >> n_bits) + offset);
	}
}

/* The same as a Python function of stamp and CPU says. */
static bool convert_stamps(struct slot *slot, PyObject *convert)
{
	for (uint64_t n = 0; n < slot->n; n++) {
		struct tp_record *record = &slot->records[n];
		PyObject *shown = PyObject_CallFunction(convert, "Ki", (unsigned long long)record->stamp, record->cpu);

		record->stamp = shown ? (int64_t)PyLong_AsUnsignedLongLongMask(shown) : -1;
		Py_XDECREF(shown);
		if (PyErr_Occurred())
			return false;
	}
	return true;
}

static bool scale_all(struct collector *collector, PyObject *numbers)
{
	unsigned long long offset;
	unsigned int mult, n_bits;

	if (!PyArg_ParseTuple(numbers, "IIK:times", &mult, &n_bits, &offset))
		return false;
	if (n_bits > 63) {
		PyErr_SetString(PyExc_ValueError, "a shift of more than 63 bits");
		return false;
	}
	Py_BEGIN_ALLOW_THREADS
	for (unsigned int n = 0; n < collector->n_slots; n++)
		scale_stamps(&collector->slots[n], mult, n_bits, offset);
	Py_END_ALLOW_THREADS
	return true;
}

PyObject *tp_show_times(PyObject *module, PyObject *args)
{
	PyObject *capsule, *convert;
	struct collector *collector;

	(void)module;
	if (!PyArg_ParseTuple(args, "OO:show_times", &capsule, &convert))
		return NULL;
	collector = acquire(capsule);
	if (!collector)
		return NULL;
	if (PyTuple_Check(convert))
		scale_all(collector, convert);
	else
		for (unsigned int n = 0; n < collector->n_slots; n++)
			if (!convert_stamps(&collector->slots[n], convert))
				break;
	release(collector);
	return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static struct slot *slot_of(PyObject *sources, Py_ssize_t n, unsigned int number)
{
	struct collector *collector = PyCapsule_GetPointer(PyTuple_GET_ITEM(sources, n), COLLECTOR);

	if (collector && number >= collector->n_slots) {
		PyErr_SetString(PyExc_IndexError, "no such slot");
		return NULL;
	}
	return collector ? &collector->slots[number] : NULL;
}

/* Merge what was taken out of the collectors, so that no other thread finds it there. */
static bool merge_slots(struct tp_rows *rows)
{
	struct runs runs = { 0 };
	bool is_done = true;

	for (uint64_t n = 0; is_done && n < rows->n_taken; n++)
		is_done = add_runs(&runs, rows->taken[n].records, rows->taken[n].n);
	rows->n = runs.n_records;
	rows->records = is_done ? malloc((rows->n + 1) * sizeof(*rows->records)) : NULL;
	if (rows->records)
		tp_ask_huge(rows->records, rows->n * sizeof(*rows->records));
	is_done = rows->records && merge(&runs, rows->records);
	free(runs.all);
	for (uint64_t n = 0; n < rows->n_taken; n++) {
		free(rows->taken[n].records);
		rows->taken[n].records = NULL;
	}
	return is_done;
}

static bool take_slots(PyObject *sources, unsigned int number, struct tp_rows *rows)
{
	for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(sources); n++) {
		struct slot *slot = slot_of(sources, n, number);

		if (!slot)
			return false;
		rows->taken[rows->n_taken++] = *slot;
		*slot = (struct slot){ 0 };
	}
	return true;
}

PyObject *tp_merge_rows(PyObject *module, PyObject *args)
{
	PyObject *sources, *made;
	struct tp_rows *rows;
	unsigned int number;
	bool is_done;

	(void)module;
	if (!PyArg_ParseTuple(args, "O!I:merge_rows", &PyTuple_Type, &sources, &number))
		return NULL;
	rows = calloc(1, sizeof(*rows));
	made = rows ? PyCapsule_New(rows, ROWS, rows_free) : PyErr_NoMemory();
	if (!made) {
		free(rows);
		return NULL;
	}
	rows->taken = calloc((size_t)PyTuple_GET_SIZE(sources) + 1, sizeof(*rows->taken));
	if (!rows->taken) {
		PyErr_NoMemory();
	} else if (take_slots(sources, number, rows)) {
		Py_BEGIN_ALLOW_THREADS
		is_done = merge_slots(rows);
		Py_END_ALLOW_THREADS
		if (!is_done)
			PyErr_NoMemory();
	}
	if (PyErr_Occurred()) {
		for (uint64_t n = 0; n < rows->n_taken; n++) {
			free(rows->taken[n].records);
			rows->taken[n].records = NULL;
		}
		Py_DECREF(made);
		return NULL;
	}
	return Py_BuildValue("(NK)", made, (unsigned long long)rows->n);
}
