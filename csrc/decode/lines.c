/*
 * Whole lines of `trace`: the records of several CPUs by time, each with its context and its text, or as a graph.
 *
 * The twins are TextWriter.lines() in src/tracepoint/tracefile/text.py, and GraphLayout.lines() in graph.py.  What a
 * print program leaves to the twin is left out of the text, and its place is returned; so are names of functions that
 * are not known yet.  What all lines share is held by a writer: line_writer.c; calls are drawn by graph.c.
 */
#include "graph.h"

#define LOST_UNKNOWN UINT64_MAX

/* What comes between records: before number `n_before`, events were lost, or the CPU changed. */
struct change {
	int64_t n_before, is_cpu, value;
};

/*
 * How far a source is read; kept by the caller.  An entry that ends a block is held: whether it is a leaf is seen when
 * the next block is there, or when `is_last` says that none is.
 */
struct state {
	uint64_t at, n_changes, cpu, lost, is_started, is_last, is_held, held_stamp, held_cpu, held_lost;
	unsigned char held_head[8];
	uint64_t held_word_size, held_function;
	int64_t held_depth;
};

/* The records of a CPU, in the order in which they were written. */
struct source {
	Py_buffer data, stamps, offsets, lengths, changes, state;
	struct state *is;
	uint64_t n, n_changes, stamp; /* the last: of the record at hand */
};

/* What is left to the twin: the text of a record, or with `source` NO_SOURCE the name of the function at `index`. */
struct left {
	uint64_t place;
	int64_t source;
	uint64_t index;
};

enum { NO_SOURCE = -1 };

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
	if (from->is->is_held && (from->is->at < from->n || from->is->is_last)) {
		from->stamp = from->is->held_stamp;
		return true;
	}
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

static void add_lost(struct job *job, uint64_t cpu, uint64_t lost)
{
	if (!lost)
		return;
	add(job, "CPU:");
	job->at = tp_put_decimal(job->at, cpu);
	add(job, job->writer->flags & TP_LINES_ARE_OF_REPORT ? " [" : " [LOST ");
	if (lost != LOST_UNKNOWN) {
		job->at = tp_put_decimal(job->at, lost);
		add(job, " ");
	}
	add(job, job->writer->flags & TP_LINES_ARE_OF_REPORT ? "EVENTS DROPPED]\n" : "EVENTS]\n");
}

static void add_start(struct job *job, struct state *is)
{
	uint64_t index = job->writer->n_lines - 1;

	if (!(job->writer->flags & TP_LINES_HAVE_OVERRUNS) || is->is_started)
		return;
	is->is_started = 1;
	if (index <= 1)
		return;
	add(job, "##### CPU ");
	job->at = tp_put_decimal(job->at, is->cpu);
	add(job, " buffer started ####\n");
}

static bool leave(struct job *job, const char *place, int64_t source, uint64_t index)
{
	if (job->n_left == job->left_room) {
		uint64_t room = 2 * job->left_room + 64;
		struct left *left = realloc(job->left, room * sizeof(*left));

		if (!left)
			return false;
		job->left = left;
		job->left_room = room;
	}
	job->left[job->n_left++] = (struct left){ (uint64_t)(place - (char *)job->out.buf), source, index };
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
		else if (change->value < 0 || is->lost == LOST_UNKNOWN ||
			 is->lost + (uint64_t)change->value > INT64_MAX)
			is->lost = LOST_UNKNOWN;
		else
			is->lost += (uint64_t)change->value;
	}
}

/* A record of a source. */
struct record {
	const unsigned char *data;
	uint32_t size, source;
	uint64_t index;
	unsigned char head[8];
	unsigned int id;
};

/* Write what follows the context, or leave it to the twin. */
static bool add_body(struct job *job, const struct record *record)
{
	struct tp_line_writer *writer = job->writer;
	char *at = tp_put_text(job->at, &writer->names, record->id);
	uint32_t program = tp_program_for(writer->prints, record->data, record->size);
	unsigned int state = TP_PRINT_LEFT;

	if (program != TP_NO_PROGRAM)
		state = tp_print_record(&writer->prints->programs[program], &job->known, record->data, record->size,
					&at);
	if (state & TP_PRINT_LEFT)
		return leave(job, job->at, record->source, record->index);
	writer->notes[tp_prints_note(writer->prints, program, state)]++;
	job->at = at;
	return true;
}

/* Take the record at hand and what comes before it; false when it is outside of the data. */
static bool take_record(const struct job *job, uint32_t source, struct record *ret)
{
	struct source *from = &job->sources[source];
	uint64_t index = from->is->at, at = ((const uint64_t *)from->offsets.buf)[index];
	uint32_t size = ((const uint32_t *)from->lengths.buf)[index];

	if (at > (uint64_t)from->data.len || size > (uint64_t)from->data.len - at)
		return false;
	*ret = (struct record){ (const unsigned char *)from->data.buf + at, size, source, index, { 0 }, 0 };
	if (size >= sizeof(ret->head))
		memcpy(ret->head, ret->data, sizeof(ret->head));
	else
		memcpy(ret->head, ret->data, size);
	ret->id = tp_record_id(ret->head, job->writer->flags & TP_LINES_ARE_BIG_ENDIAN);
	take_changes(from);
	return true;
}

