"""A trace as a Parquet dataset: a file for each event, in folders that name trace, host and event."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

from tracepoint.decode.libraries import import_library
from tracepoint.layout.format import write_format
from tracepoint.tracefile.cursor import encode
from tracepoint.tracefile.options import machine_name
from tracepoint.tree.writing import making_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.decode.table import Table
    from tracepoint.decode.trace import Trace
    from tracepoint.layout.format import EventFormat

    Progress = Callable[[int], None]

# Events whose files are written at once where a recording is read in parts.
_OPEN_FILES = 200


def write_parquet(
    trace: Trace,
    folder: str | os.PathLike[str],
    progress: Progress = lambda _: None,
) -> None:
    """Write the selected records of a trace in `trace=ID/host=NAME/event=SYSTEM.EVENT`.

    `progress` is called with the number of records written since the last call.  Rows are in the order of
    time, and the metadata of each `part-0.parquet` has the text of the event's `format`.  The folder
    `trace=ID` appears below `folder` when it is complete, and is beside `folder` until then, as programs read
    every file in it; one event at a time is in memory, of a
    large recording a part of all.  Raises OSError, FileExistsError where there is such a folder, and
    TracepointError without pyarrow.
    """
    parquet = import_library("pyarrow.parquet", "arrow")
    target = Path(folder) / f"trace={quote(os.fsencode(Path(trace.file.path).stem), safe='')}"
    host = quote(encode(machine_name(trace.file.options) or "unknown"), safe="")
    # One without a format has no columns.
    names, windows = [name for name in trace.events if name in trace], trace.windows()
    step = _OPEN_FILES if len(windows) > 1 else 1
    with making_folder(target, is_part=True) as fresh:
        place = fresh / f"host={host}"
        for first in range(0, len(names), step):
            with ExitStack() as opened:
                parts = {
                    name: _Part(place / f"event={name.replace(':', '.')}", trace.format(name))
                    for name in names[first : first + step]
                }
                for part in parts.values():
                    opened.callback(part.close)
                for window in windows:
                    for name, table in trace.between(*window).tables(*parts).items():
                        progress(parts[name].write(parquet, table))


class _Part:
    """The file of one event, which gets the rows of one range of times after the other."""

    def __init__(self, folder: Path, form: EventFormat) -> None:
        self._folder, self._form = folder, form
        self._file: IO[bytes] | None = None
        self._writer: Any = None

    def write(self, parquet: Any, table: Table) -> int:
        """Write the rows of a table; return how many they are."""
        rows = table.arrow().replace_schema_metadata({"format": encode(write_format(self._form))})
        if self._writer is None:
            self._folder.mkdir(parents=True)
            # Not its name, of which the library takes valid UTF-8 only.
            self._file = (self._folder / "part-0.parquet").open("wb")
            self._writer = parquet.ParquetWriter(self._file, rows.schema, compression="zstd")
        self._writer.write_table(rows)
        return len(rows)

    def close(self) -> None:
        """Complete the file."""
        if self._writer is not None:
            self._writer.close()
        if self._file is not None:
            self._file.close()
