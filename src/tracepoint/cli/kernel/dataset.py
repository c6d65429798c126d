"""`tracepoint record -o FOLDER.parquet`: a Parquet dataset, made of the trace.dat when that is complete."""

from __future__ import annotations

import shutil
from pathlib import Path

from tracepoint.convert.parquet import write_parquet
from tracepoint.decode.libraries import import_library
from tracepoint.decode.trace import open_trace
from tracepoint.errors import TracepointError


def recording_of(name: str, *, replace: bool) -> str:
    """Return where to record what becomes a dataset; raises TracepointError where that cannot be."""
    import_library("pyarrow.parquet", "arrow")
    dataset = Path(name)
    if dataset.exists() and not dataset.is_dir():
        raise TracepointError(f"{dataset} is not a folder, as a Parquet dataset is; nothing was recorded")
    made = _made(dataset)
    if made.exists() and not replace:
        raise TracepointError(f"{made} is there already; nothing was recorded (--force replaces it)")
    recording = dataset.with_suffix(".dat")
    if recording.exists():
        raise TracepointError(
            f"{recording} is there, where the recording goes until it is converted; of one that was "
            f"interrupted `tracepoint convert {recording} {dataset} --to parquet` makes the dataset"
        )
    return str(recording)


def write_dataset(recording: str, name: str) -> None:
    """Write the dataset and remove the recording, which stays where that fails: TracepointError."""
    dataset = Path(name)
    try:
        if _made(dataset).exists():
            shutil.rmtree(_made(dataset))
        dataset.mkdir(exist_ok=True)
        with open_trace(recording) as trace:
            write_parquet(trace, dataset)
    except (OSError, TracepointError) as error:
        raise TracepointError(f"{dataset}: {error}; {recording} has the recording") from error
    Path(recording).unlink()


def _made(dataset: Path) -> Path:
    return dataset / f"trace={dataset.stem}"