static bool add_line(struct job *job, const struct record *record)
{
	struct source *from = &job->sources[record->source];
	struct state *is = from->is;

	add_lost(job, is->cpu, is->lost);
	is->lost = 0;
	add_start(job, is);
	if (job->writer->flags & TP_LINES_HAVE_CONTEXT)
		job->at = tp_put_context(job->at, job->writer, from->stamp, is->cpu, record->head);
	if (!add_body(job, record))
		return false;
	add(job, "\n");
	is->at++;
	return true;
}

/* Draw an entry, with the return that ends a leaf, or a return. */
static bool add_call(struct job *job, const struct tp_graph_record *record, const struct tp_call *call,
		     const struct tp_call *end)
{
	struct tp_graph_gap gap = { NULL, 0 };
	char *at;

	add_lost(job, record->cpu, record->lost);
	at = tp_put_call(job->at, job->writer, &job->known, record, call, end, &gap);
	if (!at || (gap.at && !leave(job, gap.at, NO_SOURCE, gap.address)))
		return false;
	job->at = at;
	return true;
}

static bool add_comment(struct job *job, const struct record *record, const struct tp_graph_record *drawn)
{
	char *at;

	add_lost(job, drawn->cpu, drawn->lost);
	at = tp_put_comment_start(job->at, job->writer, drawn);
	if (!at)
		return false;
	job->at = at;
	if (!add_body(job, record))
		return false;
	add(job, " */\n");
	return true;
}

/* How many bytes a record has where its pid is. */
static uint32_t word_size_of(const struct record *record)
{
	return record->size <= 4 ? 0 : record->size < 8 ? record->size - 4 : 4;
}

/* Take the record at hand as the graph has it. */
static struct tp_graph_record drawn_of(struct source *from, const struct record *record)
{
	struct tp_graph_record drawn = { .stamp = ((const uint64_t *)from->stamps.buf)[record->index],
					 .cpu = from->is->cpu,
					 .lost = from->is->lost };

	memcpy(drawn.head, record->head, sizeof(drawn.head));
	drawn.word_size = word_size_of(record);
	from->is->lost = 0;
	from->is->at++;
	return drawn;
}

static void hold(struct state *is, const struct tp_graph_record *entry, const struct tp_call *call)
{
	is->is_held = 1;
	is->held_stamp = entry->stamp;
	is->held_cpu = entry->cpu;
	is->held_lost = entry->lost;
	memcpy(is->held_head, entry->head, sizeof(is->held_head));
	is->held_word_size = entry->word_size;
	is->held_function = call->function;
	is->held_depth = call->depth;
}

static void let_go(struct state *is, struct tp_graph_record *entry, struct tp_call *call)
{
	is->is_held = 0;
	*entry = (struct tp_graph_record){ is->held_stamp, is->held_cpu, is->held_lost, { 0 },
					   (uint32_t)is->held_word_size };
	memcpy(entry->head, is->held_head, sizeof(entry->head));
	*call = (struct tp_call){ .is_entry = true, .function = is->held_function, .depth = is->held_depth };
}

/* Whether the record at hand is the return of the entry before it: get_return_for_leaf(). */
static bool ends(struct job *job, uint32_t source, const struct tp_graph_record *entry, const struct tp_call *call,
		 struct tp_call *end)
{
	struct source *from = &job->sources[source];
	struct record record;

	if (from->is->at >= from->n || !take_record(job, source, &record) || from->is->lost ||
	    from->is->cpu != entry->cpu)
		return false;
	return tp_read_call(job->writer, record.id, record.data, record.size, end) && !end->is_entry &&
	       end->function == call->function && word_size_of(&record) == entry->word_size &&
	       !memcmp(record.head + 4, entry->head + 4, 4);
}

static bool add_entry(struct job *job, uint32_t source, const struct tp_graph_record *entry,
		      const struct tp_call *call)
{
	struct tp_call end;
	bool is_leaf = ends(job, source, entry, call, &end);

	if (is_leaf)
		job->sources[source].is->at++;
	return add_call(job, entry, call, is_leaf ? &end : NULL);
}

/* Draw the step at hand; a leaf is one. */
static bool add_step(struct job *job, uint32_t source)
{
	struct source *from = &job->sources[source];
	struct tp_graph_record drawn;
	struct record record;
	struct tp_call call;

	if (from->is->is_held) {
		let_go(from->is, &drawn, &call);
		job->writer->n_lines++;
		return add_entry(job, source, &drawn, &call);
	}
	if (!take_record(job, source, &record)) {
		from->is->at++;
		return true;
	}
	if (!tp_graph_kind(job->writer->graph, record.id)) {
		job->writer->n_lines++;
		return add_line(job, &record);
	}
	drawn = drawn_of(from, &record);
	if (!tp_read_call(job->writer, record.id, record.data, record.size, &call)) {
		job->writer->n_lines++;
		return add_comment(job, &record, &drawn);
	}
	if (call.is_entry && from->is->at >= from->n) {
		hold(from->is, &drawn, &call);
		return true;
	}
	job->writer->n_lines++;
	return call.is_entry ? add_entry(job, source, &drawn, &call) : add_call(job, &drawn, &call, NULL);
}

static bool add_next(struct job *job, uint32_t source)
{
	struct record record;

	if (job->writer->graph)
		return add_step(job, source);
	if (take_record(job, source, &record)) {
		job->writer->n_lines++;
		return add_line(job, &record);
	}
	job->sources[source].is->at++;
	return true;
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
			if (!add_next(job, first))
				return false;
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
		PyObject *item = Py_BuildValue("(KLK)", (unsigned long long)left->place, (long long)left->source,
					       (unsigned long long)left->index);

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
