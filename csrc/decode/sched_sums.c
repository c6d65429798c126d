/*
 * Sums over the rows of scheduling, and the latencies among them.
 *
 * The twin is src/tracepoint/analysis/sched/sums.py.
 */
#include "sched_machine.h"

enum { MAX_COLUMNS = 6, MAX_PRECISION = 24 };

/* Columns of rows: each must have an item for each row. */
struct rows {
	Py_buffer columns[MAX_COLUMNS];
	uint64_t n;
};

static bool check_rows(struct rows *rows, const unsigned int *sizes, unsigned int n)
{
	rows->n = (uint64_t)rows->columns[0].len / sizes[0];
	for (unsigned int c = 1; c < n; c++)
		if ((uint64_t)rows->columns[c].len / sizes[c] < rows->n) {
			PyErr_SetString(PyExc_ValueError, "columns of different lengths");
			return false;
		}
	return true;
}

static void release_rows(struct rows *rows)
{
	for (unsigned int c = 0; c < MAX_COLUMNS; c++)
		PyBuffer_Release(&rows->columns[c]);
}

static int32_t int_at(const Py_buffer *column, uint64_t row)
{
	int32_t found;

	memcpy(&found, (const unsigned char *)column->buf + 4 * row, sizeof(found));
	return found;
}

static int64_t long_at(const Py_buffer *column, uint64_t row)
{
	int64_t found;

	memcpy(&found, (const unsigned char *)column->buf + 8 * row, sizeof(found));
	return found;
}

static uint8_t byte_at(const Py_buffer *column, uint64_t row)
{
	return ((const unsigned char *)column->buf)[row];
}

/* Sums by a key, in the order in which keys came; each has two, and a count. */
struct groups {
	struct tp_ids ids;
	struct group {
		struct tp_sum sums[2];
		uint64_t n;
	} *groups;
	uint64_t room;
};

static bool start_groups(struct groups *groups)
{
	*groups = (struct groups){ 0 };
	return tp_ids_init(&groups->ids);
}

static void end_groups(struct groups *groups)
{
	tp_ids_deinit(&groups->ids);
	free(groups->groups);
}

static struct group *group_of(struct groups *groups, uint64_t key)
{
	uint64_t n = groups->ids.n;
	uint32_t at;

	if (!tp_grow(&groups->groups, &groups->room, n + 1, sizeof(*groups->groups)))
		return NULL;
	at = tp_ids_add(&groups->ids, key);
	if (at == TP_NO_INDEX)
		return NULL;
	if (at == n)
		groups->groups[at] = (struct group){ 0 };
	return &groups->groups[at];
}

/* What each CPU was busy and idle, by its number. */
static bool sum_cpus(const struct rows *rows, struct groups *groups)
{
	const Py_buffer *tids = &rows->columns[3];

	for (uint64_t row = 0; row < rows->n; row++) {
		uint32_t utid = (uint32_t)int_at(&rows->columns[2], row);
		struct group *group = group_of(groups, (uint32_t)int_at(&rows->columns[1], row));
		int64_t length = long_at(&rows->columns[0], row);

		if (!group)
			return false;
		group->n++;
		if (length != OPEN_LENGTH && utid < (uint64_t)tids->len / 4)
			tp_sum_add(&group->sums[int_at(tids, utid) == IDLE_TID], length);
	}
	return true;
}

static PyObject *cpus_list(const struct groups *groups)
{
	PyObject *list = PyList_New((Py_ssize_t)groups->ids.n);

	for (uint64_t n = 0; list && n < groups->ids.n; n++) {
		const struct group *group = &groups->groups[n];
		PyObject *made = Py_BuildValue("(iNNK)", (int)(int32_t)(uint32_t)groups->ids.keys[n],
					       tp_sum_number(group->sums[0]), tp_sum_number(group->sums[1]),
					       (unsigned long long)group->n);

		if (!made)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, (Py_ssize_t)n, made);
	}
	return list;
}

