"""Small kernel trees made up for the tests of the catalog: two versions, and one by a hostile hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

BAD = "<script>window.pwned=1</script>"

_FRAME = """\
#undef TRACE_SYSTEM
#define TRACE_SYSTEM {system}
#if !defined(_TRACE_{upper}_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_{upper}_H
#include <linux/tracepoint.h>
{body}
#endif /* _TRACE_{upper}_H */
#include <trace/define_trace.h>
"""

_SHOP_OLD = """
/**
 * order_placed - called when an order is placed
 * @id: number of the order
 * @name: who ordered
 *
 * More about it, in a second paragraph.
 */
TRACE_EVENT(order_placed,
	TP_PROTO(unsigned int id, const char *name),
	TP_ARGS(id, name),
	TP_STRUCT__entry(
		__field(unsigned char, lane)
		__field(unsigned long, id)
		__array(char, comm, 40)
		__string(name, name)
	),
	TP_fast_assign(__entry->id = id;),
	TP_printk("id=%lu name=%s", __entry->id, __get_str(name))
);

DECLARE_EVENT_CLASS(till,
	TP_PROTO(int amount), TP_ARGS(amount),
	TP_STRUCT__entry(__field(int, amount)),
	TP_fast_assign(__entry->amount = amount;),
	TP_printk("amount=%d", __entry->amount));
DEFINE_EVENT(till, till_opened, TP_PROTO(int amount), TP_ARGS(amount));
DEFINE_EVENT(till, till_{last}, TP_PROTO(int amount), TP_ARGS(amount));
TRACE_EVENT_CONDITION(refund,
	TP_PROTO(int amount), TP_ARGS(amount), TP_CONDITION(amount > 0),
	TP_STRUCT__entry(__field(long long, amount) __field(u8, kind)),
	TP_fast_assign(__entry->amount = amount;),
	TP_printk("amount=%lld", __entry->amount));
DECLARE_TRACE(shop_bare, TP_PROTO(int depth), TP_ARGS(depth));
"""

_SHOP_NEW = (
    _SHOP_OLD.replace("__field(unsigned char, lane)", "__field(unsigned short, lane) __field(u32, extra)")
    .replace('"id=%lu name=%s"', '"order=%lu name=%s"')
    .replace(
        "TP_PROTO(int amount), TP_ARGS(amount), TP_CONDITION",
        "TP_PROTO(s64 amount), TP_ARGS(amount), TP_CONDITION",
    )
)

_CODE = """\
#define CREATE_TRACE_POINTS
#include <trace/events/shop.h>
EXPORT_TRACEPOINT_SYMBOL_GPL(order_placed);
static int place_order(unsigned int id)
{
	if (trace_order_placed_enabled())
		trace_order_placed(id, "somebody");
	trace_till_opened(3);
	return 0;
}
static void give_back(int amount)
{
	trace_refund(amount);
	trace_shop_bare(1);
}
SYSCALL_DEFINE2(shop, unsigned int, id, char __user *, name)
{
	return place_order(id);
}
"""

_HOSTILE = f"""
/* {BAD}<img src=x onerror=alert(1)> \x1b[31m \u202e end & "quotes" 'single' */
TRACE_EVENT(constructor,
	TP_PROTO(int __proto__), TP_ARGS(__proto__),
	TP_STRUCT__entry(__field(int, __proto__) __field(int, constructor)),
	TP_fast_assign(__entry->constructor = 1;),
	TP_printk("{BAD} %d \\u2028 </pre>", __entry->constructor)
);
"""


def make_tree(root: Path, version: str, headers: dict[str, str], code: str = _CODE) -> Path:
    """A tree with a Makefile, trace headers by system, and one C file."""
    files = {
        "Makefile": "VERSION = {}\nPATCHLEVEL = {}\nSUBLEVEL = {}\nEXTRAVERSION =\n".format(
            *version.split(".")
        ),
        "include/linux/tracepoint.h": "/* what makes it a tree */\n",
        "kernel/shop.c": code,
    }
    for system, body in headers.items():
        text = _FRAME.format(system=system, upper=system.upper(), body=body)
        files[f"include/trace/events/{system}.h"] = text
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def old_tree(folder: Path) -> Path:
    return make_tree(folder / "old", "6.1.7", {"shop": _SHOP_OLD.replace("{last}", "closed")})


def new_tree(folder: Path) -> Path:
    """Fields and print format of order_placed, the prototype of refund changed; till_closed renamed."""
    body = _SHOP_NEW.replace("{last}", "shut")
    fresh = """
TRACE_EVENT(oven_hot, TP_PROTO(int heat), TP_ARGS(heat), TP_STRUCT__entry(__field(int, heat)),
	TP_fast_assign(__entry->heat = heat;), TP_printk("%d", __entry->heat));
"""
    return make_tree(folder / "new", "6.12.3", {"shop": body, "oven": fresh})


def hostile_tree(folder: Path) -> Path:
    code = f'static void f(void)\n{{\n\ttrace_constructor("{BAD}");\n}}\n'
    return make_tree(folder / "hostile", "6.13.0", {"shop": _HOSTILE}, code)


def make_trees(folder: Path) -> Path:
    """All three, as `old`, `new` and `hostile`."""
    for make in (old_tree, new_tree, hostile_tree):
        make(folder)
    return folder


def received(text: str) -> tuple[str, object]:
    """The name and data of a data file; it must be one call with JSON."""
    match = re.fullmatch(r'Catalog\.receive\(("[a-z0-9-]+"),(.*)\);\n', text, re.DOTALL)
    assert match
    return json.loads(match[1]), json.loads(match[2])
