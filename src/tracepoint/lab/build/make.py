"""Run a kernel's own make: watched, logged, stoppable, with readable errors."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.lab.build.module import BuildError, CompilerMessage, first_lines, read_messages
from tracepoint.tree.cache import cache_folder, oldest_first

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    Watcher = Callable[[str, int, int], None]

_LONGEST = 4 * 3600
_STOPPING = 20
_SHOWN = 6
_READ = 1 << 21
_KEPT_LOGS = 20
# Debian's packages of what a kernel build runs.
_PROGRAMS = {
    "make": "make",
    "gcc": "gcc",
    "ld": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "awk": "mawk",
    "gzip": "gzip",
}
_HEADERS = {"gelf.h": "libelf-dev"}
_STEP = re.compile(rb"^  (?:CC|AS)(?: \[M\])? +\S", re.MULTILINE)
_OTHER = re.compile(
    r"^ERROR: modpost: |No space left on device|: not found$|\*\*\* No rule|command not found|Killed"
    r"|virtual memory exhausted|^ld: |undefined!|undefined reference|multiple definition"
    r"|internal compiler error|^fatal error"
)
_TRACEPOINT = re.compile(r"undefined reference to [`']__(?:SCK__tp_func|tracepoint|traceiter)_(\w+)'")
# Words of the caller's environment that would change what is built.
_FOREIGN = (
    "ARCH CROSS_COMPILE KBUILD_OUTPUT O M KCFLAGS KCPPFLAGS KAFLAGS LDFLAGS CFLAGS MAKEFLAGS MFLAGS "
    "MAKELEVEL KCONFIG_CONFIG KCONFIG_ALLCONFIG KBUILD_EXTMOD LOCALVERSION LLVM V W C CC HOSTCC SRCARCH"
).split()


@dataclass(slots=True)
class Make:
    """How to build one folder: `source` is the tree, `objects` the output folder.

    `watcher` is called with (stage, objects built, objects expected) about once per
    second.  make does not enter the folders `unreached`.
    """

    source: Path
    objects: Path
    log_path: Path
    jobs: int = 1
    watcher: Watcher | None = None
    steps: int = 0
    origins: Mapping[str, Mapping[int, tuple[str, int]]] = field(default_factory=dict)
    unreached: Sequence[str] = ()

    def run(self, what: str, targets: Sequence[str], expected: int = 0) -> None:
        """Make the targets; raises BuildError with the compiler's messages, LabError when make is stopped."""
        command = [
            *("make", "-C", str(self.source), f"O={self.objects}", f"-j{self.jobs}", "-Otarget"),
            *(f"{name}={compiler()}" for name in ("CC", "HOSTCC")),
            # A kernel's Makefiles enter a folder by a target of its name, with $(MAKE) in the recipe.
            *([f"MAKE=$(if $(filter {' '.join(self.unreached)},$@),true,make)"] if self.unreached else ()),
            *targets,
        ]
        self.call(what, command, expected)

    def call(self, what: str, command: Sequence[str], expected: int = 0) -> None:
        """Run a command of the build in the tree; raises as `run` does."""
        try:
            process = subprocess.Popen(  # noqa: S603 (the tree's own programs: building it means to run them)
                ["nice", *command],  # noqa: S607
                cwd=self.source,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment(self.objects.parent),
                start_new_session=True,
                close_fds=False,
            )
        except FileNotFoundError as error:
            raise LabError(f"{error.filename} is not installed") from None
        with process:
            try:
                tail = self._watch(process, what, expected)
                status = process.wait()
            except BaseException:
                stop(process)
                raise
        if status:
            raise self._failure(tail.decode(errors="replace"), command, status)

    def _watch(self, process: subprocess.Popen[bytes], what: str, expected: int) -> bytes:
        """Copy the build's output to the log, count the objects, and return the end of the output."""
        assert process.stdout is not None  # noqa: S101 (it was asked for)
        kept: deque[bytes] = deque(maxlen=_READ >> 12)
        begin = time.monotonic()
        with self.log_path.open("ab") as log, selectors.DefaultSelector() as selector:
            log.write(f"# {what}\n".encode())
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if self.watcher is not None:
                    self.watcher(what, self.steps, expected)
                if time.monotonic() - begin > _LONGEST:
                    raise LabError(f"{what} took longer than {_LONGEST // 3600} hours")
                if not selector.select(1):
                    continue
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    return b"".join(kept)
                log.write(data)
                log.flush()
                kept.append(data)
                self.steps += len(_STEP.findall(data))

    def _failure(self, output: str, command: Sequence[str], status: int) -> BuildError:
        for prefix in (f"{self.source}/", os.path.relpath(self.source, self.objects) + "/"):
            output = output.replace(prefix, "")
        messages = read_messages(output)
        if messages:
            lines = first_lines(map(self._describe, messages))
        else:
            every = [line for line in output.splitlines() if line.strip()]
            lines = ([line for line in every if _OTHER.search(line)] or every[-_SHOWN:])[:_SHOWN]
        error = BuildError(
            f"the kernel does not build{_reason(output)}",
            shlex.join(command),
            status,
            "\n".join(lines) + f"\nwhole log: {self.log_path}",
            messages,
        )
        error.log_path = str(self.log_path)
        return error

    def _describe(self, message: CompilerMessage) -> str:
        """Return a message with the patch line that it refers to, if any."""
        for path, line in ((message.path, message.line), *message.places):
            origin = self.origins.get(path, {}).get(line)
            if origin is not None:
                where = "" if (path, line) == (message.path, message.line) else f" in {path}:{line}"
                return f"{message}  [{origin[0]}:{origin[1]}{where}]"
        return str(message)


