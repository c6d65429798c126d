/*
 * Lines of `trace` for Python: the records of several CPUs by time.  What is written of each: line_job.c.
 *
 * The twins are TextWriter.lines() in src/tracepoint/tracefile/text.py, and GraphLayout.lines() in graph.py.  What a
 * print program leaves to the twin is left out of the text, and its place is returned; so are names of functions that
 * are not known yet.  What all lines share is held by a writer: line_writer.c; calls are drawn by graph.c.
 */
#include "line_job.h"

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
			if (!tp_add_record(job, first))
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
