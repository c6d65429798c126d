"""TRACE_DEFINE_ENUM at work: names in print formats and field types become numbers.

The kernel does this once, when events are registered, by scanning text
(kernel/trace/trace_events.c: update_event_printk(), update_event_fields()).  Its scanner is not
a C lexer, and what it leaves alone is visible in tracefs; the rules here are the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.source.brackets import find_close_in_text

if TYPE_CHECKING:
    from collections.abc import Mapping

# What the scanner stops at outside quotes: an escape, a quote, a number, a word.  The character
# after a number or word is passed over unseen, which matters when it is a quote.
_STOP = re.compile(r'\\[\s\S]|"|[0-9][0-9A-Za-z]*|[A-Za-z_][0-9A-Za-z_]*')
_QUOTED = re.compile(r'(?:[^"\\]|\\[\s\S])*(?:"|\\?\Z)')
_WORD = re.compile(r"[0-9A-Za-z_]*")
_ATTRIBUTE = "__attribute__("


class EvalMap:
    """The names one system exports, ready for substitution.

    `values` maps names, and texts such as `sizeof(struct a)`, to their numbers.

    >>> EvalMap({"RED": 3}).in_print_fmt('"RED %d %s", RED, REC->RED ? "RED" : x.RED')
    '"RED %d %s", 3, REC->RED ? "RED" : x.RED'
    """

    def __init__(self, values: Mapping[str, int]) -> None:
        # A number longer than its name does not fit in place: the kernel leaves that name alone.
        fitting = {name: str(value) for name, value in values.items() if len(str(value)) <= len(name)}
        self._words = {n: v for n, v in fitting.items() if _WORD.fullmatch(n)}
        self._others = {n: v for n, v in fitting.items() if n not in self._words}
        self._first_words = {n[: n.find("(")] for n in self._others if "(" in n}

    def in_print_fmt(self, text: str) -> str:
        """Substitute in a print format, outside of quotes and not after `.` or `->`."""
        if not self._words and not self._others:
            return text
        parts: list[str] = []
        done = at = 0
        while (match := _STOP.search(text, at)) is not None:
            found = match[0]
            at = match.end()
            if found == '"':
                at = self._end_of_quote(text, at)
            elif found[0].isdigit():
                at += 1
            elif found[0] != "\\":
                length, value = self._lookup(text, match.start(), found)
                if value is not None:
                    parts += (text[done : match.start()], value)
                    done = match.start() + length
                    at = done + 1
                else:
                    at = self._skip_members(text, at)
        parts.append(text[done:])
        return "".join(parts)

    @staticmethod
    def _end_of_quote(text: str, at: int) -> int:
        match = _QUOTED.match(text, at)
        return match.end() if match else len(text)

    def _lookup(self, text: str, at: int, word: str) -> tuple[int, str | None]:
        value = self._words.get(word)
        if value is not None:
            return len(word), value
        if word in self._first_words:
            for name, number in self._others.items():
                end = at + len(name)
                if text.startswith(name, at) and not _WORD.match(text[end : end + 1] or " ")[0]:  # type: ignore[index]
                    return len(name), number
        return 0, None

    @staticmethod
    def _skip_members(text: str, at: int) -> int:
        """Skip `.name` and `->name` after a word, then one more character."""
        while at < len(text):
            if text[at] == ".":
                at += 1
            elif text.startswith("->", at):
                at += 2
            else:
                break
            # The kernel steps over one character, whatever it is, then over the word.
            match = _WORD.match(text, at + 1)
            at = match.end() if match else at + 1
        return at + 1

    def in_type(self, ctype: str) -> str:
        """Substitute a name that begins an array length, and take attributes out of the type."""
        ctype = without_attributes(ctype)
        bracket = ctype.find("[") + 1
        if not bracket or not (ctype[bracket : bracket + 1].isalpha() or ctype[bracket : bracket + 1] == "_"):
            return ctype
        for name, value in (*self._words.items(), *self._others.items()):
            if ctype.startswith(name, bracket):
                return ctype[:bracket] + value + ctype[bracket + len(name) :]
        return ctype


def without_attributes(ctype: str) -> str:
    """Take `__attribute__((...))` out of a type (trace_events.c: sanitize_field_type()).

    >>> without_attributes('char __attribute__((btf_type_tag("user"))) *')
    'char *'
    """
    at = ctype.find(_ATTRIBUTE)
    result = ctype
    while at >= 0:
        if at and not result[at - 1].isspace():
            at = result.find(_ATTRIBUTE, at + len(_ATTRIBUTE))
            continue
        close = find_close_in_text(result, at + len(_ATTRIBUTE) - 1)
        if close < 0:
            return ctype
        result = result[:at] + result[close + 1 :].lstrip()
        at = result.find(_ATTRIBUTE, at)
    return result
