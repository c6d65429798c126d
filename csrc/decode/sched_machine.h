/*
 * The states of threads from the records of the scheduler.
 *
 * sched.c takes one record after the other, sched_threads.c knows the threads by the ids of tasks and has the rows,
 * sched_run.c reads the records out of columns, sched_rows.c hands the rows over, sched_sums.c adds them up.  The
 * rules, and why they are so, stand with the twin: src/tracepoint/analysis/sched/machine.py.
 */
#ifndef TP_SCHED_MACHINE_H
#define TP_SCHED_MACHINE_H

#include "columns.h"
#include "ids.h"
#include "sum.h"

enum { IDLE_TID = 0, NOTHING = -1, OPEN_LENGTH = -1 };

/* As SchedKind of src/tracepoint/analysis/sched/events.py. */
enum sched_kind {
	SCHED_SWITCH,
	SCHED_WAKING,
	SCHED_WAKEUP,
	SCHED_WAKEUP_NEW,
	SCHED_MIGRATE,
	SCHED_NEW,
	SCHED_EXEC,
	SCHED_FREE,
	SCHED_RENAME,
	SCHED_N_KINDS,
};

/* As StateClass and the first numbers of StateNames, of rows.py there. */
enum sched_class { CLASS_RUNNING, CLASS_RUNNABLE, CLASS_ASLEEP, CLASS_DEAD };
enum { STATE_RUNNING = 0, STATE_RUNNABLE = 1 };

/* As RowFlag. */
enum {
	ROW_CUT = 1,
	ROW_UNSEEN = 2,
	ROW_LATE = 4,
	ROW_RAN = 8,
	ROW_WOKEN = 16,
	ROW_NEW = 32,
};

/* The time from one stamp to another; the longest there is where a hostile pair is further apart. */
static inline int64_t sched_length(int64_t start, int64_t stop)
{
	int64_t found;

	if (__builtin_sub_overflow(stop, start, &found))
		return stop < start ? INT64_MIN : INT64_MAX;
	return found;
}

/* The times in which events were lost, by time; they do not touch. */
struct sched_gaps {
	int64_t *starts, *stops;
	uint64_t n;
};

/* As the class Thread of threads.py there. */
struct sched_thread {
	int32_t tid, utid, name, state, cpu, last_cpu, generation;
	bool is_new, owes_wakeup, has_start, has_end, has_unknown;
	int64_t row, pending, seen, start, end, unknown_since;
	int64_t migrations, cpu_changes;
};

/* What a CPU runs: NOTHING where nothing is known, before its first switch. */
struct sched_cpu {
	int32_t number, idle, thread;
	bool has_switch;
	int64_t row, seen;
	struct tp_sum lost;
	struct sched_gaps gaps;
};

/* Who has the id of a task now, and how many had it. */
struct sched_task {
	int32_t utid, n_used;
};

struct sched_runs {
	uint64_t n, room;
	int64_t *ts, *dur;
	int32_t *cpu, *utid, *end, *priority;
	uint8_t *flags;
};

/* `priority`: of a row with ROW_RAN that with which the thread ran then. */
struct sched_states {
	uint64_t n, room;
	int64_t *ts, *dur;
	int32_t *cpu, *utid, *state, *waker, *priority;
	int8_t *irq;
	uint8_t *flags;
};

struct sched_spurious {
	uint64_t n, room;
	int64_t *ts, *row;
	int8_t *irq;
	int32_t *utid, *waker;
};

struct sched_machine {
	/* `is_used` by one thread: each call of Python holds the machine. */
	bool has_wakings, has_wakes, has_new, is_finished, is_used;
	struct sched_runs runs;
	struct sched_states states;
	struct sched_spurious spurious;
	struct tp_ids tids, cpu_ids, values;
	struct sched_thread *threads;
	struct sched_task *tasks;   /* by the numbers of `tids` */
	struct sched_cpu *cpus;     /* by the numbers of `cpu_ids` */
	int32_t *named;             /* states, by the numbers of `values`, those of prev_state */
	uint8_t *classes;           /* by the numbers of states */
	uint64_t n_threads, thread_room, task_room, cpu_room, named_room, n_classes, class_room;
	struct sched_gaps gaps;     /* of all CPUs */
	int64_t n_lost_switches, n_unseen, n_dropped, longest_hidden;
	struct tp_sum overlap;
};