PyObject *tp_sched_cpu_sums(PyObject *module, PyObject *args)
{
	static const unsigned int sizes[] = { 8, 4, 4 };
	struct rows rows = { 0 };
	struct groups groups;
	PyObject *made = NULL;
	bool is_done;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*y*y*y*:sched_cpu_sums", &rows.columns[0], &rows.columns[1], &rows.columns[2],
			      &rows.columns[3]))
		return NULL;
	if (!check_rows(&rows, sizes, 3))
		goto out;
	Py_BEGIN_ALLOW_THREADS
	is_done = start_groups(&groups) && sum_cpus(&rows, &groups);
	Py_END_ALLOW_THREADS
	made = is_done ? cpus_list(&groups) : PyErr_NoMemory();
	end_groups(&groups);
out:
	release_rows(&rows);
	return made;
}

/* How long each thread was in each state, by both, and how often it was; no sleep of which a part was none. */
static bool sum_tasks(const struct rows *rows, struct groups *groups)
{
	for (uint64_t row = 0; row < rows->n; row++) {
		uint64_t utid = (uint32_t)int_at(&rows->columns[1], row);
		uint32_t state = (uint32_t)int_at(&rows->columns[2], row);
		struct group *group = group_of(groups, utid << 32 | state);
		int64_t length = long_at(&rows->columns[0], row);

		if (!group)
			return false;
		group->n++;
		if (length != OPEN_LENGTH && !(byte_at(&rows->columns[3], row) & ROW_UNSEEN)) {
			tp_sum_add(&group->sums[0], length);
			tp_sum_add(&group->sums[1], 1);
		}
	}
	return true;
}

static PyObject *tasks_list(const struct groups *groups)
{
	PyObject *list = PyList_New((Py_ssize_t)groups->ids.n);

	for (uint64_t n = 0; list && n < groups->ids.n; n++) {
		const struct group *group = &groups->groups[n];
		uint64_t key = groups->ids.keys[n];
		PyObject *made = Py_BuildValue("(iiNKK)", (int)(int32_t)(key >> 32), (int)(int32_t)(uint32_t)key,
					       tp_sum_number(group->sums[0]),
					       (unsigned long long)group->sums[1].low, (unsigned long long)group->n);

		if (!made)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, (Py_ssize_t)n, made);
	}
	return list;
}

PyObject *tp_sched_task_sums(PyObject *module, PyObject *args)
{
	static const unsigned int sizes[] = { 8, 4, 4, 1 };
	struct rows rows = { 0 };
	struct groups groups;
	PyObject *made = NULL;
	bool is_done;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*y*y*y*:sched_task_sums", &rows.columns[0], &rows.columns[1],
			      &rows.columns[2], &rows.columns[3]))
		return NULL;
	if (!check_rows(&rows, sizes, 4))
		goto out;
	Py_BEGIN_ALLOW_THREADS
	is_done = start_groups(&groups) && sum_tasks(&rows, &groups);
	Py_END_ALLOW_THREADS
	made = is_done ? tasks_list(&groups) : PyErr_NoMemory();
	end_groups(&groups);
out:
	release_rows(&rows);
	return made;
}

/* How often each thread left a CPU: in a state in which it could run at the second place, else at the first. */
static void count_ends(const struct rows *rows, int64_t *counts, uint64_t n_threads)
{
	const Py_buffer *classes = &rows->columns[2];

	for (uint64_t row = 0; row < rows->n; row++) {
		uint32_t utid = (uint32_t)int_at(&rows->columns[0], row);
		uint32_t end = (uint32_t)int_at(&rows->columns[1], row);

		if (utid < n_threads && end < (uint64_t)classes->len)
			counts[2 * (uint64_t)utid + (byte_at(classes, end) == CLASS_RUNNABLE)]++;
	}
}

