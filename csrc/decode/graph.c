/* The lines of function_graph: columns, indentation, durations, names, and what each CPU is in. */
#include "graph.h"
#include "print_number.h"

enum {
	INDENT = 2,
	/* FTRACE_RETFUNC_DEPTH: deeper calls are not compared with their returns. */
	MOST_COMPARED = 50,
	/* No kernel nests deeper; a damaged record may say anything. */
	MOST_DEPTH = 1024,
	MOST_NAME = 1 << 16,
	/* Indentation of the deepest, and what else is around a name. */
	ROOM = MOST_NAME + INDENT * MOST_DEPTH + 2048,
	TASK_WIDTH = 14,
	FIRST_CPUS = 16,
};

enum field { FUNCTION, DEPTH, BEGIN, END, OVERRUN, VALUE, N_FIELDS };
enum comm { OTHER = 0, NEGATIVE = 1, FIRST_TASK = 2 };

/* The format of entries or returns; `is_there` is 0 for what a kernel does not record. */
struct format {
	uint32_t is_entry, size;
	struct {
		uint32_t offset, type, is_there;
	} fields[N_FIELDS];
};

/* What the kernel keeps for each CPU while it prints: struct fgraph_cpu_data. */
struct cpu {
	bool is_used;
	uint64_t number;
	int32_t last_pid;
	uint32_t last_size;
	unsigned char last_word[4];
	int64_t depth, irq_depth;
	uint64_t entered[MOST_COMPARED];
};

struct tp_graph {
	unsigned int flags, cpu_width;
	uint64_t irq_start, irq_end;
	uint32_t *kinds, n_kinds, n_formats;
	struct format *formats;
	struct tp_texts comms; /* those of tasks from FIRST_TASK on */
	struct cpu *cpus;
	uint64_t n_cpus, cpus_room; /* the room is a power of two */
};

static char *put(char *at, const char *text)
{
	size_t size = strlen(text);

	memcpy(at, text, size);
	return at + size;
}

static char *fill(char *at, char with, int64_t size)
{
	if (size <= 0)
		return at;
	memset(at, with, (size_t)size);
	return at + size;
}

enum tp_graph_kind tp_graph_kind(const struct tp_graph *graph, unsigned int id)
{
	uint32_t kind = id < graph->n_kinds ? graph->kinds[id] : TP_GRAPH_PLAIN;

	return kind < TP_GRAPH_CALL ? (enum tp_graph_kind)kind : TP_GRAPH_CALL;
}

bool tp_read_call(const struct tp_line_writer *writer, unsigned int id, const unsigned char *record, uint32_t size,
		  struct tp_call *ret)
{
	const struct tp_graph *graph = writer->graph;
	bool is_big = writer->flags & TP_LINES_ARE_BIG_ENDIAN;
	const struct format *format;
	uint64_t found[N_FIELDS] = { 0 };

	if (tp_graph_kind(graph, id) != TP_GRAPH_CALL)
		return false;
	format = &graph->formats[graph->kinds[id] - TP_GRAPH_CALL];
	if (size < format->size)
		return false;
	for (int n = 0; n < N_FIELDS; n++)
		if (format->fields[n].is_there)
			found[n] = load(record + format->fields[n].offset, format->fields[n].type, is_big);
	ret->is_entry = format->is_entry;
	ret->function = found[FUNCTION];
	ret->depth = (int64_t)found[DEPTH];
	ret->duration = found[END] - found[BEGIN];
	ret->overrun = found[OVERRUN];
	ret->value = found[VALUE];
	return ret->depth >= -MOST_DEPTH && ret->depth <= MOST_DEPTH;
}

static struct cpu *find_slot(struct cpu *cpus, uint64_t room, uint64_t number)
{
	uint64_t at = (number * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - __builtin_ctzll(room));

	while (cpus[at].is_used && cpus[at].number != number)
		at = (at + 1) & (room - 1);
	return &cpus[at];
}

static bool grow_cpus(struct tp_graph *graph)
{
	uint64_t room = graph->cpus_room ? 2 * graph->cpus_room : FIRST_CPUS;
	struct cpu *cpus = calloc(room, sizeof(*cpus));

	if (!cpus)
		return false;
	for (uint64_t n = 0; n < graph->cpus_room; n++)
		if (graph->cpus[n].is_used)
			*find_slot(cpus, room, graph->cpus[n].number) = graph->cpus[n];
	free(graph->cpus);
	graph->cpus = cpus;
	graph->cpus_room = room;
	return true;
}

/* Return what a CPU is in; NULL when there is no memory. */
static struct cpu *cpu_of(struct tp_graph *graph, uint64_t number)
{
	struct cpu *cpu;

