/* What benchmarks/lttng.py records with LTTng-UST: the same fields as the events of benchmarks/runtime.py. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER demo

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./demo.h"

#if !defined(DEMO_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DEMO_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(demo, plain,
	LTTNG_UST_TP_ARGS(int, a, int, b, long, c),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int, a, a)
		lttng_ust_field_integer(int, b, b)
		lttng_ust_field_integer(long, c, c)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(demo, text,
	LTTNG_UST_TP_ARGS(const char *, s, int, a, int, b, long, c),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_string(s, s)
		lttng_ust_field_integer(int, a, a)
		lttng_ust_field_integer(int, b, b)
		lttng_ust_field_integer(long, c, c)
	)
)

#endif

#include <lttng/tracepoint-event.h>
