"""What the Kconfig files of a tree say about an option: its kind, what it needs, what it excludes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.source.brackets import find_close_in_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FILES = ("Kconfig", "Kconfig.debug")
_HELP = re.compile(r"^[ \t]+(?:---)?help\b", re.MULTILINE)
_KIND = re.compile(r"^[ \t]+(?:def_)?(tristate|bool)\b", re.MULTILINE)
_SELECT = re.compile(r"^[ \t]+select[ \t]+(\w+)[ \t]*$", re.MULTILINE)
_DEPENDS = re.compile(r"^[ \t]+depends on[ \t]+([^#\n]*)", re.MULTILINE)
_ALWAYS = re.compile(r"^[ \t]+def_bool y[ \t]*$", re.MULTILINE)
_CHOICE = re.compile(r"^choice\b(.*?)^endchoice\b", re.MULTILINE | re.DOTALL)
_CONFIG = re.compile(r"^[ \t]*(?:menu)?config[ \t]+(\w+)", re.MULTILINE)
_TERM = re.compile(r"(!?)[ \t]*(\w+)(?:[ \t]*=[ \t]*([ymn]))?")
#: Options need others, which need others; no tree comes near either limit.
_MAX_OPTIONS = 200
_MAX_PARENTHESES = 50


class Kconfig:
    """Reads the Kconfig files of a folder and of those around it, where most options of its files are.

    `read` returns the text of a file below the tree, None when there is none.
    """

    def __init__(self, read: Callable[[str], str | None]) -> None:
        self._read = read
        self._texts: dict[str, str] = {}
        self._kinds: dict[tuple[str, str], str] = {}

    def kind(self, folder: str, option: str) -> str:
        """Return `tristate` or `bool`, empty if no Kconfig near the folder says."""
        key = folder, option
        if key not in self._kinds:
            found = (_KIND.search(entry) for entry in self._entries(folder, option))
            self._kinds[key] = next((kind[1] for kind in found if kind), "")
        return self._kinds[key]

    def brought_by(self, folder: str, option: str) -> frozenset[str]:
        """Return what an option implies: what it selects, and what it depends on."""
        brought: frozenset[str] = frozenset()
        for entry in self._entries(folder, option):
            brought |= frozenset(_SELECT.findall(entry)) | _required(entry)
        return brought

    def is_always(self, folder: str, option: str) -> bool:
        """Return whether an option is on in every kernel."""
        return any(_ALWAYS.search(entry) for entry in self._entries(folder, option))

    def with_required(self, folder: str, options: frozenset[str]) -> frozenset[str]:
        """Return options with their dependencies, recursively.

        `!NAME` is an option that must be off. `depends on !NAME` counts as that, although
        it allows both as modules: it declares alternatives.
        """
        found = set(options)
        left = list(options)
        while left and len(found) < _MAX_OPTIONS:
            entries = list(self._entries(folder, left.pop()))
            # An option declared in several places needs one of several conditions.
            fresh = _required(entries[0]) - found if len(entries) == 1 else frozenset()
            found |= fresh
            left += fresh
        return frozenset(found)

    def choices(self, folder: str) -> Iterator[frozenset[str]]:
        """Yield the options of each `choice`, of which a kernel has one."""
        for text in self._around(folder):
            yield from (frozenset(_CONFIG.findall(block)) for block in _CHOICE.findall(text))

    def _entries(self, folder: str, option: str) -> Iterator[str]:
        """Yield what the Kconfig files say about an option, without its help text."""
        entry = re.compile(rf"^(?:menu)?config {re.escape(option)}\n((?:[ \t].*\n|\n)*)", re.MULTILINE)
        for text in self._around(folder):
            yield from (_HELP.split(found[1], 1)[0] for found in entry.finditer(text))

    def _around(self, folder: str) -> Iterator[str]:
        while True:
            for name in _FILES:
                path = f"{folder}/{name}" if folder else name
                if path not in self._texts:
                    self._texts[path] = (self._read(path) or "").replace("\\\n", " ")
                yield self._texts[path]
            if not folder:
                return
            folder = folder.rpartition("/")[0]


def negated(literal: str) -> str:
    """Return the opposite of an option or of `!NAME`; unknown ones (`?`) have none."""
    if literal == "?":
        return literal
    return literal[1:] if literal.startswith("!") else f"!{literal}"


def _required(entry: str) -> frozenset[str]:
    r"""Return what an entry needs in any case: options, and `!NAME` for those that must be off.

    >>> sorted(_required("\tdepends on (A || B) && (C && !D)\n\tdepends on E=n\n\tdepends on F if G\n"))
    ['!D', '!E', 'C']
    """
    return frozenset(
        literal
        for condition in _DEPENDS.findall(entry)
        if not re.search(r"[ \t]if[ \t]", condition) and condition.count("(") <= _MAX_PARENTHESES
        for literal in _literals(condition.strip())
    )


def _literals(condition: str) -> Iterator[str]:
    for term in _terms(condition):
        if term.startswith("(") and term != condition:
            yield from _literals(term[1:-1].strip() if find_close_in_text(term, 0) == len(term) - 1 else "")
            continue
        found = _TERM.fullmatch(term)
        if found is not None:
            is_off = bool(found[1]) != (found[3] == "n")
            yield f"!{found[2]}" if is_off else found[2]


def _terms(condition: str) -> list[str]:
    """Return what `&&` joins outside of parentheses; nothing where there is a `||`."""
    if condition.startswith("(") and find_close_in_text(condition, 0) == len(condition) - 1:
        return _terms(condition[1:-1].strip())
    terms, depth, begin = [], 0, 0
    for found in re.finditer(r"[()]|&&|\|\|", condition):
        if found[0] in "()":
            depth += 1 if found[0] == "(" else -1
        elif depth == 0:
            if found[0] == "||":
                return []
            terms.append(condition[begin : found.start()].strip())
            begin = found.end()
    return [*terms, condition[begin:].strip()]
