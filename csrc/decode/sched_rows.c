/* The rows of a machine as buffers, which Python makes tables of. */
#include "sched_machine.h"

enum { MAX_ROW_COLUMNS = 9 };

/* The columns of one kind of rows: where each array is, and the size of an item. */
struct row_columns {
	uint64_t *n, *room;
	void *arrays[MAX_ROW_COLUMNS];
	size_t items[MAX_ROW_COLUMNS];
	unsigned int n_columns;
};

static void add_column(struct row_columns *columns, void *array, size_t item)
{
	columns->arrays[columns->n_columns] = array;
	columns->items[columns->n_columns++] = item;
}

#define ADD(name) add_column(&columns, &rows->name, sizeof(*rows->name))

/* In the order of the fields of RunRows, StateRows and SpuriousRows. */
static struct row_columns columns_of_runs(struct sched_runs *rows)
{
	struct row_columns columns = { .n = &rows->n, .room = &rows->room };

	ADD(ts), ADD(dur), ADD(cpu), ADD(utid), ADD(end), ADD(priority), ADD(flags);
	return columns;
}

static struct row_columns columns_of_states(struct sched_states *rows)
{
	struct row_columns columns = { .n = &rows->n, .room = &rows->room };

	ADD(ts), ADD(dur), ADD(cpu), ADD(utid), ADD(state), ADD(waker), ADD(irq), ADD(flags), ADD(priority);
	return columns;
}

static struct row_columns columns_of_spurious(struct sched_spurious *rows)
{
	struct row_columns columns = { .n = &rows->n, .room = &rows->room };

	ADD(ts), ADD(row), ADD(irq), ADD(utid), ADD(waker);
	return columns;
}

#undef ADD

static PyObject *taken_tuple(PyObject *module, const struct row_columns *columns)
{
	PyObject *made = PyTuple_New(columns->n_columns);

	for (unsigned int c = 0; made && c < columns->n_columns; c++) {
		PyObject *taken = tp_take_array(module, columns->arrays[c], *columns->n, columns->items[c]);

		if (!taken)
			Py_CLEAR(made);
		else
			PyTuple_SET_ITEM(made, c, taken);
	}
	return made;
}

/* Rows that a record may still change, in order. */
struct kept_rows {
	int64_t *rows;
	uint64_t n;
};

