"""Build kernels for the lab: a source tree, our small configuration, patches; incrementally."""

from __future__ import annotations

import math
import os
import shutil
import time
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.lab.build import config as kernel_config
from tracepoint.lab.build import make as kernel_make
from tracepoint.lab.build import reach as kernel_reach
from tracepoint.lab.build import store as kernel_store
from tracepoint.lab.build import sync as kernel_sync
from tracepoint.lab.build.module import BuildError, disk_errors
from tracepoint.lab.build.patch import PatchError
from tracepoint.lab.build.source import tree_version
from tracepoint.lab.build.store import Build, BuiltKernel
from tracepoint.lab.build.wanted import STANDINS, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tracepoint.lab.build.make import Watcher

    Say = Callable[[str], None]

__all__ = [
    "Build",
    "BuildError",
    "BuiltKernel",
    "PatchError",
    "build_kernel",
    "compile_object",
    "configured_tree",
]

# Objects of a whole build, before one has been counted.
_STEPS = 1300
_ROOM = 1 << 30
# `prepare` makes them from C files; they would keep the contents of an edited header.
_PREPARED = ("kernel/bounds.s", "kernel/sched/rq-offsets.s", "arch/x86/kernel/asm-offsets.s")


def build_kernel(
    kernel: str | Path,
    patches: Sequence[Path | str] = (),
    fragments: Sequence[Path | str] = (),
    options: Mapping[str, str] | None = None,
    *,
    jobs: int | None = None,
    progress: Watcher | None = None,
    say: Say = lambda _words: None,
) -> BuiltKernel:
    """Build a kernel and return where it is.

    `kernel` is a series (6.1, 6.12: Debian's source) or a source tree; `patches` and `fragments` are
    files, or texts of several lines; `options` are set last (name without CONFIG_ to `y`, `n`, a number
    or quoted text); `jobs` defaults to the number of processors.  `progress` is called with (stage, objects
    built, objects expected), `say` with messages about slow steps.  Raises PatchError (a LabError) for a
    patch that does not apply, BuildError with the compiler's words, LabError for all else; the tree is never
    left half patched.
    """
    begin = time.monotonic()
    wanted = Wanted.read(kernel, patches, fragments, options or {}, say)
    done = None if wanted.may_change else kernel_store.find_result(wanted)
    if done is not None:
        return kernel_store.describe(done, wanted.folder, time.monotonic() - begin, 0)
    with disk_errors(wanted.folder), kernel_store.locked(wanted.folder, say):
        build, make = _prepare(wanted, jobs, progress, say)
        state = kernel_store.read_state(wanted.folder)
        # Only make knows how much a change affects.
        expected = 0 if (build.objects / "vmlinux").exists() else state.get("steps", _STEPS)
        make.run(f"building {build.release}", ("bzImage", "modules"), expected)
        steps = max(make.steps, state.get("steps", 0))
        complete = {"steps": steps, "complete_at": kernel_store.locked_at(wanted.folder)}
        kernel_store.save_state(wanted.folder, state | complete)
        result = kernel_store.keep(wanted, build)
    return kernel_store.describe(result, wanted.folder, time.monotonic() - begin, make.steps)


def configured_tree(
    kernel: str | Path,
    patches: Sequence[Path | str] = (),
    fragments: Sequence[Path | str] = (),
    options: Mapping[str, str] | None = None,
    *,
    jobs: int | None = None,
    progress: Watcher | None = None,
    say: Say = lambda _words: None,
) -> Build:
    """Return a build folder in which single objects can be compiled; its kernel is not built.

    The folder is another one than `build_kernel` uses.  Arguments and errors are the same.
    """
    wanted = Wanted.read(kernel, patches, fragments, options or {}, say, suffix="-objects")
    with disk_errors(wanted.folder), kernel_store.locked(wanted.folder, say):
        build, make = _prepare(wanted, jobs, progress, say)
        if not kernel_store.read_state(wanted.folder).get("is_prepared"):
            make.run("preparing", ("prepare",))
            kernel_store.save_state(
                wanted.folder, kernel_store.read_state(wanted.folder) | {"is_prepared": True}
            )
    return build


def compile_object(
    build: Build,
    target: str | Sequence[str],
    edits: Mapping[str, str | bytes] | None = None,
    *,
    jobs: int | None = None,
) -> None:
    """Compile one object (`mm/swap.o`), or several, with files of the tree temporarily as in `edits`.

    `edits` are whole files by path.  Afterwards the tree and its objects are as before.
    Raises BuildError with the compiler's messages, LabError for an edit outside the tree.
    """
    targets = [target] if isinstance(target, str) else list(target)
    contents = {
        path: text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        for path, text in (edits or {}).items()
    }
    with disk_errors(build.folder), kernel_store.locked(build.folder):
        make = _make(build, jobs, None)
        held = {path: build.folder / "held" / str(number) for number, path in enumerate(contents)}
        with kernel_store.edited(build, contents, held):
            made = {path: _changed_at(build.objects / path) for path in _PREPARED}
            try:
                make.run("compiling", targets)
            finally:
                stale = [
                    path for path, changed in made.items() if _changed_at(build.objects / path) != changed
                ]
                for path in [*targets, *stale] if contents else ():
                    (build.objects / path).unlink(missing_ok=True)


