"""What is fuzzed: functions of bytes that may only end normally or with a TracepointError."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.layout.btf import read_btf
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.format import read_format, write_format
from tracepoint.layout.objects import decompress, read_object
from tracepoint.model.fmt import format_text
from tracepoint.model.read import read_header_text
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.lexer import Kind, lex, unlex
from tracepoint.source.text import SourceFile, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable


def _fuzz_lexer(data: bytes) -> None:
    text = decode(data)
    assert unlex(lex(SourceFile("fuzz.h", text))) == text
    assert encode(text) == data


def _fuzz_header(data: bytes) -> None:
    header = read_header_text(decode(data), "fuzz.h")
    for event in header.events:
        try:
            write_format(compute_layout(event, environment=header.environment, enums=header.enums))
        except TracepointError:
            continue


def _fuzz_cexpr(data: bytes) -> None:
    parse_expression(lex(SourceFile("fuzz.h", decode(data))))


def _fuzz_fmt(data: bytes) -> None:
    text = decode(data)
    tidy = format_text(text, "fuzz.h").text
    assert _meaning(tidy) == _meaning(text)
    assert format_text(tidy, "fuzz.h").text == tidy


def _meaning(text: str) -> list[str]:
    return [token.text for token in lex(SourceFile("fuzz.h", text)) if token.kind is not Kind.END]


def _fuzz_format(data: bytes) -> None:
    event = read_format(decode(data), "fuzz")
    assert read_format(write_format(event), "fuzz") == event


def _fuzz_object(data: bytes) -> None:
    read_object(decompress(data))


def _fuzz_btf(data: bytes) -> None:
    read_btf(data)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "btf": _fuzz_btf,
    "cexpr": _fuzz_cexpr,
    "fmt": _fuzz_fmt,
    "format": _fuzz_format,
    "header": _fuzz_header,
    "lexer": _fuzz_lexer,
    "object": _fuzz_object,
}


def run_target(name: str, data: bytes) -> None:
    """Run one target; what it may raise on purpose is no fault."""
    try:
        TARGETS[name](data)
    except TracepointError:
        return
