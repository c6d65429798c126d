"""Call sites of tracepoints in C files: which functions call `trace_xxx()`.

A file is examined in two steps.  `read_facts` needs the file alone and the names of all
tracepoints; `macros` then finds the calls hidden in macros.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Span
from tracepoint.named import NamedTuple
from tracepoint.source.brackets import find_close_in_text
from tracepoint.source.text import SourceFile
from tracepoint.tree.callsites.text import Define, Functions, read_code

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from tracepoint.tree.callsites.text import BlankedText

#: Characters from the parenthesis of a call to its end; far more than its text may have.
_MAX_CALL = 4000
MAX_TEXT = 240
# Patterns that begin with fixed text are searched for ten times faster than others.
_TRACE = re.compile(r"trace_\w+")
_ASKS = re.compile(r"tracepoint_enabled\s*\(\s*(\w+)\s*\)")
_EXPORT = re.compile(r"EXPORT_TRACEPOINT_SYMBOL(_GPL)?\s*\(\s*(\w+)\s*\)")
_LAST_WORD = re.compile(r"(?:\w+|[^\w\s])\s*\Z")
#: What may precede a call; a declared name is preceded by a type or a star.
_STATEMENT_WORDS = frozenset("; { } ) : , ( = ! & | ? < > + - return else do".split())
_PREFIX = re.compile(r"\w*\Z")
_PASTES = re.compile(r"\btrace_\w*\s*##|##\s*\w*trace_|##\s*_?trace\b|\btrace_\w")
_SPACE = re.compile(r"(?:\s|\\\n)+")
_SUFFIXES = ("_enabled", "_rcuidle")


class SiteKind(enum.StrEnum):
    """How a tracepoint is mentioned.

    `CALL` fires it; `ENABLED` tests whether the event is enabled; `REFERENCE` uses `trace_xxx` as
    a function without calling it; `MACRO` is a mention in the body of a `#define`, which fires
    where the macro is used.
    """

    CALL = "call"
    ENABLED = "enabled"
    REGISTER = "register"
    UNREGISTER = "unregister"
    REFERENCE = "reference"
    MACRO = "macro"


@dataclass(frozen=True, slots=True)
class CallSite:
    """One mention of a tracepoint: where, in which function, and the text of the call.

    `event` is what follows `trace_`; `function` is empty outside functions; for a `MACRO` it is
    the macro's name; `via` names the macro that hides the call; the span's path is relative to
    the tree.
    """

    kind: SiteKind
    event: str
    span: Span
    function: str
    text: str
    via: str = ""

    def __str__(self) -> str:
        where = f"{self.span} {self.function or '-'}: {self.text}"
        return f"{where} (via {self.via})" if self.via else where


class RawSite(NamedTuple):
    """A site as stored: kind, event, line and column from 1, function, text, macro."""

    kind: str
    event: str
    line: int
    column: int
    function: str
    text: str
    via: str = ""


class Facts(NamedTuple):
    """The facts about tracepoints in one C file.

    `words` are all names that could be a mention, whether or not such an event exists;
    `defines` the macros that may hide calls; `exports` are name, line, and whether it is for GPL
    modules only.
    """

    words: list[str]
    sites: list[RawSite]
    defines: list[Define]
    exports: list[tuple[str, int, bool]]


def classify(word: str, names: Container[str]) -> tuple[SiteKind, str] | None:
    """Classify a word that contains `trace_`; None if it mentions no tracepoint of `names`.

    >>> classify("trace_foo_enabled", {"foo"})
    (<SiteKind.ENABLED: 'enabled'>, 'foo')
    >>> classify("trace_foo_enabled", {"foo_enabled"})
    (<SiteKind.CALL: 'call'>, 'foo_enabled')
    """
    if word.startswith("trace_"):
        rest = word[6:]
        if rest in names:
            return SiteKind.CALL, rest
        for suffix in _SUFFIXES:
            if rest.endswith(suffix) and rest.removesuffix(suffix) in names:
                kind = SiteKind.ENABLED if suffix == "_enabled" else SiteKind.CALL
                return kind, rest.removesuffix(suffix)
        if rest.startswith("call__") and rest[6:] in names:
            return SiteKind.CALL, rest[6:]
        return None
    kind = SiteKind.UNREGISTER if word.startswith("un") else SiteKind.REGISTER
    rest = word.partition("register_trace_")[2]
    for name in (rest, rest.removeprefix("prio_")):
        if name in names:
            return kind, name
    return None


def read_facts(text: str, names: Container[str]) -> Facts:
    r"""Read one C file; `names` are the tracepoints of the tree, without `trace_`.

    >>> facts = read_facts("void f(void)\n{\n\ttrace_foo(1);\n}\n", {"foo"})
    >>> facts.sites[0].function, facts.sites[0].line, facts.sites[0].text
    ('f', 3, 'trace_foo(1)')
    """
    mentions = list(_mentions(text))
    exports = list(_EXPORT.finditer(text)) if "EXPORT_TRACEPOINT" in text else []
    words = sorted({m.word for m in mentions} | {m[2] for m in exports})
    if "##" not in text and not exports and not any(m.means(names) for m in mentions):
        return Facts(words, [], [], [])
    code = read_code(text)
    defines = _hiding(code.defines, names)
    sites = [*_macro_mentions(defines, names), *_sites(code, names)]
    exported = [
        (m[2], text.count("\n", 0, m.start()) + 1, bool(m[1]))
        for m in exports
        if code.code.startswith("EXPORT_", m.start())
    ]
    return Facts(words, sites, defines, exported)


class _Mention(NamedTuple):
    """A word of a text that may mention a tracepoint; `asks` is True for `tracepoint_enabled(word)`."""

    start: int
    end: int
    word: str
    asks: bool = False

    def means(self, names: Container[str]) -> tuple[SiteKind, str] | None:
        """Return what it means, given the tracepoints."""
        if self.asks:
            return (SiteKind.ENABLED, self.word) if self.word in names else None
        return classify(self.word, names)


def _mentions(text: str) -> Iterator[_Mention]:
    for match in _TRACE.finditer(text):
        start = match.start()
        before = text[start - 1 : start]
        if before and (before.isalnum() or before == "_"):
            prefix = _PREFIX.search(text, max(0, start - 12), start)
            if prefix is None or prefix[0] not in ("register_", "unregister_"):
                continue
            start = prefix.start()
        yield _Mention(start, match.end(), text[start : match.end()])
    if "tracepoint_enabled" in text:
        for match in _ASKS.finditer(text):
            yield _Mention(match.start(), match.end(), match[1], asks=True)


def _hiding(defines: tuple[Define, ...], names: Container[str]) -> list[Define]:
    """The macros of a file that may hide a call: those that mention or paste one, and their users."""
    chosen = {d for d in defines if _may_call(d, names)}
    if not chosen:
        return []
    for _ in range(3):
        wanted = re.compile(rf"\b(?:{'|'.join({re.escape(d.name) for d in chosen})})\b")
        more = {d for d in defines if d not in chosen and wanted.search(d.text, len(d.name) + 1)}
        if not more:
            break
        chosen |= more
    return [d for d in defines if d in chosen]


def _may_call(define: Define, names: Container[str]) -> bool:
    for match in _PASTES.finditer(define.text):
        if "##" in match[0]:
            return True
        word = re.compile(r"\w+").match(define.text, match.start())
        if word is not None and classify(word[0], names) and word[0] != define.name:
            return True
    return False


def _macro_mentions(defines: list[Define], names: Container[str]) -> Iterator[RawSite]:
    for define in defines:
        for mention in _mentions(define.text):
            found = mention.means(names) if mention.word != define.name else None
            if found is not None and found[0] is not SiteKind.ENABLED:
                text = _SPACE.sub(" ", define.text).strip()[:MAX_TEXT]
                yield RawSite(SiteKind.MACRO, found[1], define.line, 1, define.name, text)


def _sites(code: BlankedText, names: Container[str]) -> Iterator[RawSite]:
    functions = Functions(code.code)
    file = SourceFile("", code.text)
    for mention in _mentions(code.code):
        found = mention.means(names)
        if found is None:
            continue
        kind, name = found
        function = functions.around(mention.start)
        rest = code.code[mention.end : mention.end + 80].lstrip()
        if kind is SiteKind.CALL and not rest.startswith("("):
            kind = SiteKind.REFERENCE
        if not function and kind is SiteKind.CALL and _is_declared(code.code, mention.start):
            continue
        line, column = file.position(mention.start)
        text = call_text(code, mention.start, mention.end)
        yield RawSite(kind, name, line, column, function, text)


def _is_declared(code: str, at: int) -> bool:
    """Return whether a name outside functions is that of a prototype or definition: it follows a type."""
    before = _LAST_WORD.search(code, max(0, at - 200), at)
    return before is None or before[0].strip() not in _STATEMENT_WORDS


def call_text(code: BlankedText, start: int, end: int) -> str:
    """Return the text of a call, whose name is at `start` to `end`, on one line."""
    opening = code.code.find("(", end, end + 80)
    if opening >= 0 and not code.code[end:opening].strip():
        close = find_close_in_text(code.code, opening, _MAX_CALL)
        end = close + 1 if close >= 0 else end
    text = _SPACE.sub(" ", code.text[start:end])
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."


def make_site(raw: RawSite, path: str) -> CallSite:
    """Make the public value of a site in a file."""
    span = Span(path, raw.line, raw.column, raw.line, raw.column)
    return CallSite(SiteKind(raw.kind), raw.event, span, raw.function, raw.text, raw.via)