PyObject *tp_sched_ends(PyObject *module, PyObject *args)
{
	static const unsigned int sizes[] = { 4, 4 };
	struct tp_block *block = NULL;
	struct rows rows = { 0 };
	unsigned int n_threads;
	PyObject *made = NULL;

	if (!PyArg_ParseTuple(args, "y*y*y*I:sched_ends", &rows.columns[0], &rows.columns[1], &rows.columns[2],
			      &n_threads))
		return NULL;
	if (!check_rows(&rows, sizes, 2))
		goto out;
	block = tp_block_create(2 * sizeof(int64_t) * (uint64_t)n_threads);
	if (!block) {
		PyErr_NoMemory();
		goto out;
	}
	memset(block->bytes, 0, block->size);
	Py_BEGIN_ALLOW_THREADS
	count_ends(&rows, (int64_t *)block->bytes, n_threads);
	Py_END_ALLOW_THREADS
	made = tp_buffer_of(module, block);
out:
	release_rows(&rows);
	return made;
}

/* Why a thread waited: 1 where the waking began it, 2 a preemption, 4 a yield, 8 the first wake-up of a task. */
static unsigned int cause_of(unsigned int flags, bool is_preempted)
{
	if ((flags & (ROW_RAN | ROW_CUT | ROW_LATE)) != ROW_RAN)
		return 0;
	if (flags & ROW_WOKEN)
		return 1;
	if (flags & ROW_NEW)
		return 8;
	return is_preempted ? 2 : 4;
}

/* The rows that are waits: whose, the priority with which the thread ran then, and how long. */
struct waits {
	int32_t *utids, *priorities;
	int64_t *lengths;
	uint64_t n;
};

/* Find the waits of some causes; there is room for all rows. */
static void find_waits(const struct rows *rows, unsigned int causes, struct waits *ret)
{
	const Py_buffer *preempted = &rows->columns[5];

	for (uint64_t row = 0; row < rows->n; row++) {
		uint32_t state = (uint32_t)int_at(&rows->columns[2], row);
		bool is_preempted = state < (uint64_t)preempted->len && byte_at(preempted, state);

		if (!(cause_of(byte_at(&rows->columns[4], row), is_preempted) & causes))
			continue;
		ret->utids[ret->n] = int_at(&rows->columns[1], row);
		ret->priorities[ret->n] = int_at(&rows->columns[3], row);
		ret->lengths[ret->n++] = long_at(&rows->columns[0], row);
	}
}

PyObject *tp_sched_waits(PyObject *module, PyObject *args)
{
	static const unsigned int sizes[] = { 8, 4, 4, 4, 1 };
	struct rows rows = { 0 };
	struct waits found = { 0 };
	PyObject *made = NULL;
	unsigned int causes;

	if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*I:sched_waits", &rows.columns[0], &rows.columns[1], &rows.columns[2],
			      &rows.columns[4], &rows.columns[3], &rows.columns[5], &causes))
		return NULL;
	if (!check_rows(&rows, sizes, 5))
		goto out;
	found.utids = malloc(rows.n * sizeof(*found.utids) + 1);
	found.priorities = malloc(rows.n * sizeof(*found.priorities) + 1);
	found.lengths = malloc(rows.n * sizeof(*found.lengths) + 1);
	if (!found.utids || !found.priorities || !found.lengths) {
		PyErr_NoMemory();
		goto out;
	}
	Py_BEGIN_ALLOW_THREADS
	find_waits(&rows, causes, &found);
	Py_END_ALLOW_THREADS
	made = Py_BuildValue("(NNN)", tp_take_array(module, &found.utids, found.n, sizeof(*found.utids)),
			     tp_take_array(module, &found.priorities, found.n, sizeof(*found.priorities)),
			     tp_take_array(module, &found.lengths, found.n, sizeof(*found.lengths)));
out:
	free(found.utids);
	free(found.priorities);
	free(found.lengths);
	release_rows(&rows);
	return made;
}

/* The number of the bucket of a value, as bucket_of() of src/tracepoint/analysis/histogram.py. */
static int32_t bucket_of(int64_t value, unsigned int precision)
{
	uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
	int shift = size ? 63 - __builtin_clzll(size) - (int)precision : 0;
	int32_t bucket = shift <= 0 ? (int32_t)size : (int32_t)((shift << precision) + (int64_t)(size >> shift));

	return value < 0 ? ~bucket : bucket;
}

