/* SPDX-License-Identifier: MIT */
/*
 * The event that guides to the kernel's tracepoints build up piece by piece, with what they leave
 * out: how each kind of argument is kept.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM my_trace_system

#if !defined(_TRACE_FOO_BAR_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_FOO_BAR_H

#include <linux/tracepoint.h>

TRACE_EVENT(foo_bar,

	TP_PROTO(const char *foo, int bar, const int *lst, const struct cpumask *mask,
		 const char *fmt, va_list *va),

	TP_ARGS(foo, bar, lst, mask, fmt, va),

	TP_STRUCT__entry(
		__string(	foo,	foo		)
		__field(	int,	bar		)
		__array(	int,	lst,	4	)
		__cpumask(	cpus			)
		__vstring(	vstr,	fmt,	va	)
	),

	TP_fast_assign(
		__assign_str(foo, foo);
		__entry->bar	= bar;
		memcpy(__entry->lst, lst, sizeof(__entry->lst));
		__assign_cpumask(cpus, cpumask_bits(mask));
		__assign_vstr(vstr, fmt, va);
	),

	TP_printk("foo %s %d %s (%s) %s", __get_str(foo), __entry->bar,
		  __print_array(__entry->lst, 4, sizeof(int)), __get_cpumask(cpus), __get_str(vstr))
);

#endif /* _TRACE_FOO_BAR_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE foo_bar
#include <trace/define_trace.h>