	if (4 * graph->n_cpus >= 3 * graph->cpus_room && !grow_cpus(graph))
		return NULL;
	cpu = find_slot(graph->cpus, graph->cpus_room, number);
	if (!cpu->is_used) {
		graph->n_cpus++;
		*cpu = (struct cpu){ .is_used = true, .number = number, .last_pid = -1, .irq_depth = -1 };
	}
	return cpu;
}

static char *put_cpu(char *at, const struct tp_graph *graph, uint64_t cpu)
{
	*at++ = ' ';
	return put(tp_put_number(at, cpu, graph->cpu_width, ' '), ") ");
}

/* Write the begin of a task's name with its pid, in the middle of the column. */
static char *put_task(char *at, const struct tp_line_writer *writer, int32_t pid)
{
	char held[64 + TP_PRINT_PAD], *end;
	uint64_t task = tp_find_task(writer, pid);
	int64_t spaces;

	if (pid < 0)
		task = NEGATIVE;
	else
		task = task == writer->tasks.n ? OTHER : FIRST_TASK + task;
	end = tp_put_text(held, &writer->graph->comms, task);
	*end++ = '-';
	if (pid < 0)
		*end++ = '-';
	end = tp_put_decimal(end, pid < 0 ? 0 - (uint64_t)pid : (uint64_t)pid);
	spaces = TASK_WIDTH - (end - held);
	at = fill(at, ' ', spaces > 0 ? spaces / 2 : 0);
	memcpy(at, held, (size_t)(end - held));
	return fill(at + (end - held), ' ', spaces > 0 ? spaces - spaces / 2 : 0);
}

static char *put_rule(char *at)
{
	return put(fill(put(at, " "), '-', 42), "\n");
}

/* Write the lines that say that another task runs on the CPU now: verif_pid(). */
static char *put_switch(char *at, const struct tp_line_writer *writer, const struct tp_graph_record *record,
			struct cpu *cpu)
{
	int32_t last = cpu->last_pid, pid = tp_pid_of(writer, record->head);

	if (cpu->last_size == record->word_size && !memcmp(cpu->last_word, record->head + 4, sizeof(cpu->last_word)))
		return at;
	cpu->last_size = record->word_size;
	memcpy(cpu->last_word, record->head + 4, sizeof(cpu->last_word));
	cpu->last_pid = pid;
	if (last == pid || last == -1)
		return at;
	at = put_cpu(put_rule(at), writer->graph, record->cpu);
	at = put_task(put(put_task(at, writer, last), " => "), writer, pid);
	return put(put_rule(put(at, "\n")), "\n");
}

/* Write the columns before the duration. */
static char *put_columns(char *at, const struct tp_line_writer *writer, const struct tp_graph_record *record)
{
	const struct tp_graph *graph = writer->graph;

	if (!(writer->flags & TP_LINES_HAVE_CONTEXT))
		return at;
	if (graph->flags & TP_GRAPH_HAS_TIME) {
		at = put(tp_put_number(at, record->stamp / 1000000000, 5, ' '), ".");
		at = put(tp_put_number(at, record->stamp % 1000000000 / 1000, 6, '0'), " |  ");
	}
	if (graph->flags & TP_GRAPH_HAS_CPU)
		at = put_cpu(at, graph, record->cpu);
	if (graph->flags & TP_GRAPH_HAS_TASK)
		at = put(put_task(at, writer, tp_pid_of(writer, record->head)), " | ");
	return at;
}

static bool has_duration(const struct tp_line_writer *writer)
{
	return writer->graph->flags & TP_GRAPH_HAS_DURATION && writer->flags & TP_LINES_HAVE_CONTEXT;
}

static bool begins_irq(const struct tp_graph *graph, uint64_t function)
{
	return function >= graph->irq_start && function < graph->irq_end;
}

/* Write the line where an interrupt begins or ends: print_graph_irq(). */
static char *put_irq(char *at, const struct tp_line_writer *writer, const struct tp_graph_record *record,
		     uint64_t function, const char *arrow)
{
	bool has_column = has_duration(writer);

	if (!begins_irq(writer->graph, function))
		return at;
	at = put(put_columns(at, writer, record), has_column ? "  " : "");
	return put(put(at, arrow), has_column ? " |\n" : "\n");
}

/* The sign for a long time: trace_find_mark(). */
static char mark_of(uint64_t duration)
{
	static const char marks[] = "+!#*@$";
	uint64_t limit = 10000;
	char mark = ' ';

	for (int n = 0; marks[n] && duration > limit; n++, limit *= 10)
		mark = marks[n];
	return mark;
}

