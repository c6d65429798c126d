/* SPDX-License-Identifier: MIT */
/*
 * The scheduler takes the processor from one task and gives it to another.
 *
 * The state of the task that leaves is kept as a number and named only when it is shown: zero is
 * a task that could have run on ("R").
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM example_sched
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE sched_switch

#if !defined(_TRACE_SCHED_SWITCH_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_SCHED_SWITCH_H

#include <linux/sched.h>
#include <linux/tracepoint.h>

TRACE_EVENT(sched_switch,

	TP_PROTO(bool preempt, struct task_struct *prev, struct task_struct *next),

	TP_ARGS(preempt, prev, next),

	TP_STRUCT__entry(
		__array(	char,	prev_comm,	16	)
		__field(	pid_t,	prev_pid		)
		__field(	int,	prev_prio		)
		__array(	char,	next_comm,	16	)
		__field(	pid_t,	next_pid		)
		__field(	int,	next_prio		)
		__field(	long,	prev_state		)
	),

	TP_fast_assign(
		memcpy(__entry->prev_comm, prev->comm, 16);
		__entry->prev_pid	= prev->pid;
		__entry->prev_prio	= prev->prio;
		memcpy(__entry->next_comm, next->comm, 16);
		__entry->next_pid	= next->pid;
		__entry->next_prio	= next->prio;
		/* A task that was preempted is still ready to run, whatever it was about to do. */
		__entry->prev_state	= preempt ? 0x100 : prev->__state & 0xff;
	),

	TP_printk("prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d",
		__entry->prev_comm,
		__entry->prev_pid,
		__entry->prev_prio,
		__entry->prev_state & 0xff ?
			__print_flags(__entry->prev_state & 0xff, "|",
				{ 0x01, "S" }, { 0x02, "D" }, { 0x04, "T" },
				{ 0x08, "t" }, { 0x10, "X" }, { 0x20, "Z" },
				{ 0x40, "P" }, { 0x80, "I" }) : "R",
		__entry->prev_state & 0x100 ? "+" : "",
		__entry->next_comm,
		__entry->next_pid,
		__entry->next_prio)
);

#endif /* _TRACE_SCHED_SWITCH_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#include <trace/define_trace.h>
