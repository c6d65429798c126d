/* The writer of lines: tables of names, and the task, CPU, flags and time that each line begins with. */
#include "graph.h"

static const char WRITER_NAME[] = "tracepoint._decode.line_writer";

enum { OTHER = 0, NEGATIVE = 1, AFTER = 2, N_UNKNOWN = 3 };

/* kernel/trace/trace.h: enum trace_flag_type. */
enum flag {
	IRQS_OFF = 1,
	/* TP_LINES_MAY_BE_LAZY says which. */
	NO_SUPPORT = 2,
	RESCHED_LAZY = 2,
	NEED_RESCHED = 4,
	HARDIRQ = 8,
	SOFTIRQ = 16,
	PREEMPT_RESCHED = 32,
	NMI = 64,
	BH_OFF = 128,
};

static void make_flags(struct tp_line_writer *writer)
{
	static const char digits[] = ".123456789abcdef", resched[] = ".npNlbLB";
	unsigned int lazy = writer->flags & TP_LINES_MAY_BE_LAZY ? RESCHED_LAZY : 0, no_support = NO_SUPPORT & ~lazy;

	for (unsigned int flags = 0; flags < 256; flags++) {
		char *text = writer->flag_texts[flags];

		if (flags & IRQS_OFF)
			text[0] = flags & BH_OFF ? 'D' : 'd';
		else if (flags & BH_OFF)
			text[0] = 'b';
		else
			text[0] = flags & no_support ? 'X' : '.';
		text[1] = resched[!!(flags & NEED_RESCHED) + 2 * !!(flags & PREEMPT_RESCHED) + 4 * !!(flags & lazy)];
		if (flags & NMI)
			text[2] = flags & HARDIRQ ? 'Z' : 'z';
		else if (flags & HARDIRQ)
			text[2] = flags & SOFTIRQ ? 'H' : 'h';
		else
			text[2] = flags & SOFTIRQ ? 's' : '.';
		writer->count_texts[flags][0] = digits[flags & 15];
		writer->count_texts[flags][1] = digits[flags >> 4];
	}
}

