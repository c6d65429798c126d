"""Which recordings a fleet has: names, patterns, folders and prefixes of object stores."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from glob import has_magic, iglob
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tracepoint.decode.libraries import import_library
from tracepoint.errors import TracepointError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: What a folder or a prefix stands for: such files below it.
_SUFFIX = ".dat"
_HOST = re.compile(r"(?:^|/)host=([^/]+)(?=/|$)")


def host_in_path(path: str) -> str:
    """Return the host that a folder or file of a path names, `host=NAME`, as Hive and our Parquet do.

    >>> host_in_path("s3://traces/host=web%2F1/boot.dat"), host_in_path("web1.dat")
    ('web/1', '')
    """
    found = _HOST.findall(path)
    return unquote(found[-1]).removesuffix(_SUFFIX) if found else ""


def is_remote(path: str) -> bool:
    """Say whether a path is a URL, which fsspec reads."""
    return "://" in path


def find_inputs(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the recordings that paths, patterns, folders and prefixes stand for, each once, in order.

    A folder stands for the `.dat` files below it, and for itself where there are none: it may be a recording.
    A file that is named without a pattern need not be there.  Raises TracepointError for a pattern without a
    match, OSError, and TracepointError for a URL without fsspec.
    """
    found: list[str] = []
    for given in paths:
        path = os.fspath(given)
        here = _remote(path) if is_remote(path) else _local(path)
        if not here:
            raise TracepointError(f"{path}: no recordings match; a folder stands for *{_SUFFIX} below it")
        found += here
    return list(dict.fromkeys(found))


def skipped_inputs(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the files of folders that are no recordings by their names, which `find_inputs` leaves out.

    Of a folder that is a recording itself, and of prefixes of object stores there are none.
    """
    folders = [
        folder for given in paths if not is_remote(folder := os.fspath(given)) and Path(folder).is_dir()
    ]
    return [
        str(file)
        for folder in folders
        if _local(folder) != [folder]
        for file in sorted(Path(folder).rglob("*"))
        if file.is_file() and file.suffix != _SUFFIX
    ]


def _local(path: str) -> list[str]:
    if has_magic(path) and not Path(path).exists():
        # pathlib's own refuses patterns that begin at the root.
        matches = sorted(iglob(path, recursive=True))  # noqa: PTH207
        return [name for match in matches for name in _local(match)]
    if not Path(path).is_dir():
        return [path]
    files = sorted(str(file) for file in Path(path).rglob(f"*{_SUFFIX}") if file.is_file())
    return files or [path]


def _remote(path: str) -> list[str]:
    system, inside = import_library("fsspec.core", "fleet").url_to_fs(path)
    if has_magic(inside):
        names = [name for name in system.glob(inside) if not system.isdir(name)]
    elif system.isdir(inside):
        names = [name for name in system.find(inside) if name.endswith(_SUFFIX)]
    else:
        return [path]
    return [str(system.unstrip_protocol(name)) for name in sorted(names)]


@contextmanager
def local_file(path: str) -> Iterator[str]:
    """Give a path that can be mapped: of a URL that of a copy, which is removed at the end."""
    if not is_remote(path):
        yield path
        return
    system, inside = import_library("fsspec.core", "fleet").url_to_fs(path)
    with TemporaryDirectory(prefix="tracepoint-") as folder:
        copy = Path(folder) / (Path(inside).name or "recording")
        _fetch(system, inside, copy)
        yield str(copy)


def _fetch(system: Any, inside: str, copy: Path) -> None:
    # A file system raises what its library raises, botocore's errors too.
    try:
        system.get_file(inside, str(copy))
    except OSError:
        raise
    except Exception as error:
        raise TracepointError(f"{inside}: it cannot be fetched: {error!r}") from error
