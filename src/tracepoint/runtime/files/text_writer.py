"""The text of what this process recorded: `TextWriter`, and what only a kernel's own `trace` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk.render import render_record
from tracepoint.tracefile.text import TextWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.layout.format import EventFormat
    from tracepoint.printk.facts import RenderFacts
    from tracepoint.record.raw import RawRecord
    from tracepoint.runtime.dynamic.event_probe import EventProbe
    from tracepoint.tracefile.textoptions import TextOptions


class ProcessWriter(TextWriter):
    """Writes records as text."""

    def __init__(
        self,
        events: Mapping[int, EventFormat],
        facts: RenderFacts,
        options: TextOptions,
        tgids: Mapping[int, int],
        probes: Mapping[int, EventProbe],
    ) -> None:
        super().__init__(events, facts, options, tgids)
        self._probes = probes

    def _rendered(self, number: int, data: bytes) -> tuple[str | None, str]:
        probe = self._probes.get(number)
        if probe is None:
            return super()._rendered(number, data)
        return f"{probe.event.name}: ", render_record(probe.print_program(data), data, self.facts).text

    def bodies(self, records: Sequence[RawRecord]) -> list[str]:
        """Return the text after the context, of the events that code of this process prints too."""
        numbers = [self.common(record)[0] for record in records]
        if self.options.form or self._probes.keys().isdisjoint(numbers):
            return super().bodies(records)
        return [self._body(number, record.data) for number, record in zip(numbers, records, strict=True)]
