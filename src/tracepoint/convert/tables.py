"""Records and tables as streams of bytes: CSV, JSON lines, Arrow IPC, Parquet."""

from __future__ import annotations

import csv
from io import RawIOBase, StringIO
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tracepoint.decode.libraries import import_library
from tracepoint.decode.records import RECORD_COLUMNS, record_columns, record_values
from tracepoint.decode.table import ColumnTable
from tracepoint.record.field import field_values
from tracepoint.tree.writing import replacing
from tracepoint.wording import json_line, utf8

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tracepoint.decode.records import ShownRecord
    from tracepoint.decode.trace import Trace
    from tracepoint.tracefile.text import TextWriter

    Progress = Callable[[int], None]

_STEP = 1 << 12
_ROWS = 1 << 16
# Of Arrow IPC what is read at once, of Parquet what is compressed together.
_BATCH_ROWS = {"arrow": _ROWS, "parquet": 1 << 20}


def csv_lines(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> Iterator[str]:
    r"""Yield a head and rows as CSV, some thousand at once; None is an empty field, bytes are hexadecimal.

    An empty text is two quotes, which tells it from None.

    >>> list(csv_lines(["a", "b"], [[1, None], ["x,y", b"\0"], ["", 2]]))
    ['a,b\n1,\n"x,y",00\n"",2\n']
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for index, row in enumerate(rows, 1):
        values = [value.hex() if isinstance(value, bytes) else value for value in row]
        if "" in values or len(values) == 1:
            text.write(f"{','.join(map(_csv_field, values))}\n")
        else:
            writer.writerow(values)
        if not index % _STEP:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = StringIO()
    csv.writer(text, lineterminator="").writerow([value])
    return text.getvalue()


def write_table(parts: Iterable[ColumnTable], stream: IO[bytes], form: str) -> None:
    """Write a table, one part after the other, as `arrow` (the streaming format of Arrow IPC) or `parquet`.

    On an error the end is missing, without which what was written is not read as a whole table.  Raises
    OSError, and TracepointError without pyarrow.
    """
    target, writer = _Unfinished(stream), None
    try:
        for part in parts:
            rows = part.arrow()
            writer = writer or _open_writer(target, form, rows.schema)
            writer.write_table(rows, _BATCH_ROWS[form])
        if writer is not None:
            writer.close()
    except BaseException:
        target.has_failed = True
        raise


class _Unfinished(RawIOBase):
    """A stream that writes nothing more after an error: freed writers of Parquet write the end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.has_failed = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data) if self.has_failed else self._stream.write(data)


def _open_writer(stream: RawIOBase, form: str, schema: Any) -> Any:
    if form == "arrow":
        return import_library("pyarrow.ipc", "arrow").new_stream(stream, schema)
    return import_library("pyarrow.parquet", "arrow").ParquetWriter(stream, schema, compression="zstd")


def json_lines(
    records: Iterable[ShownRecord], writer: TextWriter, tgids: Mapping[int, int] | None = None
) -> Iterator[str]:
    """Yield an object for each record: RECORD_COLUMNS, the `fields`, `tgid` and `lost` where there are any.

    A record whose format is not known has its bytes as `{"data": "0011..."}` for fields.
    """
    for record in records:
        event = writer.events.get(writer.common(record.raw)[0])
        data: dict[str, object] = dict(zip(RECORD_COLUMNS, record_values(record), strict=True))
        text = data.pop("text")
        data["fields"] = field_values(event, record.raw.data) if event else {"data": record.raw.data.hex()}
        data["text"] = text
        if tgids and record.pid in tgids:
            data["tgid"] = tgids[record.pid]
        if record.raw.lost:
            data["lost"] = record.raw.lost
        yield json_line(data)


def _counted(records: Iterable[ShownRecord], progress: Progress) -> Iterator[ShownRecord]:
    for index, record in enumerate(records, 1):
        yield record
        if not index % _STEP:
            progress(_STEP)


def write_csv(trace: Trace, path: str | os.PathLike[str], progress: Progress = lambda _: None) -> None:
    """Write the selected records of a trace by time as CSV, with the columns RECORD_COLUMNS.

    `progress` is called with the number of records written since the last call; the file appears when it is
    complete.  Raises OSError.
    """
    shown = _counted(trace.shown_records(), progress)
    with replacing(Path(path), 0o644) as stream:
        for block in csv_lines(RECORD_COLUMNS, map(record_values, shown)):
            stream.write(utf8(block))


def write_json_lines(trace: Trace, path: str | os.PathLike[str], progress: Progress = lambda _: None) -> None:
    """Write the selected records of a trace by time, a JSON object a line, as `json_lines` makes them.

    `progress` and the rest are as for `write_csv`.
    """
    with replacing(Path(path), 0o644) as stream:
        lines = json_lines(_counted(trace.shown_records(), progress), trace.text_writer)
        stream.writelines(f"{line}\n".encode() for line in lines)


def write_arrow(trace: Trace, path: str | os.PathLike[str], progress: Progress = lambda _: None) -> None:
    """Write the selected records of a trace by time as an Arrow IPC file, with the columns RECORD_COLUMNS.

    Texts are plain strings, and batches are compressed by zstd.  `progress` and the rest are as for
    `write_csv`; raises TracepointError without pyarrow too.
    """
    pyarrow, ipc = import_library("pyarrow", "arrow"), import_library("pyarrow.ipc", "arrow")
    kinds = [pyarrow.int64(), pyarrow.int32(), pyarrow.int32(), *[pyarrow.string()] * 3]
    schema = pyarrow.schema(zip(RECORD_COLUMNS, kinds, strict=True))
    shown = trace.shown_records()
    options = ipc.IpcWriteOptions(compression="zstd")
    with replacing(Path(path), 0o644) as stream, ipc.new_file(stream, schema, options=options) as writer:
        while batch := list(islice(shown, _ROWS)):
            columns = record_columns(batch)
            writer.write_table(ColumnTable("records", columns.copy).arrow().cast(schema))
            progress(len(batch))
