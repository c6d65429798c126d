"""Findings while somebody types: only the declaration that changed is read and checked again.

A declaration's findings need its own text, that of its class and of the other events of that class, and
what is between declarations: macros, `#if`, exports.  So after a change inside one declaration, all others
are replaced by blanks of the same length, and that much smaller text is read.  Its findings replace those
of the changed family; the others move with the text.  The few rules that compare declarations with
each other are decided again when the whole text is checked, which the caller does when typing pauses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracepoint.diagnostics import Diagnostic, Edit, Span
    from tracepoint.model.event import BareTracepoint, Event, EventClass, TraceHeader

#: Rules that compare a declaration with others: name-declared-twice, class-could-be-shared.
BETWEEN_DECLARATIONS = frozenset({"TP103", "TP106"})
_NOT_NEWLINE = re.compile(r"[^\n]")
_DIRECTIVE = re.compile(r"^[ \t]*#", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DeclaredStretch:
    """The text of one declaration: offsets of its macro's name and after its `)`; `family` is its class."""

    start: int
    end: int
    family: str


@dataclass(frozen=True, slots=True)
class TextChange:
    """Where two texts differ: from `start` to `old_end` in the old one, to `new_end` in the new one."""

    start: int
    old_end: int
    new_end: int

    @property
    def n_more(self) -> int:
        """How many characters longer the new text is; negative when it is shorter."""
        return self.new_end - self.old_end


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A text, its findings, and where its declarations are; `blank` is the text without those."""

    text: str
    findings: tuple[Diagnostic, ...]
    blocks: tuple[DeclaredStretch, ...]
    blank: str


def checked_text(header: TraceHeader, findings: list[Diagnostic]) -> CheckedText:
    """Return the findings of a whole header with what `after_change` needs."""
    text = "" if header.source is None else header.source.text
    blocks = tuple(_blocks(header))
    blank = text
    for block in blocks:
        blank = _spliced(blank, block.start, block.end, _blanked(text[block.start : block.end]))
    return CheckedText(text, tuple(findings), blocks, blank)


def find_change(old: str, new: str) -> TextChange:
    """Return the smallest stretch in which two texts differ.

    >>> find_change("int a;", "int bc;")
    TextChange(start=4, old_end=5, new_end=6)
    """
    most = min(len(old), len(new))
    start = _n_alike(most, lambda low, high: old[low:high] == new[low:high])
    ends = len(old), len(new)
    n_same = _n_alike(
        most - start,
        lambda low, high: old[ends[0] - high : ends[0] - low] == new[ends[1] - high : ends[1] - low],
    )
    return TextChange(start, len(old) - n_same, len(new) - n_same)


def _n_alike(most: int, are_alike: Callable[[int, int], bool]) -> int:
    """Return how many characters from the first are alike, comparing halves of long texts."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if are_alike(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def after_change(
    known: CheckedText, new: str, check: Callable[[str], tuple[TraceHeader, list[Diagnostic]]]
) -> CheckedText:
    """Return the findings of a changed text, at the cost of one declaration.

    `check` reads and checks a text.  A change that is not inside one declaration, or that
    touches a directive, only moves the findings that are known.
    """
    change = find_change(known.text, new)
    moved = _Moved(known, new, change)
    changed = next((b for b in known.blocks if b.start < change.start and change.old_end < b.end), None)
    if changed is None or _has_directive(known.text, new, changed, change):
        kept = tuple(moved.findings(known.findings))
        blocks = tuple(moved.block(b) for b in known.blocks)
        return CheckedText(
            new,
            kept,
            blocks,
            _spliced(known.blank, change.start, change.old_end, new[change.start : change.new_end]),
        )
    family = [b for b in known.blocks if b.family == changed.family]
    now = [moved.block(b) for b in family]
    blank = _spliced(
        known.blank, changed.start, changed.end, _blanked(new[changed.start : changed.end + change.n_more])
    )
    reduced = blank
    for block in now:
        reduced = _spliced(reduced, block.start, block.end, new[block.start : block.end])
    _, found = check(reduced)
    fresh = [d for d in found if d.code not in BETWEEN_DECLARATIONS and _is_in(d.span, now)]
    old = [d for d in known.findings if d.code in BETWEEN_DECLARATIONS or not _is_in(d.span, family)]
    merged = sorted([*moved.findings(old), *fresh], key=lambda d: (d.span.start, d.code, d.message))
    return CheckedText(new, tuple(merged), tuple(moved.block(b) for b in known.blocks), blank)


def _blocks(header: TraceHeader) -> Iterator[DeclaredStretch]:
    seen: set[int] = set()
    declared: list[tuple[EventClass | Event | BareTracepoint, str]] = [(c, c.name) for c in header.classes]
    declared += [(e, e.event_class.name) for e in header.events]
    declared += [(t, t.name) for t in header.tracepoints]
    for thing, family in declared:
        origin = thing.origin
        if origin is None or origin.chain or origin.span.path != header.path or origin.span.start in seen:
            continue
        seen.add(origin.span.start)
        yield DeclaredStretch(origin.span.start, origin.span.end, family)


def _has_directive(old: str, new: str, block: DeclaredStretch, change: TextChange) -> bool:
    texts = ((old, block.end), (new, block.end + change.n_more))
    return any(_DIRECTIVE.search(text, block.start, end) for text, end in texts)


def _blanked(text: str) -> str:
    return _NOT_NEWLINE.sub(" ", text)


def _spliced(text: str, start: int, end: int, middle: str) -> str:
    return text[:start] + middle + text[end:]


def _is_in(span: Span, blocks: list[DeclaredStretch]) -> bool:
    return any(block.start <= span.start < block.end for block in blocks)


class _Moved:
    """What was known about an old text, at its place in the new one."""

    def __init__(self, known: CheckedText, new: str, change: TextChange) -> None:
        self._change = change
        self._file = SourceFile("", new)
        self._length = len(known.text)

    def block(self, block: DeclaredStretch) -> DeclaredStretch:
        return DeclaredStretch(self._at(block.start), self._at(block.end), block.family)

    def findings(self, found: tuple[Diagnostic, ...] | list[Diagnostic]) -> Iterator[Diagnostic]:
        if not self._change.n_more and self._change.start == self._change.old_end:
            yield from found
            return
        for diagnostic in found:
            path = diagnostic.span.path
            fix = diagnostic.fix
            yield replace(
                diagnostic,
                span=self._span(diagnostic.span),
                related=tuple(
                    replace(r, span=self._span(r.span)) if r.span.path == path else r
                    for r in diagnostic.related
                ),
                fix=fix
                and replace(fix, edits=tuple(self._edit(e) if e.path == path else e for e in fix.edits)),
            )

    def _at(self, offset: int) -> int:
        change = self._change
        if offset <= change.start:
            return offset
        return max(offset + change.n_more, change.start) if offset >= change.old_end else change.new_end

    def _span(self, span: Span) -> Span:
        if not 0 <= span.start <= self._length:
            return span
        return replace(self._file.span(self._at(span.start), self._at(span.end)), path=span.path)

    def _edit(self, edit: Edit) -> Edit:
        return replace(edit, start=self._at(edit.start), end=self._at(edit.end))
