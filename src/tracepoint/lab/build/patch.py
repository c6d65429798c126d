"""Patches to a kernel tree: read, and applied to texts in memory, so that a tree is never half patched.

Every line of the result knows the patch line that brought it, so a compiler's message can name that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracepoint.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NOTHING = "/dev/null"
_REACH = 2000


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk: the place it expects (`line`, from 1), what it removes and what it adds.

    `old` are the expected lines, `new` the lines afterwards, each with its number in the patch
    (0: it was there before).  `number` counts the hunks of a file, `at` is the hunk's patch line.
    """

    number: int
    at: int
    line: int
    old: tuple[str, ...]
    new: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """The changes to one file: `path` before (empty: created), `target` after (empty: deleted)."""

    path: str
    target: str
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True, slots=True)
class PatchedFile:
    """A file's text after all patches; `origins` gives (patch, patch line) of the lines they added."""

    text: str
    origins: dict[int, tuple[str, int]]


class PatchError(LabError):
    """A patch that cannot be read or does not apply; nothing has been changed."""


def read_patch(text: str, name: str) -> tuple[FilePatch, ...]:
    """Return what a unified diff changes (paths as after `-p1`); `name` is the name of the patch in errors.

    Text before and between the diffs is skipped, so the output of `git format-patch` is read too.
    Raises PatchError for a damaged diff, a binary one, and paths outside the tree.
    """
    lines = text.split("\n")
    found: list[FilePatch] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        if line.startswith(("GIT binary patch", "Binary files ")):
            raise PatchError(f"{name}:{position + 1}: a binary change, which is not understood")
        if line.startswith(("rename from ", "copy from ")):
            raise PatchError(f"{name}:{position + 1}: make the patch without renames (git diff --no-renames)")
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if line.startswith("--- ") and following.startswith("+++ "):
            path, target = _path(line, name, position + 1), _path(following, name, position + 2)
            hunks, position = _hunks(lines, position + 2, name)
            found.append(FilePatch(path, target, hunks))
        else:
            position += 1
    if not found:
        raise PatchError(f"{name}: no patch: it has no `--- a/FILE` and `+++ b/FILE` lines")
    return tuple(found)


def apply_patches(
    patches: Sequence[tuple[str, str]], read: Callable[[str], str | None]
) -> dict[str, PatchedFile | None]:
    """Return the files that the patches (name, text) change, by path; None is a file that is deleted.

    `read` returns a file's text before, or None when there is none.  Hunks may have moved, but
    all their lines must match.  Raises PatchError naming the hunk that does not apply.
    """
    files: dict[str, PatchedFile | None] = {}

    def current(path: str) -> PatchedFile | None:
        if path in files:
            return files[path]
        text = read(path)
        return None if text is None else PatchedFile(text, {})

    for name, text in patches:
        for change in read_patch(text, name):
            before = current(change.path) if change.path else None
            if change.path and before is None:
                raise PatchError(f"{name} does not apply: the tree has no file {change.path}")
            if not change.path and current(change.target) is not None:
                raise PatchError(f"{name} does not apply: {change.target} is there already")
            after = _apply(before or PatchedFile("", {}), change, name)
            if change.path and change.path != change.target:
                files[change.path] = None
            if change.target:
                files[change.target] = after
    return files


def texts_before(
    patches: Sequence[tuple[str, str]], read: Callable[[str], str | None]
) -> dict[str, str | None]:
    """Return the files as they were before patches that a tree has already; None is one that was not there.

    `read` returns a file's text now.  Raises PatchError where the tree has not exactly what the patches make.
    """
    texts: dict[str, str | None] = {}

    def current(path: str) -> str | None:
        return texts[path] if path in texts else read(path)

    for name, text in reversed(patches):
        for change in reversed(read_patch(text, name)):
            after = current(change.target) if change.target else ""
            if after is None or (not change.target and current(change.path) is not None):
                raise PatchError(f"{name} is not applied: {change.target or change.path}")
            before = _apply(PatchedFile(after, {}), _reversed(change), name).text
            if not change.path and before:
                raise PatchError(f"{name} is not applied: {change.target} has more than it makes")
            texts |= {change.target: None} if change.target else {}
            texts |= {change.path: before} if change.path else {}
    return texts


def _reversed(change: FilePatch) -> FilePatch:
    """Return the change that takes a change back; all its lines count as added."""
    hunks = []
    grown = 0
    for hunk in change.hunks:
        new = tuple((line, hunk.at) for line in hunk.old)
        hunks.append(replace(hunk, line=hunk.line + grown, old=tuple(line for line, _ in hunk.new), new=new))
        grown += len(hunk.new) - len(hunk.old)
    return FilePatch(change.target, change.path, tuple(hunks))


