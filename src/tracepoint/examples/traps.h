/* SPDX-License-Identifier: MIT */
/*
 * Entry to and exit from a trap of the processor, such as a division by zero.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM traps

#if !defined(_TRACE_TRAPS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_TRAPS_H

#include <linux/tracepoint.h>

/* The numbers that x86 gives its traps. */
#define show_trap_name(number)				\
	__print_symbolic(number,			\
		{ 0,	"divide error"		},	\
		{ 1,	"debug"			},	\
		{ 2,	"nmi"			},	\
		{ 3,	"breakpoint"		},	\
		{ 4,	"overflow"		},	\
		{ 5,	"bounds"		},	\
		{ 6,	"invalid opcode"	},	\
		{ 7,	"no device"		},	\
		{ 8,	"double fault"		},	\
		{ 10,	"invalid tss"		},	\
		{ 11,	"no segment"		},	\
		{ 12,	"stack segment"		},	\
		{ 13,	"general protection"	},	\
		{ 14,	"page fault"		},	\
		{ 16,	"fpu"			},	\
		{ 17,	"alignment check"	})

TRACE_EVENT(trap_entry,

	TP_PROTO(struct pt_regs *regs, long trap),

	TP_ARGS(regs, trap),

	TP_STRUCT__entry(
		__field(	long,		trap	)
		__field(	unsigned long,	ip	)
	),

	TP_fast_assign(
		__entry->trap	= trap;
		__entry->ip	= regs ? instruction_pointer(regs) : 0UL;
	),

	TP_printk("number=%ld (%s) ip=%#lx",
		__entry->trap,
		show_trap_name(__entry->trap),
		__entry->ip)
);

TRACE_EVENT(trap_exit,

	TP_PROTO(long trap),

	TP_ARGS(trap),

	TP_STRUCT__entry(
		__field(	long,	trap	)
	),

	TP_fast_assign(
		__entry->trap	= trap;
	),

	TP_printk("number=%ld (%s)", __entry->trap, show_trap_name(__entry->trap))
);

#endif /* _TRACE_TRAPS_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE traps
#include <trace/define_trace.h>
