"""TSDL text to what it declares: `trace`, `env`, `clock`, `stream` and `event` blocks."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from tracepoint.tracefile.ctf.metadata import NS_PER_S, CtfClock, CtfEvent, CtfMetadata, CtfStream
from tracepoint.tracefile.ctf.tokens import TsdlTokens
from tracepoint.tracefile.ctf.typegrammar import TypeReader
from tracepoint.tracefile.ctf.types import CtfStruct

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.tracefile.ctf.types import CtfType

    Value = int | str | tuple[str, ...]
    Members = tuple[dict[str, Value], dict[str, CtfType]]


def read_tsdl(text: str, path: str = "") -> CtfMetadata:
    r"""Read the text of CTF 1.8 metadata.

    Raises DecodeError, which names the line, for what is not TSDL.

    >>> read = read_tsdl('''/* CTF 1.8 */
    ...     trace { major = 1; minor = 8; byte_order = le; };
    ...     stream { id = 0; };
    ...     event { name = "tick"; id = 3; stream_id = 0; fields := struct { integer { size = 8; } _n; }; };
    ... ''')
    >>> event = read.streams[0].events[3]
    >>> event.name, event.fields.fields[0][0]
    ('tick', '_n')
    """
    return _Tsdl(TsdlTokens(text, path)).read()


class _Tsdl:
    """A TSDL text while it is read."""

    def __init__(self, tokens: TsdlTokens) -> None:
        self._tokens = tokens
        self._types = TypeReader(tokens)
        self._found = CtfMetadata()
        self._events: list[CtfEvent] = []

    def read(self) -> CtfMetadata:
        tokens = self._tokens
        blocks: dict[str, Callable[[], None]] = {
            "trace": self._trace,
            "stream": self._stream,
            "event": self._event,
            "clock": self._clock,
            "env": self._env,
            "callsite": self._callsite,
        }
        while tokens.text:
            if tokens.skip(";"):
                continue
            block = blocks.get(tokens.text)
            if block is not None and tokens.ahead(1).text == "{":
                tokens.take()
                block()
            elif not self._types.declaration():
                raise tokens.wrong(f"a declaration expected, not `{tokens.text[:40]}`")
        for event in self._events:
            self._add(event)
        return self._found

    def _add(self, event: CtfEvent) -> None:
        """Put an event into its stream: the only one where it names none."""
        streams = self._found.streams
        if event.stream_id is None:
            event.stream_id = next(iter(streams), 0)
        stream = streams.setdefault(event.stream_id, CtfStream(event.stream_id))
        number = len(stream.events) if event.id is None else event.id
        stream.events.setdefault(number, event)

    def _members(self) -> Members:
        """Read a block: its values (`name = value;`) and its types (`name := type;`)."""
        tokens, values, types = self._tokens, dict[str, "Value"](), dict[str, "CtfType"]()
        tokens.expect("{")
        self._types.enter()
        while not tokens.skip("}"):
            if tokens.text in ("typealias", "typedef", "struct", "enum", "variant"):
                self._types.declaration()
                continue
            words = [tokens.string() or tokens.take()]
            while tokens.text not in (":", "="):
                words.append(tokens.take())
            name = "".join(words)
            if tokens.skip(":"):
                tokens.expect("=")
                types[name] = self._types.type()
            else:
                tokens.expect("=")
                values[name] = self._types.value()
            tokens.expect(";")
        self._types.leave()
        return values, types

    def _number(self, values: dict[str, Value], name: str) -> int | None:
        value = values.get(name)
        if isinstance(value, str):
            with suppress(ValueError):
                return int(value, 0)
        if value is not None and not isinstance(value, int):
            raise self._tokens.wrong(f"`{name}` is not a number")
        return value

    def _struct(self, types: dict[str, CtfType], name: str) -> CtfType:
        kind = types.get(name, CtfStruct())
        if not isinstance(kind, CtfStruct):
            raise self._tokens.wrong(f"`{name}` is not a struct")
        return kind

    def _trace(self) -> None:
        values, types = self._members()
        version = self._number(values, "major"), self._number(values, "minor")
        if version[0] != 1:
            raise self._tokens.wrong(f"CTF of version {version[0]}.{version[1]}")
        self._found.is_big_endian = values.get("byte_order") in ("be", "network")
        self._found.packet_header = self._struct(types, "packet.header")
        with suppress(ValueError):
            self._found.uuid = UUID(str(values.get("uuid", ""))).bytes

    def _stream(self) -> None:
        values, types = self._members()
        number = self._number(values, "id") or 0
        known = self._found.streams.get(number)
        self._found.streams[number] = CtfStream(
            number,
            self._struct(types, "packet.context"),
            self._struct(types, "event.header"),
            self._struct(types, "event.context"),
            known.events if known else {},
        )

    def _event(self) -> None:
        values, types = self._members()
        name = values.get("name", "")
        self._events.append(
            CtfEvent(
                ".".join(name) if isinstance(name, tuple) else str(name),
                self._number(values, "id"),
                self._number(values, "stream_id"),
                self._struct(types, "context"),
                self._struct(types, "fields"),
            )
        )

    def _clock(self) -> None:
        values, _ = self._members()
        name = str(values.get("name", ""))
        frequency = self._number(values, "freq")
        if frequency is not None and frequency <= 0:
            raise self._tokens.wrong(f"a clock of {frequency} Hz")
        self._found.clocks[name] = CtfClock(
            name,
            frequency or NS_PER_S,
            self._number(values, "offset") or 0,
            self._number(values, "offset_s") or 0,
        )

    def _env(self) -> None:
        values, _ = self._members()
        for name, value in values.items():
            self._found.env[name] = ".".join(value) if isinstance(value, tuple) else value

    def _callsite(self) -> None:
        self._members()