def _path(line: str, name: str, number: int) -> str:
    path = line[4:].split("\t", 1)[0].strip()
    if path == _NOTHING:
        return ""
    _, _, inner = path.partition("/")
    if not inner or inner.startswith("/") or ".." in inner.split("/") or "\0" in inner or path[0] in '/"':
        raise PatchError(
            f"{name}:{number}: {path!r} is not a path below the tree (a/FILE or b/FILE is expected)"
        )
    return inner


def _hunks(lines: list[str], position: int, name: str) -> tuple[tuple[Hunk, ...], int]:
    hunks: list[Hunk] = []
    while position < len(lines) and (match := _HUNK.match(lines[position])):
        at = position + 1
        old_left, new_left = int(match[2] or 1), int(match[4] or 1)
        old: list[str] = []
        new: list[tuple[str, int]] = []
        position += 1
        while old_left > 0 or new_left > 0:
            line = lines[position] if position < len(lines) else "end"
            # A mailer may have cut the blank from an empty context line.
            kind, rest = (line[:1], line[1:]) if line else (" ", "")
            if kind not in (" ", "+", "-", "\\"):
                raise PatchError(f"{name}:{position + 1}: the hunk of line {at} ends early")
            if kind in (" ", "-"):
                old.append(rest)
                old_left -= 1
            if kind in (" ", "+"):
                new.append((rest, position + 1 if kind == "+" else 0))
                new_left -= 1
            position += 1
        if old_left < 0 or new_left < 0:
            raise PatchError(f"{name}:{at}: the hunk has other lengths than it says")
        if position < len(lines) and lines[position].startswith("\\"):
            position += 1
        hunks.append(Hunk(len(hunks) + 1, at, int(match[1]), tuple(old), tuple(new)))
    return tuple(hunks), position


def _apply(before: PatchedFile, change: FilePatch, name: str) -> PatchedFile:
    lines = before.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    marked = [(line, before.origins.get(number)) for number, line in enumerate(lines, 1)]
    result: list[tuple[str, tuple[str, int] | None]] = []
    done = 0
    for hunk in change.hunks:
        at = _find(lines, hunk, done)
        if at is None:
            raise _refused(lines, hunk, change, name, done)
        result += marked[done:at]
        kept = iter(marked[at : at + len(hunk.old)])
        waiting = list(hunk.old)
        for text, number in hunk.new:
            if number:
                result.append((text, (name, number)))
                continue
            while waiting and waiting.pop(0) != text:
                next(kept)
            result.append(next(kept))
        done = at + len(hunk.old)
    result += marked[done:]
    text = "".join(line + "\n" for line, _ in result)
    return PatchedFile(text, {number: origin for number, (_, origin) in enumerate(result, 1) if origin})


def _find(lines: list[str], hunk: Hunk, start: int) -> int | None:
    """Return the index where all old lines are, nearest to the place that the hunk expects."""
    expected = hunk.line - 1 if hunk.old else hunk.line
    size = len(hunk.old)
    wanted = list(hunk.old)
    if not size:
        return min(max(expected, start), len(lines))
    for distance in range(_REACH):
        for at in {expected - distance, expected + distance}:
            if start <= at <= len(lines) - size and lines[at : at + size] == wanted:
                return at
    return None


def _refused(lines: list[str], hunk: Hunk, change: FilePatch, name: str, start: int) -> PatchError:
    """Say which hunk does not apply, and which line of the file differs from its expectation."""
    head = f"{name}:{hunk.at}: hunk {hunk.number} does not apply to {change.path}:{hunk.line}"
    best, at = max(
        ((_agreeing(lines, hunk, place), place) for place in range(start, len(lines) + 1)),
        key=lambda pair: (pair[0], -abs(pair[1] - hunk.line + 1)),
        default=(0, start),
    )
    if best == 0:
        return PatchError(f"{head}: the file has none of its lines", log_tail=f"expected: {hunk.old[0]}")
    there = lines[at + best] if at + best < len(lines) else "(the end of the file)"
    shown = f"{change.path}:{at + best + 1}:\n  expected: {hunk.old[best]}\n  is there: {there}"
    return PatchError(head, log_tail=shown)


def _agreeing(lines: list[str], hunk: Hunk, at: int) -> int:
    """Return how many of the hunk's first lines are at a place."""
    count = 0
    while count < len(hunk.old) - 1 and at + count < len(lines) and lines[at + count] == hunk.old[count]:
        count += 1
    return count
