"""Spark's data source `tracepoint`: an event of many recordings as a data frame."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.decode.libraries import import_library
from tracepoint.decode.plan import ColumnKind, plan_columns
from tracepoint.decode.trace import open_trace
from tracepoint.errors import TracepointError
from tracepoint.fleet.inputs import find_inputs, host_in_path, is_remote, local_file
from tracepoint.tracefile.options import machine_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tracepoint.decode.trace import Trace

#: Files are cut into parts of about as many bytes as Spark's own sources cut theirs.
PART_BYTES = 128 << 20
_HOST, _PATH, _STAMP, _CPU, _PID = "host", "path", "common_timestamp", "common_cpu", "common_pid"
_EXTRA = (_HOST, _PATH)
_ROWS = 1 << 16
_MAX = (1 << 63) - 1
# Filters of Spark by the name of their class, in the kernel's filter language.
_OPERATORS = {
    "EqualTo": "==",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}


@dataclass(frozen=True)
class TracePart:
    """The records of one recording that a task reads: all, or those of a CPU in a range of times."""

    path: str
    cpu: int | None = None
    start: int | None = None
    stop: int | None = None


@dataclass
class Request:
    """What a query asks for: the event, its records and its columns."""

    paths: list[str]
    event: str
    where: str = ""
    columns: tuple[str, ...] = ()
    part_bytes: int = PART_BYTES
    passes_over: bool = False
    # What Spark's filters leave, as far as it is understood here.
    start: int | None = None
    stop: int | None = None
    cpus: set[int] | None = None
    pids: set[int] | None = None
    hosts: set[str] | None = None
    terms: list[tuple[str, str, int]] = field(default_factory=list)

    @classmethod
    def read(cls, options: Mapping[str, str]) -> Request:
        """Return what the options of a data frame ask for; raises TracepointError for what cannot be."""
        given = {name.lower(): value for name, value in options.items()}
        paths = json.loads(given["paths"]) if "paths" in given else [given["path"]] if "path" in given else []
        if not paths:
            raise TracepointError("no path: spark.read.format('tracepoint').load('traces/*.dat')")
        if not given.get("event"):
            raise TracepointError("no event: .option('event', 'sched:sched_switch') says of which to read")
        size = given.get("partbytes", str(PART_BYTES))
        if not size.isdigit() or not int(size):
            raise TracepointError(f"partBytes is {size!r}: give a number of bytes")
        columns = tuple(word for word in map(str.strip, given.get("columns", "").split(",")) if word)
        passes_over = given.get("ignorecorruptfiles", "false").lower() == "true"
        where = given.get("where", "")
        return cls(find_inputs(paths), given["event"], where, columns, int(size), passes_over)

    def narrow(self, filters: Iterable[Any]) -> None:
        """Read only what Spark's filters can leave; it still judges each row by them itself."""
        for one in filters:
            name, column = type(one).__name__, one.attribute[0]
            if len(one.attribute) != 1:
                continue
            if name == "In":
                self._equal(column, set(one.value))
            elif name == "EqualTo" and column in (_CPU, _PID, _HOST):
                self._equal(column, {one.value})
            elif name in _OPERATORS and isinstance(one.value, int) and not isinstance(one.value, bool):
                self._compare(column, name, one.value)

    def _equal(self, column: str, values: set[Any]) -> None:
        if column == _HOST:
            self.hosts = _both(self.hosts, values)
        elif column == _CPU:
            self.cpus = _both(self.cpus, {cpu for cpu in values if isinstance(cpu, int) and cpu >= 0})
        elif column == _PID:
            self.pids = _both(self.pids, {pid for pid in values if isinstance(pid, int)})

    def _compare(self, column: str, name: str, value: int) -> None:
        if column != _STAMP:
            if column not in (_CPU, *_EXTRA):
                self.terms.append((column, _OPERATORS[name], value))
            return
        if name in ("EqualTo", "GreaterThan", "GreaterThanOrEqual"):
            first = value + (name == "GreaterThan")
            self.start = first if self.start is None else max(first, self.start)
        if name in ("EqualTo", "LessThan", "LessThanOrEqual"):
            after = min(value, _MAX) + (name != "LessThan")
            self.stop = after if self.stop is None else min(after, self.stop)


def _both(own: set[Any] | None, more: set[Any]) -> set[Any]:
    return more if own is None else own & more


def cut_parts(request: Request) -> Iterator[TracePart]:
    """Yield the parts of all recordings: a large file is cut by CPU, and by ranges of pages.

    A range begins at the time at which a page does: so each record is in one part, whatever a page holds.
    """
    for path in request.paths:
        size = 0 if is_remote(path) or not Path(path).is_file() else Path(path).stat().st_size
        if size <= request.part_bytes:
            yield TracePart(path)
            continue
        try:
            with open_trace(path) as trace:
                yield from _cut(path, trace, request.part_bytes)
        except (TracepointError, OSError):
            # The task that reads it says why.
            yield TracePart(path)


