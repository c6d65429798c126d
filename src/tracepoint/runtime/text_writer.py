"""The text of what this process recorded: `TextWriter`, and what only a kernel's own `trace` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk.render import render_record
from tracepoint.tracefile.text import TextOptions, TextWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracepoint.layout.format import EventFormat
    from tracepoint.printk.facts import RenderFacts
    from tracepoint.runtime.event_probe import EventProbe


class ProcessWriter(TextWriter):
    """Writes records as text; `probes` are the event probes by id, which print what they are attached to."""

    def __init__(
        self,
        events: Mapping[int, EventFormat],
        facts: RenderFacts,
        options: TextOptions,
        tgids: Mapping[int, int],
        probes: Mapping[int, EventProbe],
    ) -> None:
        super().__init__(events, facts, options, tgids)
        self._known_probes = probes

    def _rendered(self, number: int, data: bytes) -> tuple[str | None, str]:
        probe = self._known_probes.get(number)
        if probe is None:
            return super()._rendered(number, data)
        return f"{probe.event.name}: ", render_record(probe.print_program(data), data, self._facts).text
