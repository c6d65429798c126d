"""All records and their fields in two tables, `ftrace_event` and `args`, and what was lost: `stats`.

Perfetto's names and columns.  A record has the set of arguments whose number is made from the number of its
event and its place among the records of that event: both tables find it without each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.convert.sql import quoted
from tracepoint.decode.column import number_column, text_column
from tracepoint.decode.table import ColumnTable
from tracepoint.named import NamedTuple
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.tracefile.recording import stats_by_cpu

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

#: The common fields that a record of any event has.
COMMON_COLUMNS = (
    "common_timestamp", "common_cpu", "common_type", "common_flags", "common_preempt_count", "common_pid",
)  # fmt: skip
#: More records than an event can have: 2^40 of 1 byte are a terabyte.
_SETS = 1 << 40
_ROW = "{{'flat_key': {flat}, 'key': {key}, {values}, 'value_type': '{kind}'}}"
_INT64_MAX = (1 << 63) - 1
#: The SQL for `args` of a recording without records.
NO_ARGUMENTS = """
select null::bigint as arg_set_id, null::varchar as flat_key, null::varchar as key, null::bigint as int_value,
       null::varchar as string_value, null::double as real_value, null::varchar as value_type
where false"""


class Statistic(NamedTuple):
    """A row of `stats`; `cpu` is None for one of the whole recording, `value` for events not counted."""

    name: str
    cpu: int | None
    severity: str
    source: str
    value: int | None
    description: str


def event_rows(trace: Trace) -> ColumnTable:
    """Return all records of known events by time: their event, CPU, task and flags."""
    names = [name for name in trace.events if name in trace]
    if not names:
        # SQL knows no table without columns.
        return ColumnTable("event_rows", lambda: [number_column(name, [], "q") for name in COMMON_COLUMNS])
    return trace.joined(dict.fromkeys(names, ("common_pid", "common_flags")))


def event_names(trace: Trace) -> ColumnTable:
    """Return the recorded events: `type`, the number in `common_type`, and `name`, without the system."""
    known = {trace.format(name).id: trace.format(name).name for name in trace.events if name in trace}

    def columns() -> list[Column]:
        words = [name.encode("utf-8", "surrogateescape") for name in known.values()]
        return [number_column("type", list(known), "i"), text_column("name", range(len(words)), words)]

    return ColumnTable("event_names", columns)


def set_of(number: str, row: str) -> str:
    """Return the SQL for the set of arguments of the record in a row, from 0, of the event with a number."""
    return f"({number})::bigint * {_SETS} + {row}"


def arguments_sql(view: str, number: int, kinds: Mapping[str, str]) -> str:
    """Return the SQL for the fields of an event as rows of `args`.

    `view` has its table, `number` is in its `common_type`, and `kinds` are the types of its columns as DuckDB
    names them.  An element of an array has the key `name[0]`.
    """
    fields = {name: kind for name, kind in kinds.items() if name not in COMMON_COLUMNS}
    single = [_argument(name, kind) for name, kind in fields.items() if not kind.endswith("[]")]
    rows = f"(select *, row_number() over () - 1 as arg_row from {quoted(view)})"  # noqa: S608 - quoted
    own_set = set_of(str(number), "arg_row")
    unnested = f"select {own_set} as arg_set_id, unnest([{{}}], recursive := true) from "  # noqa: S608 - ours
    parts = []
    if single:
        parts.append(unnested.format(", ".join(single)) + rows)
    for name, kind in fields.items():
        if kind.endswith("[]"):
            key = f"{_text(name)} || '[' || place || ']'"
            element = _argument(name, kind.removesuffix("[]"), "value", key)
            column = quoted(name)
            elements = f"unnest({column}) as value, unnest(range(len({column}))) as place"
            parts.append(f"{unnested.format(element)} (select arg_row, {elements} from {rows})")  # noqa: S608 - quoted
    return " union all ".join(parts)


def _argument(name: str, kind: str, value: str = "", key: str = "") -> str:
    """Return the SQL for what `args` says of a value, as a struct."""
    value = value or quoted(name)
    words = ["null::bigint", "null::varchar", "null::double"]
    if kind in {"FLOAT", "DOUBLE"}:
        words[2], shown = f"{value}::double", "real"
    elif kind.endswith("INT") or kind in {"INTEGER", "UINTEGER", "BOOLEAN"}:
        shown = "uint" if kind.startswith("U") else "int"
        words[0] = _signed(value) if kind == "UBIGINT" else f"{value}::bigint"
    else:
        words[1], shown = f"{value}::varchar", "string"
    names = ("int_value", "string_value", "real_value")
    values = ", ".join(f"'{column}': {word}" for column, word in zip(names, words, strict=True))
    return _ROW.format(flat=_text(name), key=key or _text(name), values=values, kind=shown)


def _signed(value: str) -> str:
    """Return the SQL for 64 bits as a signed number, as `args` has addresses."""
    return f"({value}::hugeint - if({value} > {_INT64_MAX}, 1::hugeint << 64, 0))::bigint"


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


# The counts of per_cpu/cpuN/stats that say what was lost, and how bad that is.
_COUNTS = {
    "overrun": "info",
    "commit overrun": "error",
    "dropped events": "error",
}


def statistics(trace: Trace) -> list[Statistic]:
    """Return what was lost of a recording and where it is damaged, as `stats` names it.

    `lost_events` and `damaged_places` are our own names.
    """
    found = []
    for cpu, lost in trace.lost.items():
        if lost:
            found.append(
                Statistic("ftrace_cpu_has_data_loss", cpu, "data_loss", "trace", 1, "events were lost")
            )
            count = None if lost == LOST_UNKNOWN else lost
            found.append(Statistic("lost_events", cpu, "data_loss", "trace", count, "as pages say"))
    for cpu, counts in stats_by_cpu(trace.file.options, trace.instance).items():
        for name, severity in _COUNTS.items():
            shown = f"ftrace_cpu_{name.replace(' ', '_')}_delta"
            said = f"{name} of per_cpu/cpu{cpu}/stats"
            found.append(Statistic(shown, cpu, severity, "trace", counts.get(name, 0), said))
    n_damaged = len(trace.damage)
    found.append(Statistic("damaged_places", None, "data_loss", "analysis", n_damaged, "could not be read"))
    return found


def statistics_table(rows: Sequence[Statistic]) -> ColumnTable:
    """Return statistics as the table `stats`."""

    def columns() -> list[Column]:
        return [
            _words("name", [row.name for row in rows]),
            _numbers("idx", [row.cpu for row in rows]),
            _words("severity", [row.severity for row in rows]),
            _words("source", [row.source for row in rows]),
            _numbers("value", [row.value for row in rows]),
            _words("description", [row.description for row in rows]),
        ]

    return ColumnTable("stats", columns)


def _words(name: str, values: Sequence[str]) -> Column:
    return text_column(name, range(len(values)), [value.encode() for value in values])


def _numbers(name: str, values: Sequence[int | None]) -> Column:
    # None of our figures is below 0.
    return number_column(name, [-1 if value is None else value for value in values], "q", -1)
