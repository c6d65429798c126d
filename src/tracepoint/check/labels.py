"""What the words of a print format say about the values that follow them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.check.syntax import entry_field, helper_field
from tracepoint.printk.conversion import Conversion, parse_format
from tracepoint.source.ast import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.check.context import PrintView
    from tracepoint.source.ast import Node

_WORD = re.compile(r"[A-Za-z]+|[0-9]+")
#: A label ends where the one before it does: at a comma, a bracket, the end of another value.
_LABEL = re.compile(r"[A-Za-z_][\w ./-]*(?=[^\w]*$)")
_MAX_WORDS = 4


@dataclass(frozen=True, slots=True)
class Labelled:
    """One field as a format shows it: the words before its conversion, its name, the argument."""

    words: tuple[str, ...]
    name: str
    node: Node


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a name or a label, in lower case.

    >>> words_of("next_pid"), words_of("Next PID")
    (('next', 'pid'), ('next', 'pid'))
    """
    return tuple(word.lower() for word in _WORD.findall(text))


def fit(label: tuple[str, ...], name: str) -> int:
    """Return how well the words before a value name a field: 2 in full, 1 by the last word, else 0.

    >>> fit(("new", "size"), "new_size"), fit(("new", "size"), "size_bytes"), fit(("new",), "old")
    (2, 1, 0)
    """
    words = words_of(name)
    if words and label[-len(words) :] == words:
        return 2
    return int(bool(label) and label[-1] in words)


def labelled_fields(shown: PrintView) -> Iterator[Labelled]:
    """Yield the arguments that show one field each, with the words before their conversions."""
    text = shown.format
    if text is None:
        return
    labels: list[tuple[str, ...]] = []
    before = ""
    for part in parse_format(text.value):
        if isinstance(part, Conversion):
            found = _LABEL.search(before)
            if part.n_arguments:
                labels.append(words_of(found[0])[-_MAX_WORDS:] if found else ())
            before = ""
        else:
            before = part
    for label, (_, argument) in zip(labels, shown.printed, strict=False):
        names = {entry_field(node) or helper_field(node) for node in walk(argument)} - {""}
        if label and len(names) == 1:
            yield Labelled(label, names.pop(), argument)
