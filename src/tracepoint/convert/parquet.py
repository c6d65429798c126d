"""A trace as a Parquet dataset: a file for each event, in folders that name trace, host and event."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tracepoint.decode.libraries import import_library
from tracepoint.layout.format import write_format
from tracepoint.tracefile.options import machine_name
from tracepoint.tree.writing import making_folder

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from tracepoint.decode.trace import Trace

    Progress = Callable[[int], None]


def write_parquet(
    trace: Trace,
    folder: str | os.PathLike[str],
    progress: Progress = lambda _: None,
) -> None:
    """Write the selected records of a trace in `trace=ID/host=NAME/event=SYSTEM.EVENT`.

    `progress` is called with the number of records written since the last call.  Rows are in the order of
    time, and the metadata of each `part-0.parquet` has the text of the event's `format`.  The folder
    `trace=ID` appears below `folder` when it is complete; one event at a time is in memory.  Raises OSError,
    FileExistsError where there is such a folder, and TracepointError without pyarrow.
    """
    parquet = import_library("pyarrow.parquet", "arrow")
    target = Path(folder) / f"trace={quote(Path(trace.file.path).stem, safe='')}"
    host = quote(machine_name(trace.file.options) or "unknown", safe="")
    with making_folder(target) as fresh:
        for name in trace.events:
            # One without a format has no columns.
            if name in trace:
                place = fresh / f"host={host}" / f"event={name.replace(':', '.')}"
                place.mkdir(parents=True)
                table = trace[name].arrow()
                table = table.replace_schema_metadata({"format": write_format(trace.format(name))})
                parquet.write_table(table, place / "part-0.parquet", compression="zstd")
                progress(len(table))
