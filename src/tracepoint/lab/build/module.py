"""Build kernel modules from source files, against headers, in their own folder.

Results are kept in the cache under a hash of everything that affects them.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.tree.cache import cache_folder, keep_folder, oldest_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_SECONDS = 300
_SHOWN = 6
_KEPT = 40
_DONE = ".complete"
#: Make's message when the compiler is not installed.
NO_COMPILER = re.compile(r"(\S*gcc\S*?): (?:(?:command )?not found|No such file)")
# -g0: nothing here reads debug information, and it doubles the time.
_FLAGS = ("-g0", f"-fmax-errors={4 * _SHOWN}", "-fno-diagnostics-show-caret")
_PLACE = re.compile(
    r"(?P<path>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<kind>(?:fatal )?error|note|warning): (?P<text>.*)"
)
_OTHER = re.compile(
    r"^ERROR: modpost: |No space left on device|: not found$|^make.*: \*\*\* No rule|command not found"
    r"|virtual memory exhausted|^ld: |undefined!|internal compiler error|Killed"
)


@dataclass(frozen=True, slots=True)
class CompilerMessage:
    """One error of the compiler: `path` as it was passed in, `line` and `column` from 1 (0: unknown).

    `places` are where it was reached from by macros and includes, innermost first.
    """

    path: str
    line: int
    column: int
    text: str
    places: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" + (f":{self.column}" if self.column else "")
        return f"{where}: {self.text}" if self.path else self.text


class BuildError(LabError):
    """Source files that do not build; `messages` are the compiler's errors, one for each place."""

    def __init__(
        self,
        message: str,
        command: str = "",
        status: int | None = None,
        log_tail: str = "",
        messages: tuple[CompilerMessage, ...] = (),
    ) -> None:
        super().__init__(message, command, status, log_tail)
        self.messages = messages


def build_modules(
    files: Mapping[str, str], headers: Path, *, warnings_fail: bool = True, seconds: int = _SECONDS
) -> tuple[Path, ...]:
    """Build the modules of `files` (path to text, with a Kbuild or Makefile) and return their `.ko` files.

    `headers` is a folder of kernel headers; with `warnings_fail` a warning is an error; `seconds`
    limits the time.  The result is in the cache, where a second call finds it. Raises BuildError
    with the compiler's messages, or LabError when make or the compiler is missing, the time is up or the disk
    is full; partial results are not kept.
    """
    folder = cache_folder() / "modules" / _digest(files, headers, warnings_fail=warnings_fail)
    with disk_errors(folder):
        if (folder / _DONE).exists():
            os.utime(folder)
            return _built(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="build-", dir=folder.parent) as scratch:
            source = Path(scratch) / "source"
            write_files(files, source)
            _make(source, headers, ("-Werror",) if warnings_fail else (), seconds)
            result = Path(scratch) / "result"
            result.mkdir()
            for module in sorted(source.rglob("*.ko")):
                shutil.copyfile(module, result / module.name)
            if not _built(result):
                raise BuildError(f"make built no module of {', '.join(sorted(files))}: Kbuild names none")
            (result / _DONE).touch()
            keep_folder(result, folder, _DONE)
        _forget_old(folder.parent)
    return _built(folder)


