"""What C takes to draw calls: csrc/decode/graph.c."""

from __future__ import annotations

from array import array
from dataclasses import fields
from typing import TYPE_CHECKING

from tracepoint.tracefile.graph import cpu_width, irq_range, plain_types
from tracepoint.tracefile.graphcalls import call_readers
from tracepoint.tracefile.textoptions import GraphOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tracepoint.tracefile.graphcalls import CallReader
    from tracepoint.tracefile.text import TextWriter

    Texts = tuple[array[int], bytes]

_PLAIN, _COMMENT, _FIRST_FORMAT = 0, 1, 2
_N_IDS = 1 << 16
_SIGNED = 4
_COMM_BYTES = 7
_NO_FIELD = (0, 0, 0)


def graph_tables(
    writer: TextWriter, pids: Iterable[int], texts: Callable[[Iterable[str]], Texts]
) -> tuple[object, ...]:
    """Return the tables and numbers of a graph; `texts` packs texts, `pids` are those of known tasks."""
    kinds, formats = array("I"), array("I")
    readers, plain = call_readers(writer.events), plain_types(writer)
    for number in range(max((n for n in writer.events if 0 <= n < _N_IDS), default=-1) + 1):
        kinds.append(_COMMENT if number in writer.events and number not in plain else _PLAIN)
        if number in readers:
            kinds[number] = _FIRST_FORMAT + len(formats) // _n_words()
            formats.extend(_packed(readers[number]))
    comms = [
        writer.comm(pid).encode("utf-8", "surrogateescape")[:_COMM_BYTES] for pid in (1 << 31, -1, *pids)
    ]
    found = irq_range(writer)
    packed = texts(comm.decode("utf-8", "surrogateescape") for comm in comms)
    return kinds, formats, *packed, found.start, found.stop, cpu_width(writer), _flags(writer)


def _n_words() -> int:
    return 2 + 6 * len(_NO_FIELD)


def _packed(reader: CallReader) -> list[int]:
    """Return a format as C has it: struct format."""
    words = [reader.is_entry, reader.size]
    for one in reader.fields:
        if one is None:
            words += _NO_FIELD
        else:
            words += (one.offset, one.size.bit_length() - 1 + _SIGNED * one.is_signed, 1)
    return words


def _flags(writer: TextWriter) -> int:
    """Return enum tp_graph_flag: the options in their order, and the kernel."""
    shown = [getattr(writer.options.graph, one.name) for one in fields(GraphOptions)]
    return sum(is_on << bit for bit, is_on in enumerate((*shown, writer.options.is_from_6_13)))
