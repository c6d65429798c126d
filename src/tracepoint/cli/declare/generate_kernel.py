"""The kernel that generated modules are for, and whether they compile for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.names import split_event
from tracepoint.errors import LabError
from tracepoint.generate.kernel_facts import read_facts
from tracepoint.lab.build.complete import complete_module
from tracepoint.lab.build.module import BuildError
from tracepoint.lab.build.stub import find_kernel_headers
from tracepoint.tree.kernel_files import read_kernel_files
from tracepoint.tree.tracing_macros import FACT_FILES, NEWEST, TreeFacts

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tracepoint.generate.fileset import FileSet
    from tracepoint.model.event import Proto

# The value of --kernel-headers for not using any headers.
_NONE = "none"
_RUNNING = Path("/lib/modules")


@dataclass(frozen=True, slots=True)
class TargetKernel:
    """The kernel that a module is for: the folder of its headers (None without any), and their facts."""

    folder: Path | None
    facts: TreeFacts
    note: str


def find_target(given: str | None) -> TargetKernel:
    """Return the kernel of the named folder, else the running one, else that of installed headers.

    Raises TracepointError for a folder without kernel headers.
    """
    if given == _NONE:
        return TargetKernel(None, NEWEST, "written for the newest kernel, as --kernel-headers none asks")
    if given:
        folder = Path(given)
    else:
        try:
            folder = find_kernel_headers()
        except LabError:
            note = "no kernel headers are installed: written for the newest kernel (--kernel-headers DIR)"
            return TargetKernel(None, NEWEST, note)
    facts = read_facts(read_kernel_files(folder, FACT_FILES))
    is_running = _RUNNING in folder.parents
    note = f"written for the kernel whose headers are in {folder}"
    return TargetKernel(folder, facts, note if is_running else f"{note} (make KDIR={folder.resolve()})")


def complete(
    make: Callable[[Sequence[str], Mapping[str, str]], FileSet],
    source: str,
    kernel: TargetKernel,
    protos: Iterable[Proto],
    args: argparse.Namespace,
) -> FileSet:
    """Return the files that `make` generates, with what they have to include; notes name the kernel.

    Raises GenerateError or BuildError when they do not compile; without headers or a compiler they are not
    compiled, and a note says so.
    """
    if kernel.folder is None or args.no_compile:
        return make((), {}).with_notes(kernel.note)
    types = {param.name: param.ctype for proto in protos for param in proto.params}
    folders = [Path(), *(Path(split_event(word)[0]).parent for word in args.inputs)]
    if args.output:
        folders.append(Path(args.output))
    try:
        files = complete_module(make, source, kernel.folder, types, folders)
    except BuildError:
        raise
    except LabError as error:
        reason = str(error).partition("\n")[0]
        return make((), {}).with_notes(kernel.note, f"not compiled: {reason}")
    return files.with_notes(kernel.note)
