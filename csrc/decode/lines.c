/*
 * Whole lines of `trace`: the records of several CPUs by time, each with its context and its text.
 *
 * The twin is TextWriter.lines() in src/tracepoint/tracefile/text.py.  What a print program leaves to the twin is
 * left out of the text, and its place is returned.
 */
#include "decode.h"
#include "print.h"

enum {
	N_IDS = 1 << 16,
	/* A batch ends with the line that makes it this large. */
	MOST_TEXT = 1 << 22,
	HAS_CONTEXT = 1,
	HAS_IRQ_INFO = 2,
	IS_IN_NS = 4,
	HAS_OVERRUNS = 8,
	IS_BIG_ENDIAN = 16,
};

#define LOST_UNKNOWN UINT64_MAX

/* kernel/trace/trace.h: enum trace_flag_type. */
enum flag {
	IRQS_OFF = 1,
	NO_SUPPORT = 2,
	NEED_RESCHED = 4,
	HARDIRQ = 8,
	SOFTIRQ = 16,
	PREEMPT_RESCHED = 32,
	NMI = 64,
	BH_OFF = 128,
};

/* What comes between records: before number `n_before`, events were lost, or the CPU changed. */
struct change {
	int64_t n_before, is_cpu, value;
};

/* How far a source is read; kept by the caller. */
struct state {
	uint64_t at, n_changes, cpu, lost, is_started;
};

/* The records of a CPU, in the order in which they were written. */
struct source {
	Py_buffer data, stamps, offsets, lengths, changes, state;
	struct state *is;
	uint64_t n, n_changes;
};

/* Texts one after the other: number n ends at ends[n]. */
struct texts {
	Py_buffer ends, bytes;
	uint64_t n;
};

struct left {
	uint64_t place, source, index;
};

struct job {
	struct source *sources;
	uint32_t n_sources, *heap, n_heap;
	const struct tp_prints *prints;
	struct tp_print_texts known;
	struct texts tasks, names;
	Py_buffer pids, shown, other, idle, after, symbols, count;
	unsigned int flags;
	struct tp_print_out out;
	struct left *left;
	uint64_t n_left, left_room;
	uint64_t *notes; /* how many lines with each kind of note: tp_prints_note() */
	int64_t last_pid;
	uint64_t last_task;
};

static bool add(struct job *job, const void *bytes, size_t size)
{
	return tp_print_append(&job->out, bytes, size);
}

static uint64_t stamp_of(const struct job *job, uint32_t source)
{
	const struct source *from = &job->sources[source];

	return ((const uint64_t *)from->stamps.buf)[from->is->at];
}

/* Whether a source comes before another: of equal times the one that was given first. */
static bool is_before(const struct job *job, uint32_t one, uint32_t other)
{
	uint64_t mine = stamp_of(job, one), its = stamp_of(job, other);

	return mine != its ? mine < its : one < other;
}

static void sift(struct job *job, uint32_t at)
{
	for (;;) {
		uint32_t least = at, child = 2 * at + 1, moved = job->heap[at];

		for (uint32_t end = child + 2; child < end && child < job->n_heap; child++)
			if (is_before(job, job->heap[child], job->heap[least]))
				least = child;
		if (least == at)
			return;
		job->heap[at] = job->heap[least];
		job->heap[least] = moved;
		at = least;
	}
}

static bool add_flags(struct job *job, unsigned int flags, unsigned int count)
{
	static const char digits[] = ".123456789abcdef";
	static const char resched[] = { '.', 'n', 'p', 'N' };
	char text[5];

	if (flags & IRQS_OFF)
		text[0] = flags & BH_OFF ? 'D' : 'd';
	else if (flags & BH_OFF)
		text[0] = 'b';
	else
		text[0] = flags & NO_SUPPORT ? 'X' : '.';
	text[1] = resched[!!(flags & NEED_RESCHED) + 2 * !!(flags & PREEMPT_RESCHED)];
	if (flags & NMI)
		text[2] = flags & HARDIRQ ? 'Z' : 'z';
	else if (flags & HARDIRQ)
		text[2] = flags & SOFTIRQ ? 'H' : 'h';
	else
		text[2] = flags & SOFTIRQ ? 's' : '.';
	text[3] = digits[count & 15];
	text[4] = digits[count >> 4];
	return add(job, text, sizeof(text));
}

