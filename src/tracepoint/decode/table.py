"""Tables: columns of the records of one event, or of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from tracepoint.decode.arrow import arrow_format, table_node
from tracepoint.decode.handing import hand_array, hand_schema, hand_stream
from tracepoint.decode.libraries import import_library
from tracepoint.decode.plan import ColumnKind, plan_columns
from tracepoint.wording import counted, html_table, no_such, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.decode.column import Column, Value
    from tracepoint.layout.format import EventFormat

_SHOWN_ROWS = 10


class ColumnTable:
    """Columns of the same length, made on first use.

    Libraries that take Arrow data take a table directly: `pyarrow.table(table)`, `polars.DataFrame(table)`,
    `duckdb.from_arrow(table)`.
    """

    def __init__(self, name: str, read: Callable[[], Sequence[Column]]) -> None:
        self.name = name
        self._read = read
        self._columns: dict[str, Column] | None = None

    def _decoded(self) -> dict[str, Column]:
        if self._columns is None:
            self._columns = {column.name: column for column in self._read()}
        return self._columns

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._decoded())

    def __len__(self) -> int:
        return len(next(iter(self._decoded().values())))

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        rows = "not decoded yet" if self._columns is None else counted(len(self), "row")
        return f"<Table {one_line(self.name)}, {counted(len(self.columns), 'column')}, {rows}>"

    def _repr_html_(self) -> str:
        """Return the first rows for a notebook."""
        rows = ([str(value) for value in row.values()] for row in self.to_dicts(0, _SHOWN_ROWS))
        return html_table(self.columns, rows)

    def __getitem__(self, name: str) -> Column:
        """Return one column; raises KeyError, which names the one that may be meant."""
        columns = self._decoded()
        if name not in columns:
            raise KeyError(no_such("column", name, columns))
        return columns[name]

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """Yield the rows as dictionaries."""
        step = 1 << 12
        for start in range(0, len(self), step):
            yield from self.to_dicts(start, start + step)

    def to_dicts(self, start: int = 0, stop: int | None = None) -> list[dict[str, Value]]:
        """Return rows as dictionaries of Python's own values; None where a record does not hold a field."""
        lists = [column.tolist(start, stop) for column in self._decoded().values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*lists, strict=True)]

    @property
    def schema(self) -> dict[str, str]:
        """The columns with their Arrow formats: `i` for int32, `dictionary<i, U>` for texts."""
        return {name: arrow_format(column) for name, column in self._decoded().items()}

    def __arrow_c_schema__(self) -> object:
        return hand_schema(table_node([*self._decoded().values()]))

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return hand_array(table_node([*self._decoded().values()]))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return hand_stream(table_node([*self._decoded().values()]))

    def arrow(self) -> Any:
        """Return a `pyarrow.Table` over the same memory; raises TracepointError without pyarrow."""
        # pyarrow.table() would import pandas, to see whether this is one of its frames.
        return import_library("pyarrow").RecordBatchReader.from_stream(self).read_all()

    def polars(self) -> Any:
        """Return a `polars.DataFrame`; raises TracepointError without polars."""
        return import_library("polars").DataFrame(self)

    def numpy(self, name: str) -> Any:
        """Return one column as a NumPy array; raises KeyError, and TracepointError without NumPy.

        Numbers are not copied, and masked where a record does not hold the field; texts, lists and bytes
        are objects.
        """
        numpy, column = import_library("numpy"), self[name]
        if column.plan.kind in (ColumnKind.STAMP, ColumnKind.CPU, ColumnKind.NUMBER):
            values = numpy.frombuffer(column.values, dtype=column.plan.code)
            mask = _mask(numpy, column)
            return values if mask is None else numpy.ma.MaskedArray(values, mask)
        if column.plan.kind is ColumnKind.TEXT:
            words = numpy.array([*column.words, None], dtype=object)
            indices = numpy.frombuffer(column.values, dtype="i")
            mask = _mask(numpy, column)
            return words[indices if mask is None else numpy.where(mask, len(words) - 1, indices)]
        values = numpy.empty(len(column), dtype=object)
        values[:] = column.tolist()
        return values

    def pandas(self) -> Any:
        """Return a `pandas.DataFrame`, texts as categories; raises TracepointError without pandas."""
        pandas = import_library("pandas")
        return pandas.DataFrame(
            {name: self._pandas_column(pandas, name) for name in self.columns}, copy=False
        )

    def _pandas_column(self, pandas: Any, name: str) -> Any:
        column = self[name].in_utf8
        numpy = import_library("numpy")
        mask = _mask(numpy, column)
        if column.plan.kind is ColumnKind.TEXT:
            codes = numpy.frombuffer(column.values, dtype="i")
            codes = codes if mask is None else numpy.where(mask, -1, codes)
            return pandas.Categorical.from_codes(codes, pandas.Index(column.words, dtype=object))
        if column.plan.kind is ColumnKind.NUMBER and mask is not None:
            values = numpy.frombuffer(column.values, dtype=column.plan.code).copy()
            kind = pandas.arrays.FloatingArray if column.plan.code in "fd" else pandas.arrays.IntegerArray
            return kind(values, mask)
        return self.numpy(name)

    def duckdb(self) -> Any:
        """Return a relation of DuckDB over the same memory; raises TracepointError without duckdb."""
        return import_library("duckdb", "sql").from_arrow(self)


