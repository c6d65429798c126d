"""A trace header compiled exactly as it is written, before any part of it is replaced.

A `.c` file of two lines, CREATE_TRACE_POINTS and the header, is compiled with a kernel's headers.  What
a header uses without including it comes from what most files of a kernel include, or, in a kernel
tree, from the `.c` file that creates its tracepoints.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.lab.build.compile import compile_file
from tracepoint.lab.build.module import BuildError, first_lines
from tracepoint.lab.build.stub import (
    GENERIC_INCLUDES,
    SHADOW_BASE,
    creating_text,
    find_create_trace_points,
    include_lines_of,
    module_compiler,
    shadow_header,
    struct_lines,
    tree_folders,
)
from tracepoint.source.text import decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.lab.build.module import CompilerMessage
    from tracepoint.lab.build.stub import Compiler

_PRIVATE = re.compile(
    r"(?:invalid use of undefined|(?:to|has) incomplete|application of .sizeof. to incomplete) type "
    r"'(?:const )?((?:struct|union) \w+)"
)
_TREE_MARK = "include/linux/tracepoint.h"


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What precedes the header, and where it is searched for."""

    lines: Sequence[str] = ()
    folders: Sequence[Path] = ()


def compile_as_written(
    header: Path,
    kernel_headers: Path,
    *,
    include: Iterable[str | Path] = (),
    defines: Iterable[str] = (),
    path: str = "",
) -> tuple[str, ...]:
    """Compile a header as it is, for the kernel of `kernel_headers`; return the structs that it lacks.

    `include` and `defines` are as for a compiler; `path` is the name of the header in
    messages. No header of that kernel defines the returned structs, so only the traced code knows them.
    Raises BuildError with the compiler's messages for all other errors, and LabError when there is no
    compiler.
    """
    compiler = module_compiler(kernel_headers, has_warnings=True)
    words = [*(f"-I{Path(folder).resolve()}" for folder in include), *(f"-D{one}" for one in defines)]
    best: tuple[CompilerMessage, ...] | None = None
    for attempt in _attempts(header):
        messages = _compile(header, compiler, attempt, words)
        if not messages:
            return ()
        if best is None or len(messages) < len(best):
            best = messages
    private = [found[1] if (found := _PRIVATE.search(m.text)) else "" for m in best or ()]
    if all(private):
        return tuple(dict.fromkeys(private))
    raise _error(header, path or str(header), best or ())


def _attempts(header: Path) -> Iterable[_Attempt]:
    yield _Attempt()
    yield _Attempt(GENERIC_INCLUDES)
    tree = next((folder for folder in header.resolve().parents if (folder / _TREE_MARK).is_file()), None)
    source = find_create_trace_points(header.resolve(), tree) if tree is not None else None
    if tree is not None and source is not None:
        own = include_lines_of(decode(source.read_bytes()), header.name)
        yield _Attempt([*GENERIC_INCLUDES, *own], [source.parent, *tree_folders(tree)])


def _compile(
    header: Path, compiler: Compiler, attempt: _Attempt, words: Sequence[str]
) -> tuple[CompilerMessage, ...]:
    with tempfile.TemporaryDirectory(prefix="tracepoint-") as name:
        folder = Path(name)
        text = decode(header.read_bytes())
        shadow = shadow_header(header.resolve(), text, folder)
        source = folder / "as_written.c"
        source.write_text(creating_text([*attempt.lines, *struct_lines(text)], shadow))
        before = [*words, f"-I{folder}/first", f"-iquote{folder / SHADOW_BASE}"]
        places = [*attempt.folders, header.resolve().parent]
        after = [word for place in places for word in ("-idirafter", str(place))]
        # The header has several names, all of them links to it.
        links = {os.path.relpath(path, folder) for path in folder.rglob("*.h") if path.is_symlink()}
        messages = compile_file(compiler, source, before, after)
    return tuple(_at_header(message, links) for message in messages)


def _at_header(message: CompilerMessage, links: set[str]) -> CompilerMessage:
    """Return the message at the header's own line, which may be where a macro of it was expanded."""
    for path, line in ((message.path, message.line), *message.places):
        if os.path.normpath(path) in links:
            is_same = (path, line) == (message.path, message.line)
            return replace(message, path="", line=line, column=message.column if is_same else 0)
    return message


def _error(header: Path, path: str, messages: Sequence[CompilerMessage]) -> BuildError:
    moved = tuple(m if m.path else replace(m, path=path) for m in messages)
    lines = first_lines(dict.fromkeys(map(str, moved)))
    text = f"{path}: its events do not compile for this kernel, as {header.name} is written"
    return BuildError(text, log_tail="\n".join(lines), messages=moved)