/* Write a number with at least `width` characters, filled from the left. */
static bool add_number(struct job *job, uint64_t value, unsigned int width, char fill)
{
	char text[40], *at = text + sizeof(text);

	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	while ((unsigned int)(text + sizeof(text) - at) < width)
		*--at = fill;
	return add(job, at, (size_t)(text + sizeof(text) - at));
}

static bool add_text(struct job *job, const struct texts *texts, uint64_t n)
{
	const uint64_t *ends = texts->ends.buf;
	uint64_t start = n ? ends[n - 1] : 0;

	return n >= texts->n || add(job, (const char *)texts->bytes.buf + start, ends[n] - start);
}

/* Return the index of a task, the number of tasks when it is not known; pids are sorted. */
static uint64_t find_task(struct job *job, int32_t pid)
{
	const int32_t *pids = job->pids.buf;
	uint64_t low = 0, high = job->tasks.n;

	if (pid == job->last_pid)
		return job->last_task;
	while (low < high) {
		uint64_t middle = (low + high) / 2;

		if (pids[middle] < pid)
			low = middle + 1;
		else
			high = middle;
	}
	job->last_pid = pid;
	job->last_task = low < job->tasks.n && pids[low] == pid ? low : job->tasks.n;
	return job->last_task;
}

static bool add_task(struct job *job, int32_t pid)
{
	uint64_t task = find_task(job, pid);
	const Py_buffer *name = pid < 0 ? &job->idle : &job->other;
	char text[16];
	int size;

	if (task < job->tasks.n)
		return add_text(job, &job->tasks, task);
	size = snprintf(text, sizeof(text), "%-7d", pid);
	return add(job, name->buf, (size_t)name->len) && add(job, text, (size_t)size) &&
	       add(job, job->after.buf, (size_t)job->after.len);
}

static bool add_context(struct job *job, uint64_t stamp, uint64_t cpu, const unsigned char head[8])
{
	bool is_big = job->flags & IS_BIG_ENDIAN;
	uint64_t us = (stamp + 500) / 1000; /* it wraps as the kernel's does: ns2usecs() */
	uint32_t pid = 0;

	for (int n = 0; n < 4; n++)
		pid |= (uint32_t)head[4 + (is_big ? 3 - n : n)] << 8 * n;
	if (!add_task(job, (int32_t)pid) || !add(job, "[", 1) || !add_number(job, cpu, 3, '0') || !add(job, "] ", 2))
		return false;
	if (job->flags & HAS_IRQ_INFO && !add_flags(job, head[2], head[3]))
		return false;
	if (!(job->flags & IS_IN_NS))
		return add(job, " ", 1) && add_number(job, stamp, 12, ' ') && add(job, ": ", 2);
	return add(job, " ", 1) && add_number(job, us / 1000000, 5, ' ') && add(job, ".", 1) &&
	       add_number(job, us % 1000000, 6, '0') && add(job, ": ", 2);
}

static bool add_lost(struct job *job, struct state *is)
{
	bool is_known = is->lost != LOST_UNKNOWN;

	if (!add(job, "CPU:", 4) || !add_number(job, is->cpu, 1, ' ') || !add(job, " [LOST ", 7))
		return false;
	if (is_known && (!add_number(job, is->lost, 1, ' ') || !add(job, " ", 1)))
		return false;
	is->lost = 0;
	return add(job, "EVENTS]\n", 8);
}

static bool add_start(struct job *job, struct state *is, uint64_t index)
{
	if (!(job->flags & HAS_OVERRUNS) || is->is_started)
		return true;
	is->is_started = 1;
	return index <= 1 || (add(job, "##### CPU ", 10) && add_number(job, is->cpu, 1, ' ') &&
			      add(job, " buffer started ####\n", 21));
}

static bool leave(struct job *job, uint32_t source, uint64_t index)
{
	if (job->n_left == job->left_room) {
		uint64_t room = 2 * job->left_room + 64;
		struct left *left = realloc(job->left, room * sizeof(*left));

		if (!left)
			return false;
		job->left = left;
		job->left_room = room;
	}
	job->left[job->n_left++] = (struct left){ job->out.n, source, index };
	return true;
}