def write_files(files: Mapping[str, str], folder: Path) -> None:
    """Write a set of files below `folder`; raises LabError for a path outside it."""
    for name, text in files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\0" in name:
            raise LabError(f"{name!r} leads out of the folder that is built in")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", errors="surrogateescape")


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn errors of a full or read-only disk into a LabError that names `folder`."""
    try:
        yield
    except OSError as error:
        place = next((p for p in (folder, *folder.parents) if p.exists()), folder)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "make room, or let XDG_CACHE_HOME name a folder with more"
            raise LabError(
                f"no space left for {error.filename or folder} (on the disk of {place}); {advice}"
            ) from None
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR):
            raise LabError(f"{error.filename or folder} cannot be written: {error.strerror}") from None
        raise


def _digest(files: Mapping[str, str], headers: Path, *, warnings_fail: bool) -> str:
    digest = hashlib.sha256(repr((str(headers.resolve()), warnings_fail, _FLAGS)).encode())
    for name in ("include/generated/autoconf.h", "Module.symvers", ".kernelvariables"):
        path = headers / name
        if path.is_file():
            digest.update(f"{name} {path.stat().st_size} {path.stat().st_mtime_ns}".encode())
    for name, text in sorted(files.items()):
        data = text.encode("utf-8", "surrogateescape")
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest()[:32]


def _built(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob("*.ko")))


def _forget_old(folder: Path) -> None:
    for old in oldest_first(folder.glob("[0-9a-f]*"))[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def _make(source: Path, headers: Path, flags: Sequence[str], seconds: int) -> None:
    """Run the kernel's own Kbuild on the files below `source`."""
    if not (headers / "Makefile").is_file():
        raise LabError(f"{headers}: no kernel headers here (Debian package linux-headers-...)")
    words = " ".join((*flags, *_FLAGS))
    command = [
        "make",
        "-s",
        f"-j{os.cpu_count() or 1}",
        "-C",
        str(headers),
        f"M={source}",
        # Type information for modules needs pahole, which few machines have.
        "CONFIG_DEBUG_INFO_BTF_MODULES=",
        f"KCFLAGS={words}",
        "modules",
    ]
    try:
        process = subprocess.Popen(  # noqa: S603 (make of the machine, on files written above)
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"LC_ALL": "C"},
            start_new_session=True,
        )
    except FileNotFoundError:
        raise LabError("make is not installed (Debian packages make and gcc)", shlex.join(command)) from None
    with process:
        try:
            output = process.communicate(timeout=seconds)[0].decode(errors="replace")
        except BaseException as error:
            # The compilers are children of make's children: the whole group must be killed.
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise LabError(
                    f"the module took longer than {seconds} s to build", shlex.join(command)
                ) from None
            raise
    if process.returncode:
        raise _failure(output.replace(f"{source}/", ""), shlex.join(command), process.returncode)


def _failure(output: str, command: str, status: int) -> BuildError:
    messages = read_messages(output)
    if messages:
        tail = "\n".join(first_lines(map(str, messages)))
        return BuildError("the module does not compile", command, status, tail, messages)
    lines = [line for line in output.splitlines() if _OTHER.search(line)]
    shown = lines or [line for line in output.splitlines() if line.strip()][-_SHOWN:]
    what = "the module does not build"
    if any("No space left on device" in line for line in lines):
        what += f": no space left on the disk of {cache_folder()}"
    elif any(NO_COMPILER.search(line) for line in lines):
        what += ": the compiler that the headers ask for is not installed"
    return BuildError(what, command, status, "\n".join(shown[:_SHOWN]))


def first_lines(messages: Iterable[str]) -> list[str]:
    """Return the first of some messages, and how many more there are."""
    lines = list(messages)
    return [*lines[:_SHOWN], *([f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else [])]


def read_messages(output: str) -> tuple[CompilerMessage, ...]:
    r"""Return the errors in a compiler's output, each once, with the places of the notes under it.

    >>> read_messages("a.h:3:9: error: 'x' undeclared\nb.h:7:2: note: in expansion of macro 'Y'\n")[0].places
    (('b.h', 7),)
    """
    found: list[CompilerMessage] = []
    places: list[tuple[str, int]] = []
    current: CompilerMessage | None = None

    def finish() -> None:
        if current is None:
            return
        whole = CompilerMessage(current.path, current.line, current.column, current.text, tuple(places))
        if all((whole.path, whole.line, whole.text) != (m.path, m.line, m.text) for m in found):
            found.append(whole)

    for line in output.splitlines():
        match = _PLACE.match(line)
        if match is None:
            continue
        path = match["path"].removeprefix("./")
        if match["kind"] == "note":
            if "in expansion of macro" in match["text"] or "in definition of macro" in match["text"]:
                places.append((path, int(match["line"])))
            continue
        finish()
        places = []
        current = None
        if match["kind"] != "warning":
            current = CompilerMessage(path, int(match["line"]), int(match["column"] or 0), match["text"])
    finish()
    return tuple(found)
