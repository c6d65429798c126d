/* SPDX-License-Identifier: MIT */
/*
 * The oldest written form of a tracepoint, as the first kernel documentation showed it: no record
 * and no text yet, only the function that the code calls.  It is read, and can be written as
 * today's DECLARE_TRACE().
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM subsys

#if !defined(_TRACE_SUBSYS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_SUBSYS_H

#include <linux/tracepoint.h>

DEFINE_TRACE(subsys_eventname,
	TPPROTO(int firstarg, struct task_struct *p),
	TPARGS(firstarg, p));

#endif /* _TRACE_SUBSYS_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE legacy_subsys
#include <trace/define_trace.h>
