/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _DEMO_TRACE_TYPES_H
#define _DEMO_TRACE_TYPES_H

enum demo_kind {
	DEMO_COLD = 0,
	DEMO_HOT = 4,
};

struct page;

#endif /* _DEMO_TRACE_TYPES_H */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo

#if !defined(_DEMO_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _DEMO_TRACE_H

#include <linux/tracepoint.h>

TRACE_DEFINE_ENUM(DEMO_HOT);

TRACE_EVENT(tick,

	TP_PROTO(int n, bool is_hot, const char *name, const u16 *list,
		 struct page *page, void *where),

	TP_ARGS(n, is_hot, name, list, page, where),

	TP_STRUCT__entry(
		__field(int, n)
		__field(int, kind)
		__field(void *, where)
		__string(name, tick_in0)
		__array(u16, list, 4)
	),

	TP_fast_assign(
		__entry->n = tick_in1;
		__entry->kind = tick_in2 ? DEMO_HOT : DEMO_COLD;
		__entry->where = tick_in3;
		__assign_str(name, tick_in0);
		memcpy(__entry->list, tick_in4, sizeof(__entry->list));
	),

	TP_printk("n=%d kind=%s where=%p name=%s list=%s",
		  __entry->n,
		  __print_symbolic(__entry->kind, { DEMO_HOT, "hot" }),
		  __entry->where, __get_str(name),
		  __print_array(__entry->list, 4, 2))
);

#endif /* _DEMO_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .

#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE demo_trace

#include <trace/define_trace.h>