/* What a record says: of a switch `tid` left in `state`, and `other` came; of a wake-up `other` is the waker. */
struct sched_record {
	int64_t ts;
	int32_t cpu, tid, other, priority;
	uint32_t flags;
	int32_t state;
	int32_t name, other_name; /* NOTHING: not known */
};

struct sched_machine *tp_sched_create(void);
void tp_sched_free(struct sched_machine *machine);
/* Make room for all that one record can add; false without memory. */
bool tp_sched_reserve(struct sched_machine *machine);
struct sched_cpu *tp_sched_cpu(struct sched_machine *machine, int32_t cpu);
struct sched_thread *tp_sched_find(struct sched_machine *machine, int32_t tid, int32_t cpu);
struct sched_thread *tp_sched_known(struct sched_machine *machine, int32_t tid);
struct sched_thread *tp_sched_begin(struct sched_machine *machine, int32_t tid, int64_t ts);
void tp_sched_end(struct sched_machine *machine, struct sched_thread *thread);
void tp_sched_rename(struct sched_machine *machine, int32_t old_tid, int32_t tid, int64_t ts);
int64_t tp_sched_open_run(struct sched_runs *rows, int64_t ts, int32_t cpu, int32_t utid, int32_t priority);
int64_t tp_sched_add_spurious(struct sched_spurious *rows, int64_t ts, int64_t row, int8_t irq, int32_t utid,
			      int32_t waker);

/* Take a record, for which there is room. */
void tp_sched_take(struct sched_machine *machine, enum sched_kind kind, const struct sched_record *record);
void tp_sched_finish(struct sched_machine *machine, int64_t ts);

/* Use a machine alone; NULL with an exception where another thread does, or it has given its rows. */
struct sched_machine *tp_sched_hold(PyObject *capsule);
void tp_sched_release(struct sched_machine *machine);

PyObject *tp_sched_machine(PyObject *module, PyObject *args);
PyObject *tp_sched_run(PyObject *module, PyObject *args);
PyObject *tp_sched_state(PyObject *module, PyObject *args);
PyObject *tp_sched_rows(PyObject *module, PyObject *args);
PyObject *tp_sched_closed(PyObject *module, PyObject *args);
PyObject *tp_sched_cpu_sums(PyObject *module, PyObject *args);
PyObject *tp_sched_task_sums(PyObject *module, PyObject *args);
PyObject *tp_sched_ends(PyObject *module, PyObject *args);
PyObject *tp_sched_waits(PyObject *module, PyObject *args);
PyObject *tp_sched_fold(PyObject *module, PyObject *args);

#define TP_SCHED_METHODS											\
	{ "sched_machine", tp_sched_machine, METH_VARARGS, "sched_machine(recorded kinds, gaps by CPU, all gaps)" }, \
	{ "sched_run", tp_sched_run, METH_VARARGS,								\
	  "sched_run(machine, heads, events, row): the row whose state it does not know, or the end" },	\
	{ "sched_state", tp_sched_state, METH_VARARGS, "sched_state(machine, value, number, class)" },		\
	{ "sched_rows", tp_sched_rows, METH_VARARGS, "sched_rows(machine, stop): all rows, threads and counts" }, \
	{ "sched_cpu_sums", tp_sched_cpu_sums, METH_VARARGS, "sched_cpu_sums(dur, cpu, utid, tids)" },		\
	{ "sched_task_sums", tp_sched_task_sums, METH_VARARGS, "sched_task_sums(dur, utid, state, flags, n)" },	\
	{ "sched_ends", tp_sched_ends, METH_VARARGS, "sched_ends(utid, end, classes, n)" },			\
	{ "sched_closed", tp_sched_closed, METH_VARARGS,							\
	  "sched_closed(machine): the rows that no record changes any more, which it forgets; threads; other rows" },		\
	{ "sched_waits", tp_sched_waits, METH_VARARGS,								\
	  "sched_waits(dur, utid, state, flags, priority, preempted, causes): threads, priorities, lengths" },	\
	{ "sched_fold", tp_sched_fold, METH_VARARGS,								\
	  "sched_fold(utid, priority, length, precision): groups, and the group, number and count of buckets" }

#endif