def _cut(path: str, trace: Trace, part_bytes: int) -> Iterator[TracePart]:
    for cpu in trace.buffer.cpus if trace.buffer is not None else ():
        listed = cpu.listed()
        n_parts = min(-(-listed.n_bytes // part_bytes), listed.n_places)
        times = sorted(set(listed.sample_times(n_parts + 1)[1:-1])) if n_parts > 1 else []
        for start, stop in zip([None, *times], [*times, None], strict=True):
            yield TracePart(path, cpu.cpu, start, stop)


def arrow_schema(request: Request) -> Any:
    """Return the Arrow schema of the event in the first recording that has it, with `host` and `path`.

    Raises TracepointError where none has it, and for columns that it does not have.
    """
    pyarrow = import_library("pyarrow", "spark")
    for path in request.paths:
        try:
            with local_file(path) as name, open_trace(name, threads=1) as trace:
                if request.event not in trace:
                    continue
                # The types without the records.
                own = trace.between(0, 0)[request.event].arrow().schema
        except (TracepointError, OSError):
            continue
        fields = [(name, pyarrow.string()) for name in _EXTRA]
        fields += [(one.name, _spark_type(pyarrow, one.type)) for one in own]
        known = dict(fields)
        for column in request.columns:
            if column not in known:
                raise TracepointError(
                    f"no column {column!r} of {request.event}; there are: {', '.join(known)}"
                )
        return pyarrow.schema([(name, known[name]) for name in request.columns or known])
    raise TracepointError(f"no recording that can be read has the event {request.event!r}")


def _spark_type(pyarrow: Any, kind: Any) -> Any:
    """Return a type that Spark has: it knows no unsigned numbers, dictionaries and large lists."""
    types = pyarrow.types
    if types.is_dictionary(kind):
        return pyarrow.string()
    if types.is_large_list(kind) or types.is_list(kind):
        return pyarrow.list_(_spark_type(pyarrow, kind.value_type))
    if types.is_large_binary(kind):
        return pyarrow.binary()
    wider = {"uint8": pyarrow.int16(), "uint16": pyarrow.int32(), "uint32": pyarrow.int64()}
    # Addresses: as signed numbers half of them would be others.
    wider["uint64"] = pyarrow.decimal128(20, 0)
    return wider.get(str(kind), kind)


def read_part(request: Request, part: TracePart, schema: Any) -> Iterator[Any]:
    """Yield the chosen records of a part as Arrow batches with the columns of a schema.

    A column that this recording does not have is null.  Raises TracepointError and OSError for a recording
    that cannot be read, unless the request passes over those.
    """
    try:
        with local_file(part.path) as name, open_trace(name, threads=1) as trace:
            host = host_in_path(part.path) or machine_name(trace.file.options) or "unknown"
            if request.event not in trace or (request.hosts is not None and host not in request.hosts):
                return
            chosen = _chosen(request, part, trace)
            yield from _batches(chosen, request.event, schema, {_HOST: host, _PATH: part.path})
    except (TracepointError, OSError):
        if not request.passes_over:
            raise


def _chosen(request: Request, part: TracePart, trace: Trace) -> Trace:
    found = trace.between(part.start, part.stop).between(request.start, request.stop)
    if part.cpu is not None:
        found = found.on_cpus(part.cpu)
    if request.cpus is not None:
        found = found.on_cpus(*request.cpus)
    if request.pids is not None:
        found = found.of_tasks(*request.pids)
    if request.where:
        found = found.where(request.where)
    numbers = {one.name for one in plan_columns(trace.format(request.event)) if one.kind is ColumnKind.NUMBER}
    for column, operator, value in request.terms:
        if column in numbers:
            found = found.where(f"{column} {operator} {value}")
    return found


def _batches(trace: Trace, event: str, schema: Any, extra: Mapping[str, str]) -> Iterator[Any]:
    """Yield the records of an event with the columns of a schema; only these are decoded."""
    pyarrow = import_library("pyarrow", "spark")
    form = trace.format(event)
    own = {one.name for one in plan_columns(form)} & set(schema.names)
    joined = trace.joined({event: sorted(own)})
    table = joined.arrow()
    columns = []
    for one in schema:
        if one.name in extra:
            columns.append(pyarrow.repeat(pyarrow.scalar(extra[one.name], one.type), len(table)))
        elif one.name in own:
            columns.append(table.column(joined.column(form.name, one.name).name).cast(one.type))
        else:
            columns.append(pyarrow.nulls(len(table), one.type))
    yield from pyarrow.Table.from_arrays(columns, schema=schema).to_batches(max_chunksize=_ROWS)


def register_source(session: Any) -> None:
    """Let a Spark session read recordings: `session.read.format("tracepoint")`.

    `.option("event", "sched:sched_switch")` says which event; a row has `host`, `path` and its fields.
    `columns` are those to decode, `where` is a filter in the kernel's language, `partBytes` the size of a
    part of a file that a task reads, `ignoreCorruptFiles` "true" passes over recordings that cannot be read.
    The session's `spark.sql.python.filterPushdown.enabled` is switched on: without it Spark hands no filters
    over, and refuses a source that takes them.  Raises TracepointError without pyspark.
    """
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    session.dataSource.register(_source_class())


def _source_class() -> Any:
    """Return the class of the source: Spark's own are needed to make it."""
    base = import_library("pyspark.sql.datasource", "spark")
    types = import_library("pyspark.sql.pandas.types", "spark")

    class SparkReader(base.DataSourceReader):  # type: ignore[name-defined,misc]
        def __init__(self, request: Request, schema: Any) -> None:
            self.request = request
            self.schema = schema

        def pushFilters(self, filters: list[Any]) -> list[Any]:  # noqa: N802 - Spark's name
            self.request.narrow(filters)
            return filters

        def partitions(self) -> list[Any]:
            return [base.InputPartition(part) for part in cut_parts(self.request)]

        def read(self, partition: Any) -> Iterator[Any]:
            return read_part(self.request, partition.value, types.to_arrow_schema(self.schema))

    class SparkSource(base.DataSource):  # type: ignore[name-defined,misc]
        @classmethod
        def name(cls) -> str:
            return "tracepoint"

        def schema(self) -> Any:
            return types.from_arrow_schema(arrow_schema(Request.read(self.options)))

        def reader(self, schema: Any) -> Any:
            return SparkReader(Request.read(self.options), schema)

    return SparkSource
