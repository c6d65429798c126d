"""The text of events as `trace-cmd report` prints it: by print formats, with addresses in its own style.

Where a plugin of trace-cmd shows an event in other words, the print format that gives these stands here.
What trace-cmd prints because it does not understand a format is not done after it.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

from tracepoint.printk import ops
from tracepoint.printk.program import PrintProgram, compile_print
from tracepoint.printk.symbols import REPORTED
from tracepoint.source.types import IntType

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.layout.format import EventFormat

_STATES = ", ".join(f'{{ {1 << bit}, "{letter}" }}' for bit, letter in enumerate("SDTtZXxW"))
_SWITCH = (
    '"%s:%d [%d] %s ==> %s:%d [%d]", REC->prev_comm, REC->prev_pid, REC->prev_prio, '
    f'REC->prev_state & 255 ? __print_flags(REC->prev_state & 255, "|", {_STATES}) : "R", '
    "REC->next_comm, REC->next_pid, REC->next_prio"
)
_START = (
    '"hrtimer=%p function=%ps/0x0 expires=%llu softexpires=%llu", '
    "REC->hrtimer, REC->function, REC->expires, REC->softexpires"
)
_TASK = '"%s:%d [%d] CPU:%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu'
#: The print formats of plugins, by system and event, with the fields that they need.
_PLUGINS = {
    ("sched", "sched_switch"): (
        ("prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"),
        _SWITCH,
    ),
    ("sched", "sched_wakeup"): (("comm", "pid", "prio", "target_cpu"), _TASK),
    ("sched", "sched_wakeup_new"): (("comm", "pid", "prio", "target_cpu"), _TASK),
    ("timer", "hrtimer_start"): (
        ("hrtimer", "function", "expires", "softexpires"),
        _START,
    ),
    ("timer", "hrtimer_expire_entry"): (
        ("hrtimer", "function", "now"),
        '"hrtimer=%p now=%llu function=%ps/0x0", REC->hrtimer, REC->now, REC->function',
    ),
}
# Events in front of which stands who called.
_CALLED = ("kfree", "kmalloc", "kmalloc_node", "kmem_cache_alloc", "kmem_cache_alloc_node", "kmem_cache_free")


def compile_report(form: EventFormat) -> PrintProgram:
    """Compile an event's line in `trace-cmd report`; never fails, what is not understood is in `needs`.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> field = FieldFormat("p", "void *", 8, 8, is_signed=False)
    >>> form = EventFormat("demo", "one", (field,), '"p=%p", REC->p', n_common=0)
    >>> from tracepoint.printk.render import render_record
    >>> str(render_record(compile_report(form), bytes(16)))
    'p=(nil)'
    """
    names, print_fmt = _PLUGINS.get((form.kernel_system, form.name), ((), ""))
    is_shown = bool(print_fmt) and all(name in form for name in names)
    # Of these systems the kernel's own lines would be made.
    system = "" if form.kernel_system in ("ftrace", "syscalls") else form.system
    given = replace(form, system=system, print_fmt=print_fmt if is_shown else form.print_fmt)
    program = compile_print(given)
    op = _restyled(program.op)
    if form.kernel_system == "kmem" and form.name in _CALLED and "call_site" in form:
        site = form["call_site"]
        caller = ops.SymbolText(ops.Load(site.offset, IntType(site.size, is_signed=False)), REPORTED["S"])
        op = ops.Joined((ops.Literal("("), caller, ops.Literal(") "), op))
    return PrintProgram(form, ops.WithoutNewline(op), program.needs)


def _restyled(op: ops.TextOp) -> ops.TextOp:
    """Return a text with addresses in the style of trace-cmd."""
    done: dict[int, ops.PrintOp] = {}

    def changed(one: ops.PrintOp) -> ops.PrintOp:
        # An op may be part of many others.
        if id(one) not in done:
            done[id(one)] = _replaced(one) or _with_operands(one, changed)
        return done[id(one)]

    return changed(op)  # type: ignore[return-value]  # a text stays a text


def _replaced(op: ops.PrintOp) -> ops.PrintOp | None:
    """Return an address or a name of a number in the style of trace-cmd; None for all others."""
    match op:
        case ops.Fact("constant", name, kind, ops.Unknown()):
            # The name of an enumerator that a format still has is -1 to trace-cmd.
            return ops.Fact("constant", name, kind, ops.Const(-1))
        case ops.Number(ops.Hashed(address), "p"):
            shown = ops.Joined((ops.Literal("0x"), ops.Number(address, "x")))
            return ops.IfText(address, shown, ops.Literal("(nil)"))
        case ops.SymbolText(address, letters) if letters[:1] in REPORTED:
            return ops.SymbolText(address, REPORTED[letters[:1]])
    return None


def _with_operands(op: ops.PrintOp, change: Callable[[ops.PrintOp], ops.PrintOp]) -> ops.PrintOp:
    """Return an op with its operands changed."""

    def changed(held: object) -> object:
        if isinstance(held, ops.PrintOp):
            return change(held)
        return tuple(map(changed, held)) if isinstance(held, tuple) else held

    held = {item.name: getattr(op, item.name) for item in fields(op)}  # type: ignore[arg-type]
    found = {name: changed(value) for name, value in held.items()}
    is_same = all(found[name] is held[name] or found[name] == held[name] for name in held)
    return op if is_same else replace(op, **found)  # type: ignore[type-var]
