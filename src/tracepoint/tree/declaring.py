"""The trace headers that may declare an event, by their text: a few of hundreds, and never too few.

A name that no file has as a word is pasted together by a macro, from words that the header has.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from tracepoint.model.read import is_trace_include
from tracepoint.tree.creators import includes_of
from tracepoint.tree.scan import has_word

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

_WORD = re.compile(r"\w+")
_SYSTEM = re.compile(r"^[ \t]*#[ \t]*define[ \t]+TRACE_SYSTEM[ \t]+(\w+)[ \t]*$", re.MULTILINE)
_ANY_SYSTEM = re.compile(r"^[ \t]*#[ \t]*define[ \t]+TRACE_SYSTEM\b", re.MULTILINE)
_ARCH = re.compile(r"arch/\w+/")
#: The system of all custom events, and the word in the macros that declare them.
_CUSTOM, _CUSTOM_EVENT = "custom", "CUSTOM_EVENT"
_MAX_DEPTH = 3


class DeclaringHeaders:
    """The trace headers of a tree by what they may declare; `read` gives a file's text, None without one.

    >>> texts = {"a.h": "DEFINE_EVENT(c, pre_fix, ...)", "b.h": "#define E(n) DEFINE_EVENT(c, pre_##n, ...)"}
    >>> headers = DeclaringHeaders([*texts], texts.get)
    >>> headers.of_name("pre_fix"), headers.of_name("fix")
    (['a.h'], [])
    """

    def __init__(self, paths: Iterable[str], read: Callable[[str], str | None]) -> None:
        self._paths = sorted(paths)
        self._read = cache(read)

    def of_name(self, name: str) -> list[str]:
        """Return the headers that may declare an event or tracepoint of a name."""
        return [path for path, text in self._texts.items() if text.may_declare(name)]

    def of_system(self, system: str) -> list[str]:
        """Return the headers that may declare events of a system."""
        return [path for path, text in self._texts.items() if text.may_be_of(system)]

    @cached_property
    def _texts(self) -> dict[str, _Text]:
        return {path: self._with_included(path) for path in self._paths}

    def _with_included(self, path: str) -> _Text:
        own = self._read(path) or ""
        seen = {path: own}
        todo = [(path, own, 0)]
        while todo:
            includer, text, depth = todo.pop()
            for found in self._included(includer, text) if depth < _MAX_DEPTH else ():
                if found not in seen:
                    seen[found] = self._read(found) or ""
                    todo.append((found, seen[found], depth + 1))
        del seen[path]
        return _Text(own, tuple(seen.values()))

    def _included(self, path: str, text: str) -> Iterator[str]:
        """Yield the local and trace headers that a file includes; for those not found, all with the name."""
        arch = _ARCH.match(path)
        for name, is_quoted in includes_of(text):
            if not is_trace_include(name, is_quoted):
                continue
            places = [os.path.dirname(path)] if is_quoted else []  # noqa: PTH120 - paths here are strings
            places += [f"{arch[0] if arch else 'arch/x86/'}include", "include"]
            found = (os.path.normpath(f"{place}/{name}") for place in places)
            there = next((one for one in found if self._read(one) is not None), None)
            if there is not None:
                yield there
            else:
                yield from (one for one in self._paths if one.endswith(f"/{name}"))


@dataclass
class _Text:
    """The text of a trace header, and those of the local and trace headers that it includes."""

    own: str
    others: tuple[str, ...]

    def may_declare(self, name: str) -> bool:
        """Return whether it may declare an event of a name."""
        return self._holds(name) or is_made_of(name, self._pasted)

    def may_be_of(self, system: str) -> bool:
        """Return whether it may declare events of a system."""
        if system == _CUSTOM and any(_CUSTOM_EVENT in text for text in (self.own, *self.others)):
            return True
        values = _SYSTEM.findall(self.own)
        is_plain = values and len(values) == len(_ANY_SYSTEM.findall(self.own))
        return system in values if is_plain else self._holds(system)

    def _holds(self, word: str) -> bool:
        return any(has_word(text, word) for text in (self.own, *self.others))

    @cached_property
    def _pasted(self) -> frozenset[str]:
        """The words that names may be pasted together from; none if nothing is pasted."""
        pasting = [text for text in self.others if "##" in text]
        if not pasting and "##" not in self.own:
            return frozenset()
        return frozenset(word for text in (self.own, *pasting) for word in _WORD.findall(text))


def is_made_of(name: str, words: Collection[str]) -> bool:
    """Return whether a name is one word or several, one directly after the other.

    >>> is_made_of("xfs_read", {"xfs_", "read"}), is_made_of("xfs_read", {"xfs", "read"})
    (True, False)
    """
    reached = [0]
    for end in range(1, len(name) + 1):
        if words and any(name[start:end] in words for start in reached):
            reached.append(end)
    return reached[-1] == len(name)
