"""Unified diffs in git's format, from edits: exact hunks, correct blob names, a diffstat."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError
from tracepoint.named import NamedTuple
from tracepoint.source.text import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracepoint.diagnostics import Edit

_CONTEXT = 3
#: The length of a blob's name; kernel developers set core.abbrev to this.
_ABBREV = 12
_NO_BLOB = "0" * _ABBREV
#: Columns of a diffstat, as in mail.
_STAT_COLUMNS = 72
_LEAST_GRAPH = 10


class Region(NamedTuple):
    """Lines `start` to `end` (from 0, exclusive) of the old text, and what replaces them."""

    start: int
    end: int
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one file: its texts before (None when it is new) and after, and the regions."""

    path: str
    old: str | None
    new: str
    regions: tuple[Region, ...]
    mode: str = "100644"

    @property
    def n_added(self) -> int:
        """The number of added lines."""
        return sum(len(region.new) for region in self.regions)

    @property
    def n_removed(self) -> int:
        """The number of removed lines."""
        return sum(region.end - region.start for region in self.regions)


def split_lines(text: str) -> list[str]:
    r"""Split a text into lines with their line ends; only a newline is one.

    >>> split_lines("a\fb\nc")
    ['a\x0cb\n', 'c']
    """
    *lines, last = text.split("\n")
    return [line + "\n" for line in lines] + ([last] if last else [])


def new_file(path: str, text: str) -> FileChange:
    """Return the change that creates a file."""
    return FileChange(path, None, text, (Region(0, 0, tuple(split_lines(text))),))


def change_file(path: str, old: str, edits: Iterable[Edit], mode: str = "100644") -> FileChange:
    r"""Return the change that edits make to a file; raises PlaceError when two of them conflict.

    >>> from tracepoint.diagnostics import Edit
    >>> change_file("a.c", "int a;\nint b;\n", [Edit("a.c", 7, 7, "int c;\n")]).regions
    (Region(start=1, end=1, new=('int c;\n',)),)
    """
    ordered = _ordered(path, old, edits)
    regions: list[Region] = []
    pieces: list[str] = []
    at = line = counted = 0
    while ordered:
        group, start, end = _touching(old, ordered)
        ordered = ordered[len(group) :]
        text = _replaced(old, group, start, end)
        line += old.count("\n", counted, start)
        counted = start
        region = _trimmed(line, split_lines(old[start:end]), split_lines(text))
        if regions and regions[-1].end == region.start:
            last = regions.pop()
            region = Region(last.start, region.end, last.new + region.new)
        if region.new or region.end > region.start:
            regions.append(region)
        pieces += (old[at:start], text)
        at = end
    return FileChange(path, old, "".join([*pieces, old[at:]]), tuple(regions), mode)


def _ordered(path: str, old: str, edits: Iterable[Edit]) -> list[Edit]:
    ordered = sorted(edits, key=lambda e: (e.start, e.end))
    at = 0
    for edit in ordered:
        if edit.start < at or edit.end > len(old):
            raise PlaceError(f"{path}: two changes of one place conflict")
        at = edit.end
    return ordered


def _touching(old: str, edits: Sequence[Edit]) -> tuple[list[Edit], int, int]:
    """Return the first edits that share lines, and the offsets of those whole lines."""
    start = old.rfind("\n", 0, edits[0].start) + 1
    end = start
    group: list[Edit] = []
    for edit in edits:
        if group and edit.start >= end and (end == 0 or old[end - 1] == "\n"):
            break
        group.append(edit)
        is_line_start = edit.end == 0 or old[edit.end - 1] == "\n"
        if not (is_line_start and edit.end >= end and _ends_line(edit)):
            newline = old.find("\n", edit.end)
            end = max(end, newline + 1 if newline >= 0 else len(old))
        end = max(end, edit.end)
    return group, start, end


def _ends_line(edit: Edit) -> bool:
    return not edit.replacement or edit.replacement.endswith("\n")


def _replaced(old: str, edits: Iterable[Edit], start: int, end: int) -> str:
    pieces: list[str] = []
    for edit in edits:
        pieces += (old[start : edit.start], edit.replacement)
        start = edit.end
    return "".join([*pieces, old[start:end]])


def _trimmed(line: int, old: list[str], new: list[str]) -> Region:
    """Drop unchanged lines at both ends."""
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    return Region(line + first, line + len(old) - last, tuple(new[first : len(new) - last]))


