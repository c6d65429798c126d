"""SQL over the events of a trace, by DuckDB: an event is decoded when a query names it."""

from __future__ import annotations

import re
from functools import partial
from itertools import chain
from threading import Event, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any

from tracepoint.decode.libraries import import_library
from tracepoint.decode.names import names_by_id
from tracepoint.decode.parts import TableParts
from tracepoint.errors import TracepointError
from tracepoint.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracepoint.decode.table import ColumnTable
    from tracepoint.decode.trace import Trace

_STEP = 1 << 12
_AGAIN_S = 0.02
WORD = re.compile(r"\w+")
_NO_TABLE = re.compile(r'Table with name "?([^"\s]+?)"? does not exist')
_ANY_TABLE = re.compile(r'^Did you mean "[^"\n]*"\?\n?')
_OWN_TABLE = re.compile(r'\nDid you mean "(?:\w+\.)*(?:sqlite|pg|duckdb)_\w*"\?')
# What DuckDB says of statements without rows.
_KINDS = ("QUERY_RESULT", "NOTHING")
_NO_ROWS = (["Count"], ["Success"])
# A query reads the trace, and what it names itself; nothing is fetched for it.
_SETTINGS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


class TraceDatabase:
    """The events of a trace as views of a DuckDB database in memory.

    A view is `sched.sched_switch`, and `sched_switch` where one system only has an event of that name.
    `connection` is DuckDB's own.  Raises TracepointError without duckdb.
    """

    def __init__(self, trace: Trace) -> None:
        self._duckdb = import_library("duckdb", "sql")
        self.connection = self._duckdb.connect(config=_SETTINGS)
        self.trace = trace
        self._shorts: dict[str, list[str]] = {}
        for name in names_by_id(trace.file).values():
            self._shorts.setdefault(name.partition(":")[2].lower(), []).append(name)
        self._viewed: set[str] = set()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.trace!r}, {counted(len(self._viewed), 'event')} named>"

    def run(self, query: str) -> Any:
        """Run a query and return DuckDB's relation, None for a statement without rows.

        Raises TracepointError for what DuckDB refuses.
        """
        self.define(query)
        relation = None
        try:
            for statement in self.connection.extract_statements(query):
                relation = self.relation(statement)
        except self._duckdb.Error as error:
            raise self.refused(query, error) from None
        return relation

    def results(self, query: str) -> Iterator[tuple[list[str], Iterator[tuple[Any, ...]]]]:
        """Run the statements of a query; yield the names of the columns and the rows of each that has rows.

        Some rows at a time are in memory: they are to be read before the next statement runs.  Raises
        TracepointError for what DuckDB refuses.
        """
        self.define(query)
        try:
            statements = self.connection.extract_statements(query)
            if not statements:
                raise TracepointError("no query: there is no statement in it")
            for statement in statements:
                cursor = self.execute(statement)
                names = [column[0] for column in cursor.description or ()]
                first = self._fetch(cursor)
                if self._has_rows(statement, names):
                    steps = iter(partial(self._fetch, cursor), [])
                    yield names, (row for step in chain([first], steps) for row in step)
        except self._duckdb.Error as error:
            raise self.refused(query, error) from None

    def _fetch(self, cursor: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._interruptible(lambda: cursor.fetchmany(_STEP))
        return rows

    def _has_rows(self, statement: Any, names: list[str]) -> bool:
        """Say whether a statement gives rows, not only how many it changed, or that it ran."""
        kinds = set(statement.expected_result_type)
        query, nothing = (getattr(self._duckdb.ExpectedResultType, name) for name in _KINDS)
        return kinds == {query} or (kinds != {nothing} and names not in _NO_ROWS)

    def add_table(self, name: str, table: ColumnTable | TableParts) -> None:
        """Let queries name a table, which is decoded when one reads it."""
        self._interruptible(lambda: self.connection.register(name, table))

    def relation(self, query: Any) -> Any:
        """Return DuckDB's relation for a query, a text or a statement; raises DuckDB's errors."""
        return self.connection.sql(query)

    def execute(self, query: Any) -> Any:
        """Return DuckDB's cursor after a query, a text or a statement, has run; raises DuckDB's errors."""
        return self._interruptible(lambda: self.connection.execute(query))

    def _interruptible(self, work: Callable[[], Any]) -> Any:
        """Return what DuckDB gives; a signal that ends the program, or Ctrl-C, interrupts the query.

        DuckDB does not look for signals, and their handlers run in the main thread, which waits here.
        """
        if current_thread() is not main_thread():
            return work()
        found: list[Any] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                found.append(work())
            except BaseException as error:  # noqa: BLE001 - raised where the query is waited for
                failed.append(error)
            finally:
                ended.set()

        # Not join(): after an exception in it, Python 3.11 takes a thread for one that ended.
        ended = Event()
        try:
            Thread(target=run, name="tracepoint-sql", daemon=True).start()
            ended.wait()
        except RuntimeError:
            # The system gives no more threads.
            return work()
        except BaseException:
            # One interruption would be forgotten where the query has not begun yet.
            while not ended.wait(_AGAIN_S):
                self.connection.interrupt()
            raise
        if failed:
            raise failed[0]
        return found[0]

    def refused(self, query: str, error: Exception) -> TracepointError:  # noqa: ARG002 - others look at it
        """Return the error for a query that DuckDB refuses, with the table that was meant."""
        from difflib import get_close_matches  # noqa: PLC0415 - where something went wrong

        message, missing = str(error), missing_table(error)
        if not missing:
            return TracepointError(message)
        # DuckDB knows only what queries have named so far, and its own tables.
        first, _, rest = _OWN_TABLE.sub("", message).partition("\n")
        known = self.table_names()
        close = [] if missing in known else get_close_matches(missing, known, 1)
        if close:
            rest = _ANY_TABLE.sub("", rest)
            first = f'{first}\nDid you mean "{close[0]}"?'
        return TracepointError("\n".join(filter(None, (first, rest))))

    def table_names(self) -> list[str]:
        """Return what queries may name as a table: events with their system, and without if that is one."""
        shorts = [short for short, names in self._shorts.items() if len(names) == 1]
        return shorts + [name.replace(":", ".", 1) for names in self._shorts.values() for name in names]

    def define(self, query: str) -> None:
        """Make the views of the events that a query may name: whose name is a word in it.

        Raises TracepointError for a query that is not UTF-8.
        """
        try:
            query.encode()
        except UnicodeEncodeError as error:
            raise TracepointError(f"the query is not UTF-8 from character {error.start}") from None
        words = {word.lower() for word in WORD.findall(query)}
        for name in {name for word in words for name in self._shorts.get(word, ())} - self._viewed:
            system, _, short = name.partition(":")
            self.add_table(name, TableParts(self.trace, name))
            self._make_view(f"{quoted(system)}.{quoted(short)}", name, system)
            if len(self._shorts[short.lower()]) == 1:
                self._make_view(f"main.{quoted(short)}", name, "main")
            self._viewed.add(name)

    def _make_view(self, view: str, name: str, schema: str) -> None:
        self.execute(f"create schema if not exists {quoted(schema)}")
        self.execute(f"create view {view} as select * from {quoted(name)}")  # noqa: S608 - quoted


def missing_table(error: Exception) -> str:
    """Return the table, in lower case, that DuckDB says there is none of; empty for another error.

    >>> missing_table(ValueError("Catalog Error: Table with name CPU does not exist!"))
    'cpu'
    """
    found = _NO_TABLE.search(str(error))
    return found[1].lower() if found else ""


def quoted(name: str) -> str:
    """Return a name as SQL writes any name.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
