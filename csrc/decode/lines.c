/*
 * Whole lines of `trace`: the records of several CPUs by time, each with its context and its text.
 *
 * The twin is TextWriter.lines() in src/tracepoint/tracefile/text.py.  What a print program leaves to the twin is
 * left out of the text, and its place is returned.  What all lines share is held by a writer: line_writer.c.
 */
#include "lines.h"

#define LOST_UNKNOWN UINT64_MAX

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
	uint64_t n, n_changes, stamp; /* the last: of the record at hand */
};

struct left {
	uint64_t place, source, index;
};

struct job {
	struct tp_line_writer *writer;
	struct source *sources;
	uint32_t n_sources, *heap, n_heap;
	struct tp_print_texts known;
	Py_buffer symbols, out;
	Py_ssize_t start; /* where the first line goes */
	char *at; /* where the next line goes */
	struct left *left;
	uint64_t n_left, left_room;
};

/* Take the time of the record at hand; false when there is none. */
static inline bool take_stamp(struct source *from)
{
	if (from->is->at >= from->n)
		return false;
	from->stamp = ((const uint64_t *)from->stamps.buf)[from->is->at];
	return true;
}

/* Whether a source comes before another: of equal times the one that was given first. */
static inline bool is_before(const struct job *job, uint32_t one, uint32_t other)
{
	uint64_t mine = job->sources[one].stamp, its = job->sources[other].stamp;

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

/* The source that follows the one at the top; that itself when it is the only one. */
static uint32_t second_of(const struct job *job)
{
	uint32_t second = job->heap[job->n_heap > 1];

	return job->n_heap > 2 && is_before(job, job->heap[2], second) ? job->heap[2] : second;
}

static void add(struct job *job, const char *text)
{
	size_t size = strlen(text);

	memcpy(job->at, text, size);
	job->at += size;
}

static void add_lost(struct job *job, struct state *is)
{
	add(job, "CPU:");
	job->at = tp_put_decimal(job->at, is->cpu);
	add(job, " [LOST ");
	if (is->lost != LOST_UNKNOWN) {
		job->at = tp_put_decimal(job->at, is->lost);
		add(job, " ");
	}
	is->lost = 0;
	add(job, "EVENTS]\n");
}

static void add_start(struct job *job, struct state *is)
{
	uint64_t index = job->writer->n_lines++;

	if (!(job->writer->flags & TP_LINES_HAVE_OVERRUNS) || is->is_started)
		return;
	is->is_started = 1;
	if (index <= 1)
		return;
	add(job, "##### CPU ");
	job->at = tp_put_decimal(job->at, is->cpu);
	add(job, " buffer started ####\n");
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
	job->left[job->n_left++] = (struct left){ (uint64_t)(job->at - (char *)job->out.buf), source, index };
	return true;
}

/* Write what follows the context, or leave it to the twin. */
static bool add_body(struct job *job, uint32_t source, unsigned int id, const unsigned char *record, uint32_t size)
{
	struct tp_line_writer *writer = job->writer;
	char *at = tp_put_text(job->at, &writer->names, id);
	uint32_t program = tp_program_for(writer->prints, record, size);
	unsigned int state = TP_PRINT_LEFT;

	if (program != TP_NO_PROGRAM)
		state = tp_print_record(&writer->prints->programs[program], &job->known, record, size, &at);
	if (state & TP_PRINT_LEFT)
		return leave(job, source, job->sources[source].is->at);
	writer->notes[tp_prints_note(writer->prints, program, state)]++;
	*at = '\n';
	job->at = at + 1;
	return true;
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
	struct tp_line_writer *writer = job->writer;
	struct source *from = &job->sources[source];
	struct state *is = from->is;
	uint64_t at = ((const uint64_t *)from->offsets.buf)[is->at];
	uint32_t size = ((const uint32_t *)from->lengths.buf)[is->at];
	const unsigned char *record = (const unsigned char *)from->data.buf;
	unsigned char head[8] = { 0 };
	unsigned int id;

	if (at > (uint64_t)from->data.len || size > (uint64_t)from->data.len - at)
		return true;
	record += at;
	if (size >= sizeof(head))
		memcpy(head, record, sizeof(head));
	else
		memcpy(head, record, size);
	id = writer->flags & TP_LINES_ARE_BIG_ENDIAN ? (unsigned int)head[0] << 8 | head[1] :
						       (unsigned int)head[1] << 8 | head[0];
	take_changes(from);
	if (is->lost)
		add_lost(job, is);
	add_start(job, is);
	if (writer->flags & TP_LINES_HAVE_CONTEXT)
		job->at = tp_put_context(job->at, writer, from->stamp, is->cpu, head);
	return add_body(job, source, id, record, size);
}

/* Write lines until a source has no more records: then its next ones may come before those of the others. */
static bool run(struct job *job)
{
	const char *end = (char *)job->out.buf + job->out.len - job->writer->room;

	for (uint32_t n = 0; n < job->n_sources; n++) {
		if (!take_stamp(&job->sources[n]))
			return true;
		job->heap[job->n_heap++] = n;
	}
	for (uint32_t n = job->n_heap / 2; n-- > 0;)
		sift(job, n);
	while (job->n_heap) {
		uint32_t first = job->heap[0], second = second_of(job);
		struct source *from = &job->sources[first];

		do {
			if (job->at > end)
				return true;
			if (!add_line(job, first))
				return false;
			from->is->at++;
			if (!take_stamp(from))
				return true;
		} while (first == second || is_before(job, first, second));
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

static bool check_buffers(struct job *job)
{
	if (job->start < 0 || job->start > job->out.len || (size_t)(job->out.len - job->start) < job->writer->room)
		PyErr_SetString(PyExc_ValueError, "no room for a line");
	else if (!tp_print_take_texts(&job->known, job->symbols.buf, (size_t)job->symbols.len))
		PyErr_SetString(PyExc_ValueError, "not a table of texts");
	else
		return true;
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

PyObject *tp_render_lines(PyObject *module, PyObject *args)
{
	PyObject *writer, *sources, *made = NULL;
	struct job job = { 0 };
	bool is_done;

	(void)module;
	if (!PyArg_ParseTuple(args, "Oy*w*nO!:render_lines", &writer, &job.symbols, &job.out, &job.start,
			      &PyTuple_Type, &sources))
		return NULL;
	job.writer = tp_take_line_writer(writer);
	if (!job.writer)
		goto out;
	if (!take_sources(&job, sources) || !check_buffers(&job))
		goto out;
	job.at = (char *)job.out.buf + job.start;
	Py_BEGIN_ALLOW_THREADS
	is_done = run(&job);
	Py_END_ALLOW_THREADS
	if (is_done)
		made = Py_BuildValue("(nN)", (Py_ssize_t)(job.at - (char *)job.out.buf), left_of(&job));
	else
		PyErr_NoMemory();
out:
	tp_put_line_writer(job.writer);
	free(job.left);
	drop_sources(&job);
	PyBuffer_Release(&job.symbols);
	PyBuffer_Release(&job.out);
	return made;
}