/* Waits by thread and priority, and how many are in each bucket of each. */
struct folded {
	struct groups groups, buckets;
	int64_t (*ends)[2]; /* the shortest and the longest of a group */
	uint64_t end_room;
};

static bool fold(const struct rows *rows, unsigned int precision, struct folded *ret)
{
	for (uint64_t row = 0; row < rows->n; row++) {
		uint64_t key = (uint64_t)(uint32_t)int_at(&rows->columns[1], row) << 32;
		int64_t length = long_at(&rows->columns[0], row);
		uint64_t n = ret->groups.ids.n, at;
		struct group *group = group_of(&ret->groups, key | (uint32_t)int_at(&rows->columns[2], row)), *bucket;

		if (!group || !tp_grow(&ret->ends, &ret->end_room, n + 1, sizeof(*ret->ends)))
			return false;
		at = (uint64_t)(group - ret->groups.groups);
		if (!group->n++)
			ret->ends[at][0] = ret->ends[at][1] = length;
		tp_sum_add(&group->sums[0], length);
		if (length < ret->ends[at][0])
			ret->ends[at][0] = length;
		if (length > ret->ends[at][1])
			ret->ends[at][1] = length;
		bucket = group_of(&ret->buckets, at << 32 | (uint32_t)bucket_of(length, precision));
		if (!bucket)
			return false;
		bucket->n++;
	}
	return true;
}

static PyObject *groups_list(const struct folded *folded)
{
	const struct groups *groups = &folded->groups;
	PyObject *list = PyList_New((Py_ssize_t)groups->ids.n);

	for (uint64_t n = 0; list && n < groups->ids.n; n++) {
		uint64_t key = groups->ids.keys[n];
		PyObject *made = Py_BuildValue("(iiKNLL)", (int)(int32_t)(key >> 32), (int)(int32_t)(uint32_t)key,
					       (unsigned long long)groups->groups[n].n,
					       tp_sum_number(groups->groups[n].sums[0]),
					       (long long)folded->ends[n][0], (long long)folded->ends[n][1]);

		if (!made)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, (Py_ssize_t)n, made);
	}
	return list;
}

static PyObject *buckets_list(const struct groups *buckets)
{
	PyObject *list = PyList_New((Py_ssize_t)buckets->ids.n);

	for (uint64_t n = 0; list && n < buckets->ids.n; n++) {
		uint64_t key = buckets->ids.keys[n];
		PyObject *made = Py_BuildValue("(IiK)", (unsigned int)(key >> 32), (int)(int32_t)(uint32_t)key,
					       (unsigned long long)buckets->groups[n].n);

		if (!made)
			Py_CLEAR(list);
		else
			PyList_SET_ITEM(list, (Py_ssize_t)n, made);
	}
	return list;
}

PyObject *tp_sched_fold(PyObject *module, PyObject *args)
{
	static const unsigned int sizes[] = { 8, 4, 4 };
	struct folded folded = { 0 };
	struct rows rows = { 0 };
	unsigned int precision;
	PyObject *made = NULL;
	bool is_done;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*y*y*I:sched_fold", &rows.columns[1], &rows.columns[2], &rows.columns[0],
			      &precision))
		return NULL;
	if (!check_rows(&rows, sizes, 3))
		goto out;
	if (precision > MAX_PRECISION) {
		PyErr_SetString(PyExc_ValueError, "not a precision of buckets");
		goto out;
	}
	Py_BEGIN_ALLOW_THREADS
	is_done = start_groups(&folded.groups) && start_groups(&folded.buckets) && fold(&rows, precision, &folded);
	Py_END_ALLOW_THREADS
	made = is_done ? Py_BuildValue("(NN)", groups_list(&folded), buckets_list(&folded.buckets)) : PyErr_NoMemory();
	end_groups(&folded.groups);
	end_groups(&folded.buckets);
	free(folded.ends);
out:
	release_rows(&rows);
	return made;
}