def compiler() -> str:
    """Return the command of the compiler, through ccache if that is installed."""
    return "ccache gcc" if shutil.which("ccache") else "gcc"


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a build in `folder`: nothing in it changes from one build to the next."""
    kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    return kept | {
        "LC_ALL": "C",
        "KBUILD_BUILD_TIMESTAMP": "1970-01-01 00:00:00 UTC",
        "KBUILD_BUILD_USER": "tracepoint",
        "KBUILD_BUILD_HOST": "lab",
        "KBUILD_BUILD_VERSION": "1",
        "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(cache_folder() / "ccache")),
        # Paths in this folder are relative to it: another folder finds the same objects.
        "CCACHE_BASEDIR": str(folder),
        "CCACHE_NOHASHDIR": "1",
    }


def check_tools() -> None:
    """Raise LabError, with the line that installs them, when programs or headers of a build are missing."""
    missing = {name: package for name, package in _PROGRAMS.items() if shutil.which(name) is None}
    if "gcc" not in missing:
        missing |= {name: package for name, package in _HEADERS.items() if not _has_header(name)}
    if missing:
        raise LabError(
            f"a kernel cannot be built here without {', '.join(missing)}; "
            f"apt-get install {' '.join(dict.fromkeys(missing.values()))}"
        )


def new_log(name: str) -> Path:
    """Return the path of a log for a build, and delete the oldest beyond a handful."""
    folder = cache_folder() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    for old in oldest_first(folder.glob("build-*"))[:-_KEPT_LOGS]:
        old.unlink(missing_ok=True)
    return folder / f"build-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{name}.log"


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a build without leaving partial objects: make deletes what it was making, then all must end."""
    for number, seconds in ((signal.SIGTERM, _STOPPING), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            process.communicate(timeout=seconds)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        return


def _reason(output: str) -> str:
    if "No space left on device" in output:
        return f": no space left on the disk of {cache_folder()} (or of the folder for temporary files)"
    if match := _TRACEPOINT.search(output):
        return f": no file makes tracepoint {match[1]} (CREATE_TRACE_POINTS before its header, once)"
    return ""


def _has_header(name: str) -> bool:
    done = subprocess.run(
        ["gcc", "-E", "-x", "c", "-"],  # noqa: S607 (the compiler of the machine)
        input=f"#include <{name}>\n".encode(),
        capture_output=True,
        check=False,
    )
    return done.returncode == 0
