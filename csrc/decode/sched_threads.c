/* The threads by the ids of tasks, the CPUs, and the rows that they get. */
#include "sched_machine.h"

/* What one record can add: threads and tasks, rows of states, and one of all else. */
enum { MORE_THREADS = 4, MORE_ROWS = 4 };

static bool grow_runs(struct sched_runs *rows)
{
	uint64_t n = rows->n + MORE_ROWS, room = 0;

	if (n <= rows->room)
		return true;
	/* Each array grows by itself: all have the room that is noted at the end. */
#define GROW(column) (room = rows->room, tp_grow(&rows->column, &room, n, sizeof(*rows->column)))
	if (!GROW(ts) || !GROW(dur) || !GROW(cpu) || !GROW(utid) || !GROW(end) || !GROW(priority) || !GROW(flags))
		return false;
	rows->room = room;
	return true;
}

static bool grow_states(struct sched_states *rows)
{
	uint64_t n = rows->n + MORE_ROWS, room = 0;

	if (n <= rows->room)
		return true;
	if (!GROW(ts) || !GROW(dur) || !GROW(cpu) || !GROW(utid) || !GROW(state) || !GROW(waker) || !GROW(irq) ||
	    !GROW(flags) || !GROW(priority))
		return false;
	rows->room = room;
	return true;
}

static bool grow_spurious(struct sched_spurious *rows)
{
	uint64_t n = rows->n + MORE_ROWS, room = 0;

	if (n <= rows->room)
		return true;
	if (!GROW(ts) || !GROW(row) || !GROW(irq) || !GROW(utid) || !GROW(waker))
		return false;
#undef GROW
	rows->room = room;
	return true;
}

bool tp_sched_reserve(struct sched_machine *m)
{
	return grow_runs(&m->runs) && grow_states(&m->states) && grow_spurious(&m->spurious) &&
	       m->n_threads < INT32_MAX - MORE_THREADS &&
	       tp_grow(&m->threads, &m->thread_room, m->n_threads + MORE_THREADS, sizeof(*m->threads)) &&
	       tp_ids_reserve(&m->tids, MORE_THREADS) && tp_ids_reserve(&m->cpu_ids, MORE_THREADS) &&
	       tp_grow(&m->tasks, &m->task_room, m->tids.n + MORE_THREADS, sizeof(*m->tasks)) &&
	       tp_grow(&m->cpus, &m->cpu_room, m->cpu_ids.n + MORE_THREADS, sizeof(*m->cpus));
}

struct sched_machine *tp_sched_create(void)
{
	struct sched_machine *m = calloc(1, sizeof(*m));

	if (m && tp_ids_init(&m->tids) && tp_ids_init(&m->cpu_ids) && tp_ids_init(&m->values))
		return m;
	if (m)
		tp_sched_free(m);
	return NULL;
}

static void free_gaps(struct sched_gaps *gaps)
{
	free(gaps->starts);
	free(gaps->stops);
}

void tp_sched_free(struct sched_machine *m)
{
	void *arrays[] = {
		m->runs.ts, m->runs.dur, m->runs.cpu, m->runs.utid, m->runs.end, m->runs.priority, m->runs.flags,
		m->states.ts, m->states.dur, m->states.cpu, m->states.utid, m->states.state, m->states.waker,
		m->states.irq, m->states.flags, m->states.priority, m->spurious.ts, m->spurious.row, m->spurious.irq, m->spurious.utid,
		m->spurious.waker, m->threads, m->tasks, m->named, m->classes,
	};

	for (uint64_t n = 0; n < m->cpu_ids.n; n++)
		free_gaps(&m->cpus[n].gaps);
	free_gaps(&m->gaps);
	free(m->cpus);
	for (unsigned int n = 0; n < sizeof(arrays) / sizeof(*arrays); n++)
		free(arrays[n]);
	tp_ids_deinit(&m->tids);
	tp_ids_deinit(&m->cpu_ids);
	tp_ids_deinit(&m->values);
	free(m);
}

struct sched_cpu *tp_sched_cpu(struct sched_machine *m, int32_t cpu)
{
	uint64_t n = m->cpu_ids.n;
	uint32_t at = tp_ids_add(&m->cpu_ids, (uint32_t)cpu);