/* Write what follows the context, or leave it to the twin. */
static bool add_body(struct job *job, uint32_t source, unsigned int id, const unsigned char *record, uint32_t size)
{
	uint64_t index = job->sources[source].is->at;
	size_t start = job->out.n;
	unsigned int state;

	if (!add_text(job, &job->names, id))
		return false;
	state = tp_prints_record(job->prints, &job->known, record, size, &job->out);
	if (state == TP_PRINT_NO_MEMORY)
		return false;
	if (state & (TP_PRINT_LEFT | TP_PRINT_UNKNOWN)) {
		job->out.n = start;
		return leave(job, source, index);
	}
	job->notes[tp_prints_note(job->prints, id, state)]++;
	return add(job, "\n", 1);
}

/* Take what comes before the record at hand. */
static void take_changes(struct source *from)
{
	const struct change *changes = from->changes.buf;
	struct state *is = from->is;

	for (; is->n_changes < from->n_changes; is->n_changes++) {
		const struct change *change = &changes[is->n_changes];

		if (change->n_before > (int64_t)is->at)
			return;
		if (change->is_cpu)
			is->cpu = (uint64_t)change->value;
		else if (change->value < 0 || is->lost == LOST_UNKNOWN)
			is->lost = LOST_UNKNOWN;
		else
			is->lost += (uint64_t)change->value;
	}
}

static bool add_line(struct job *job, uint32_t source)
{
	struct source *from = &job->sources[source];
	struct state *is = from->is;
	uint64_t *count = job->count.buf, at = ((const uint64_t *)from->offsets.buf)[is->at];
	uint32_t size = ((const uint32_t *)from->lengths.buf)[is->at];
	const unsigned char *record = (const unsigned char *)from->data.buf;
	unsigned char head[8] = { 0 };
	unsigned int id;

	if (at > (uint64_t)from->data.len || size > (uint64_t)from->data.len - at)
		return true;
	record += at;
	memcpy(head, record, size < sizeof(head) ? size : sizeof(head));
	id = job->flags & IS_BIG_ENDIAN ? (unsigned int)head[0] << 8 | head[1] : (unsigned int)head[1] << 8 | head[0];
	take_changes(from);
	if (job->shown.len && !((const unsigned char *)job->shown.buf)[id])
		return true;
	if ((is->lost && !add_lost(job, is)) || !add_start(job, is, (*count)++))
		return false;
	if (job->flags & HAS_CONTEXT && !add_context(job, stamp_of(job, source), is->cpu, head))
		return false;
	return add_body(job, source, id, record, size);
}

/* Write lines until a source has no more records: then its next ones may come before those of the others. */
static bool run(struct job *job)
{
	for (uint32_t n = 0; n < job->n_sources; n++) {
		if (job->sources[n].is->at >= job->sources[n].n)
			return true;
		job->heap[job->n_heap++] = n;
	}
	for (uint32_t n = job->n_heap / 2; n-- > 0;)
		sift(job, n);
	while (job->n_heap && job->out.n < MOST_TEXT) {
		struct source *from = &job->sources[job->heap[0]];

		if (!add_line(job, job->heap[0]))
			return false;
		if (++from->is->at == from->n)
			break;
		sift(job, 0);
	}
	return true;
}

static bool take_source(PyObject *item, struct source *ret)
{
	if (!PyTuple_Check(item) ||
	    !PyArg_ParseTuple(item, "y*y*y*y*y*w*", &ret->data, &ret->stamps, &ret->offsets, &ret->lengths,
			      &ret->changes, &ret->state)) {
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_TypeError, "a source is a tuple");
		return false;
	}
	ret->n = (uint64_t)ret->stamps.len / sizeof(uint64_t);
	ret->n_changes = (uint64_t)ret->changes.len / sizeof(struct change);
	ret->is = ret->state.buf;
	if ((uint64_t)ret->offsets.len == ret->n * sizeof(uint64_t) &&
	    (uint64_t)ret->lengths.len == ret->n * sizeof(uint32_t) && ret->state.len == sizeof(struct state))
		return true;
	PyErr_SetString(PyExc_ValueError, "columns of different lengths");
	return false;
}

static void drop_sources(struct job *job)
{
	for (uint32_t n = 0; n < job->n_sources; n++) {
		struct source *one = &job->sources[n];
		Py_buffer *all[] = { &one->data, &one->stamps, &one->offsets, &one->lengths, &one->changes, &one->state };

		for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
			PyBuffer_Release(all[i]);
	}
	free(job->sources);
	free(job->heap);
}

