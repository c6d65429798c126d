#undef TRACE_SYSTEM
#define TRACE_SYSTEM swap

#if !defined(_TRACE_SWAP_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_SWAP_H

#include <linux/tracepoint.h>
#include <linux/swap_path.h>

/* A page comes back from the swap device. */
TRACE_EVENT(swap_in,

	TP_PROTO(unsigned long address, int major),

	TP_ARGS(address, major),

	TP_STRUCT__entry(
		__field(	unsigned long,	address		)
		__field(	int,		major		)
	),

	TP_fast_assign(
		__entry->address	= address;
		__entry->major		= major;
	),

	TP_printk("address=%lx major=%d", __entry->address, __entry->major)
);

DECLARE_EVENT_CLASS(swap_path,

	TP_PROTO(const char *path),

	TP_ARGS(path),

	TP_STRUCT__entry(
		__string(	path,	path	)
	),

	TP_fast_assign(
		__assign_str(path, path);
	),

	TP_printk("path=%s", __get_str(path))
);

#define DEFINE_PATH_EVENT(name)		\
DEFINE_EVENT(swap_path, swap_##name,	\
	TP_PROTO(const char *path),	\
	TP_ARGS(path))

DEFINE_PATH_EVENT(enter);
DEFINE_PATH_EVENT(leave);
DEFINE_PATH_EVENT(never);

#endif /* _TRACE_SWAP_H */

#include <trace/define_trace.h>