/* Pids are sorted. */
uint64_t tp_find_task(const struct tp_line_writer *writer, int32_t pid)
{
	uint64_t low = 0, high = writer->tasks.n;

	while (low < high) {
		uint64_t middle = (low + high) / 2;

		if (writer->pids[middle] < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < writer->tasks.n && writer->pids[low] == pid ? low : writer->tasks.n;
}

static char *put_unknown_task(char *at, const struct tp_line_writer *writer, int32_t pid)
{
	char *start;

	at = start = tp_put_text(at, &writer->unknown, pid < 0 ? NEGATIVE : OTHER);
	if (pid < 0)
		*at++ = '-';
	at = tp_put_decimal(at, pid < 0 ? 0 - (uint64_t)pid : (uint64_t)pid);
	while (at - start < (writer->flags & TP_LINES_ARE_OF_REPORT ? 5 : 7))
		*at++ = ' ';
	return tp_put_text(at, &writer->unknown, AFTER);
}

static char *put_task(char *at, struct tp_line_writer *writer, int32_t pid)
{
	struct tp_task_at_hand *task = &writer->at_hand[(uint32_t)pid % TP_TASKS_AT_HAND];

	if (task->pid != pid || !task->text) {
		uint64_t index = tp_find_task(writer, pid), start;

		if (index == writer->tasks.n)
			return put_unknown_task(at, writer, pid);
		start = index ? writer->tasks.ends[index - 1] : 0;
		task->pid = pid;
		task->text = writer->tasks.bytes + start;
		task->size = (uint32_t)(writer->tasks.ends[index] - start);
	}
	return tp_put_padded(at, task->text, task->size);
}

/* Write seconds, six digits after the point and what surrounds them; the text of the second is kept. */
static char *put_seconds(char *at, struct tp_line_writer *writer, uint64_t us)
{
	uint64_t rest = us - writer->second_us;

	if (rest >= 1000000 || !writer->second_size) {
		char *end = writer->second;

		rest = us % 1000000;
		writer->second_us = us - rest;
		*end++ = ' ';
		end = tp_put_number(end, us / 1000000, 5, ' ');
		*end++ = '.';
		writer->second_size = (uint32_t)(end - writer->second);
	}
	at = tp_put_padded(at, writer->second, writer->second_size);
	at = tp_put_pair(at, (unsigned int)rest / 10000);
	at = tp_put_four(at, (unsigned int)rest % 10000);
	return at;
}

char *tp_put_context(char *at, struct tp_line_writer *writer, uint64_t stamp, uint64_t cpu, const unsigned char head[8])
{
	bool is_report = writer->flags & TP_LINES_ARE_OF_REPORT;

	at = put_task(at, writer, tp_pid_of(writer, head));
	*at++ = '[';
	if (cpu < 1000) {
		*at++ = (char)('0' + cpu / 100);
		at = tp_put_pair(at, (unsigned int)cpu % 100);
	} else {
		at = tp_put_decimal(at, cpu);
	}
	*at++ = ']';
	if (!is_report)
		*at++ = ' ';
	if (writer->flags & TP_LINES_HAVE_IRQ_INFO) {
		memcpy(at, writer->flag_texts[head[2]], 4);
		memcpy(at + 3, writer->count_texts[head[3]], 2);
		at += 5;
	}
	if (writer->flags & TP_LINES_ARE_IN_NS) {
		/* It wraps as the kernel's does: ns2usecs(). */
		at = put_seconds(at, writer, (stamp + 500) / 1000);
	} else {
		if (!is_report)
			*at++ = ' ';
		at = tp_put_number(at, stamp, 12, ' ');
	}
	*at++ = ':';
	*at++ = ' ';
	return at;
}

static void free_writer(struct tp_line_writer *writer)
{
	struct tp_texts *all[] = { &writer->tasks, &writer->names, &writer->unknown };

	for (size_t n = 0; n < sizeof(all) / sizeof(*all); n++)
		tp_drop_texts(all[n]);
	tp_free_graph(writer->graph);
	free(writer->pids);
	free(writer->notes);
	Py_XDECREF(writer->held);
	free(writer);
}

static void free_capsule(PyObject *capsule)
{
	free_writer(PyCapsule_GetPointer(capsule, WRITER_NAME));
}

struct tp_line_writer *tp_take_line_writer(PyObject *capsule)
{
	struct tp_line_writer *writer = PyCapsule_GetPointer(capsule, WRITER_NAME);

	if (!writer || !__atomic_exchange_n(&writer->is_busy, true, __ATOMIC_ACQUIRE))
		return writer;
	PyErr_SetString(PyExc_RuntimeError, "another thread writes these lines");
	return NULL;
}

void tp_put_line_writer(struct tp_line_writer *writer)
{
	if (writer)
		__atomic_store_n(&writer->is_busy, false, __ATOMIC_RELEASE);
}

void *tp_copied(const Py_buffer *buffer)
{
	char *bytes = calloc(1, (size_t)buffer->len + TP_PRINT_PAD);

	if (bytes && buffer->len)
		memcpy(bytes, buffer->buf, (size_t)buffer->len);
	return bytes;
}

void tp_drop_texts(struct tp_texts *texts)
{
	free(texts->ends);
	free(texts->bytes);
}

bool tp_take_texts(struct tp_texts *texts, const Py_buffer *ends, const Py_buffer *bytes, size_t *longest)
{
	uint64_t before = 0;

	texts->ends = tp_copied(ends);
	texts->bytes = tp_copied(bytes);
	if (!texts->ends || !texts->bytes) {
		PyErr_NoMemory();
		return false;
	}
	texts->n = (uint64_t)ends->len / sizeof(*texts->ends);
	for (uint64_t n = 0; n < texts->n; before = texts->ends[n++]) {
		if (texts->ends[n] < before || texts->ends[n] > (uint64_t)bytes->len ||
		    texts->ends[n] - before > UINT32_MAX) {
			PyErr_SetString(PyExc_ValueError, "texts that end before they begin");
			return false;
		}
		if (texts->ends[n] - before > *longest)
			*longest = (size_t)(texts->ends[n] - before);
	}
	return true;
}

/* What Python gives for a writer. */
struct given {
	PyObject *prints;
	Py_buffer pids, texts[6];
	PyObject *graph;
	unsigned int flags;
};

static bool fill_writer(struct tp_line_writer *writer, const struct given *given)
{
	struct tp_texts *to[] = { &writer->tasks, &writer->names, &writer->unknown };
	size_t longest = 0;

	writer->prints = tp_prints_of(given->prints);
	if (!writer->prints)
		return false;
	writer->held = Py_NewRef(given->prints);
	writer->flags = given->flags;
	for (int n = 0; n < 3; n++)
		if (!tp_take_texts(to[n], &given->texts[2 * n], &given->texts[2 * n + 1], &longest))
			return false;
	/* Name, task or what stands for one, and less than 256 bytes of numbers and words around them. */
	writer->room = 4 * longest + 256 + TP_PRINT_ROOM;
	if ((uint64_t)given->pids.len != writer->tasks.n * sizeof(*writer->pids) || writer->unknown.n != N_UNKNOWN) {
		PyErr_SetString(PyExc_ValueError, "not tables of lines");
		return false;
	}
	writer->pids = tp_copied(&given->pids);
	writer->notes = calloc(tp_prints_notes(writer->prints) + 1, sizeof(*writer->notes));
	if (!writer->pids || !writer->notes) {
		PyErr_NoMemory();
		return false;
	}
	return given->graph == Py_None || tp_take_graph(writer, given->graph);
}

PyObject *tp_make_line_writer(PyObject *module, PyObject *args)
{
	struct given given;
	struct tp_line_writer *writer;
	PyObject *made = NULL;

	(void)module;
	if (!PyArg_ParseTuple(args, "Oy*y*y*y*y*y*y*IO:line_writer", &given.prints, &given.pids, &given.texts[0],
			      &given.texts[1], &given.texts[2], &given.texts[3], &given.texts[4], &given.texts[5],
			      &given.flags, &given.graph))
		return NULL;
	writer = calloc(1, sizeof(*writer));
	if (!writer)
		PyErr_NoMemory();
	else if (fill_writer(writer, &given))
		made = PyCapsule_New(writer, WRITER_NAME, free_capsule);
	if (made)
		make_flags(writer);
	else if (writer)
		free_writer(writer);
	PyBuffer_Release(&given.pids);
	for (int n = 0; n < 6; n++)
		PyBuffer_Release(&given.texts[n]);
	return made ? Py_BuildValue("(Nn)", made, (Py_ssize_t)writer->room) : NULL;
}

/* The notes of lines as (id, state, slot that is not known, lines). */
static PyObject *notes_of(const struct tp_line_writer *writer)
{
	PyObject *list = PyList_New(0);

	for (uint32_t at = 0; list && at < tp_prints_notes(writer->prints); at++) {
		uint32_t id;
		unsigned int state;
		PyObject *item;

		if (!writer->notes[at] || !tp_prints_noted(writer->prints, at, &id, &state))
			continue;
		item = Py_BuildValue("(IIIK)", id, state & 0xff, state >> TP_PRINT_WHY,
				     (unsigned long long)writer->notes[at]);
		if (!item || PyList_Append(list, item))
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

PyObject *tp_line_notes(PyObject *module, PyObject *capsule)
{
	struct tp_line_writer *writer = tp_take_line_writer(capsule);
	PyObject *notes = writer ? notes_of(writer) : NULL;

	(void)module;
	tp_put_line_writer(writer);
	return notes;
}
