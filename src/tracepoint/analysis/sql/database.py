"""A database of a trace: its events, the tables of analyses, and operators on intervals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tracepoint.analysis.registry import analyse
from tracepoint.analysis.sql.events import (
    NO_ARGUMENTS,
    arguments_sql,
    event_names,
    event_rows,
    statistics,
    statistics_table,
)
from tracepoint.analysis.sql.macros import MACROS
from tracepoint.analysis.sql.views import TABLES, UNIONS, VIEWS
from tracepoint.convert.sql import WORD, TraceDatabase, missing_table, quoted
from tracepoint.decode.column import number_column, text_column
from tracepoint.decode.table import ColumnTable
from tracepoint.errors import TracepointError
from tracepoint.tracefile.recording import read_pairs, read_tgids

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.analysis.report import Report
    from tracepoint.decode.column import Column
    from tracepoint.decode.trace import Trace

# An event with its system: `sched.sched_switch` does not name the table `sched`.
_QUALIFIED = re.compile(r'"?\w+"?\s*\.\s*("?)(\w+)\1')


class AnalysisDatabase(TraceDatabase):
    """The events of a trace, and tables with the names and columns of Perfetto's SQL library.

    An analysis runs when a query first names one of its tables.  Raises TracepointError without duckdb.
    """

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self._defined: set[str] = set()
        self._reports: dict[str, Report] = {}
        # Why a table is not there.
        self._reasons: dict[str, str] = {}
        self._made: dict[str, Callable[[], ColumnTable]] = {
            "trace_bounds": self._bounds,
            "task_process": self._processes,
            "event_rows": lambda: event_rows(trace),
            "event_names": lambda: event_names(trace),
            "rss_rows": self._sizes,
            "stats": lambda: statistics_table(statistics(trace)),
        }

    def define(self, query: str) -> None:
        """Make the views of events and the macros that a query may name.

        Tables are made when DuckDB misses them: a word may be the name of a column too.
        """
        super().define(query)
        self._define_words(query)

    def refused(self, query: str, error: Exception) -> TracepointError:
        """Return the error for a query that DuckDB refuses, with why a table is not there."""
        names = sorted({*_names(query), missing_table(error)} & self._reasons.keys())
        reasons = [f"{name}: {self._reasons[name]}" for name in names]
        return TracepointError("\n".join([str(super().refused(query, error)), *reasons]))

    def relation(self, query: Any) -> Any:
        """Return DuckDB's relation for a query, after the tables that it names were made."""
        return self._with_tables(lambda: super(AnalysisDatabase, self).relation(query))

    def execute(self, query: Any) -> Any:
        """Return DuckDB's cursor after a query has run, for which the tables that it names were made."""
        return self._with_tables(lambda: super(AnalysisDatabase, self).execute(query))

    def _with_tables(self, work: Callable[[], Any]) -> Any:
        """Return what DuckDB gives for a statement: it misses a table before it does anything."""
        while True:
            try:
                return work()
            except self._duckdb.Error as error:
                name = missing_table(error)
                if name in self._defined or not self._is_known(name):
                    raise
                self._define(name)

    def _is_known(self, name: str) -> bool:
        return name == "args" or any(name in tables for tables in (VIEWS, UNIONS, TABLES, self._made))

    def table_names(self) -> list[str]:
        """Return what queries may name as a table: events, and tables of analyses."""
        return [*super().table_names(), *VIEWS, *UNIONS, *TABLES, *self._made, "args"]

    def _define(self, name: str) -> None:
        if name in self._defined:
            return
        self._defined.add(name)
        if name in VIEWS:
            self._view(name)
        elif name in MACROS:
            self._make_macro(name)
        elif name == "args":
            self._view_arguments()
        elif name in UNIONS:
            self._put_together(name)
        elif name in TABLES or name in self._made:
            try:
                table = self._made[name]() if name in self._made else self._table(*TABLES[name])
            except TracepointError as error:
                self._reasons[name] = str(error)
                return
            self.add_table(f"made:{name}", table)
            self.execute(f"create or replace view {name} as from {quoted(f'made:{name}')}")

    def _view(self, name: str) -> None:
        self._define_words(VIEWS[name])
        try:
            self.execute(f"create or replace view {name} as {VIEWS[name]}")
        except self._duckdb.Error as error:
            self._reasons[name] = self._reason(error)

    def _reason(self, error: Exception) -> str:
        """Return why a table is not there that SQL of ours needs; raises the error where it is another."""
        reason = self._reasons.get(missing_table(error))
        if reason is None:
            raise error
        return reason

    def _make_macro(self, name: str) -> None:
        if name == "extract_arg" and not self._has_variants:
            self._reasons[name] = "DuckDB 1.5 or later has values of any type: pip install -U duckdb"
            return
        self._define_words(MACROS[name])
        self.execute(MACROS[name])

    def _define_words(self, sql: str) -> None:
        """Make the macros that SQL may name, and the tables that have the name of an event."""
        for word in _names(sql):
            if word in MACROS or word in self._shorts:
                self._define(word)

    def _put_together(self, name: str) -> None:
        """Make a view of the parts whose tables are there."""
        parts = []
        for table, part in UNIONS[name]:
            try:
                self.relation(part)
            except self._duckdb.Error as error:
                self._reasons.setdefault(name, f"{table}: {self._reason(error)}")
            else:
                parts.append(f"({part})")
        if parts:
            self._reasons.pop(name, None)
            self.execute(f"create or replace view {name} as {' union all by name '.join(parts)}")

    def _table(self, analysis: str, name: str) -> ColumnTable:
        report = self._reports.get(analysis)
        if report is None:
            report = self._reports[analysis] = analyse(self.trace, analysis)
        return report.tables[name]

    @property
    def _has_variants(self) -> bool:
        query = "select count(*) from duckdb_types() where upper(type_name) = 'VARIANT'"
        return bool(self.execute(query).fetchall()[0][0])

    def _view_arguments(self) -> None:
        """Make `args`, for which all events are decoded at once."""
        parts = []
        for name, table in self.trace.tables().items():
            view = f"args:{name}"
            self.add_table(view, table)
            relation = self.connection.view(view)
            kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
            parts.append(arguments_sql(view, self.trace.format(name).id, kinds))
        rows = " union all ".join(part for part in parts if part) or NO_ARGUMENTS
        self.execute(
            f"create or replace view args as select row_number() over () - 1 as id, * from ({rows})"  # noqa: S608 - ours
        )

    def _sizes(self) -> ColumnTable:
        """Return the records of kmem:rss_stat by time."""
        event = "kmem:rss_stat"
        if event not in self.trace:
            raise TracepointError(f"{self.trace.file.path}: no {event}")
        return self.trace[event]

    def _bounds(self) -> ColumnTable:
        start, stop = self.trace.span
        return ColumnTable(
            "trace_bounds",
            lambda: [number_column("start_ts", [start], "q"), number_column("end_ts", [stop], "q")],
        )

    def _processes(self) -> ColumnTable:
        """Return the process and the name of each task that the recorder saved."""
        file = self.trace.file
        names, tgids = read_pairs(file.saved_cmdlines), read_tgids(file.saved_tgids or "")

        def columns() -> list[Column]:
            words = [names.get(tid, "").encode("utf-8", "surrogateescape") for tid in tgids]
            return [
                number_column("tid", tgids, "i"),
                number_column("pid", tgids.values(), "i"),
                text_column("name", range(len(words)), words),
            ]

        return ColumnTable("task_process", columns)


def _names(query: str) -> set[str]:
    """Return the words of a query that may name a table: not those of an event with its system.

    >>> sorted(_names("from sched.sched_switch join thread using (utid)"))
    ['from', 'join', 'thread', 'using', 'utid']
    """
    return {word.lower() for word in WORD.findall(_QUALIFIED.sub(" ", query))}


def sql(trace: Trace, query: str) -> Any:
    """Run an SQL query over a trace and return DuckDB's relation.

    Tables are the events, `sched.sched_switch`, and those of analyses, `thread_state`: what a query does not
    name is not decoded.  The relation has `fetchall()`, `df()`, `pl()`, `arrow()`, and prints as a table.
    Raises TracepointError without duckdb, and for what it refuses.
    """
    return AnalysisDatabase(trace).run(query)
