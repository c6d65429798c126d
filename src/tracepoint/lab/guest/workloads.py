"""Our programs for guests: they use up memory, raise traps, cause page faults.

Each is one C file in `workloads/`, compiled statically by this machine's compiler and kept in the
cache under a hash of what affects it.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

from tracepoint.errors import LabError
from tracepoint.lab.programs import run_program
from tracepoint.tree.cache import cache_folder

# Without a red zone, assembler in the middle of a function may push.
_FLAGS = ("-static", "-Os", "-Wall", "-Wextra", "-mno-red-zone")
_PLACE = "/lab/bin"


@dataclass(frozen=True, slots=True)
class Workload:
    """One program: what users type, and a short description."""

    name: str
    what: str


WORKLOADS = (
    Workload("hog", "fills memory and goes over it again, so that the guest swaps"),
    Workload("traps", "raises every trap that a program can raise"),
    Workload("faults", "makes page faults of every kind"),
)


def find_workload(name: str) -> Workload:
    """Return the workload called `name`; raises LabError, naming all, if it does not exist.

    >>> find_workload("hog").what
    'fills memory and goes over it again, so that the guest swaps'
    """
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    known = ", ".join(workload.name for workload in WORKLOADS)
    raise LabError(f"no workload {name!r}: there are {known}")


def read_source(name: str) -> str:
    """Return the C text of workload `name`; raises LabError when there is none of that name."""
    path = resources.files("tracepoint.lab.guest") / "programs" / f"{find_workload(name).name}.c"
    return path.read_text(encoding="utf-8")


def build_workload(name: str) -> bytes:
    """Return workload `name` as a static x86-64 program.

    Raises LabError when there is none of that name, when there is no C compiler or static C
    library, or when it does not compile.
    """
    text = read_source(name)
    digest = hashlib.sha256("\0".join((*_FLAGS, text)).encode()).hexdigest()[:16]
    path = cache_folder() / "workloads" / f"{name}-{digest}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="build-", dir=path.parent) as scratch:
            program = Path(scratch) / name
            _compile(text, program)
            program.replace(path)
    return path.read_bytes()


def workload_files(names: list[str] | tuple[str, ...]) -> dict[str, bytes]:
    """Return the files that a guest needs to run the workloads `names` by their names."""
    return {f"{_PLACE}/{name}": build_workload(name) for name in names}


def _compile(text: str, program: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        raise LabError("no C compiler for the guest's programs (Debian package gcc)")
    source = program.with_suffix(".c")
    source.write_text(text, encoding="utf-8")
    command = [compiler, *_FLAGS, "-o", str(program), str(source)]
    done = run_program(command, f"{program.name}.c cannot be compiled")
    if done.returncode:
        words = done.stderr.decode(errors="replace")
        hint = " (Debian package libc6-dev brings the static C library)" if "-lc" in words else ""
        raise LabError(
            f"{program.name}.c does not compile{hint}", " ".join(command), done.returncode, words[-2000:]
        )
