"""Calls hidden in macros: `TRACE_CGROUP_PATH(mkdir, cgrp)` fires `trace_cgroup_mkdir()`.

The macros that mention or paste a `trace_` name are collected from the whole tree.  Each use of
one of them is expanded by the preprocessor's rules, and the result is searched.
"""

from __future__ import annotations

import os
import re
from functools import cache, lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.model.vocabulary import PROTECTED
from tracepoint.named import NamedTuple
from tracepoint.source.brackets import find_close_in_text
from tracepoint.source.expand import Expander
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.macros import parse_define, spell
from tracepoint.source.text import SourceFile
from tracepoint.tree.callsites.calls import RawSite, SiteKind, call_text, classify
from tracepoint.tree.callsites.text import Functions, functions_of, read_code
from tracepoint.tree.scan import has_word

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from tracepoint.source.macros import Macro
    from tracepoint.tree.callsites.text import BlankedText, Define

_TRACE = re.compile(r"\btrace_\w+")
#: Definitions of the kernel's own tracepoint machinery are not callers.
_MACHINERY = ("include/trace/", "include/linux/tracepoint", "include/linux/trace_events.h")
_OWN_FOLDERS = ("include/trace/events/",)
#: The length of a prefix that distinguishes macros from other names.
_MIN_MARK = 8
#: The maximum number of uses of one macro in a file that are examined; 6.12 has at most about 300.
_MAX_USES = 5000


class Hider(NamedTuple):
    """A macro that may hide calls: where it is defined, its name, and everything after `#define`.

    `scope` is the folder below which it may be used, or the path of a C file.
    """

    path: str
    name: str
    text: str
    line: int
    scope: str


def find_hiders(defines: Iterable[tuple[str, Define]]) -> list[Hider]:
    """Choose the macros that may hide calls from `(path, define)` of all files; paths are relative.

    >>> from tracepoint.tree.callsites.text import Define
    >>> find_hiders([("kernel/cgroup/x.h", Define("P", " P(t) trace_cgroup_##t()", 1))])[0].scope
    'kernel/cgroup/'
    """
    found = []
    for path, define in defines:
        is_machinery = path.startswith(_MACHINERY) and not path.startswith(_OWN_FOLDERS)
        if not is_machinery and define.name not in PROTECTED and not define.name.startswith("trace_printk"):
            found.append(Hider(path, *define, scope=scope_of(path)))
    return sorted(found)


def scope_of(path: str) -> str:
    """Return the folder below which a file's macros may be used; those of a `.c` file only in itself.

    >>> scope_of("include/linux/page_ref.h"), scope_of("arch/x86/include/asm/msr.h"), scope_of("mm/a.c")
    ('', '', 'mm/a.c')
    >>> scope_of("drivers/gpu/drm/amd/display/dc/dc_trace.h")
    'drivers/gpu/drm/'
    """
    parts = PurePosixPath(path).parts
    if not path.endswith(".h"):
        return path
    if "include" in parts[:-1] and parts[0] in ("include", "arch"):
        return ""
    depth = 3 if parts[0] in ("drivers", "fs", "arch", "sound", "tools") else 2
    folder = parts[:-1][:depth]
    return "/".join(folder) + "/" if folder else ""