	if (at == n)
		m->cpus[at] = (struct sched_cpu){ .number = cpu, .idle = NOTHING, .thread = NOTHING };
	return &m->cpus[at];
}

static struct sched_task *task_of(struct sched_machine *m, int32_t tid)
{
	uint64_t n = m->tids.n;
	uint32_t at = tp_ids_add(&m->tids, (uint32_t)tid);

	if (at == n)
		m->tasks[at] = (struct sched_task){ .utid = NOTHING };
	return &m->tasks[at];
}

static struct sched_thread *add_thread(struct sched_machine *m, int32_t tid, int32_t generation)
{
	struct sched_thread *thread = &m->threads[m->n_threads];

	*thread = (struct sched_thread){
		.tid = tid, .utid = (int32_t)m->n_threads++, .generation = generation, .state = NOTHING,
		.row = NOTHING, .cpu = NOTHING, .last_cpu = NOTHING, .pending = NOTHING,
	};
	return thread;
}

static struct sched_thread *add_user(struct sched_machine *m, struct sched_task *task, int32_t tid)
{
	struct sched_thread *thread = add_thread(m, tid, task->n_used++);

	task->utid = thread->utid;
	return thread;
}

struct sched_thread *tp_sched_find(struct sched_machine *m, int32_t tid, int32_t cpu)
{
	struct sched_task *task;

	if (tid == IDLE_TID) {
		struct sched_cpu *place = tp_sched_cpu(m, cpu);

		if (place->idle == NOTHING) {
			struct sched_thread *thread = add_thread(m, IDLE_TID, 0);

			thread->last_cpu = cpu;
			thread->name = NOTHING;
			place->idle = thread->utid;
		}
		return &m->threads[place->idle];
	}
	task = task_of(m, tid);
	return task->utid == NOTHING ? add_user(m, task, tid) : &m->threads[task->utid];
}

struct sched_thread *tp_sched_known(struct sched_machine *m, int32_t tid)
{
	struct sched_task *task = task_of(m, tid);

	return task->utid == NOTHING ? NULL : &m->threads[task->utid];
}

struct sched_thread *tp_sched_begin(struct sched_machine *m, int32_t tid, int64_t ts)
{
	struct sched_thread *thread = tp_sched_known(m, tid);

	if (!thread || !thread->is_new) {
		thread = add_user(m, task_of(m, tid), tid);
		thread->start = ts;
		thread->has_start = thread->is_new = true;
	}
	return thread;
}

void tp_sched_end(struct sched_machine *m, struct sched_thread *thread)
{
	task_of(m, thread->tid)->utid = NOTHING;
}

void tp_sched_rename(struct sched_machine *m, int32_t old_tid, int32_t tid, int64_t ts)
{
	struct sched_thread *thread = old_tid == tid ? NULL : tp_sched_known(m, old_tid), *gone;
	struct sched_task *task;

	/* No task becomes an idle one, whatever a damaged record says. */
	if (!thread || tid == IDLE_TID)
		return;
	tp_sched_end(m, thread);
	gone = tp_sched_known(m, tid);
	if (gone) {
		gone->end = ts;
		gone->has_end = true;
	}
	task = task_of(m, tid);
	thread->generation = task->n_used++;
	thread->tid = tid;
	task->utid = thread->utid;
}

int64_t tp_sched_open_run(struct sched_runs *rows, int64_t ts, int32_t cpu, int32_t utid, int32_t priority)
{
	uint64_t n = rows->n++;

	rows->ts[n] = ts;
	rows->dur[n] = OPEN_LENGTH;
	rows->cpu[n] = cpu;
	rows->utid[n] = utid;
	rows->end[n] = NOTHING;
	rows->priority[n] = priority;
	rows->flags[n] = 0;
	return (int64_t)n;
}

int64_t tp_sched_add_spurious(struct sched_spurious *rows, int64_t ts, int64_t row, int8_t irq, int32_t utid,
			      int32_t waker)
{
	uint64_t n = rows->n++;

	rows->ts[n] = ts;
	rows->row[n] = row;
	rows->irq[n] = irq;
	rows->utid[n] = utid;
	rows->waker[n] = waker;
	return (int64_t)n;
}
