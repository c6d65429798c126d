"""The metadata of a CTF trace that we write, as TSDL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.convert.ctf.encode import integer_text, unique_name
from tracepoint.named import NamedTuple
from tracepoint.source.cwrite import quote
from tracepoint.tracefile.cursor import encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from tracepoint.layout.format import FieldFormat

_COUNTS = ("content_size", "packet_size", "packet_seq_num", "events_discarded")
# The words of TSDL, which the name of a clock cannot be.
_KEYWORDS = frozenset(
    "align callsite char clock const double enum env event float floating_point int integer long short "
    "signed stream string struct trace typealias typedef unsigned variant void".split()
)
_NOT_WORDS = re.compile(r"\W", re.ASCII)


class CtfTraceFacts(NamedTuple):
    """What the metadata say of the whole trace: `offset_s` is the second at which its clock begins."""

    uuid: UUID
    clock: str
    offset_s: int
    env: dict[str, str]
    is_big_endian: bool
    common: list[FieldFormat]


def metadata_text(facts: CtfTraceFacts, events: Iterable[tuple[int, str, list[str]]]) -> str:
    """Return the metadata of a trace; `events` are their ids, names, and fields as TSDL."""
    parts = ["/* CTF 1.8 */\n", _trace(facts), *_stream(facts)]
    for number, name, fields in events:
        head = [f"id = {number};", f"name = {_quoted(name)};", "stream_id = 0;"]
        parts.append(_block("event", [*head, _struct("fields", fields)]))
    return "\n".join(parts)


def _block(word: str, lines: Iterable[str]) -> str:
    return f"{word} {{\n{''.join(f'	{line}' + chr(10) for line in lines)}}};\n"


def _struct(name: str, fields: Iterable[str]) -> str:
    return f"{name} := struct {{\n{''.join(f'		{field}' + chr(10) for field in fields)}\t}};"


def _trace(facts: CtfTraceFacts) -> str:
    header = [f"{integer_text(4)} magic;", f"{integer_text(1)} uuid[16];", f"{integer_text(4)} stream_id;"]
    order = "be" if facts.is_big_endian else "le"
    lines = ["major = 1;", "minor = 8;", f'uuid = "{facts.uuid}";', f"byte_order = {order};"]
    trace = _block("trace", [*lines, _struct("packet.header", header)])
    return f"{trace}\n{_block('env', [f'{name} = {_quoted(value)};' for name, value in facts.env.items()])}"


def _stream(facts: CtfTraceFacts) -> tuple[str, str]:
    """Return the clock, and the one class of streams."""
    clock = _NOT_WORDS.sub("_", facts.clock)
    clock = clock if clock.isidentifier() and clock not in _KEYWORDS else f"clock_{clock}"
    words = [f"name = {clock};", f"description = {_quoted(facts.clock)};", "freq = 1000000000;"]
    stamp = f"integer {{ size = 64; align = 8; signed = 0; map = clock.{clock}.value; }}"
    packet = [f"{stamp} timestamp_begin;", f"{stamp} timestamp_end;"]
    packet += [f"{integer_text(8)} {name};" for name in _COUNTS]
    taken: set[str] = set()
    context = [
        f"{integer_text(field.size, is_signed=field.is_signed)} {_context_name(field, taken)};"
        for field in facts.common
    ]
    structs = [
        _struct("event.header", [f"{integer_text(4)} id;", f"{stamp} timestamp;"]),
        _struct("packet.context", [*packet, f"{integer_text(4)} cpu_id;"]),
        _struct("event.context", [*context, "string _procname;"]),
    ]
    return _block("clock", [*words, f"offset_s = {facts.offset_s};"]), _block("stream", ["id = 0;", *structs])


def _context_name(field: FieldFormat, taken: set[str]) -> str:
    # LTTng's name for it, which its viewers know.
    return unique_name("tid" if field.name == "common_pid" else field.name, taken)


def _quoted(value: str) -> str:
    """Return a text as a literal: bytes that are not ASCII stay as they are."""
    return encode(quote(encode(value).decode("latin-1"))).decode("latin-1")
