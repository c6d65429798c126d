"""Which files of a folder hold pages of a ring buffer: those of one recording, by instance and CPU.

They may have the names of tracefs (`per_cpu/cpu0/trace_pipe_raw`, `instances/NAME/per_cpu/…`) or flat ones
(`cpu0.pipe_raw`, `cpu0.raw`, `trace.dat.cpu0`), in the folder or in one of its sub-folders.
"""

from __future__ import annotations

import os
import re
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import DecodeError
from tracepoint.layout.compressed import COMPRESSED_STARTS
from tracepoint.named import NamedTuple
from tracepoint.tracefile.head import MAGIC, PERF_MAGICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PACKED = r"(?:\.(?:zst|gz|xz|bz2))?"
_FILE = re.compile(
    r"(?P<prefix>(?:.*\.)?)cpu(?P<cpu>\d{1,4})(?:\.(?:trace_pipe_raw|pipe_raw|raw))?" + _PACKED, re.ASCII
)
_FILE_OF_CPU = re.compile(r"(?:trace_pipe_raw|pipe_raw|raw)" + _PACKED)
_CPU_FOLDER = re.compile(r"cpu\d{1,4}", re.ASCII)
_TRACE_FILE = re.compile(r".*\.(?:dat|data)" + _PACKED)
# Sub-folders that are a part of the recording that their folder is.
_NO_RECORDINGS = {"per_cpu", "instances", "events"}
_MAX_SUBFOLDERS = 1000
_MAX_NAMED = 5
_HEAD = 16

#: What is looked for, for messages.
PAGE_NAMES = "per_cpu/cpu0/trace_pipe_raw or cpu0.pipe_raw"


class _Group(NamedTuple):
    """Files of pages that belong together: of one instance, in one folder, whose names begin alike."""

    instance: str
    folder: Path
    prefix: str


def cpu_files(folder: Path) -> dict[str, dict[int, Path]]:
    """Return the files of pages in a folder by instance (empty: the top one) and CPU.

    They are in the folder itself, or in one of its sub-folders.  Raises DecodeError when they are of several
    recordings, and OSError.
    """
    found: dict[Path, dict[_Group, dict[int, Path]]] = {}
    for place in (folder, *_subfolders(folder)):
        if groups := _groups_in(place):
            found[place] = groups
    if len(found) > 1:
        raise _several(folder, found)
    files: dict[str, dict[int, Path]] = {}
    for groups in found.values():
        for group, paths in groups.items():
            if group.instance in files:
                raise _several(folder, (_shown(each) for each in groups if each.instance == group.instance))
            files[group.instance] = paths
    return files


def other_recordings(folder: Path) -> list[Path]:
    """Return the files of a folder that have the name of a trace.dat or a perf.data, and begin like one."""
    return sorted(
        path for path in folder.iterdir() if _TRACE_FILE.fullmatch(path.name) and _is_recording(path)
    )


def _is_recording(path: Path) -> bool:
    try:
        with path.open("rb") if path.is_file() else BytesIO() as file:
            # What is compressed is taken at its name.
            return file.read(_HEAD).startswith((MAGIC, *PERF_MAGICS, *COMPRESSED_STARTS))
    except OSError:
        return False


def page_folders(files: dict[str, dict[int, Path]]) -> tuple[Path, ...]:
    """Return the folders that have the pages of `cpu_files`: copies of a tracefs, or of flat files."""
    return tuple(dict.fromkeys(folder_of_pages(path) for found in files.values() for path in found.values()))


def folder_of_pages(path: Path) -> Path:
    """Return the folder that a file of pages is in, or the tracefs, or copy of one, that it is in.

    >>> str(folder_of_pages(Path("copy/instances/one/per_cpu/cpu0/trace_pipe_raw")))
    'copy'
    >>> str(folder_of_pages(Path("copy/cpu0.raw")))
    'copy'
    """
    folder = path.parent
    if _CPU_FOLDER.fullmatch(folder.name):
        folder = folder.parent
    if folder.name == "per_cpu":
        folder = folder.parent
    return folder.parent.parent if folder.parent.name == "instances" else folder


def _groups_in(place: Path) -> dict[_Group, dict[int, Path]]:
    """Return the files of pages of a folder that is a recording, or a copy of a tracefs."""
    instances = [(path.name, path) for path in _folders(place / "instances")]
    groups: dict[_Group, dict[int, Path]] = {}
    for instance, top in (("", place), *instances):
        for folder in (top, top / "per_cpu"):
            for prefix, cpu, path in _pages_in(folder):
                paths = groups.setdefault(_Group(instance, folder, prefix), {})
                if cpu in paths:
                    names = f"{paths[cpu].name} and {path.name}"
                    reason = f"{names} are both of CPU {cpu}: leave one of them there"
                    raise DecodeError(reason, str(folder))
                paths[cpu] = path
    return groups


def _pages_in(folder: Path) -> Iterator[tuple[str, int, Path]]:
    """Yield how the name of a file of pages begins, its CPU and its path, of folders of CPUs too."""
    for entry in _entries(folder):
        match = _FILE.fullmatch(entry.name)
        if match is None:
            continue
        if not entry.is_dir():
            yield match["prefix"], int(match["cpu"]), Path(entry)
        elif _CPU_FOLDER.fullmatch(entry.name):
            for file in _entries(Path(entry)):
                if _FILE_OF_CPU.fullmatch(file.name):
                    yield "", int(match["cpu"]), Path(file)


def _subfolders(folder: Path) -> Iterator[Path]:
    """Yield the first sub-folders, which may be recordings; a folder with thousands is something else."""
    paths = (
        path
        for path in _folders(folder)
        if path.name not in _NO_RECORDINGS and not _CPU_FOLDER.fullmatch(path.name)
    )
    return islice(paths, _MAX_SUBFOLDERS)


def _folders(folder: Path) -> Iterator[Path]:
    return (Path(entry) for entry in _entries(folder) if entry.is_dir(follow_symlinks=False))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what a folder has, by name: nothing where it is not there, or not ours to read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _shown(group: _Group) -> str:
    return str(group.folder / f"{group.prefix}cpu*" if group.prefix else group.folder)


def _several(folder: Path, places: Iterable[object]) -> DecodeError:
    names = [*dict.fromkeys(map(str, places))]
    shown = ", ".join(names[:_MAX_NAMED])
    if len(names) > _MAX_NAMED:
        shown += f" and {len(names) - _MAX_NAMED} more"
    advice = "open one of them"
    if str(folder) in names:
        advice += f"; for {folder} itself move the others out of it"
    return DecodeError(f"pages of several recordings, in {shown}: {advice}", str(folder))
