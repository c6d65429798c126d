"""What C files need to call an event: its header, created in one file, and exported to modules."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Edit
from tracepoint.errors import PlaceError
from tracepoint.model.read import read_header_text
from tracepoint.place.code import read_code
from tracepoint.place.loader import KernelLoader, includers, normal_path
from tracepoint.place.outline import ScopedDirective, read_directives
from tracepoint.place.types import unmet_types
from tracepoint.source.closure import IncludeClosure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tracepoint.place.kernel import KernelTree
    from tracepoint.source.text import SourceFile

_CREATE = "CREATE_TRACE_POINTS"
_NEVER = 1 << 62
_WHERE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+TRACE_INCLUDE_(?:PATH|FILE)\b", re.MULTILINE)
_FORGET = "#undef TRACE_INCLUDE_PATH\n#undef TRACE_INCLUDE_FILE\n"
_EXPORT = re.compile(r"^EXPORT_TRACEPOINT_SYMBOL(?:_GPL)?\s*\([^)]*\)\s*;[^\n]*\n", re.MULTILINE)
_FUNCTION = re.compile(r"^\{", re.MULTILINE)


def include_name(header: str, path: str) -> str:
    """Return how a C file includes a trace header, with brackets or quotes.

    >>> include_name("include/trace/events/kmem.h", "mm/memory.c")
    '<trace/events/kmem.h>'
    >>> include_name("fs/xfs/xfs_trace.h", "fs/xfs/libxfs/xfs_btree.c")
    '"../xfs_trace.h"'
    """
    parts = header.split("/")
    if "include" in parts[:-1] and (parts[0] == "include" or parts[0] == "arch"):
        return f"<{'/'.join(parts[parts.index('include') + 1 :])}>"
    here = list(PurePosixPath(path).parent.parts)
    shared = 0
    while shared < min(len(here), len(parts) - 1) and here[shared] == parts[shared]:
        shared += 1
    return f'"{"/".join([".."] * (len(here) - shared) + parts[shared:])}"'


def add_include(kernel: KernelTree, path: str, header: str, uses: Collection[int] = ()) -> tuple[Edit, ...]:
    """Return the edit that makes a C file include a trace header; none if it already does.

    `uses` are the offsets of the calls: an include in a branch of `#if` counts when they are in it too.
    The place is before any `#define CREATE_TRACE_POINTS`, which would create the events once more.
    Raises PlaceError when there is no place outside `#if`.
    """
    source = kernel.source(path)
    directives = read_directives(source.text)
    name = include_name(header, path)
    there = [d for d in directives if _is_same(d, kernel, path, header)]
    create = _first_create(directives)
    limit = min(create, _code_start(source.text))
    if any(d.depth == 0 and d.start < limit for d in there):
        return ()
    if any(d.depth == 0 for d in there) and not any(d.start < create for d in there):
        return ()  # it creates the header itself
    if uses and any(_covers(source, d, uses) for d in there):
        return ()
    if create < _NEVER and _says_where(kernel.text(header)):
        raise PlaceError(
            f"{path} creates events of other headers; {name} would leave its TRACE_INCLUDE_PATH to them"
        )
    if not any(d.included for d in directives):
        _check_includer(kernel, path, header, name)
        return ()
    at = _place(source, directives, name, limit, is_last=_needs_others(kernel, header))
    before = next((d for d in directives if d.included and d.end == at), None)
    blank = "\n" if before is not None and before.rest.startswith("<asm/") else ""
    return (Edit(path, at, at, f"{blank}#include {name}\n"),)


def _covers(source: SourceFile, directive: ScopedDirective, uses: Collection[int]) -> bool:
    """Return whether the branch that holds an include holds all calls as well, after it."""
    code = read_code(source)
    around = next((d.arm for d in code.directives if d.start == directive.start), None)
    starts = [token.start for token in code.tokens]
    arms = [code.arms[bisect_left(starts, use, hi=len(starts) - 1)] for use in uses]
    is_held = around is not None and all(around.holds(arm) for arm in arms)
    return is_held and directive.start < min(uses)


def _needs_others(kernel: KernelTree, header: str) -> bool:
    """Return whether a trace header uses types that it does not declare."""
    text = kernel.text(header)
    loader = KernelLoader(kernel)
    return text is not None and bool(unmet_types(read_header_text(text, header, loader=loader), loader))


def _check_includer(kernel: KernelTree, path: str, header: str, name: str) -> None:
    """Raise PlaceError unless the files that include a file without includes include a header."""
    outer = includers(kernel, path)
    for file in outer:
        closure = IncludeClosure(
            KernelLoader(kernel, path), [(file.path.rpartition("/")[2], True, path)], kernel.shared
        )
        if not any(found.path == header for found in closure.files):
            raise PlaceError(
                f"{path}: has no #include, and {file.path}, which includes it, does not include {name}"
            )
    if not outer:
        raise PlaceError(f"{path}: has no #include that {name} could follow")


def _is_same(directive: ScopedDirective, kernel: KernelTree, path: str, header: str) -> bool:
    """Return whether a directive includes the header."""
    name = directive.included
    if not name:
        return False
    if directive.rest.startswith("<"):
        return header == f"include/{name}" or header.endswith(f"/include/{name}")
    beside = normal_path(f"{path.rpartition('/')[0]}/{name}")
    # A header in another folder is found through -I of the Makefile.
    return beside == header or (
        header.endswith(f"/{name}") and (not beside or kernel.included(beside) is None)
    )


def _says_where(text: str | None) -> bool:
    """Return whether a trace header sets what define_trace.h includes, and leaves it set."""
    return text is not None and bool(_WHERE.search(text))


def _leaks(kernel: KernelTree, path: str) -> bool:
    """Return whether a file includes, perhaps indirectly, a header that leaves TRACE_INCLUDE_PATH set."""
    files = [kernel.source(path)]
    loader = KernelLoader(kernel)
    for _ in range(2):
        more = []
        for file in files:
            for directive in read_directives(file.text):
                is_quoted = directive.rest.startswith('"')
                if not directive.included or not (is_quoted or "trace" in directive.included):
                    continue
                found = loader.load(directive.included, is_quoted=is_quoted, includer=file.path)
                if found is not None and _says_where(found.text):
                    return True
                more += [found] if found is not None else []
        files = more
    return False


def _first_create(directives: Sequence[ScopedDirective]) -> int:
    return next((d.start for d in directives if d.keyword == "define" and d.word == _CREATE), _NEVER)


def _code_start(text: str) -> int:
    """Where the first function body begins: no file has its includes after that."""
    found = _FUNCTION.search(text)
    return found.start() if found else len(text)


def _outside(source: SourceFile, directives: Iterable[ScopedDirective]) -> list[ScopedDirective]:
    """Return the directives outside braces: kernel/bpf/syscall.c includes the items of a table."""
    code = read_code(source)
    spans = []
    at = 0
    while at < len(code.texts):
        if code.texts[at] == "{" and at in code.match:
            spans.append((code.tokens[at].start, code.tokens[code.match[at]].start))
            at = code.match[at]
        at += 1
    starts = [start for start, _ in spans]
    found = []
    for directive in directives:
        index = bisect_right(starts, directive.start) - 1
        if index < 0 or spans[index][1] < directive.start:
            found.append(directive)
    return found


def _place(
    source: SourceFile, directives: Sequence[ScopedDirective], name: str, limit: int, *, is_last: bool = False
) -> int:
    """Return the offset for an include: after those of its kind, else after the first block.

    With `is_last` it is after all includes.
    """
    usable = _outside(source, [d for d in directives if d.included and d.depth == 0 and d.end <= limit])
    if not usable:
        raise PlaceError(f"{source.path}: has no #include outside #if that {name} could follow")
    if is_last:
        return usable[-1].end
    alike = [d for d in usable if _family(d) == _family_of(name)]
    if alike:
        return alike[-1].end
    block = _first_block(usable, source.text)
    system = [d for d in block if d.rest.startswith("<")]
    return (system or block)[-1].end


def _family(directive: ScopedDirective) -> str:
    return _family_of(directive.rest)


def _family_of(name: str) -> str:
    """The group of an include: trace headers of the kernel, or quoted names."""
    if name.startswith("<trace/events/"):
        return "trace"
    return "quoted" if name.startswith('"') else "other"


def _first_block(usable: Sequence[ScopedDirective], text: str) -> list[ScopedDirective]:
    """The includes at the top of a file: those with only blank lines and comments between them."""
    block = [usable[0]]
    for directive in usable[1:]:
        between = text[block[-1].end : directive.start]
        if re.sub(r"/\*[\s\S]*?\*/|//.*|\s", "", between):
            break
        block.append(directive)
    return block


def create(kernel: KernelTree, path: str, header: str, exports: Collection[str] = ()) -> tuple[Edit, ...]:
    """Return the edits that make a C file create the events of a new header, and export some.

    `#define CREATE_TRACE_POINTS` goes after all other includes of the file's head, since it creates
    the events of every trace header that is included after it.  Raises PlaceError when there is no
    such place.
    """
    source = kernel.source(path)
    directives = read_directives(source.text)
    name = include_name(header, path)
    if any(_is_same(d, kernel, path, header) for d in directives):
        raise PlaceError(f"{path}: already includes {name}, but no file creates its events")
    lines = "".join(f"EXPORT_TRACEPOINT_SYMBOL_GPL({event});\n" for event in exports)
    if _first_create(directives) < _NEVER:
        return _create_beside(source, directives, name, lines)
    limit = _code_start(source.text)
    includes = _outside(source, [d for d in directives if d.included and d.end <= limit])
    if not includes:
        raise PlaceError(f"{path}: has no #include that CREATE_TRACE_POINTS could follow")
    at = _behind(includes[-1], directives)
    # A header in the usual place does not set its path, and relies on no other header having done so.
    is_usual = header.startswith("include/trace/events/")
    forget = _FORGET if is_usual and _leaks(kernel, path) else ""
    # Later includes must not create their events because of ours.
    undef = f"#undef {_CREATE}\n" if any(d.included and d.start >= at for d in directives) else ""
    after = f"\n{lines}" if lines else ""
    after += "" if source.text[at:].startswith("\n") else "\n"
    return (Edit(path, at, at, f"\n{forget}#define {_CREATE}\n#include {name}\n{undef}{after}"),)


def _behind(last: ScopedDirective, directives: Sequence[ScopedDirective]) -> int:
    """Return the offset after an include and the conditionals around it."""
    if last.depth == 0:
        return last.end
    close = [d for d in directives if d.start > last.start and d.depth == 0 and d.keyword == "endif"]
    return close[0].end if close else last.end


def _create_beside(
    source: SourceFile, directives: Sequence[ScopedDirective], name: str, lines: str
) -> tuple[Edit, ...]:
    """Use a file's existing `#define CREATE_TRACE_POINTS`: what follows it is created with it."""
    define = next(d for d in directives if d.keyword == "define" and d.word == _CREATE)
    following = [d for d in directives if d.included and d.start >= define.end]
    if define.depth or not following or source.text[define.end : following[0].start].strip():
        raise PlaceError(
            f"{source.path}: defines CREATE_TRACE_POINTS in a way that {name} cannot be added to"
        )
    # First headers that rely on the usual place, then those that set their path.
    end = define.end
    if not name.startswith("<trace/events/"):
        block = _first_block(following, source.text)
        end = block[-1].end
    edits = [Edit(source.path, end, end, f"#include {name}\n")]
    if define.start > _code_start(source.text):
        # The functions before it (drivers/android/binder.c) need the events too.
        at = _place(source, directives, name, _code_start(source.text))
        edits.insert(0, Edit(source.path, at, at, f"#include {name}\n"))
    if lines:
        edits.append(Edit(source.path, max(end, following[0].end), max(end, following[0].end), f"\n{lines}"))
    return tuple(edits)


def add_exports(kernel: KernelTree, path: str, header: str, names: Collection[str]) -> tuple[Edit, ...]:
    """Return the edit that exports tracepoints to GPL modules, in the file that creates them.

    Those that are already exported are skipped.
    """
    text = kernel.source(path).text
    have = {found for line in _EXPORT.findall(text) for found in re.findall(r"\((?:\s*)(\w+)", line)}
    lines = "".join(f"EXPORT_TRACEPOINT_SYMBOL_GPL({name});\n" for name in names if name not in have)
    if not lines:
        return ()
    there = list(_EXPORT.finditer(text))
    if there:
        return (Edit(path, there[-1].end(), there[-1].end(), lines),)
    made = [d for d in read_directives(text) if _is_same(d, kernel, path, header)]
    at = made[-1].end if made else len(text)
    return (Edit(path, at, at, f"\n{lines}"),)
