"""What is copied out of the records of an event: one entry a column, made from its `EventFormat`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.record.field import element_type, is_bitmask, is_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.layout.format import EventFormat, FieldFormat
    from tracepoint.source.types import IntType

TIME, CPU = "common_timestamp", "common_cpu"

_FLOATS = {("float", 4): "f", ("double", 8): "d"}
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
# Of the number of a bit.
_BIT_SIZE = 4


class ColumnKind(IntEnum):
    """What a column holds.

    TEXT is a string up to its NUL, BYTES what is not a number (a struct), BITS the numbers of the bits that
    are set in a mask, such as CPUs.  WORDS are lists of texts, which are made of other columns only.
    """

    STAMP = 0
    CPU = 1
    NUMBER = 2
    TEXT = 3
    LIST = 4
    BYTES = 5
    BITS = 6
    WORDS = 7


#: What has an end for each row, and items or bytes.
LISTS = (ColumnKind.LIST, ColumnKind.BYTES, ColumnKind.BITS)


class FieldPlace(IntEnum):
    """Where the bytes of a field are: at its offset, where a word says, or from there to the end."""

    FIXED = 0
    DATA_LOC = 1
    REL_LOC = 2
    REST = 3


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """One column: where the bytes of a field are, and what they become.

    `offset` and `size` are those of the field in bytes, `element` the size of one item of a list or of one
    word of a mask; `code` is the `struct` code of a number or of the items of a list, empty for others.
    """

    name: str
    kind: ColumnKind
    place: FieldPlace
    offset: int
    size: int
    element: int
    code: str

    @property
    def item_size(self) -> int:
        """The bytes of one item of the column, where it holds lists."""
        return _BIT_SIZE if self.kind is ColumnKind.BITS else self.element

    @property
    def numbers(self) -> tuple[int, int, int, int, int]:
        """What the C form is given."""
        return (self.kind, self.place, self.offset, self.size, self.element)


def plan_columns(form: EventFormat) -> tuple[PlanColumn, ...]:
    """Return the columns of an event: time and CPU, the common fields, its own fields.

    Of two fields with one name the last counts, as in filters.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> form = EventFormat("demo", "tick", (FieldFormat("comm", "char[16]", 8, 16, True),), "", n_common=0)
    >>> [(column.name, column.kind.name) for column in plan_columns(form)]
    [('common_timestamp', 'STAMP'), ('common_cpu', 'CPU'), ('comm', 'TEXT')]
    """
    found = {field.name: _plan(form, field) for field in form.fields}
    found |= {
        TIME: PlanColumn(TIME, ColumnKind.STAMP, FieldPlace.FIXED, 0, 8, 1, "q"),
        CPU: PlanColumn(CPU, ColumnKind.CPU, FieldPlace.FIXED, 0, 4, 1, "i"),
    }
    return (found.pop(TIME), found.pop(CPU), *found.values())


class TablePlan(NamedTuple):
    """One table to read: the records of the events with these ids, by time, and its columns."""

    ids: tuple[int, ...]
    columns: tuple[PlanColumn, ...]
    is_big_endian: bool


def plan_event(form: EventFormat) -> TablePlan:
    """Return the table of one event."""
    return TablePlan((form.id,), plan_columns(form), form.is_big_endian)


def plan_together(
    wanted: Sequence[tuple[EventFormat, Sequence[str]]],
) -> tuple[TablePlan, dict[tuple[str, str], str]]:
    """Return one table of several events with some fields of each, and the column of an event's field.

    Fields that stand at the same place share a column, so a row holds a field only where its event has it.
    Raises KeyError for a field that an event does not have.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> pid, cpu = FieldFormat("pid", "int", 8, 4, True), FieldFormat("cpu", "int", 12, 4, True)
    >>> forms = [EventFormat("demo", name, (pid, cpu), "", n_common=0) for name in ("sleep", "wake")]
    >>> plan, column_of = plan_together([(forms[0], ["pid"]), (forms[1], ["pid", "cpu"])])
    >>> [column.name for column in plan.columns]
    ['common_timestamp', 'common_cpu', 'sleep.pid', 'wake.cpu']
    >>> column_of["wake", "pid"]
    'sleep.pid'
    """
    columns: dict[tuple[object, ...], PlanColumn] = {}
    column_of: dict[tuple[str, str], str] = {}
    for form, names in wanted:
        own: Mapping[str, PlanColumn] = {column.name: column for column in plan_columns(form)}
        for name in (TIME, CPU, *names):
            if name not in own:
                raise KeyError(f"{form.system}:{form.name} has no field {name!r}")
            short = name if name.startswith("common_") else f"{form.name}.{name}"
            place = (*own[name].numbers, own[name].code)
            column = columns.setdefault(place, replace(own[name], name=short))
            column_of[form.name, name] = column.name
    ids = tuple(form.id for form, _ in wanted)
    is_big_endian = any(form.is_big_endian for form, _ in wanted)
    return TablePlan(ids, tuple(columns.values()), is_big_endian), column_of


def _plan(form: EventFormat, field: FieldFormat) -> PlanColumn:
    place = _place(form, field)
    if is_text(field):
        return PlanColumn(field.name, ColumnKind.TEXT, place, field.offset, field.size, 1, "")
    if is_bitmask(form, field):
        return PlanColumn(
            field.name, ColumnKind.BITS, place, field.offset, field.size, form.long_size, _CODES[_BIT_SIZE]
        )
    if field.is_array:
        item = element_type(form, field)
        if item is None or item.size not in _CODES:
            return PlanColumn(field.name, ColumnKind.BYTES, place, field.offset, field.size, 1, "")
        return PlanColumn(
            field.name, ColumnKind.LIST, place, field.offset, field.size, item.size, _code(item)
        )
    code = _FLOATS.get((field.ctype, field.size), "")
    if not code and field.size in _CODES:
        code = _CODES[field.size].lower() if field.is_signed else _CODES[field.size]
    kind = ColumnKind.NUMBER if code and place is FieldPlace.FIXED else ColumnKind.BYTES
    return PlanColumn(
        field.name, kind, place, field.offset, field.size, 1, code if kind is ColumnKind.NUMBER else ""
    )


def _place(form: EventFormat, field: FieldFormat) -> FieldPlace:
    if field.is_rel_loc:
        return FieldPlace.REL_LOC
    if field.is_data_loc:
        return FieldPlace.DATA_LOC
    # kernel/trace/trace.c: __ftrace_trace_stack() writes as many addresses as there are.
    if (form.kernel_system, form.name, field.name) == ("ftrace", "kernel_stack", "caller"):
        return FieldPlace.REST
    return FieldPlace.REST if field.is_array and not field.size else FieldPlace.FIXED


def _code(item: IntType) -> str:
    return _CODES[item.size].lower() if item.is_signed else _CODES[item.size]
