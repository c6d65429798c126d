"""Declarations that the tests of this folder make things of."""

from __future__ import annotations

from tracepoint.assign.inputs import find_inputs
from tracepoint.layout.compute import compute_layout
from tracepoint.model.read import read_header_text

TICK = """
#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo
#include <linux/tracepoint.h>
#include "private.h"
enum demo_kind { DEMO_COLD, DEMO_HOT = 4 };
TRACE_DEFINE_ENUM(DEMO_HOT);
TRACE_EVENT(tick,
	TP_PROTO(int n, bool is_hot, const char *name, const u16 *list, struct page *page, void *where),
	TP_ARGS(n, is_hot, name, list, page, where),
	TP_STRUCT__entry(
		__field(int, n)
		__field(int, kind)
		__field(void *, where)
		__string(name, name)
		__array(u16, list, 4)
	),
	TP_fast_assign(
		__entry->n = n;
		__entry->kind = is_hot ? DEMO_HOT : DEMO_COLD;
		__entry->where = where;
		__assign_str(name, name);
		memcpy(__entry->list, list, sizeof(__entry->list));
	),
	TP_printk("n=%d kind=%s where=%p name=%s list=%s", __entry->n,
		__print_symbolic(__entry->kind, { DEMO_HOT, "hot" }), __entry->where, __get_str(name),
		__print_array(__entry->list, 4, 2))
);
"""


def header_of_text(text: str):
    return read_header_text(text, "demo.h")


def one_event(
    fields: str,
    assign: str,
    *,
    proto: str = "struct foo *foo, int n",
    args: str = "foo, n",
    more: str = "",
    printk: str = '"x"',
):
    """A header with one event."""
    return header_of_text(
        f"#define TRACE_SYSTEM demo\n{more}\nTRACE_EVENT(one, TP_PROTO({proto}), TP_ARGS({args}),"
        f" TP_STRUCT__entry({fields}), TP_fast_assign({assign}), TP_printk({printk}));"
    )


def inputs_of(header):
    return {
        event.full_name: find_inputs(
            event,
            compute_layout(event, environment=header.environment),
            constant=header.environment.constant,
        )
        for event in header.events
    }
