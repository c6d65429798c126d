"""babeltrace2 as a judge: what it prints of a CTF trace, read back into values."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import NamedTuple

import pytest

PROGRAM = shutil.which("babeltrace2")
needs_babeltrace = pytest.mark.skipif(PROGRAM is None, reason="no babeltrace2")
_LINE = re.compile(r"(?:\[(-?)(\d+)\.(\d{9})\] )?(.*?): (?=\{|$)")
_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>-?(?:0[xX][0-9A-Fa-f]+|0b[01]+|[0-9][0-9.]*(?:e[-+]?\d+)?'
    r"|inf|nan))|(?P<word>[^\s{}\[\]()=,:\"]+)|(?P<punct>[{}\[\]()=,:]))"
)
_MEMBER = re.compile(r"\s*(?:\}|[^\s{}()\[\]\",=]+ = )")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\033"}


class Shown(NamedTuple):
    """An event as babeltrace2 shows it: time in ns, name, and its parts in braces, in order."""

    stamp: int
    name: str
    parts: list[dict[str, object]]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run babeltrace2; it must not fail."""
    command = [str(PROGRAM), "--clock-seconds", "--no-delta", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, errors="surrogateescape", timeout=300
    )


def events(folder: object) -> list[Shown]:
    """Return all events of a trace."""
    done = run("--names=payload,context", "--fields=trace:hostname", folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return [read_line(line) for line in done.stdout.splitlines()]


def read_line(line: str) -> Shown:
    """Read a line."""
    match = _LINE.match(line)
    assert match is not None, line
    stamp = int(match[2] or 0) * 1_000_000_000 + int(match[3] or 0)
    at, parts = match.end(), []
    while at < len(line):
        value, at = _value(line, at)
        parts.append(value)
        at += line[at : at + 2] == ", " and 2
    return Shown(-stamp if match[1] else stamp, match[4].rpartition(" ")[2], parts)


def _token(line: str, at: int) -> tuple[str, str, int]:
    match = _TOKEN.match(line, at)
    assert match is not None, line[at:]
    return match.lastgroup or "", match[match.lastgroup or 0], match.end()


def _value(line: str, at: int):
    kind, text, at = _token(line, at)
    if kind == "string":
        return _ESCAPE.sub(_unescape, text[1:-1]), at
    if kind == "number":
        return _number(text), at
    if text == "{":
        return _struct(line, at) if _MEMBER.match(line, at) else _option(line, at)
    if text == "[":
        return _array(line, at)
    if text == "(":
        # An enumeration: ( "NAME" : container = 3 )
        at = line.index("container =", at) + len("container =")
        value, at = _value(line, at)
        return value, _token(line, at)[2]
    return text, at


def _option(line: str, at: int):
    value, at = _value(line, at)
    return value, _token(line, at)[2]


def _struct(line: str, at: int):
    found = {}
    while True:
        kind, text, at = _token(line, at)
        if text == "}":
            return found, at
        if text == ",":
            continue
        if kind == "number" and text + line[at:].split(" ", maxsplit=1)[0] != text:
            text, at = (
                text + line[at:].split(" ", maxsplit=1)[0],
                at + len(line[at:].split(" ", maxsplit=1)[0]),
            )
        _, equals, at = _token(line, at)
        assert equals == "=", line
        found[text], at = _value(line, at)


def _array(line: str, at: int):
    found = []
    while True:
        _, text, at = _token(line, at)
        if text == "]":
            return found, at
        if text == "[":
            at = line.index("=", at) + 1
            value, at = _value(line, at)
            found.append(value)


def _number(text: str) -> float | int:
    digits = text.lstrip("-")
    if digits[:2] in ("0x", "0X", "0b"):
        return int(text, 0)
    if digits.isdigit():
        return int(text, 8) if digits[0] == "0" and len(digits) > 1 else int(text)
    return float(text)


def _unescape(match: re.Match[str]) -> str:
    body = match[1]
    if body[0] in "01234567":
        return chr(int(body, 8))
    if body[0] == "x" and len(body) == 3:
        return chr(int(body[1:], 16))
    return _SIMPLE.get(body, body)


def flat(parts: list[dict[str, object]]) -> dict[str, object]:
    """Return the fields of the contexts and the payload, structs as `a_b`, as our columns have them."""
    found: dict[str, object] = {}

    def add(name: str, value: object) -> None:
        if isinstance(value, dict):
            for word, member in value.items():
                add(f"{name}_{word}" if name else word, member)
        else:
            found[name] = value

    for part in parts:
        add("", part)
    return found


def same(ours: object, theirs: object) -> bool:
    """Say whether a value of our tables is one that babeltrace2 shows."""
    if ours == theirs:
        return True
    if isinstance(theirs, float) or isinstance(ours, float):
        try:
            return f"{float(ours):g}" == f"{float(theirs):g}"
        except (TypeError, ValueError):
            return False
    if isinstance(ours, int) and isinstance(theirs, int):
        # Hexadecimal and octal numbers are shown without a sign.
        return ours < 0 and theirs in (ours % (1 << n) for n in (8, 16, 32, 64))
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return all(same(a, b) for a, b in zip(ours, theirs, strict=True))
    return isinstance(ours, str) and ours == json.dumps(theirs)