class HiddenCalls:
    """Finds the calls hidden in macros, file by file; `names` are all tracepoints."""

    def __init__(self, hiders: Iterable[Hider], names: Container[str]) -> None:
        self._scopes: dict[str, list[Hider]] = {}
        for hider in hiders:
            self._scopes.setdefault(hider.scope, []).append(hider)
        self._names = names
        self._parsed = lru_cache(None)(_parse)
        self._below = cache(self._names_below)

    def visible(self, path: str) -> dict[str, list[Hider]]:
        """Return the macros that a file may use, by name; its own first, then the nearest."""
        scopes = sorted((scope for scope in self._scopes if path.startswith(scope)), key=len, reverse=True)
        found: dict[str, list[Hider]] = {}
        for scope in scopes:
            for hider in self._scopes[scope]:
                found.setdefault(hider.name, []).append(hider)
        for variants in found.values():
            variants.sort(key=lambda h: h.path != path)
        return found

    def may_hide(self, path: str, *, has_trace: bool) -> bool:
        """Return whether a file could use one; `has_trace` says whether it contains `trace_`."""
        return any(names for names, _ in self._usable(path, has_trace=has_trace))

    def may_hold(self, path: str, data: bytes) -> bool:
        """Return whether the bytes of a file contain the name of a macro that it may use."""
        for names, marks in self._usable(path, has_trace=b"trace_" in data):
            if any(mark in data for mark in marks) and any(name in data for name in names):
                return True
        return False

    def _usable(self, path: str, *, has_trace: bool) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Yield the names of the macros that a file may use, with a few words, one of them in each name."""
        yield from self._below(path[: path.rfind("/") + 1])[: 1 + has_trace]
        if path in self._scopes:
            names = [hider.name.encode() for hider in self._scopes[path]]
            yield names, names

    def _names_below(self, folder: str) -> list[tuple[list[bytes], list[bytes]]]:
        """The names that all files of a folder may use: those without `trace_` first, then those with it."""
        hiders = (h for scope, some in self._scopes.items() if folder.startswith(scope) for h in some)
        names = sorted({hider.name for hider in hiders})
        parts = ([n for n in names if "trace_" not in n], [n for n in names if "trace_" in n])
        return [([n.encode() for n in part], [m.encode() for m in _marks(part)]) for part in parts]

    def find(self, path: str, text: str) -> Iterator[RawSite]:
        """Yield the calls that macros hide in a file's text."""
        visible = self.visible(path)
        used = [name for name in visible if has_word(text, name)]
        if not used:
            return
        wanted = re.compile(rf"\b(?:{'|'.join(map(re.escape, used))})\b")
        code = read_code(text)
        functions = Functions(code.code)
        file = SourceFile(path, text)
        for n_uses, match in enumerate(wanted.finditer(code.code)):
            if n_uses >= _MAX_USES:
                return
            name = match[0]
            use = _whole_use(code, match.start(), match.end())
            line, column = file.position(match.start())
            around = functions.around(match.start())
            shown = call_text(code, match.start(), match.end())
            seen = set()
            for variant in visible[name]:
                for kind, event, made in self._expand(use, variant, visible):
                    # Without a function around it, it is the head of a function of that name.
                    if (kind, event) not in seen and (around or made):
                        seen.add((kind, event))
                        yield RawSite(kind, event, line, column, around or made, shown, name)

    def _expand(
        self, use: str, variant: Hider, visible: dict[str, list[Hider]]
    ) -> Iterator[tuple[SiteKind, str, str]]:
        """Yield what the expansion of a use mentions, with the function that it defines, if any."""

        def lookup(name: str) -> Macro | None:
            if name == variant.name:
                return self._parsed(variant)
            return self._parsed(visible[name][0]) if name in visible else None

        text = _expanded(use, lookup)
        if "trace_" not in text:
            return
        made = list(functions_of(text)) if "{" in text else []
        for match in _TRACE.finditer(text):
            found = classify(match[0], self._names)
            if found is not None:
                inside = (name for name, start, end in made if start <= match.start() < end)
                yield found[0], found[1], next(inside, "")


def _marks(names: Iterable[str]) -> list[str]:
    """Return the common prefixes of sorted names: fewer words to search a file for."""
    marks: list[str] = []
    for name in names:
        shared = os.path.commonprefix([*marks[-1:], name])  # noqa: RUF071 - not paths
        if marks and len(shared) >= _MIN_MARK:
            marks[-1] = shared
        else:
            marks.append(name)
    return marks


def _whole_use(code: BlankedText, start: int, end: int) -> str:
    """Return the text of a macro's use with its arguments, and the call of its result."""
    while True:
        gap = len(code.code[end : end + 80]) - len(code.code[end : end + 80].lstrip())
        if code.code[end + gap : end + gap + 1] != "(":
            return code.text[start:end]
        close = find_close_in_text(code.code, end + gap)
        if close < 0:
            return code.text[start:end]
        end = close + 1


def _expanded(use: str, lookup: Callable[[str], Macro | None]) -> str:
    try:
        tokens = [t for t in lex(SourceFile("", use)) if t.kind is not Kind.END]
        return spell(Expander(lookup).expand(tokens))
    except SourceError:
        return ""


def _parse(hider: Hider) -> Macro | None:
    try:
        return parse_define([t for t in lex(SourceFile(hider.path, hider.text)) if t.kind is not Kind.END])
    except SourceError:
        return None