def _prepare(
    wanted: Wanted, jobs: int | None, watcher: Watcher | None, say: Say
) -> tuple[Build, kernel_make.Make]:
    """Update the build folder's tree and configuration; the lock is held."""
    folder = wanted.folder
    source, objects = folder / "source", folder / "objects"
    state = kernel_store.read_state(folder)
    since = state.pop("complete_at", math.inf)
    if since < math.inf:
        # From the first changed file to the end of make, objects may be older than the tree.
        kernel_store.save_state(folder, state)
    changed = _update_tree(wanted, say, since)
    state = kernel_store.read_state(folder)
    objects.mkdir(exist_ok=True)
    release = tree_version(source)
    build = Build(wanted.name, folder, source, objects, release, wanted.options, wanted.origins)
    make = _make(build, jobs, watcher)
    if state.get("config") != wanted.config_digest or not (objects / ".config").exists():
        _configure(wanted, build, make)
        kernel_store.save_state(folder, state | {"config": wanted.config_digest, "is_prepared": False})
    elif since < math.inf:
        make.unreached = kernel_reach.unreached_folders(objects, source, changed)
    return build, make


def _update_tree(wanted: Wanted, say: Say, since: float) -> list[str]:
    """Update the build folder's tree; return the files changed `since` the last make."""
    folder = wanted.folder
    source, objects = folder / "source", folder / "objects"
    state = kernel_store.read_state(folder)
    refreshed: list[str] = []
    if state.get("is_broken") or not source.is_dir() or state.get("source") != str(wanted.source):
        say(f"copying {wanted.source} by hard links")
        kernel_store.forget_trees(folder)
        _room(folder, wanted.source)
        for old in (source, objects):
            shutil.rmtree(old, ignore_errors=True)
        kernel_sync.clone_tree(wanted.source, source)
        state = {"source": str(wanted.source)}
    elif wanted.may_change:
        left = {*state.get("changed", ()), *wanted.files}
        refreshed = kernel_sync.refresh_tree(wanted.source, source, left, since)
    kernel_store.put_back_held(folder, source)
    before = state.get("changed", [])
    kernel_store.save_state(folder, state | {"changed": sorted({*before, *wanted.files}), "digest": ""})
    changed = kernel_sync.sync_files(wanted.source, source, wanted.files, before)
    told = [name for name in changed if name not in STANDINS]
    if told:
        say(f"{len(told)} files changed: {', '.join(told[:4])}{' ...' if len(told) > 4 else ''}")
    kernel_store.save_state(folder, state | {"changed": sorted(wanted.files), "digest": ""})
    return refreshed + changed


def _configure(wanted: Wanted, build: Build, make: kernel_make.Make) -> None:
    """Rewrite the configuration and check that every option got its value."""
    fragment = build.folder / "wanted.config"
    fragment.write_text(kernel_config.write_fragment({**wanted.optional, **wanted.options}))
    config = build.objects / ".config"
    config.unlink(missing_ok=True)
    make.run("configuring", ("tinyconfig",))
    merge = ("scripts/kconfig/merge_config.sh", "-m", "-O", str(build.objects), str(config), str(fragment))
    make.call("merging the configuration", ("env", f"KCONFIG_CONFIG={config}", "bash", *merge))
    make.run("completing the configuration", ("olddefconfig",))
    dropped = kernel_config.dropped_options(wanted.options, config.read_text())
    if not dropped:
        return
    config.unlink()
    kconfigs = (path.read_text(errors="replace") for path in build.source.rglob("Kconfig*") if path.is_file())
    reasons = kernel_config.why_dropped(dropped, kconfigs)
    lines = [
        f"CONFIG_{name}={wanted.options[name]} became {value}: {reasons[name]}"
        for name, value in dropped.items()
    ]
    raise LabError(f"the configuration drops {len(dropped)} wanted options", log_tail="\n".join(lines))


def _make(build: Build, jobs: int | None, watcher: Watcher | None) -> kernel_make.Make:
    return kernel_make.Make(
        build.source,
        build.objects,
        kernel_make.new_log(build.name),
        jobs or os.cpu_count() or 1,
        watcher,
        origins=build.origins,
    )


def _room(folder: Path, source: Path) -> None:
    """Raise LabError when a build cannot fit; on another disk the tree itself must be copied too."""
    needed = _ROOM if folder.stat().st_dev == source.stat().st_dev else 3 * _ROOM
    if shutil.disk_usage(folder).free < needed:
        raise LabError(
            f"less than {needed >> 30} GB free on the disk of {folder}: too little to build a kernel; "
            "make room, or let XDG_CACHE_HOME name a folder with more"
        )


def _changed_at(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0
