"""The names of functions in the graph, as `%ps` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk.facts import UnknownPartError
from tracepoint.printk.memory import RecordMemory
from tracepoint.printk.symbols import symbol_text
from tracepoint.tracefile.graphcalls import is_graph_event

if TYPE_CHECKING:
    from tracepoint.tracefile.text import TextWriter

_STYLE = "s"
# Names that are kept: a damaged file has any number.
_MOST_KEPT = 1 << 16


class FunctionNames:
    """Names functions by their addresses; what is not known about one is noted with each use."""

    def __init__(self, writer: TextWriter) -> None:
        self._writer = writer
        self._kept: dict[int, tuple[str, tuple[str, ...]]] = {}

    def name(self, address: int) -> str:
        """Return the name of the function at an address, else the address."""
        found = self._kept.get(address)
        if found is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            found = self._kept[address] = self._found(address)
        text, notes = found
        if notes:
            event = next(event for event in self._writer.events.values() if is_graph_event(event))
            self._writer.note(event, notes)
        return text

    def _found(self, address: int) -> tuple[str, tuple[str, ...]]:
        held = RecordMemory(b"", self._writer.facts)
        try:
            text = symbol_text(held, address, _STYLE)
        except UnknownPartError as error:
            return f"0x{address:x}", (error.reason,)
        return text, tuple(held.notes)

    def name_for_c(self, address: int) -> str:
        """Return a name that C left out, and let C know it where nothing is noted."""
        text = self.name(address)
        if not self._kept[address][1]:
            self._writer.printer.know(_STYLE, address, text)
        return text
