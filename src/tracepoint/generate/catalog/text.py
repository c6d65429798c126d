"""Make untrusted texts safe to show: names, prose and code of a tree."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from urllib.parse import quote

# Control characters, halves of surrogate pairs (bytes that are not UTF-8), what is not a character, and
# what changes the direction of writing, so that a text looks different from what it is.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\ufdd0-\ufdef"
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_SLUG = re.compile(r"[^a-z0-9_]+")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_PLACE = re.compile(r"@([A-Z][A-Z_]*)@")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n\s*\n|\n@")
_VALUE = re.compile(r"\{(version|file|line)\}")
_MAX_SUMMARY = 160
_MAX_SLUG = 60


def clean(text: str) -> str:
    r"""Return a text in which every character can be shown as it is.

    >>> clean("a\x1b[31m\u202eb")
    'a�[31m�b'
    """
    return _UNFIT.sub("\ufffd", text.replace("\r\n", "\n"))


def escape(text: str) -> str:
    """Return a text for HTML, between tags or in a quoted attribute."""
    return html.escape(clean(text))


def to_json(data: Any) -> str:
    """Return data as JSON in ASCII, which is a JavaScript expression too."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=True)


def fill(template: str, **values: str) -> str:
    """Replace every `@PLACE@` by the value of that name in lower case; raises KeyError without one."""
    return _PLACE.sub(lambda match: values[match[1].lower()], template)


def is_plain(name: str) -> bool:
    """Return whether a name can stand in an address and in a shell's word as it is."""
    return _PLAIN.fullmatch(name) is not None


def slugs(names: list[str]) -> dict[str, str]:
    """Return a file name's stem for each name, different also where upper and lower case are the same.

    >>> slugs(["sched", "HFI1", "hfi1", "../x"])
    {'sched': 'sched', 'HFI1': 'hfi1', 'hfi1': 'hfi1-2', '../x': 'x'}
    """
    found: dict[str, str] = {}
    taken = {"aux", "con", "nul", "prn"}  # no file may be called so on Windows
    for name in names:
        stem = _SLUG.sub("-", name.lower()).strip("-")[:_MAX_SLUG] or "unnamed"
        slug, number = stem, 1
        while slug in taken:
            number += 1
            slug = f"{stem}-{number}"
        taken.add(slug)
        found[name] = slug
    return found


def source_address(template: str, version: str, file: str, line: int) -> str:
    """Return the address of a line of a file, from one with `{version}`, `{file}` and `{line}`.

    >>> source_address("https://example.org/{file}?h=v{version}#n{line}", "6.1.2", "mm/a b.c", 7)
    'https://example.org/mm/a%20b.c?h=v6.1.2#n7'
    """
    values = {
        "version": quote(version, safe=""),
        "file": quote(file, errors="replace"),
        "line": str(line or 1),
    }
    return _VALUE.sub(lambda match: values[match[1]], template)


def summary(prose: str, name: str) -> str:
    r"""Return the first sentence of a comment, without the event's name that kernel-doc puts first.

    >>> summary("sched_stat - accounting of time\n@tsk: task", "sched_stat")
    'accounting of time'
    """
    text = prose
    for start in (f"{name} - ", f"{name}() - ", f"{name}: "):
        text = text.removeprefix(start)
    end = _SENTENCE_END.search(text)
    text = " ".join(text[: end.start() if end else len(text)].split())
    return text if len(text) <= _MAX_SUMMARY else f"{text[: _MAX_SUMMARY - 1].rstrip()}…"
