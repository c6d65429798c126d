"""Tables as streams of bytes: CSV, Arrow IPC, Parquet."""

from __future__ import annotations

import csv
from io import StringIO
from typing import IO, TYPE_CHECKING, Any

from tracepoint.decode.libraries import import_library

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracepoint.decode.table import Table

_STEP = 1 << 12
_ROWS = 1 << 16


def csv_lines(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    r"""Yield a head and rows as CSV, some thousand at once; None is an empty field, bytes are hexadecimal.

    >>> list(csv_lines(["a", "b"], [[1, None], ["x,y", b"\0"]]))
    ['a,b\n1,\n"x,y",00\n']
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for index, row in enumerate(rows, 1):
        writer.writerow([value.hex() if isinstance(value, bytes) else value for value in row])
        if not index % _STEP:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def write_table(table: Table, stream: IO[bytes], form: str) -> None:
    """Write a table to a stream of bytes as `arrow` (the streaming format of Arrow IPC) or `parquet`.

    Raises OSError, and TracepointError without pyarrow.
    """
    if form == "arrow":
        ipc = import_library("pyarrow.ipc", "arrow")
        columns = table.arrow()
        with ipc.new_stream(stream, columns.schema) as writer:
            writer.write_table(columns, max_chunksize=_ROWS)
    else:
        parquet = import_library("pyarrow.parquet", "arrow")
        parquet.write_table(table.arrow(), stream, compression="zstd")