static bool take_sources(struct job *job, PyObject *items)
{
	Py_ssize_t n = PyTuple_GET_SIZE(items);

	job->sources = calloc((size_t)n + 1, sizeof(*job->sources));
	job->heap = calloc((size_t)n + 1, sizeof(*job->heap));
	if (!job->sources || !job->heap) {
		PyErr_NoMemory();
		return false;
	}
	for (Py_ssize_t i = 0; i < n; i++)
		if (!take_source(PyTuple_GET_ITEM(items, i), &job->sources[job->n_sources++]))
			return false;
	return true;
}

/* Check the tables that all lines share, and make room for notes. */
static bool check_tables(struct job *job)
{
	struct texts *tables[] = { &job->tasks, &job->names };

	for (int n = 0; n < 2; n++) {
		const uint64_t *ends = tables[n]->ends.buf;
		uint64_t before = 0;

		tables[n]->n = (uint64_t)tables[n]->ends.len / sizeof(*ends);
		for (uint64_t i = 0; i < tables[n]->n; before = ends[i++])
			if (ends[i] < before || ends[i] > (uint64_t)tables[n]->bytes.len)
				goto bad;
	}
	if ((uint64_t)job->pids.len == job->tasks.n * sizeof(int32_t) && (!job->shown.len || job->shown.len == N_IDS) &&
	    job->count.len == sizeof(uint64_t) &&
	    tp_print_take_texts(&job->known, job->symbols.buf, (size_t)job->symbols.len)) {
		job->notes = calloc(tp_prints_notes(job->prints) + 1, sizeof(*job->notes));
		if (!job->notes)
			PyErr_NoMemory();
		return job->notes;
	}
bad:
	PyErr_SetString(PyExc_ValueError, "not tables of lines");
	return false;
}

static PyObject *left_of(const struct job *job)
{
	PyObject *list = PyList_New((Py_ssize_t)job->n_left);

	for (uint64_t n = 0; list && n < job->n_left; n++) {
		const struct left *left = &job->left[n];
		PyObject *item = Py_BuildValue("(KKK)", (unsigned long long)left->place,
					       (unsigned long long)left->source, (unsigned long long)left->index);

		if (!item)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, (Py_ssize_t)n, item);
	}
	return list;
}

/* The notes of lines as (id, state, slot that is not known, lines). */
static PyObject *notes_of(const struct job *job)
{
	PyObject *list = PyList_New(0);

	for (uint32_t at = 0; list && at < tp_prints_notes(job->prints); at++) {
		uint32_t id;
		unsigned int state;
		PyObject *item;

		if (!job->notes[at] || !tp_prints_noted(job->prints, at, &id, &state))
			continue;
		item = Py_BuildValue("(IIIK)", id, state & 0xff, state >> TP_PRINT_WHY,
				     (unsigned long long)job->notes[at]);
		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

PyObject *tp_render_lines(PyObject *module, PyObject *args)
{
	PyObject *prints, *sources, *made = NULL;
	struct job job = { .last_pid = INT64_MAX };
	Py_buffer *held[] = { &job.tasks.ends, &job.tasks.bytes, &job.names.ends, &job.names.bytes, &job.pids, &job.shown,
			      &job.other, &job.idle, &job.after, &job.symbols, &job.count };
	bool is_done;

	(void)module;
	/* Not as tuples within: CPython has room for the buffers of the outer ones only. */
	if (!PyArg_ParseTuple(args, "Oy*y*y*y*y*y*y*y*y*y*Iw*O!:render_lines", &prints, &job.symbols, &job.pids,
			      &job.tasks.ends, &job.tasks.bytes, &job.names.ends, &job.names.bytes, &job.shown,
			      &job.other, &job.idle, &job.after, &job.flags, &job.count, &PyTuple_Type, &sources))
		return NULL;
	job.prints = tp_prints_of(prints);
	if (!job.prints || !take_sources(&job, sources) || !check_tables(&job))
		goto out;
	Py_BEGIN_ALLOW_THREADS
	is_done = run(&job);
	Py_END_ALLOW_THREADS
	if (is_done)
		made = Py_BuildValue("(y#NN)", job.out.text ? job.out.text : "", (Py_ssize_t)job.out.n, left_of(&job),
				     notes_of(&job));
	else
		PyErr_NoMemory();
out:
	free(job.out.text);
	free(job.left);
	free(job.notes);
	drop_sources(&job);
	for (size_t n = 0; n < sizeof(held) / sizeof(*held); n++)
		PyBuffer_Release(held[n]);
	return made;
}