static char *put_no_duration(char *at, const struct tp_line_writer *writer)
{
	return has_duration(writer) ? put(at, "              |  ") : at;
}

/* Write a duration in the seven digits that the column has: trace_print_graph_duration(). */
static char *put_duration(char *at, const struct tp_line_writer *writer, uint64_t duration)
{
	uint64_t whole = duration / 1000, part = duration % 1000;
	char *start;

	if (!has_duration(writer))
		return at;
	*at++ = writer->graph->flags & TP_GRAPH_HAS_OVERHEAD ? mark_of(duration) : ' ';
	*at++ = ' ';
	start = at;
	at = tp_put_decimal(at, whole);
	if (whole < 1000000) {
		*at++ = '.';
		if (whole < 10000)
			at = tp_put_number(at, part, 3, '0');
		else
			at = whole < 100000 ? tp_put_pair(at, (unsigned int)part / 10) :
					      tp_put_decimal(at, part / 100);
	}
	at = put(at, " us ");
	return put(fill(at, ' ', 12 - (at - start)), "|  ");
}

/* Write a function's name, or leave a gap for it. */
static char *put_name(char *at, const struct tp_print_texts *known, uint64_t address, struct tp_graph_gap *gap)
{
	struct tp_print_text found;

	if (!tp_print_find_text(known, address, TP_PRINT_NAME, &found) || found.size > MOST_NAME) {
		*gap = (struct tp_graph_gap){ at, address };
		return at;
	}
	if (found.size <= TP_PRINT_PAD && known->data_size - found.at >= TP_PRINT_PAD)
		return tp_put_padded(at, known->data + found.at, found.size);
	memcpy(at, known->data + found.at, found.size);
	return at + found.size;
}

/* Write what a function returned: errors as negative numbers. */
static char *put_value(char *at, const struct tp_graph *graph, uint64_t value)
{
	uint64_t wide = value >> 31 == 1 ? value | UINT64_C(0xffffffff) << 32 : value;

	at = put(at, graph->flags & TP_GRAPH_IS_FROM_6_13 ? "ret=" : "= ");
	if (!(graph->flags & TP_GRAPH_VALUE_IS_HEX) && wide >= 0 - (uint64_t)TP_PRINT_MAX_ERRNO)
		return tp_put_decimal(put(at, "-"), 0 - wide);
	return tp_put_hex(put(at, "0x"), value);
}

static bool is_in_irq(const struct tp_graph *graph, struct cpu *cpu, const struct tp_call *call)
{
	if (graph->flags & TP_GRAPH_HAS_IRQS)
		return false;
	if (cpu->irq_depth >= 0)
		return true;
	if (!begins_irq(graph, call->function))
		return false;
	cpu->irq_depth = call->depth;
	return true;
}

static bool leaves_irq(const struct tp_graph *graph, struct cpu *cpu, const struct tp_call *call)
{
	if (graph->flags & TP_GRAPH_HAS_IRQS || cpu->irq_depth == -1)
		return false;
	if (cpu->irq_depth >= call->depth)
		cpu->irq_depth = -1;
	return true;
}

static bool is_compared(int64_t depth)
{
	return depth >= 0 && depth < MOST_COMPARED;
}

static char *put_return(char *at, struct tp_line_writer *writer, const struct tp_print_texts *known,
			const struct tp_graph_record *record, const struct tp_call *call, struct cpu *cpu,
			struct tp_graph_gap *gap)
{
	const struct tp_graph *graph = writer->graph;
	bool is_entered = true;

	if (leaves_irq(graph, cpu, call))
		return at;
	cpu->depth = call->depth - 1;
	if (is_compared(call->depth)) {
		is_entered = cpu->entered[call->depth] == call->function;
		cpu->entered[call->depth] = 0;
	}
	at = put_columns(put_switch(at, writer, record, cpu), writer, record);
	at = put(fill(put_duration(at, writer, call->duration), ' ', call->depth * INDENT), "}");
	if (graph->flags & (TP_GRAPH_HAS_VALUE | TP_GRAPH_HAS_TAIL) || !is_entered) {
		at = put_name(put(at, " /* "), known, call->function, gap);
		if (graph->flags & TP_GRAPH_HAS_VALUE)
			at = put_value(put(at, " "), graph, call->value);
		at = put(at, " */");
	}
	at = put(at, "\n");
	if (graph->flags & TP_GRAPH_HAS_OVERRUN)
		at = put(tp_put_decimal(put(at, " (Overruns: "), call->overrun), ")\n");
	return put_irq(at, writer, record, call->function, "<==========");
}

