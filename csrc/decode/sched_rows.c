/* The rows of a machine as buffers, which Python makes tables of. */
#include "sched_machine.h"

#define TAKEN(rows, column) tp_take_array(module, &(rows)->column, (rows)->n, sizeof(*(rows)->column))

static PyObject *runs_tuple(PyObject *module, struct sched_runs *rows)
{
	return Py_BuildValue("(NNNNNNN)", TAKEN(rows, ts), TAKEN(rows, dur), TAKEN(rows, cpu), TAKEN(rows, utid),
			     TAKEN(rows, end), TAKEN(rows, priority), TAKEN(rows, flags));
}

static PyObject *states_tuple(PyObject *module, struct sched_states *rows)
{
	return Py_BuildValue("(NNNNNNNN)", TAKEN(rows, ts), TAKEN(rows, dur), TAKEN(rows, cpu), TAKEN(rows, utid),
			     TAKEN(rows, state), TAKEN(rows, waker), TAKEN(rows, irq), TAKEN(rows, flags));
}

static PyObject *spurious_tuple(PyObject *module, struct sched_spurious *rows)
{
	return Py_BuildValue("(NNNNN)", TAKEN(rows, ts), TAKEN(rows, row), TAKEN(rows, irq), TAKEN(rows, utid),
			     TAKEN(rows, waker));
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
	made = Py_BuildValue("(NNNNN)", runs_tuple(module, &m->runs), states_tuple(module, &m->states),
			     spurious_tuple(module, &m->spurious), threads_tuple(module, m), counts_tuple(m));
	tp_sched_release(m);
	return made;
}
