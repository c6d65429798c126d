/* SPDX-License-Identifier: MIT */
/*
 * sched_switch with the fields and the line that Linux 3.7 gave it, to be compared with today's.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM sched
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE sched_switch_2013

#if !defined(_TRACE_SCHED_SWITCH_2013_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_SCHED_SWITCH_2013_H

#include <linux/sched.h>
#include <linux/tracepoint.h>

TRACE_EVENT(sched_switch,

	TP_PROTO(struct task_struct *prev, struct task_struct *next),

	TP_ARGS(prev, next),

	TP_STRUCT__entry(
		__array(	char,	prev_comm,	16	)
		__field(	pid_t,	prev_pid		)
		__field(	int,	prev_prio		)
		__field(	long,	prev_state		)
		__array(	char,	next_comm,	16	)
		__field(	pid_t,	next_pid		)
		__field(	int,	next_prio		)
	),

	TP_fast_assign(
		memcpy(__entry->prev_comm, prev->comm, 16);
		__entry->prev_pid	= prev->pid;
		__entry->prev_prio	= prev->prio;
		/* 1024 stood for a task that was preempted, and was shown as a plus sign. */
		__entry->prev_state	= prev->state;
		memcpy(__entry->next_comm, next->comm, 16);
		__entry->next_pid	= next->pid;
		__entry->next_prio	= next->prio;
	),

	TP_printk("prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d",
		__entry->prev_comm,
		__entry->prev_pid,
		__entry->prev_prio,
		__entry->prev_state & 1023 ?
			__print_flags(__entry->prev_state & 1023, "|",
				{ 1, "S" }, { 2, "D" }, { 4, "T" }, { 8, "t" },
				{ 16, "Z" }, { 32, "X" }, { 64, "x" },
				{ 128, "W" }) : "R",
		__entry->prev_state & 1024 ? "+" : "",
		__entry->next_comm,
		__entry->next_pid,
		__entry->next_prio)
);

#endif /* _TRACE_SCHED_SWITCH_2013_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#include <trace/define_trace.h>
