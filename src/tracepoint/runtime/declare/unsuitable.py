"""What can be known to be wrong when an event is declared, so that it need not fail while it is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracepoint.errors import LayoutError, SourceError
from tracepoint.printk.conversion import Conversion, parse_format
from tracepoint.printk.program import compile_print
from tracepoint.runtime.declare.names import event_problem, system_problem
from tracepoint.runtime.declare.plan import FieldKind
from tracepoint.runtime.fire.convert import MAX_RECORD, convert
from tracepoint.runtime.fire.probes import EventError
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_arguments
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event
    from tracepoint.runtime.declare.plan import RecordPlan

MAX_PARAMETERS = 64
_NUMBERS = (FieldKind.INT, FieldKind.BOOL)


def check_size(event: str, n_parameters: int, layout: EventFormat) -> None:
    """Raise LayoutError for more than a call or a record holds: MAX_ARGS and TP_MAX_PAYLOAD of the core."""
    if n_parameters > MAX_PARAMETERS:
        raise LayoutError(f"{n_parameters} parameters are more than {MAX_PARAMETERS}", event=event)
    if layout.size_bytes > MAX_RECORD:
        raise LayoutError(f"a record of {layout.size_bytes} bytes is longer than {MAX_RECORD}", event=event)


def check_folder(system: str, name: str) -> None:
    """Raise LayoutError when an event cannot have a folder below `events/`."""
    if problem := system_problem(system):
        raise LayoutError(f"the name of system {system!r} {problem}", event=name)
    if problem := event_problem(name):
        raise LayoutError(f"the name of event {name!r} {problem}", event=f"{system}:{name}")


def check_functions(event: str, **functions: Any) -> None:
    """Raise EventError when one of the functions is given and cannot be called."""
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise EventError(f"{event}: {name} is called; {function!r} cannot be")


def check_defaults(
    event: str, plan: RecordPlan, order: Sequence[str], defaults: Mapping[str, object]
) -> None:
    """Raise EventError when a default does not fit its field; one that is called is known when it is."""
    for field in plan.fields:
        name = order[field.source]
        if name not in defaults or callable(defaults[name]):
            continue
        try:
            convert(field, defaults[name])
        except Exception as error:  # noqa: BLE001 - whatever a value's own methods raise
            raise EventError(f"{event}: the default of {name!r}: {error}") from None


def check_names(event: str, layout: EventFormat) -> None:
    """Raise EventError when a field has the name of one that every event has."""
    names = [field.name for field in layout.fields]
    for name in names:
        if names.count(name) > 1:
            raise EventError(
                f"{event}: there are two fields {name!r}; every event has common_type to common_pid"
            )


def check_event(event: Event) -> None:
    """Raise LayoutError for a name that cannot be a folder, EventError for a print format without quotes."""
    check_folder(event.system, event.name)
    # Layouts put quotes around any text there.
    if not event.printk.text.lstrip().startswith('"'):
        raise EventError(
            f"{event.full_name}: printk is written as in C, the format in double quotes and then the values: "
            """printk='"order=%u by %s", order, customer'"""
        )


def check_plan(event: Event, plan: RecordPlan) -> None:
    """Raise LayoutError or EventError for a record that is too long, has a field twice or cannot be shown."""
    check_size(event.full_name, len(event.proto.names), plan.format)
    check_names(event.full_name, plan.format)
    check_print(event.full_name, plan)


def check_print(event: str, plan: RecordPlan) -> None:
    """Raise EventError when the print format cannot be worked out from the record, or shows it wrongly."""
    text = plan.format.print_fmt.rstrip().removesuffix(",")
    tokens = [t for t in lex(SourceFile("<print fmt>", text)) if t.kind is not Kind.END]
    try:
        first, *arguments = parse_arguments(tokens)
    except SourceError as error:
        raise EventError(f"{event}: the print format {text}: {error.message}") from None
    if not isinstance(first, ast.String) or first.pieces:
        return
    conversions = [c for c in parse_format(first.value) if isinstance(c, Conversion)]
    n_wanted = sum(c.n_arguments for c in conversions)
    if n_wanted != len(arguments):
        raise EventError(f"{event}: the print format shows {n_wanted} values and is given {len(arguments)}")
    for need in compile_print(plan.format).needs:
        raise EventError(f"{event}: the print format needs {need}, which is not known or not supported")
    numbers = {field.name for field in plan.fields if field.kind in _NUMBERS}
    at = 0
    for conversion in conversions:
        at += conversion.n_arguments
        match arguments[at - 1] if conversion.conversion == "s" else None:
            case ast.Member(base=ast.Name(name="REC"), name=name) if name in numbers:
                raise EventError(f"{event}: {conversion.text} needs a string, and {name!r} is a number")
