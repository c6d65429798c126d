"""What compiles a lone trace header against installed kernel headers: its includes, its compiler, its place.

Debian's kernel headers package is all that it needs, with the flags of its own Kbuild.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.lab.build.module import NO_COMPILER
from tracepoint.lab.programs import grep, run_program
from tracepoint.source.text import decode
from tracepoint.tree.opening import read_if_sane

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_N_ERRORS = 6
_TELLING = re.compile(r"error|not found", re.IGNORECASE)
_UNKNOWN = re.compile(r"unrecognized command-line option [^\w-]*(-[\w=.,+-]+)")
# objtool, which comes with the headers, may need a newer C library than this machine's.
_KBUILD = "obj-m := stub.o\nOBJECT_FILES_NON_STANDARD := y\n"
# Deep enough for every "../../.." that a TRACE_INCLUDE_PATH begins with.
SHADOW_BASE = Path("a/b/c/d/e/f/g/h/trace")
# What most trace headers use without including it.
_GENERIC = """
    module kernel types sched sched/signal sched/task mm mm_types mmzone swap fs pagemap writeback
    blkdev blk-mq interrupt irq netdevice skbuff net ktime hrtimer timer cpumask workqueue device
    uaccess ptrace slab
"""
GENERIC_INCLUDES = (
    *(f"#include <linux/{name}.h>" for name in _GENERIC.split()),
    "#include <net/sock.h>",
    "#include <net/ip.h>",
    "#include <net/ipv6.h>",
)
_DEFINE = r"^[ \t]*#[ \t]*define[ \t]+{}[ \t]+([^\s]+)"
_CREATE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+CREATE_TRACE_POINTS\b", re.MULTILINE)
_KEPT = re.compile(r"[ \t]*#[ \t]*(?:include|if|ifdef|ifndef|else|elif|endif)\b")
_TAG = re.compile(r"\bstruct[ \t]+([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True)
class Compiler:
    """How a kernel's own Kbuild compiles a module: the words before the source file, and where it runs.

    `instead_of` is the compiler of that kernel if it is not installed and this machine's is used.
    """

    words: tuple[str, ...]
    folder: Path
    instead_of: str = ""


def find_kernel_headers() -> Path:
    """Return the folder of installed kernel headers: the running kernel's, else the newest in /usr/src.

    Raises LabError that says what to install when there is none.
    """
    running = Path("/lib/modules") / os.uname().release / "build"
    if (running / "Makefile").is_file():
        return running
    found = [
        p for p in Path("/usr/src").glob("linux-headers-*") if (p / "include/generated/autoconf.h").is_file()
    ]
    if not found:
        raise LabError("no kernel headers are installed; on Debian: apt-get install linux-headers-amd64")
    return max(found, key=lambda p: [int(n) for n in re.findall(r"\d+", p.name)])


def include_lines_of(text: str, header_name: str) -> list[str]:
    r"""Return the `#include` lines, with the conditionals around them, before that of a trace header.

    Other trace headers are among them, since macros of one are used in the next.

    >>> include_lines_of("#include <a.h>\nint a;\n#define CREATE_TRACE_POINTS\n#include <b.h>\n", "b.h")
    ['#include <a.h>']
    """
    created = _CREATE.search(text)
    own = re.compile(rf'#[ \t]*include[ \t]*[<"](?:[^>"\n]*/)?{re.escape(header_name)}[>"]')
    last = own.search(text, created.end() if created else 0)
    kept: list[str] = []
    depth = 0
    is_continued = False
    for line in text[: last.start() if last else len(text)].splitlines():
        if not is_continued and not _KEPT.match(line):
            continue
        kept.append(line)
        word = "" if is_continued else line.strip().lstrip("#").strip()
        is_continued = line.endswith("\\")
        depth += word.startswith("if")
        depth -= word.startswith("endif")
    return [*kept, *["#endif"] * max(depth, 0)]


def find_create_trace_points(header: Path, tree: Path) -> Path | None:
    """Return the `.c` file of a kernel tree that defines CREATE_TRACE_POINTS and includes the header.

    It may do so through a header of its own folder (`internal.h`).
    """
    name = re.escape(header.name.encode())
    wanted = re.compile(rb'^#[ \t]*include[ \t]*[<"]((?:[^>"\n]*/)?' + name + rb')[>"]', re.MULTILINE)
    found: list[tuple[bool, int, int, Path]] = []
    for path in creating_sources(tree):
        data = read_if_sane(path) or b""
        after = data[max(data.find(b"CREATE_TRACE_POINTS"), 0) :]
        direct = wanted.search(after)
        match = direct or next(filter(None, map(wanted.search, _local_headers(path, after))), None)
        if match:
            # Headers of one name exist in several folders: the fuller path, then the nearest .c.
            n_alike = _n_alike(Path(decode(match[1])), header)
            found.append((direct is not None, n_alike, len(os.path.commonpath((path, header))), path))
    return max(found)[-1] if found else None


def _n_alike(included: Path, header: Path) -> int:
    """Return the number of trailing parts that two paths share."""
    n = 0
    for a, b in zip(reversed(included.parts), reversed(header.parts), strict=False):
        if a != b:
            break
        n += 1
    return n


def _local_headers(source: Path, text: bytes) -> Iterable[bytes]:
    """The contents of the `"..."` headers beside a `.c` file that a part of it includes."""
    for name in re.findall(rb'^#[ \t]*include[ \t]*"([\w.-]+)"', text, re.MULTILINE):
        path = source.parent / decode(name)
        yield read_if_sane(path) or b""


@lru_cache(maxsize=8)
def creating_sources(tree: Path) -> tuple[Path, ...]:
    """Return the `.c` files of a tree that define CREATE_TRACE_POINTS, found with grep."""
    return tuple(sorted(grep("F", "*.c", ["CREATE_TRACE_POINTS"], [tree.resolve()])))


def tree_folders(tree: Path) -> list[Path]:
    """Return the folders of a tree in which trace headers find each other."""
    return [tree.resolve() / part for part in ("include/trace/events", "include/trace", "include")]


@lru_cache(maxsize=8)
def module_compiler(kernel_headers: Path, *, has_warnings: bool = False) -> Compiler:
    """Return how the Kbuild of a headers package compiles a module; LabError when it cannot.

    Kbuild is run once on an empty source file, and the command that it kept is read; with
    `has_warnings` the compiler gives all warnings of a build of that kernel. If the compiler of that kernel
    is not installed, this uses this machine's `gcc`, without unsupported options.
    """
    with tempfile.TemporaryDirectory(prefix="tracepoint-") as name:
        line, absent = _kbuild_command(kernel_headers, Path(name))
    words = shlex.split(line.partition(" ; ")[0])
    return Compiler(tuple(_useful_words(words, has_warnings=has_warnings)), kernel_headers.resolve(), absent)


def _kbuild_command(kernel_headers: Path, folder: Path) -> tuple[str, str]:
    """Return the command by which Kbuild compiles an empty file, and the compiler that it lacked, if any."""
    (folder / "stub.c").write_text("")
    (folder / "Kbuild").write_text(_KBUILD)
    command = ["make", "-s", "-C", str(kernel_headers), f"M={folder}", "stub.o"]
    failure, absent = f"{kernel_headers}: Kbuild cannot compile a module", ""
    try:
        run_compiler(command, folder, failure)
    except LabError as error:
        found = NO_COMPILER.search(error.log_tail)
        if not found or shutil.which("gcc") is None:
            raise
        absent = found[1]
        command.append("CC=gcc")
        _run_without_unknown(command, folder, failure)
    kept = folder / ".stub.o.cmd"
    if not kept.is_file():
        raise LabError(f"{kernel_headers}: Kbuild left no command behind", shlex.join(command))
    line = kept.read_text().partition("\n")[0].partition(":=")[2]
    return line.replace("$(pound)", "#"), absent


def _run_without_unknown(command: list[str], folder: Path, failure: str) -> None:
    """Run Kbuild, again without the options that the compiler does not know, as long as it names more."""
    removed: list[str] = []
    while True:
        # An older compiler does not know all attributes, and warns of each use.
        lines = [_KBUILD, "ccflags-y := -Wno-attributes\n", f"ccflags-remove-y := {' '.join(removed)}\n"]
        (folder / "Kbuild").write_text("".join(lines))
        try:
            return run_compiler(command, folder, failure)
        except LabError as error:
            unknown = [word for word in _UNKNOWN.findall(error.log_tail) if word not in removed]
            if not unknown:
                raise
            removed += unknown


def _useful_words(words: Sequence[str], *, has_warnings: bool) -> Iterable[str]:
    """Drop outputs, dependencies and debug information, and warnings unless they are wanted."""
    dropped = ("-Wp,-M", "-g", "-pg") if has_warnings else ("-Wp,-M", "-g", "-Werror", "-pg")
    skip = False
    for word in words:
        if skip or word == "-o":
            skip = not skip
        elif not word.startswith(dropped) and not word.endswith("stub.c"):
            yield word
    yield from () if has_warnings else ("-w", f"-fmax-errors={_N_ERRORS}")


def creating_text(lines: Sequence[str], header: Path) -> str:
    """Return a `.c` file that creates the tracepoints of a header, with some lines before it."""
    return "\n".join([*lines, "#define CREATE_TRACE_POINTS", f'#include "{header}"', ""])


def struct_lines(text: str) -> list[str]:
    """Return declarations of all structs that a header names, as its users do."""
    return [f"struct {tag};" for tag in dict.fromkeys(_TAG.findall(text))]


def shadow_header(header: Path, text: str, folder: Path) -> Path:
    """Make the header appear where <trace/define_trace.h> will look for it; return that place.

    It is included again from there once a stage, by TRACE_INCLUDE_PATH and TRACE_INCLUDE_FILE or
    TRACE_SYSTEM (include/trace/define_trace.h), and that must be this file and no other.
    """
    path = _last_define(text, "TRACE_INCLUDE_PATH")
    stem = _last_define(text, "TRACE_INCLUDE_FILE") or _last_define(text, "TRACE_SYSTEM") or header.stem
    place = folder / "first/trace/events" if not path else Path(os.path.normpath(folder / SHADOW_BASE / path))
    if folder not in (place, *place.parents) or "/" in stem:
        raise LabError(
            f"{header}: TRACE_INCLUDE_PATH '{path}' or TRACE_INCLUDE_FILE '{stem}' leads out of the tree"
        )
    place.mkdir(parents=True, exist_ok=True)
    (folder / SHADOW_BASE).mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys((f"{stem}.h", header.name)):
        (place / name).symlink_to(header)
    return place / f"{stem}.h"


def _last_define(text: str, name: str) -> str:
    found = re.findall(_DEFINE.format(name), text, re.MULTILINE)
    return str(found[-1]) if found else ""


def run_compiler(command: list[str], folder: Path, failure: str) -> None:
    """Run a command in a folder; raises LabError, which begins with `failure`, with its first errors."""
    done = run_program(command, failure, folder)
    if done.returncode:
        log = decode(done.stderr).splitlines()
        lines = [line for line in log if _TELLING.search(line)] or log
        raise LabError(failure, shlex.join(command), done.returncode, "\n".join(lines[:_N_ERRORS]))
