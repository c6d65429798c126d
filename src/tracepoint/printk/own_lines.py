"""Lines of the tracer's own events by print formats, and of all events in other forms than the usual text.

kernel/trace/trace_output.c: the functions `..._raw`, `..._hex`, `..._bin` and print_event_fields().
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.printk import ops
from tracepoint.printk.conversion import parse_format
from tracepoint.printk.event_fields import lower_event_fields
from tracepoint.printk.lower import lower_line
from tracepoint.printk.own_events import MESSAGES, SWITCH_STATES, is_own_event, lower_own_event
from tracepoint.printk.printformat import split_print_format
from tracepoint.source.types import IntType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.layout.format import EventFormat
    from tracepoint.printk.expressions import Lowering
    from tracepoint.printk.memory import RecordMemory
    from tracepoint.printk.own_events import OwnStyle

# What is the same in the lines of hwlat.
_HWLAT = '"#%-5u inner/outer(us): %4llu/%-5llu ts:%lld.%09ld count:%d'
_HWLAT_TIMES = "REC->duration, REC->outer_duration, REC->tv_sec, REC->tv_nsec"
_HWLAT_FIELDS = f"REC->seqnum, {_HWLAT_TIMES}, REC->count"
_NMI = "REC->nmi_total_ts, REC->nmi_count"
_AVAILABLE = "(REC->runtime - REC->noise) * 10000000 / REC->runtime"
_COUNTS = "REC->hw_count, REC->nmi_count, REC->irq_count, REC->softirq_count, REC->thread_count"
_CONTEXT = 'REC->context == 2 ? "user-ret" : REC->context ? "thread" : "irq"'
_DELTA = "(((u64)(REC)->top_delta_ts << 32) | (REC)->bottom_delta_ts)"
_OSNOISE = f"{_AVAILABLE} / 100000, {_AVAILABLE} % 100000, REC->max_sample, {_COUNTS}"
# Print formats: that of the first field that is not 0 counts, the last one is for all others.
_Formats = tuple[tuple[str, str], ...]
_USUAL: dict[str, _Formats] = {
    "hwlat": (
        # The time in NMIs is not measured where the clock may not be read in one.
        ("nmi_total_ts", f'{_HWLAT} nmi-total:%llu nmi-count:%u", {_HWLAT_FIELDS}, {_NMI}'),
        ("nmi_count", f'{_HWLAT} nmi-count:%u", {_HWLAT_FIELDS}, REC->nmi_count'),
        ("", f'{_HWLAT}", {_HWLAT_FIELDS}'),
    ),
    "osnoise": (("", f'"%llu %10llu %3llu.%05llu %7llu{5 * " %6u"}", REC->runtime, REC->noise, {_OSNOISE}'),),
    "timerlat": (
        ("", f'"#%-5u context %6s timer_latency %9llu ns", REC->seqnum, {_CONTEXT}, REC->timer_latency'),
    ),
    "branch": (("", '"[%s] %s:%s:%d", REC->correct ? "  ok  " : " MISS ", REC->func, REC->file, REC->line'),),
}
_RAW: dict[str, _Formats] = {
    "function": (("", '"%lx %lx", REC->ip, REC->parent_ip'),),
    "func_repeats": (("", f'"%lu %lu %u %llu", REC->ip, REC->parent_ip, REC->count, {_DELTA}'),),
    "hwlat": (("", f'"%llu %lld %lld %09ld %u", {_HWLAT_TIMES}, REC->seqnum'),),
    "osnoise": (("", f'"%lld %llu %llu{5 * " %u"}", REC->runtime, REC->noise, REC->max_sample, {_COUNTS}'),),
    "timerlat": (("", '"%u %d %llu", REC->seqnum, REC->context, REC->timer_latency'),),
}
# What is in front of a message in the form raw.
_RAW_MESSAGES = {
    "print": '"# %lx ", REC->ip',
    "bprint": '": %lx : ", REC->ip',
    "bputs": '": %lx : ", REC->ip',
}
# The kernel only draws these, as a graph; one on its own is shown as its format says.
_CALLS = ("funcgraph_entry", "funcgraph_exit")
_SWITCHES = ("context_switch", "wakeup")
# The fields that the forms hex and bin show one after the other.
_PARTS = {
    "function": ("ip", "parent_ip"),
    **dict.fromkeys(
        _SWITCHES, ("prev_pid", "prev_prio", "prev_state", "next_cpu", "next_pid", "next_prio", "next_state")
    ),
}


def is_unended(form: EventFormat, style: OwnStyle) -> bool:
    """Return whether the kernel puts no newline behind an event: that of the form bin are only its bytes."""
    return style.form == "bin" and is_own_event(form) and form.name in _PARTS


def lower_own_line(lowering: Lowering, style: OwnStyle) -> ops.TextOp | None:
    """Lower one of the tracer's own events, or any event in another form; None where it is not known."""
    form = lowering.form
    try:
        if style.form == "fields":
            return lower_event_fields(form)
        if style.form:
            return _in_form(lowering, style)
        if form.name in _CALLS:
            return _line(lowering, form.print_fmt)
        line = lower_own_event(form, style)
        return _by_formats(lowering, _USUAL[form.name]) if line is None else line
    except (SourceError, KeyError):
        return None