class Table(ColumnTable):
    """The records of one event by time, a column for each field; decoded on first use.

    `format` is the event's.  The columns are `common_timestamp` (ns), `common_cpu`, the common fields, the
    event's own, and those of `added`.
    """

    def __init__(
        self, form: EventFormat, read: Callable[[], Sequence[Column]], added: tuple[str, ...] = ()
    ) -> None:
        super().__init__(f"{form.system}:{form.name}", read)
        self.format = form
        self._added = added

    def __reduce__(self) -> NoReturn:
        raise TypeError("a table is of an open recording and cannot be pickled: pass table.arrow() instead")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return (*(column.name for column in plan_columns(self.format)), *self._added)

    def labels(self, name: str) -> Column | None:
        """Return a column of numbers as the names that the print format has for them.

        None when the print format has no names for the field.  Raises KeyError.
        """
        from tracepoint.decode.labels import label_column  # noqa: PLC0415 - with what renders print formats

        return label_column(self.format, self[name])

    def labeled(self, *names: str) -> Table:
        """Return the table with names in place of numbers, in these columns or in all that have names.

        Raises KeyError, also for a column whose values have no names.
        """
        found = {name: self.labels(name) for name in names or self.columns}
        without = [name for name in names if found[name] is None]
        if without:
            raise KeyError(f"the print format of {self.name} has no names for values of {', '.join(without)}")
        columns = [found.get(name) or column for name, column in self._decoded().items()]
        return Table(self.format, lambda: columns, self._added)


class JoinedTable(ColumnTable):
    """The records of several events by time, with some fields of each.

    `events` are the names by the numbers in the column `common_type`.  A column is null, or another field of
    the record, in rows of events that do not have it.
    """

    def __init__(
        self,
        events: Mapping[int, str],
        column_of: Mapping[tuple[str, str], str],
        read: Callable[[], Sequence[Column]],
    ) -> None:
        super().__init__(", ".join(events.values()), read)
        self.events = events
        self._column_of = column_of

    def column(self, event: str, field: str) -> Column:
        """Return the column that holds a field in the rows of an event; raises KeyError."""
        return self[self._column_of[event, field]]


def _mask(numpy: Any, column: Column) -> Any:
    """Return True for rows that do not hold a field; None when all do."""
    if column.validity is None:
        return None
    bits = numpy.frombuffer(column.validity, dtype="u1")
    return numpy.unpackbits(bits, bitorder="little")[: len(column)] == 0
