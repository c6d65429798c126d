"""The folders of kernel builds: which one is in use, its state, and the finished kernels next to them.

    trees/NAME/source    hard links to the original; patched files are files of their own
    trees/NAME/objects   everything that make writes (make O=)
    NAME.DIGEST          a finished kernel, which no later build touches

all below `built` in the cache.  One folder of objects serves all patches to one tree.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.errors import LabError
from tracepoint.lab.build import sync as kernel_sync
from tracepoint.tree.cache import cache_folder, oldest_first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TextIO

    from tracepoint.lab.build.wanted import Wanted

_KEPT = 3
_KEPT_KERNELS = 30
_KEPT_TREES = 8
_MARK = "running"
_IMAGE = "arch/x86/boot/bzImage"


@dataclass(frozen=True, slots=True)
class Build:
    """A build folder: `source` is the patched tree, `objects` what make writes, `release` its version.

    `options` are the requested configuration, `origins` the patched lines by path.
    """

    name: str
    folder: Path
    source: Path
    objects: Path
    release: str
    options: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, Mapping[int, tuple[str, int]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """A finished kernel: `image` is the bzImage, `seconds` wall time, `name` for `--kernel built:NAME`.

    `image`, `vmlinux` and `config` stay as they are; `source` and `objects` belong to the build folder
    and follow later builds.  `steps` counts the compiled objects: 0 if there was nothing to do.
    """

    image: Path
    vmlinux: Path
    config: Path
    source: Path
    objects: Path
    release: str
    seconds: float
    steps: int
    name: str = ""


@contextlib.contextmanager
def locked(folder: Path, say: Callable[[str], None] = lambda _words: None) -> Iterator[None]:
    """Lock a build folder; a build that was killed before is restarted."""
    with _lock_of(folder, say) as lock:
        # make holds it too: if we are killed, the folder is in use until make has ended.
        os.set_inheritable(lock.fileno(), True)
        mark = folder / _MARK
        if mark.exists():
            # Killed: an object may be incomplete. ccache has the others.
            save_state(folder, read_state(folder) | {"is_broken": True})
        mark.touch()
        try:
            yield
        finally:
            mark.unlink(missing_ok=True)


def _lock_of(folder: Path, say: Callable[[str], None]) -> TextIO:
    """Make a folder, lock it and return the open lock file."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as opened:
            lock = opened.enter_context((folder / "lock").open("a"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"waiting for another build in {folder}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            # Else the process that had it deleted the folder, and a new folder has another lock file.
            if os.path.samestat(os.fstat(lock.fileno()), (folder / "lock").stat()):
                opened.pop_all()
                return lock


def locked_at(folder: Path) -> int:
    """Return when `locked` got the build folder, in ns of the file system's clock."""
    return _changed_at(folder / _MARK)


@contextlib.contextmanager
def edited(build: Build, contents: Mapping[str, bytes], held: Mapping[str, Path]) -> Iterator[None]:
    """Temporarily change the contents of files; the originals come back with their times."""
    store = build.folder / "held"
    store.mkdir(exist_ok=True)
    try:
        for path in contents:
            file = build.source / path
            if not file.parent.resolve().is_relative_to(build.source.resolve()):
                raise LabError(f"{path} leads out of the kernel tree")
            if file.exists():
                os.link(file, held[path])
        (store / "names").write_text(json.dumps({path: number.name for path, number in held.items()}))
        for path, content in contents.items():
            if content != kernel_sync.read_file(build.source / path):
                kernel_sync.replace_file(build.source / path, content)
        yield
    finally:
        put_back_held(build.folder, build.source)


def put_back_held(folder: Path, source: Path) -> None:
    """End the edits in a build folder, including those of a killed process."""
    store = folder / "held"
    names = store / "names"
    if names.exists():
        for path, number in json.loads(names.read_text()).items():
            if (store / number).exists():
                (store / number).rename(source / path)
            else:
                (source / path).unlink(missing_ok=True)
    shutil.rmtree(store, ignore_errors=True)


def keep(wanted: Wanted, build: Build) -> Path:
    """Copy what was built to its own folder, and delete the oldest of the same name."""
    base = cache_folder() / "built"
    digest = wanted.digest
    if wanted.may_change:
        with (build.objects / "vmlinux").open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    target = base / f"{wanted.title}.{digest[:8]}"
    if not _is_finished(target, digest):
        _copy(wanted, build, target, digest)
    save_state(build.folder, read_state(build.folder) | {"digest": digest})
    (target / "built.json").touch()
    same, every = f"{wanted.title}.????????/built.json", "*/built.json"
    for old in (*_oldest(base, same, _KEPT), *_oldest(base, every, _KEPT_KERNELS)):
        shutil.rmtree(old, ignore_errors=True)
    return target


def forget_trees(keep: Path) -> None:
    """Delete the least recently used build folders, beyond a handful; not `keep`, nor one in use."""
    for folder in _oldest(cache_folder() / "built/trees", "*/state.json", _KEPT_TREES):
        if folder != keep:
            # In use, or deleted already.
            with contextlib.suppress(LabError, FileNotFoundError):
                _delete(folder)


def _oldest(base: Path, pattern: str, kept: int) -> list[Path]:
    """Return the folders of the files that match, without the newest."""
    return [path.parent for path in oldest_first(base.glob(pattern))[:-kept]]


def _changed_at(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def _delete(folder: Path) -> None:
    """Delete a build folder, if no build is using it."""
    with (folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(f"{folder} is in use by another build") from None
        shutil.rmtree(folder)


def _copy(wanted: Wanted, build: Build, target: Path, digest: str) -> None:
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "modules").mkdir(parents=True)
    for name, path in (("bzImage", _IMAGE), ("vmlinux", "vmlinux"), ("config", ".config")):
        shutil.copyfile(build.objects / path, partial / name)
    shutil.copyfile(build.objects / "modules.builtin", partial / "modules/modules.builtin")
    release = (build.objects / "include/config/kernel.release").read_text().strip()
    described = {
        "name": wanted.title,
        "release": release,
        "digest": digest,
        "tree": wanted.name,
        "patched": sorted(wanted.origins),
    }
    (partial / "built.json").write_text(json.dumps(described, indent=1))
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


def clean(kernel: str | None = None) -> list[Path]:
    """Delete the build folders and finished kernels of a series or tree (None: of all); return them.

    The cache of ccache stays.  Raises LabError when there are none, or one is being built now.
    """
    base = cache_folder() / "built"
    name = Path(kernel).resolve().name if kernel and Path(kernel).is_dir() else kernel
    found = [
        *(path.parent for path in base.glob("trees/*/lock") if _is_of(path.parent.name, name)),
        *(path.parent for path in base.glob("*/built.json") if _is_of(path.parent.name, name)),
    ]
    if not found:
        raise LabError(f"nothing was built {f'of {kernel} ' if kernel else ''}in {base}")
    for folder in found:
        if folder.parent == base:
            shutil.rmtree(folder)
        else:
            _delete(folder)
    return found


def _is_of(folder: str, name: str | None) -> bool:
    return name is None or re.fullmatch(rf"{re.escape(name)}(?:[-+].*|\.[0-9a-f]{{8}})?", folder) is not None


def find_result(wanted: Wanted) -> Path | None:
    """Return the folder of the finished kernel that is exactly what is wanted and was the last one built."""
    target = cache_folder() / "built" / f"{wanted.title}.{wanted.digest[:8]}"
    is_last = read_state(wanted.folder).get("digest") == wanted.digest
    return target if is_last and _is_finished(target, wanted.digest) else None


def _is_finished(target: Path, digest: str) -> bool:
    return _load(target / "built.json").get("digest") == digest


def describe(result: Path, folder: Path, seconds: float, steps: int) -> BuiltKernel:
    """Return what is in the folder of a finished kernel; `folder` is the build folder it came from."""
    described = _load(result / "built.json")
    (result / "built.json").touch()
    return BuiltKernel(
        result / "bzImage",
        result / "vmlinux",
        result / "config",
        folder / "source",
        folder / "objects",
        described["release"],
        seconds,
        steps,
        described["name"],
    )


def read_state(folder: Path) -> dict[str, Any]:
    """Return what is known about a build folder: original, changed files, configuration, objects expected."""
    return _load(folder / "state.json")


def _load(path: Path) -> dict[str, Any]:
    try:
        loaded = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def save_state(folder: Path, state: Mapping[str, Any]) -> None:
    """Write what `read_state` will return, atomically."""
    kernel_sync.replace_file(folder / "state.json", json.dumps(state, indent=1).encode())
