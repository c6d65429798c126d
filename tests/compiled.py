"""The formats of a header's events as a compiler makes them: a stub that creates the header's tracepoints.

Debian's kernel headers package is all that it needs, with the flags of its own Kbuild.  The object contains
the tables that tracefs prints, which `layout.objects` reads.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import LabError, LayoutError
from tracepoint.lab.build.stub import (
    GENERIC_INCLUDES,
    SHADOW_BASE,
    creating_text,
    find_create_trace_points,
    find_kernel_headers,
    include_lines_of,
    module_compiler,
    run_compiler,
    shadow_header,
    struct_lines,
    tree_folders,
)
from tracepoint.layout.objects import read_object
from tracepoint.model.vocabulary import FIELD_MACROS
from tracepoint.source.text import decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.lab.build.stub import Compiler
    from tracepoint.layout.format import EventFormat

_N_ERRORS = 6
_TELLING = re.compile(r"error|not found", re.IGNORECASE)
_STAGE_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(__\w+)\(", re.MULTILINE)


def compile_header(
    header_path: str | Path,
    *,
    kernel_headers: str | Path | None = None,
    include_lines: Sequence[str] | None = None,
    tree: str | Path | None = None,
) -> list[EventFormat]:
    """Compile one trace header to a stub object and read the formats of its events.

    `kernel_headers` is the folder of a headers package (default: `find_kernel_headers`);
    `include_lines` are the lines before the header (`#include <...>`); without them they come
    from the `.c` of `tree` that defines CREATE_TRACE_POINTS for this header, and from a list
    that suits most headers.  Raises LabError with the compiler's first errors when no list works.
    """
    header = Path(header_path).resolve()
    if not header.is_file():
        raise LabError(f"{header_path}: there is no such header")
    compiler = module_compiler(Path(kernel_headers) if kernel_headers is not None else find_kernel_headers())
    folders: list[Path] = []
    attempts: list[Sequence[str]] = []
    source = find_create_trace_points(header, Path(tree)) if tree is not None else None
    if source is not None:
        folders += [source.parent, source.parent / "include", *tree_folders(Path(tree or "."))]
    if include_lines is not None:
        attempts.append(include_lines)
    else:
        if source is not None:
            own = include_lines_of(decode(source.read_bytes()), header.name)
            attempts += [own, [*GENERIC_INCLUDES, *own]]
        attempts.append(GENERIC_INCLUDES)
    errors: list[LabError] = []
    for lines in attempts:
        try:
            return _compile(header, compiler, lines, [*folders, header.parent])
        except LabError as error:
            errors.append(error)
    raise errors[0]


def _compile(
    header: Path, compiler: Compiler, include_lines: Sequence[str], folders: Sequence[Path]
) -> list[EventFormat]:
    with tempfile.TemporaryDirectory(prefix="tracepoint-") as name:
        folder = Path(name)
        text = decode(header.read_bytes())
        shadow = shadow_header(header, text, folder)
        _shadow_stages(compiler, folder / "first/trace")
        (folder / "stub.c").write_text(creating_text([*include_lines, *struct_lines(text)], shadow))
        words = list(compiler.words)
        before = [f"-I{folder}/first", f"-iquote{folder / SHADOW_BASE}"]
        after = [word for path in folders for word in ("-idirafter", str(path))]
        command = [words[0], *before, *words[1:], *after, "-o", f"{folder}/stub.o", f"{folder}/stub.c"]
        run_compiler(command, compiler.folder, f"{header}: the header does not compile")
        try:
            return read_object((folder / "stub.o").read_bytes())
        except LayoutError as error:
            raise LabError(f"{header}: the compiled stub cannot be read: {error}") from error


def _shadow_stages(compiler: Compiler, place: Path) -> None:
    """Remove what the tables do not depend on: lengths of dynamic fields, and TP_fast_assign.

    Both use private structs of the traced code, which a lone header cannot see.  The
    installed files of include/trace are used with a few lines added; trees older than 5.19, which
    have no include/trace/stages, are used as they are.
    """
    installed = next((p for p in _include_folders(compiler) if (p / "trace/stages").is_dir()), None)
    if installed is None:
        return
    stages = place / "stages"
    stages.mkdir(parents=True, exist_ok=True)
    for path in (installed / "trace").glob("*.h"):
        text = decode(path.read_bytes())
        (place / path.name).write_text(text, errors="surrogateescape")
    for path in (installed / "trace/stages").glob("*.h"):
        text = decode(path.read_bytes())
        names: Iterable[str] = ()
        if path.name.startswith("stage5"):
            names = (name for name in _STAGE_MACRO.findall(text) if name.removeprefix("__") in FIELD_MACROS)
        elif path.name.startswith("stage6"):
            names = ("TP_fast_assign",)
        extra = [f"\n#undef {name}\n#define {name}(...)\n" for name in dict.fromkeys(names)]
        (stages / path.name).write_text("".join([text, *extra]), errors="surrogateescape")


def _include_folders(compiler: Compiler) -> Iterable[Path]:
    return (compiler.folder / word[2:] for word in compiler.words if word.startswith("-I"))
