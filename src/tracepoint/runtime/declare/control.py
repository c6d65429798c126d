"""Declaring an event of this process: its tracepoint object, and its place in the hierarchy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.errors import TracepointError
from tracepoint.runtime.bridges.environment import enable_as_wished
from tracepoint.runtime.declare.plan import make_plan
from tracepoint.runtime.declare.unsuitable import check_defaults, check_event, check_functions, check_plan
from tracepoint.runtime.event_control import EventControl
from tracepoint.runtime.hierarchy import tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.model.event import Event
    from tracepoint.runtime.declare.event_help import Identity
    from tracepoint.runtime.declare.plan import RecordPlan
    from tracepoint.runtime.fire.mechanism import Hook
    from tracepoint.runtime.hierarchy import Tracing


def make_tracepoint(
    event: Event,
    *,
    defaults: Mapping[str, object] | None = None,
    assign: Callable[..., object] | None = None,
    condition: Callable[..., object] | None = None,
    reg: Callable[[], object] | None = None,
    unreg: Callable[[], object] | None = None,
    hints: Mapping[str, Any] | None = None,
    where: str = "",
    doc: str = "",
    identity: Identity | None = None,
    tracing: Tracing = tracing,
) -> Any:
    """Make the tracepoint of an event of `declare()` or `define_event()`: for fields of any kind.

    `assign` gets the arguments and gives the fields' values in order, or the whole record as
    bytes; without it the arguments are the fields of the same names.  `where` is the place of the
    declaration, for messages, `doc` what help() shows first, `identity` what stands for a function or class
    that declares it; `tracing` is the hierarchy that gets it.
    Raises EventError for an event that exists, for a print format that the record does not answer and
    for a default that does not fit, LayoutError for a field that cannot be laid out.

    >>> from tracepoint.model.python.declare import declare
    >>> from tracepoint.model.python.fields import bitmask, dynamic_array
    >>> fields = [dynamic_array("u16", "sizes", "n"), bitmask("cpus", 64)]
    >>> shown = '"%s cpus=%s", __print_array(sizes, __get_dynamic_array_len(sizes) / 2, 2), cpus'
    >>> text = "u16 *sizes, unsigned long *cpus"
    >>> packed = make_tracepoint(declare("packed", system="shop", proto=text, struct=fields, printk=shown))
    >>> packed([1, 2, 3], 0b101)
    """
    again = tracing.same_declaration(event, where)
    if again is not None:
        return again.tracepoint
    check_event(event)
    order = _order_of(event, assign)
    plan = make_plan(event, order)
    check_plan(event, plan)
    check_functions(event.full_name, assign=assign, condition=condition, reg=reg, unreg=unreg)
    check_defaults(event.full_name, plan, order, defaults or {} if assign is None else {})
    control = EventControl(
        event,
        plan,
        tracing,
        hints=hints or {},
        where=where,
        reg=reg,
        unreg=unreg,
        doc=doc,
        identity=identity,
    )
    control.tracepoint = _hook(control, plan, dict(defaults or {}) or None, assign, condition)
    control.assign = assign
    return add_event(control, tracing)


def _hook(control: EventControl, plan: RecordPlan, defaults: Any, assign: Any, condition: Any) -> Hook:
    return control.tracing.mechanism.core.Tracepoint(
        control.full_name,
        tuple(control.event.proto.names),
        tuple(f.packed for f in plan.fields),
        plan.size,
        plan.dynamic,
        defaults=defaults,
        assign=assign,
        condition=condition,
        control=control,
    )


def _order_of(event: Event, assign: Callable[..., object] | None) -> list[str]:
    """Return the field that each value is for; raises TracepointError for a field without one."""
    if assign is not None:
        return [f.name for f in event.fields]
    order = list(event.proto.names)
    missing = [f.name for f in event.fields if f.name not in order]
    if missing:
        raise TracepointError(f"{event.full_name}: no parameter gives field {missing[0]!r}; give `assign`")
    return order


def add_event(control: EventControl, tracing: Tracing) -> Any:
    """Put an event into a hierarchy, on if the environment asks for it; return its tracepoint."""
    tracing.add(control)
    enable_as_wished(control, tracing)
    return control.tracepoint
