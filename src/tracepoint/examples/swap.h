/* SPDX-License-Identifier: MIT */
/*
 * Pages that leave memory for a swap area, and pages that come back.
 *
 * mm_page_swap_in fires at the end of a swap-in; "major" tells whether the page had to be read
 * from the device (a major fault) or was still in the swap cache (a minor one).
 * mm_page_swap_out fires when a page has been given a place in a swap area.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kmem

#if !defined(_TRACE_SWAP_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_SWAP_H

#include <linux/tracepoint.h>

TRACE_EVENT(mm_page_swap_in,

	TP_PROTO(struct page *page, unsigned long address, int ret, bool major),

	TP_ARGS(page, address, ret, major),

	TP_STRUCT__entry(
		__field(	unsigned long,	pfn	)
		__field(	unsigned long,	address	)
		__field(	int,		ret	)
		__field(	bool,		major	)
	),

	TP_fast_assign(
		__entry->pfn		= page_to_pfn(page);
		__entry->address	= address;
		__entry->ret		= ret;
		__entry->major		= major;
	),

	TP_printk("pfn=%#lx address=%#lx ret=%d major=%d",
		__entry->pfn,
		__entry->address,
		__entry->ret,
		__entry->major)
);

TRACE_EVENT(mm_page_swap_out,

	TP_PROTO(struct page *page, int ret),

	TP_ARGS(page, ret),

	TP_STRUCT__entry(
		__field(	unsigned long,	pfn	)
		__field(	int,		ret	)
	),

	TP_fast_assign(
		__entry->pfn	= page_to_pfn(page);
		__entry->ret	= ret;
	),

	TP_printk("pfn=%#lx ret=%d", __entry->pfn, __entry->ret)
);

#endif /* _TRACE_SWAP_H */

/* The part that reads this file again has to stay outside the guard. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE swap
#include <trace/define_trace.h>