char *tp_put_call(char *at, struct tp_line_writer *writer, const struct tp_print_texts *known,
		  const struct tp_graph_record *record, const struct tp_call *call, const struct tp_call *end,
		  struct tp_graph_gap *gap)
{
	struct tp_graph *graph = writer->graph;
	struct cpu *cpu = cpu_of(graph, record->cpu);

	if (!cpu)
		return NULL;
	if (!call->is_entry)
		return put_return(at, writer, known, record, call, cpu, gap);
	if (is_in_irq(graph, cpu, call))
		/* The kernel hides the return too, on its own. */
		return end ? put_return(at, writer, known, record, end, cpu, gap) : at;
	at = put_switch(at, writer, record, cpu);
	at = put_columns(put_irq(at, writer, record, call->function, "==========>"), writer, record);
	cpu->depth = end ? call->depth - 1 : call->depth;
	if (is_compared(call->depth))
		cpu->entered[call->depth] = end ? 0 : call->function;
	at = end ? put_duration(at, writer, end->duration) : put_no_duration(at, writer);
	at = put_name(fill(at, ' ', call->depth * INDENT), known, call->function, gap);
	if (!end)
		return put(at, "() {\n");
	at = put(at, "();");
	if (graph->flags & TP_GRAPH_HAS_VALUE)
		at = put(put_value(put(at, " /* "), graph, end->value), " */");
	return put_irq(put(at, "\n"), writer, record, end->function, "<==========");
}

char *tp_put_comment_start(char *at, struct tp_line_writer *writer, const struct tp_graph_record *record)
{
	struct cpu *cpu = cpu_of(writer->graph, record->cpu);

	if (!cpu)
		return NULL;
	at = put_columns(put_switch(at, writer, record, cpu), writer, record);
	at = put_no_duration(at, writer);
	return put(fill(at, ' ', cpu->depth > 0 ? (cpu->depth + 1) * INDENT : 0), "/* ");
}

void tp_free_graph(struct tp_graph *graph)
{
	if (!graph)
		return;
	tp_drop_texts(&graph->comms);
	free(graph->kinds);
	free(graph->formats);
	free(graph->cpus);
	free(graph);
}

static bool is_format(const struct format *format)
{
	for (int n = 0; n < N_FIELDS; n++) {
		uint64_t end = format->fields[n].offset + (UINT64_C(1) << (format->fields[n].type & 3));

		if (format->fields[n].is_there && (end > format->size || format->fields[n].type > 7))
			return false;
	}
	return true;
}

/* Whether the tables fit each other; the texts are checked. */
static bool is_graph(const struct tp_line_writer *writer, const struct tp_graph *graph, size_t longest)
{
	for (uint32_t n = 0; n < graph->n_formats; n++)
		if (!is_format(&graph->formats[n]))
			return false;
	for (uint32_t n = 0; n < graph->n_kinds; n++)
		if (graph->kinds[n] >= TP_GRAPH_CALL + graph->n_formats)
			return false;
	return graph->comms.n == FIRST_TASK + writer->tasks.n && longest < TASK_WIDTH && graph->cpu_width <= 20;
}

bool tp_take_graph(struct tp_line_writer *writer, PyObject *given)
{
	struct tp_graph *graph = writer->graph = calloc(1, sizeof(*graph));
	Py_buffer kinds, formats, ends, comms;
	unsigned long long irq_start, irq_end;
	size_t longest = 0;
	bool is_taken = false;

	if (!graph)
		PyErr_NoMemory();
	if (!graph || !PyArg_ParseTuple(given, "y*y*y*y*KKII:graph", &kinds, &formats, &ends, &comms, &irq_start,
					&irq_end, &graph->cpu_width, &graph->flags))
		return false;
	graph->irq_start = irq_start;
	graph->irq_end = irq_end;
	graph->n_kinds = (uint32_t)((size_t)kinds.len / sizeof(*graph->kinds));
	graph->n_formats = (uint32_t)((size_t)formats.len / sizeof(*graph->formats));
	graph->kinds = tp_copied(&kinds);
	graph->formats = tp_copied(&formats);
	if (!graph->kinds || !graph->formats) {
		PyErr_NoMemory();
	} else if (tp_take_texts(&graph->comms, &ends, &comms, &longest)) {
		is_taken = is_graph(writer, graph, longest);
		if (!is_taken)
			PyErr_SetString(PyExc_ValueError, "not tables of a graph");
	}
	writer->room += ROOM;
	PyBuffer_Release(&kinds);
	PyBuffer_Release(&formats);
	PyBuffer_Release(&ends);
	PyBuffer_Release(&comms);
	return is_taken;
}
