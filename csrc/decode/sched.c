/*
 * What the records of the scheduler say of threads, one after the other.
 *
 * The twin, which has the rules: src/tracepoint/analysis/sched/machine.py.
 */
#include "sched_machine.h"

/* include/linux/trace_events.h: TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ. */
enum { IN_IRQ = 0x18 };

/* Who woke a thread, and whether in an interrupt. */
struct source {
	int32_t waker;
	int8_t irq;
};

static const struct source no_source = { NOTHING, NOTHING };

static enum sched_class class_of(const struct sched_machine *m, int32_t state)
{
	return m->classes[state];
}

static bool is_runnable(const struct sched_machine *m, const struct sched_thread *thread)
{
	return thread->state != NOTHING && class_of(m, thread->state) == CLASS_RUNNABLE;
}

/* Return the thread of an id; after the last switch of a task it is that of another. */
static struct sched_thread *thread_of(struct sched_machine *m, int32_t tid, int32_t cpu)
{
	struct sched_thread *thread = tp_sched_find(m, tid, cpu);

	if (thread->state == NOTHING || class_of(m, thread->state) != CLASS_DEAD)
		return thread;
	thread->has_end = false;
	tp_sched_end(m, thread);
	return tp_sched_find(m, tid, cpu);
}

/* Return the first gap that ends after a time, the number of gaps where there is none. */
static uint64_t gap_after(const struct sched_gaps *gaps, int64_t time)
{
	uint64_t low = 0, high = gaps->n;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (gaps->stops[middle] > time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Return whether something that was seen is hidden by a gap before `ts`, and from when on. */
static bool is_hidden(const struct sched_gaps *gaps, int64_t seen, int64_t ts, int64_t *ret)
{
	uint64_t at = gap_after(gaps, seen);

	if (at == gaps->n || gaps->starts[at] >= ts)
		return false;
	*ret = gaps->starts[at] > seen ? gaps->starts[at] : seen;
	return true;
}

/* Each CPU. */

static bool ends_at_loss(struct sched_machine *m, struct sched_cpu *place, int64_t ts)
{
	struct sched_runs *runs = &m->runs;
	int64_t at;

	if (!place->has_switch || !is_hidden(&place->gaps, place->seen, ts, &at))
		return false;
	runs->dur[place->row] = sched_length(runs->ts[place->row], at);
	runs->flags[place->row] |= ROW_CUT;
	tp_sum_add(&place->lost, sched_length(at, ts));
	return true;
}

static void forget(struct sched_machine *m, struct sched_thread *thread)
{
	if (thread->row != NOTHING)
		m->states.flags[thread->row] |= ROW_CUT;
	thread->state = thread->cpu = NOTHING;
	thread->row = thread->pending = NOTHING;
}

static bool leave_cpu(struct sched_machine *m, struct sched_cpu *place, const struct sched_thread *prev,
		      const struct sched_record *record)
{
	struct sched_runs *runs = &m->runs;
	struct sched_thread *running;

	if (place->thread == NOTHING || ends_at_loss(m, place, record->ts))
		return false;
	running = &m->threads[place->thread];
	if (running == prev) {
		runs->dur[place->row] = sched_length(runs->ts[place->row], record->ts);
		runs->end[place->row] = record->state;
		return true;
	}
	m->n_lost_switches++;
	tp_sum_add(&place->lost, sched_length(runs->ts[place->row], record->ts));
	runs->flags[place->row] |= ROW_CUT;
	if (running->state == STATE_RUNNING && running->cpu == record->cpu)
		forget(m, running);
	return false;
}

/* Each thread. */

static void settle(struct sched_machine *m, struct sched_thread *thread, int64_t ts)
{
	struct sched_states *states = &m->states;
	int64_t row = thread->row, at;

	if (!m->gaps.n || thread->state == NOTHING ||
	    !is_hidden(thread->state == STATE_RUNNING ? &tp_sched_cpu(m, thread->cpu)->gaps : &m->gaps,
		       thread->seen, ts, &at))
		return;
	states->dur[row] = sched_length(states->ts[row], at);
	states->flags[row] |= ROW_CUT;
	if (!thread->has_unknown) {
		thread->has_unknown = true;
		thread->unknown_since = is_runnable(m, thread) ? states->ts[row] : at;
	}
	thread->state = thread->cpu = NOTHING;
	thread->row = thread->pending = NOTHING;
}

static void note_hidden(struct sched_machine *m, int64_t length)
{
	if (length > m->longest_hidden)
		m->longest_hidden = length;
}

static void known_again(struct sched_machine *m, struct sched_thread *thread, int64_t ts)
{
	if (thread->has_unknown)
		note_hidden(m, sched_length(thread->unknown_since, ts));
	thread->has_unknown = false;
}

static void close_row(struct sched_machine *m, const struct sched_thread *thread, int64_t ts, unsigned int flags)
{
	m->states.dur[thread->row] = sched_length(m->states.ts[thread->row], ts);
	m->states.flags[thread->row] |= flags;
}

static void open_row(struct sched_machine *m, struct sched_thread *thread, int64_t ts, int32_t cpu, int32_t state,
		     struct source source, unsigned int flags)
{
	struct sched_states *rows = &m->states;
	uint64_t n = rows->n++;

	rows->ts[n] = ts;
	rows->dur[n] = OPEN_LENGTH;
	rows->cpu[n] = cpu;
	rows->utid[n] = thread->utid;
	rows->state[n] = state;
	rows->waker[n] = source.waker;
	rows->irq[n] = source.irq;
	rows->flags[n] = (uint8_t)flags;
	rows->priority[n] = 0;
	thread->state = state;
	thread->seen = ts;
	thread->row = (int64_t)n;
}

/* Forget where a thread was, and return the waking that may not be spurious after all. */
static int64_t left_elsewhere(struct sched_machine *m, struct sched_thread *thread, bool is_first)
{
	const struct sched_states *states = &m->states;
	int64_t row = thread->row, pending = thread->pending;

	if (is_first && states->flags[row] & ROW_WOKEN)
		pending = tp_sched_add_spurious(&m->spurious, states->ts[row], row, states->irq[row], thread->utid,
						states->waker[row]);
	forget(m, thread);
	return pending;
}

static void put_to_sleep(struct sched_machine *m, struct sched_thread *thread, const struct sched_record *record,
			 bool is_here, bool is_first)
{
	int64_t pending, ts = record->ts;

	settle(m, thread, ts);
	thread->is_new = false;
	pending = thread->pending;
	if (thread->state == STATE_RUNNING) {
		if (thread->cpu != record->cpu) {
			if (is_here)
				tp_sum_add(&m->overlap, sched_length(m->states.ts[thread->row], ts));
			return;
		}
		close_row(m, thread, ts, 0);
	} else if (thread->state != NOTHING) {
		if (is_here)
			tp_sum_add(&m->overlap, sched_length(thread->seen, ts));
		pending = left_elsewhere(m, thread, is_first);
	}
	known_again(m, thread, ts);
	thread->last_cpu = record->cpu;
	thread->cpu = NOTHING;
	open_row(m, thread, ts, NOTHING, record->state, no_source, 0);
	thread->pending = is_runnable(m, thread) ? NOTHING : pending;
}

static void let_run(struct sched_machine *m, struct sched_thread *thread, const struct sched_record *record)
{
	int64_t ts = record->ts;

	settle(m, thread, ts);
	thread->is_new = false;
	if (thread->state == STATE_RUNNING) {
		close_row(m, thread, ts, 0);
	} else if (thread->state == NOTHING) {
		m->n_dropped += thread->has_unknown;
	} else if (is_runnable(m, thread)) {
		m->n_dropped += (m->states.flags[thread->row] & (ROW_CUT | ROW_LATE)) != 0;
		close_row(m, thread, ts, ROW_RAN);
		m->states.priority[thread->row] = record->priority;
	} else {
		close_row(m, thread, ts, m->has_wakes ? ROW_UNSEEN : 0);
		if (m->has_wakes) {
			m->n_unseen++;
			note_hidden(m, m->states.dur[thread->row]);
		}
	}
	known_again(m, thread, ts);
	if (thread->last_cpu != NOTHING && thread->last_cpu != record->cpu)
		thread->cpu_changes++;
	thread->last_cpu = thread->cpu = record->cpu;
	thread->pending = NOTHING;
	open_row(m, thread, ts, record->cpu, STATE_RUNNING, no_source, 0);
}

static void name_thread(struct sched_thread *thread, int32_t name)
{
	if (name != NOTHING && thread->tid != IDLE_TID)
		thread->name = name;
}

static void take_switch(struct sched_machine *m, const struct sched_record *record)
{
	struct sched_cpu *place = tp_sched_cpu(m, record->cpu);
	struct sched_thread *prev = thread_of(m, record->tid, record->cpu), *after;
	bool is_here = leave_cpu(m, place, prev, record);

	if (record->tid != IDLE_TID)
		put_to_sleep(m, prev, record, is_here, !place->has_switch);
	after = thread_of(m, record->other, record->cpu);
	place->thread = after->utid;
	place->seen = record->ts;
	place->has_switch = true;
	place->row = tp_sched_open_run(&m->runs, record->ts, record->cpu, after->utid, record->priority);
	if (record->other != IDLE_TID)
		let_run(m, after, record);
	name_thread(prev, record->name);
	name_thread(after, record->other_name);
}

/* Wake-ups, and tasks that begin and end. */

static void wake(struct sched_machine *m, struct sched_thread *thread, int64_t ts, struct source source,
		 unsigned int flags)
{
	if (thread->state != NOTHING)
		close_row(m, thread, ts, 0);
	else if (thread->has_unknown)
		flags |= ROW_CUT;
	thread->pending = NOTHING;
	open_row(m, thread, ts, NOTHING, STATE_RUNNABLE, source, flags);
}

static struct source source_of(struct sched_machine *m, const struct sched_record *record)
{
	return (struct source){ tp_sched_find(m, record->other, record->cpu)->utid, (record->flags & IN_IRQ) != 0 };
}

static struct sched_thread *take_waking(struct sched_machine *m, const struct sched_record *record)
{
	struct sched_thread *thread = thread_of(m, record->tid, record->cpu);
	struct source source;
	int64_t found;

	settle(m, thread, record->ts);
	source = source_of(m, record);
	if (thread->state == STATE_RUNNING || is_runnable(m, thread)) {
		found = tp_sched_add_spurious(&m->spurious, record->ts, thread->row, source.irq, thread->utid,
					      source.waker);
		thread->pending = thread->state == STATE_RUNNING ? found : NOTHING;
	} else {
		wake(m, thread, record->ts, source, ROW_WOKEN);
		thread->owes_wakeup = true;
	}
	return thread;
}

/* Case a: a thread was woken before it slept. */
static void never_slept(struct sched_machine *m, struct sched_thread *thread, int64_t ts)
{
	struct sched_states *states = &m->states;
	struct sched_spurious *spurious = &m->spurious;

	states->state[thread->row] = STATE_RUNNABLE;
	states->flags[thread->row] |= ROW_WOKEN;
	states->waker[thread->row] = spurious->waker[thread->pending];
	states->irq[thread->row] = spurious->irq[thread->pending];
	spurious->utid[thread->pending] = NOTHING;
	thread->state = STATE_RUNNABLE;
	thread->seen = ts;
	thread->pending = NOTHING;
}

static struct sched_thread *take_wakeup(struct sched_machine *m, const struct sched_record *record)
{
	struct sched_thread *thread = thread_of(m, record->tid, record->cpu);
	bool is_owed = thread->owes_wakeup;
	struct source source;

	settle(m, thread, record->ts);
	source = source_of(m, record);
	thread->owes_wakeup = false;
	if (thread->state == STATE_RUNNING) {
		thread->pending = NOTHING;
	} else if (thread->state == NOTHING) {
		/* With wakings its own is not there: it is not known since when it was runnable. */
		if (!m->has_wakings)
			wake(m, thread, record->ts, source, ROW_WOKEN);
	} else if (is_runnable(m, thread)) {
		return thread;
	} else if (thread->pending != NOTHING) {
		never_slept(m, thread, record->ts);
	} else if (is_owed && record->ts == thread->seen) {
		return thread;
	} else if (m->has_wakings) {
		m->states.flags[thread->row] |= ROW_UNSEEN;
		if (!thread->has_unknown) {
			thread->has_unknown = true;
			thread->unknown_since = m->states.ts[thread->row];
		}
		wake(m, thread, record->ts, source, ROW_WOKEN | ROW_LATE);
	} else {
		wake(m, thread, record->ts, source, ROW_WOKEN);
	}
	return thread;
}

static struct sched_thread *take_new(struct sched_machine *m, const struct sched_record *record)
{
	struct sched_thread *thread = tp_sched_begin(m, record->tid, record->ts);

	if (!m->has_new && thread->state == NOTHING)
		wake(m, thread, record->ts, source_of(m, record), ROW_NEW | ROW_LATE);
	return thread;
}

static struct sched_thread *take_wakeup_new(struct sched_machine *m, const struct sched_record *record)
{
	struct sched_thread *thread = tp_sched_begin(m, record->tid, record->ts);

	thread->is_new = false;
	if (thread->state == NOTHING)
		wake(m, thread, record->ts, source_of(m, record), ROW_NEW);
	return thread;
}

static void take_free(struct sched_machine *m, const struct sched_record *record)
{
	struct sched_thread *thread = tp_sched_known(m, record->tid);

	if (!thread)
		return;
	settle(m, thread, record->ts);
	if (thread->is_new || thread->state == STATE_RUNNING || is_runnable(m, thread))
		return;
	if (thread->state != NOTHING)
		close_row(m, thread, record->ts, 0);
	thread->state = NOTHING;
	thread->row = NOTHING;
	thread->end = record->ts;
	thread->has_end = true;
	tp_sched_end(m, thread);
}

void tp_sched_take(struct sched_machine *m, enum sched_kind kind, const struct sched_record *record)
{
	struct sched_thread *thread = NULL;

	switch (kind) {
	case SCHED_SWITCH:
		take_switch(m, record);
		return;
	case SCHED_MIGRATE:
		thread_of(m, record->tid, record->cpu)->migrations++;
		return;
	case SCHED_EXEC:
		tp_sched_rename(m, record->other, record->tid, record->ts);
		return;
	case SCHED_FREE:
		take_free(m, record);
		return;
	case SCHED_RENAME:
		name_thread(tp_sched_find(m, record->tid, record->cpu), record->name);
		return;
	default:
		break;
	}
	if (record->tid == IDLE_TID)
		return;
	if (kind == SCHED_WAKING)
		thread = take_waking(m, record);
	else if (kind == SCHED_WAKEUP)
		thread = take_wakeup(m, record);
	else if (kind == SCHED_NEW)
		thread = take_new(m, record);
	else
		thread = take_wakeup_new(m, record);
	name_thread(thread, record->name);
}

static void drop_none(struct sched_spurious *rows)
{
	uint64_t kept = 0;

	for (uint64_t n = 0; n < rows->n; n++) {
		if (rows->utid[n] == NOTHING)
			continue;
		rows->ts[kept] = rows->ts[n];
		rows->row[kept] = rows->row[n];
		rows->irq[kept] = rows->irq[n];
		rows->utid[kept] = rows->utid[n];
		rows->waker[kept++] = rows->waker[n];
	}
	rows->n = kept;
}

void tp_sched_finish(struct sched_machine *m, int64_t ts)
{
	for (uint64_t n = 0; n < m->cpu_ids.n; n++)
		ends_at_loss(m, &m->cpus[n], ts);
	for (uint64_t n = 0; n < m->n_threads; n++) {
		settle(m, &m->threads[n], ts);
		known_again(m, &m->threads[n], ts);
	}
	drop_none(&m->spurious);
}
