/*
 * A line: what was lost before it, its context and its text; in a graph calls, and other records as comments.
 *
 * The twins are TextWriter.entry() in src/tracepoint/tracefile/text.py, and GraphLayout in graph.py.
 */
#include "line_job.h"

#define LOST_UNKNOWN UINT64_MAX

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

bool tp_add_record(struct job *job, uint32_t source)
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