def write_diff(changes: Iterable[FileChange]) -> str:
    """Return the changes as git would show them, sorted by path."""
    return "".join(piece for change in sorted(changes, key=lambda c: c.path) for piece in _file_diff(change))


def _file_diff(change: FileChange) -> Iterator[str]:
    if change.old == change.new:
        return
    path = change.path
    yield f"diff --git a/{path} b/{path}\n"
    if change.old is None:
        yield f"new file mode {change.mode}\nindex {_NO_BLOB}..{blob_name(change.new)}\n--- /dev/null\n"
    else:
        yield f"index {blob_name(change.old)}..{blob_name(change.new)} {change.mode}\n--- a/{path}\n"
    yield f"+++ b/{path}\n"
    old_lines = split_lines(change.old or "")
    shift = 0
    for hunk in _hunks(change.regions):
        yield from _hunk(hunk, old_lines, shift)
        shift += sum(len(r.new) - (r.end - r.start) for r in hunk)


def _hunks(regions: Iterable[Region]) -> Iterator[list[Region]]:
    """Group regions whose contexts would touch into one hunk."""
    hunk: list[Region] = []
    for region in regions:
        if hunk and region.start - hunk[-1].end > 2 * _CONTEXT:
            yield hunk
            hunk = []
        hunk.append(region)
    if hunk:
        yield hunk


def _hunk(hunk: Sequence[Region], lines: Sequence[str], shift: int) -> Iterator[str]:
    start = max(0, hunk[0].start - _CONTEXT)
    end = min(len(lines), hunk[-1].end + _CONTEXT)
    n_new = end - start + sum(len(r.new) - (r.end - r.start) for r in hunk)
    yield f"@@ -{_range(start, end - start)} +{_range(start + shift, n_new)} @@{_heading(lines, start)}\n"
    at = start
    for region in hunk:
        yield from (_line(" ", line) for line in lines[at : region.start])
        yield from (_line("-", line) for line in lines[region.start : region.end])
        yield from (_line("+", line) for line in region.new)
        at = region.end
    yield from (_line(" ", line) for line in lines[at:end])


def _range(start: int, n_lines: int) -> str:
    # With no lines, the number is that of the line before.
    first = start + 1 if n_lines else start
    return str(first) if n_lines == 1 else f"{first},{n_lines}"


def _line(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _heading(lines: Sequence[str], start: int) -> str:
    """The last line before a hunk that begins in the first column with a name and is not a label."""
    for index in range(start - 1, -1, -1):
        first = lines[index][:1]
        if (first.isalpha() or first == "_") and not lines[index].rstrip().endswith(":"):
            return " " + lines[index].rstrip()[:80].rstrip()
    return ""


def blob_name(text: str) -> str:
    r"""Return git's abbreviated name for a file's content.

    >>> blob_name("")
    'e69de29bb2d1'
    """
    data = encode(text)
    digest = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()[:_ABBREV]


def diffstat(changes: Iterable[FileChange]) -> str:
    """Return the diffstat that git shows below a commit message."""
    shown = sorted((c for c in changes if c.old != c.new), key=lambda c: c.path)
    width = max((len(c.path) for c in shown), default=0)
    most = max((c.n_added + c.n_removed for c in shown), default=0)
    digits = len(str(most))
    columns = max(_LEAST_GRAPH, _STAT_COLUMNS - width - digits - 5)
    lines = [
        f" {c.path:<{width}} | {c.n_added + c.n_removed:>{digits}} {_graph(c, most, columns)}".rstrip()
        for c in shown
    ]
    lines.append(_summary(shown))
    lines += [f" create mode {c.mode} {c.path}" for c in shown if c.old is None]
    return "\n".join(lines) + "\n"


def _graph(change: FileChange, most: int, columns: int) -> str:
    if most <= columns:
        return "+" * change.n_added + "-" * change.n_removed
    # Each kind of change that occurs keeps at least one sign.
    added, removed = (max(1, n * columns // most) if n else 0 for n in (change.n_added, change.n_removed))
    return "+" * added + "-" * removed


def _summary(changes: Sequence[FileChange]) -> str:
    added = sum(c.n_added for c in changes)
    removed = sum(c.n_removed for c in changes)
    parts = [f" {len(changes)} file{'s' * (len(changes) != 1)} changed"]
    if added or not removed:
        parts.append(f"{added} insertion{'s' * (added != 1)}(+)")
    if removed:
        parts.append(f"{removed} deletion{'s' * (removed != 1)}(-)")
    return ", ".join(parts)
