"""Events that users made of functions: which function they probe, found by the addresses that they record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tracepoint.decode.trace import Trace

# kernel/trace/trace_probe.h, FIELD_STRING_IP and FIELD_STRING_FUNC: return probes have the second.
_ENTRY, _FUNCTION = "__probe_ip", "__probe_func"
_RESULTS = ("ret", "retval", "result")


class Probe(NamedTuple):
    """An event at the begin of a function, with `is_return` at its end; `fields` are its user's own."""

    event: str
    function: str
    is_return: bool
    fields: tuple[str, ...]

    @property
    def result(self) -> str | None:
        """The field with what the function returned: one of that name, or the only one."""
        named = next((name for name in _RESULTS if name in self.fields), None)
        return named or (self.fields[0] if self.is_return and len(self.fields) == 1 else None)


def find_probes(trace: Trace, functions: Collection[str]) -> Iterator[Probe]:
    """Yield the recorded probe events of functions, whatever the name of the event.

    An event says by an address which function it is of: without kallsyms in the recording nothing is found.
    """
    for event, n in trace.events.items():
        if not n or event not in trace:
            continue
        names = [field.name for field in trace.format(event).fields if not field.name.startswith("common_")]
        place = next((name for name in (_FUNCTION, _ENTRY) if name in names), None)
        if place is None:
            continue
        symbol = trace.kallsyms.lookup(trace[event][place].numbers[0])
        if symbol is not None and symbol.name in functions:
            chosen = tuple(name for name in names if not name.startswith("__probe_"))
            yield Probe(event, symbol.name, place == _FUNCTION, chosen)
