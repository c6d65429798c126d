"""Calls whose name is pasted outside a macro's body: `CONCATENATE(trace_event_, MONITOR_NAME)(…)`.

In 7.x the monitors of kernel/trace/rv share functions in include/rv: each C file includes a
header that says `#define MONITOR_NAME wip`, and then the shared one.  What such a call fires
depends on the including file, so it counts as one event for each.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.source.brackets import find_close_in_text
from tracepoint.source.text import SourceFile
from tracepoint.tree.callsites.calls import RawSite, SiteKind, call_text
from tracepoint.tree.callsites.text import Functions, read_code
from tracepoint.tree.creators import includes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

# Words are bounded, so that one of a million letters is not searched from each letter.
_PASTE = re.compile(
    r"\b(\w{0,60}(?:CONCAT|PASTE)\w{0,60})\s*\(\s*trace_(\w*)\s*,\s*([A-Za-z_]\w*)\s*\)(\s*,\s*_enabled\s*\))?"
)
_IN_BYTES = re.compile(rb"\b\w{0,60}(?:CONCAT|PASTE)\w{0,60}\s*\(\s*trace_\w*\s*,")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)[ \t]+([A-Za-z_]\w*)[ \t]*$", re.MULTILINE)
#: The depth of includes that are searched for the shared header.
_MAX_DEPTH = 3
_MAX_CALLS = 1000


class Paste(NamedTuple):
    """One such call: the file, what it fires, the macro that names the rest, and the site as stored."""

    path: str
    prefix: str
    macro: str
    site: RawSite


def is_pasting(data: bytes) -> bool:
    """Return whether a file may have such calls.

    >>> is_pasting(b"CONCATENATE(trace_event_, NAME)(a);"), is_pasting(b"CONCATENATE(a, trace_b)")
    (True, False)
    """
    return (b"CONCAT" in data or b"PASTE" in data) and _IN_BYTES.search(data) is not None


def find_pastes(path: str, text: str) -> list[Paste]:
    r"""Return the calls of one file.

    >>> paste = find_pastes("a.h", "void f(void)\n{\n\tCONCATENATE(trace_event_, NAME)(1);\n}\n")[0]
    >>> paste.prefix, paste.macro, paste.site.function, paste.site.line
    ('event_', 'NAME', 'f', 3)
    """
    code = read_code(text)
    functions = Functions(code.code)
    file = SourceFile(path, text)
    found: list[Paste] = []
    for match in _PASTE.finditer(code.code):
        function = functions.around(match.start())
        if function and len(found) < _MAX_CALLS:
            kind = SiteKind.ENABLED if match[4] else SiteKind.CALL
            line, column = file.position(match.start())
            end = find_close_in_text(code.code, code.code.index("(", match.start()))
            shown = call_text(code, match.start(), end + 1)
            found.append(
                Paste(path, match[2], match[3], RawSite(kind, "", line, column, function, shown, match[1]))
            )
    return found


def fired_by_pastes(
    pastes: Iterable[Paste],
    sources: Iterable[str],
    read: Callable[[str], str],
    names: Container[str],
) -> dict[str, list[RawSite]]:
    """Return the calls with the events that they fire, by path.

    `sources` are the C files that may include them, `read` gives the text of a file (empty when
    there is none), `names` are the tracepoints of the tree; all paths are relative to it.
    """
    found: dict[str, dict[RawSite, None]] = {}
    pastes = list(pastes)
    for source in sorted(sources):
        values, reached = _seen_from(source, read)
        for paste in pastes:
            if paste.path not in reached:
                continue
            for value in values.get(paste.macro, ()):
                event = paste.prefix + value
                if event in names:
                    found.setdefault(paste.path, {})[paste.site._replace(event=event)] = None
    return {path: sorted(sites) for path, sites in found.items()}


def _seen_from(source: str, read: Callable[[str], str]) -> tuple[dict[str, set[str]], set[str]]:
    """Return what a C file and the headers next to it define, and which files it includes."""
    values: dict[str, set[str]] = {}
    reached = {source}
    todo = [(source, 0)]
    while todo:
        path, depth = todo.pop()
        text = read(path)
        if PurePosixPath(path).parent == PurePosixPath(source).parent:
            for macro, value in _DEFINE.findall(text):
                values.setdefault(macro, set()).add(value)
        if depth < _MAX_DEPTH:
            new = [name for name in _included(path, text) if name not in reached]
            reached.update(new)
            todo += [(name, depth + 1) for name in new if _is_near(name)]
    return values, reached


def _included(path: str, text: str) -> Iterator[str]:
    folder = PurePosixPath(path).parent
    for name, is_quoted in includes_of(text):
        yield f"include/{name}"
        if is_quoted:
            yield str(folder / name)


def _is_near(path: str) -> bool:
    """Return whether a header is worth reading: one of a subsystem, not all of linux/."""
    return not path.startswith(("include/linux/", "include/uapi/", "include/asm", "include/trace/"))