def _in_form(lowering: Lowering, style: OwnStyle) -> ops.TextOp:
    form = lowering.form
    own_name = form.name if is_own_event(form) else ""
    if style.form == "raw" and own_name:
        if own_name in MESSAGES:
            message = lower_own_event(form, style._replace(is_message_only=True)) or ops.Unknown(
                "the message"
            )
            return ops.Joined((_line(lowering, _RAW_MESSAGES[own_name]), message))
        if own_name in _SWITCHES:
            return _raw_switch(form)
        if own_name == "raw_data":
            return lower_own_event(form, style) or ops.Unknown("the data")
        if own_name in _RAW:
            return _by_formats(lowering, _RAW[own_name])
    if style.form != "raw" and own_name in _PARTS:
        return _parts(form, style.form)
    return ops.Literal(f"type: {form.id}" + "\n" * (style.form == "hex"))


def _number(form: EventFormat, name: str, *, is_signed: bool | None = None) -> ops.Load:
    field = form[name]
    return ops.Load(field.offset, IntType(field.size, field.is_signed if is_signed is None else is_signed))


def _state(form: EventFormat, name: str) -> ops.TextOp:
    return ops.PickText(_number(form, name), SWITCH_STATES, ops.Literal("?"))


def _raw_switch(form: EventFormat) -> ops.TextOp:
    """trace_ctxwake_raw(): numbers and letters with spaces between them."""
    before = ops.Literal("+") if form.name == "wakeup" else _state(form, "prev_state")
    numbers = {
        name: ops.Number(_number(form, name), "d") for name in _PARTS[form.name] if "state" not in name
    }
    parts = (
        numbers["prev_pid"], numbers["prev_prio"], before, numbers["next_cpu"], numbers["next_pid"],
        numbers["next_prio"], _state(form, "next_state"),
    )  # fmt: skip
    space = ops.Literal(" ")
    return ops.Joined((parts[0], *(op for part in parts[1:] for op in (space, part))))


def _parts(form: EventFormat, shown: str) -> ops.TextOp:
    """Lower the fields one after the other: as digits with spaces, or as their bytes."""
    found: list[ops.TextOp] = []
    for name in _PARTS[form.name]:
        field = form[name]
        if shown == "bin":
            found.append(ops.Call("record_bytes", (ops.Const(field.offset), ops.Const(field.size))))
        elif "state" in name:
            found.append(ops.Call("state_digits", (_number(form, name), ops.Const(name == "next_state"))))
        else:
            width = ops.Const(2 * field.size)
            found += [ops.Number(_number(form, name, is_signed=False), "x", "0", width), ops.Literal(" ")]
    return ops.Joined(tuple(found))


def record_bytes_text(record: RecordMemory, at: int, size: int) -> str:
    """Return bytes of the record as they are."""
    return record.data[at : at + size].decode("latin-1")


def _line(lowering: Lowering, text: str) -> ops.TextOp:
    words, arguments = split_print_format(text)
    return lower_line(lowering, parse_format(words), arguments)


def _by_formats(lowering: Lowering, formats: Sequence[tuple[str, str]]) -> ops.TextOp:
    """Lower print formats of which the first whose field is not 0 counts; raises SourceError and KeyError."""
    (name, text), *others = formats
    line = _line(lowering, text)
    if not others:
        return line
    return ops.IfText(_number(lowering.form, name), line, _by_formats(lowering, others))