static int compare_rows(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

/* The place of a row among those that are kept. */
static int64_t place_of(const struct kept_rows *kept, int64_t row)
{
	const int64_t *found = bsearch(&row, kept->rows, kept->n, sizeof(row), compare_rows);

	return found - kept->rows;
}

/* Move the rows of a column that are not kept together, and copy those that are. */
static void split_column(unsigned char *bytes, size_t item, uint64_t n, const struct kept_rows *kept,
			 unsigned char *ret)
{
	uint64_t to = 0, from = 0;

	for (uint64_t k = 0; k <= kept->n; k++) {
		uint64_t end = k < kept->n ? (uint64_t)kept->rows[k] : n;

		memmove(bytes + to * item, bytes + from * item, (end - from) * item);
		to += end - from;
		if (k < kept->n)
			memcpy(ret + k * item, bytes + end * item, item);
		from = end + 1;
	}
}

/* Hand over the rows that are not kept, which are all that is left. */
static PyObject *closed_tuple(PyObject *module, const struct row_columns *columns, const struct kept_rows *kept)
{
	uint64_t n_closed = *columns->n - kept->n;
	void *left[MAX_ROW_COLUMNS] = { NULL };
	PyObject *made = NULL;

	for (unsigned int c = 0; c < columns->n_columns; c++) {
		left[c] = malloc((kept->n + 1) * columns->items[c]);
		if (!left[c]) {
			PyErr_NoMemory();
			goto out;
		}
	}
	for (unsigned int c = 0; c < columns->n_columns; c++)
		if (*columns->n)
			split_column(*(void **)columns->arrays[c], columns->items[c], *columns->n, kept, left[c]);
	*columns->n = n_closed;
	made = taken_tuple(module, columns);
	*columns->n = *columns->room = kept->n;
	for (unsigned int c = 0; c < columns->n_columns; c++) {
		void *closed = *(void **)columns->arrays[c];

		/* That of no rows was not handed over. */
		*(void **)columns->arrays[c] = left[c];
		left[c] = closed;
	}
out:
	for (unsigned int c = 0; c < columns->n_columns; c++)
		free(left[c]);
	return made;
}

/* The numbers of rows that a machine holds: those rows stay, and get new numbers. */
struct held_rows {
	int64_t **numbers;
	uint64_t n;
	struct kept_rows kept;
};

static void hold_row(struct held_rows *held, int64_t *number)
{
	if (*number == NOTHING)
		return;
	held->numbers[held->n] = number;
	held->kept.rows[held->n++] = *number;
}

/* Hand over the rows that are not held, and begin anew. */
static PyObject *closed_rows(PyObject *module, const struct row_columns *columns, struct held_rows *held)
{
	PyObject *made;

	held->kept.n = held->n;
	qsort(held->kept.rows, held->n, sizeof(*held->kept.rows), compare_rows);
	made = closed_tuple(module, columns, &held->kept);
	for (uint64_t n = 0; made && n < held->n; n++)
		*held->numbers[n] = place_of(&held->kept, *held->numbers[n]);
	held->n = 0;
	return made;
}

static PyObject *closed_runs(PyObject *module, struct sched_machine *m, struct held_rows *held)
{
	struct row_columns columns = columns_of_runs(&m->runs);

	for (uint64_t n = 0; n < m->cpu_ids.n; n++)
		if (m->cpus[n].has_switch)
			hold_row(held, &m->cpus[n].row);
	return closed_rows(module, &columns, held);
}

static PyObject *closed_states(PyObject *module, struct sched_machine *m, struct held_rows *held)
{
	struct row_columns columns = columns_of_states(&m->states);

	for (uint64_t n = 0; n < m->n_threads; n++)
		hold_row(held, &m->threads[n].row);
	return closed_rows(module, &columns, held);
}

static PyObject *closed_spurious(PyObject *module, struct sched_machine *m, struct held_rows *held)
{
	struct row_columns columns = columns_of_spurious(&m->spurious);

	for (uint64_t n = 0; n < m->n_threads; n++)
		hold_row(held, &m->threads[n].pending);
	return closed_rows(module, &columns, held);
}

/* One field of all threads as an array. */
#define OF_THREADS(field, type, value)									\
	static PyObject *threads_##field(PyObject *module, const struct sched_machine *m)		\
	{												\
		struct tp_block *block = tp_block_create(m->n_threads * sizeof(type));			\
													\
		for (uint64_t n = 0; block && n < m->n_threads; n++) {					\
			const struct sched_thread *thread = &m->threads[n];				\
													\
			((type *)block->bytes)[n] = value;						\
		}											\
		return block ? tp_buffer_of(module, block) : PyErr_NoMemory();				\
	}

OF_THREADS(tid, int32_t, thread->tid)
OF_THREADS(generation, int32_t, thread->generation)
OF_THREADS(name, int32_t, thread->name)
OF_THREADS(cpu, int32_t, thread->last_cpu)
OF_THREADS(start, int64_t, thread->has_start ? thread->start : INT64_MIN)
OF_THREADS(end, int64_t, thread->has_end ? thread->end : INT64_MIN)
OF_THREADS(migrations, int64_t, thread->migrations)
OF_THREADS(cpu_changes, int64_t, thread->cpu_changes)

static PyObject *threads_tuple(PyObject *module, const struct sched_machine *m)
{
	return Py_BuildValue("(NNNNNNNN)", threads_tid(module, m), threads_generation(module, m),
			     threads_name(module, m), threads_cpu(module, m), threads_start(module, m),
			     threads_end(module, m), threads_migrations(module, m), threads_cpu_changes(module, m));
}

/* Whether a waking came before the switch that put a thread to sleep: a wake-up may say that it never slept. */
static bool is_woken_early(const struct sched_thread *thread)
{
	return thread->pending != NOTHING && thread->state != STATE_RUNNING;
}

/* One field of the rows that threads are in as an array: those that a record may still change. */
#define OF_HELD(field, type, value)									\
	static PyObject *held_##field(PyObject *module, const struct sched_machine *m, uint64_t n_held)	\
	{												\
		struct tp_block *block = tp_block_create(n_held * sizeof(type));			\
		uint64_t to = 0;									\
													\
		for (uint64_t n = 0; block && n < m->n_threads; n++) {					\
			const struct sched_thread *thread = &m->threads[n];				\
			int64_t row = thread->row;							\
													\
			if (row != NOTHING)								\
				((type *)block->bytes)[to++] = value;					\
		}											\
		return block ? tp_buffer_of(module, block) : PyErr_NoMemory();				\
	}

OF_HELD(ts, int64_t, m->states.ts[row])
OF_HELD(utid, int32_t, thread->utid)
OF_HELD(state, int32_t, m->states.state[row])
OF_HELD(flags, uint8_t, m->states.flags[row])
OF_HELD(waker, int32_t, is_woken_early(thread) ? m->spurious.waker[thread->pending] : m->states.waker[row])
OF_HELD(irq, int8_t, is_woken_early(thread) ? m->spurious.irq[thread->pending] : m->states.irq[row])

/* In the order of the fields of HeldRows. */
static PyObject *held_tuple(PyObject *module, const struct sched_machine *m)
{
	uint64_t n_held = 0;

	for (uint64_t n = 0; n < m->n_threads; n++)
		n_held += m->threads[n].row != NOTHING;
	return Py_BuildValue("(NNNNNN)", held_ts(module, m, n_held), held_utid(module, m, n_held),
			     held_state(module, m, n_held), held_flags(module, m, n_held),
			     held_waker(module, m, n_held), held_irq(module, m, n_held));
}

/* The time of all CPUs in which it is not known what they ran. */
static struct tp_sum lost_of(const struct sched_machine *m)
{
	struct tp_sum sum = { 0 };

	for (uint64_t n = 0; n < m->cpu_ids.n; n++) {
		uint64_t before = sum.low;

		sum.low += m->cpus[n].lost.low;
		sum.high += m->cpus[n].lost.high + (sum.low < before);
	}
	return sum;
}

static PyObject *counts_tuple(const struct sched_machine *m)
{
	return Py_BuildValue("(LLLNNL)", (long long)m->n_lost_switches, (long long)m->n_unseen,
			     (long long)m->n_dropped, tp_sum_number(m->overlap), tp_sum_number(lost_of(m)),
			     (long long)m->longest_hidden);
}

PyObject *tp_sched_rows(PyObject *module, PyObject *args)
{
	struct row_columns runs, states, spurious;
	PyObject *capsule, *made;
	struct sched_machine *m;
	long long stop;

	if (!PyArg_ParseTuple(args, "OL:sched_rows", &capsule, &stop))
		return NULL;
	m = tp_sched_hold(capsule);
	if (!m)
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	tp_sched_finish(m, stop);
	Py_END_ALLOW_THREADS
	m->is_finished = true;
	runs = columns_of_runs(&m->runs);
	states = columns_of_states(&m->states);
	spurious = columns_of_spurious(&m->spurious);
	made = Py_BuildValue("(NNNNN)", taken_tuple(module, &runs), taken_tuple(module, &states),
			     taken_tuple(module, &spurious), threads_tuple(module, m), counts_tuple(m));
	tp_sched_release(m);
	return made;
}

PyObject *tp_sched_closed(PyObject *module, PyObject *args)
{
	PyObject *capsule, *open, *runs, *states, *spurious, *made;
	struct held_rows held = { 0 };
	struct sched_machine *m;
	uint64_t n_holders;

	if (!PyArg_ParseTuple(args, "O:sched_closed", &capsule))
		return NULL;
	m = tp_sched_hold(capsule);
	if (!m)
		return NULL;
	n_holders = m->n_threads + m->cpu_ids.n + 1;
	held.numbers = malloc(n_holders * sizeof(*held.numbers));
	held.kept.rows = malloc(n_holders * sizeof(*held.kept.rows));
	if (!held.numbers || !held.kept.rows) {
		free(held.numbers);
		free(held.kept.rows);
		tp_sched_release(m);
		return PyErr_NoMemory();
	}
	open = held_tuple(module, m);
	runs = open ? closed_runs(module, m, &held) : NULL;
	states = runs ? closed_states(module, m, &held) : NULL;
	spurious = states ? closed_spurious(module, m, &held) : NULL;
	free(held.numbers);
	free(held.kept.rows);
	/* Some rows may be handed over, and others not. */
	m->is_finished = !spurious;
	made = spurious ? Py_BuildValue("(OOONO)", runs, states, spurious, threads_tuple(module, m), open) : NULL;
	Py_XDECREF(open);
	Py_XDECREF(runs);
	Py_XDECREF(states);
	Py_XDECREF(spurious);
	tp_sched_release(m);
	return made;
}
