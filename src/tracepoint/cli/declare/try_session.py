"""One run of `tracepoint try`: the request, the results, and the output with or without a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracepoint.check.engine import check_headers
from tracepoint.check.reports.text import write_concise, write_full
from tracepoint.cli.inputs import find_abi
from tracepoint.lab.simulate.event import simulate_event
from tracepoint.lab.simulate.inputs import GivenValueError
from tracepoint.layout.format import write_format
from tracepoint.tree.facts import char_sign

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.inputs import InputWord
    from tracepoint.cli.output import Output
    from tracepoint.cli.settings import Settings
    from tracepoint.diagnostics import Diagnostic
    from tracepoint.lab.simulate.inputs import Given
    from tracepoint.lab.simulate.simulation import InputValues, Shot, Simulation
    from tracepoint.layout.btf import Btf
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event, TraceHeader
    from tracepoint.printk.facts import RenderFacts

SCHEMA = "tracepoint.try/1"


@dataclass(slots=True)
class Session:
    """One run: the request, and the results so far.

    `failed` holds the events that could not be simulated, with the reason; `met` the given inputs
    that some event has; `refused` the first error of each that an event does not have.
    """

    args: argparse.Namespace
    out: Output
    chosen: Settings
    given: dict[str, str]
    simulated: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    met: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    documents: list[dict[str, Any]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of events that were tried."""
        return self.simulated + len(self.failed)

    def raise_unmet(self) -> None:
        """Raise GivenValueError for given values that no event has."""
        unmet = [text for name, text in self.refused.items() if name not in self.met]
        if unmet:
            raise GivenValueError("\n".join(unmet))

    @property
    def shows_events(self) -> bool:
        """Whether each event is written out as text."""
        return not self.args.json and not self.args.summary


def find_findings(inputs: list[InputWord], chosen: Settings) -> list[Diagnostic]:
    """Return the findings of `check` about the named events, or about whole headers."""
    headers = [header for item in inputs for header in item.headers]
    found = check_headers(headers, select=chosen.select, ignore=chosen.ignore, abi=chosen.abi)
    wanted = {item.event for item in inputs}
    if "" in wanted:
        return found
    names = {event.full_name for item in inputs for _, event in item.events()}
    return [d for d in found if not d.event or d.event in names]


def write_findings(out: Output, header: TraceHeader, findings: list[Diagnostic]) -> None:
    """Write the header's path and the findings about the header itself."""
    mine = [d for d in findings if d.span.path == header.path]
    out.line(out.style(header.path, "bold"))
    if not mine:
        out.line("findings: none")
        return
    out.line(f"findings: {len(mine)}")
    out.line()
    sources = {header.path: header.source} if header.source is not None else {}
    out.write(write_full(mine, sources, out.style) if len(mine) <= 5 else write_concise(mine, out.style))


def simulate_with(
    session: Session,
    header: TraceHeader,
    event: Event,
    layout: EventFormat | None = None,
    *,
    facts: RenderFacts | None = None,
    btf: Btf | None = None,
) -> Simulation:
    """Simulate with the given values that name an input of this event.

    `layout` is a kernel's own format; without it the layout is computed.
    """
    abi = find_abi(session.chosen.abi)
    usable: dict[str, str | Given] = dict(session.given)
    while True:
        try:
            simulation = simulate_event(
                event,
                abi=abi,
                set_values=usable,
                count=session.args.count,
                environment=header.environment,
                btf=btf,
                facts=facts,
                format=layout,
                enums=header.exported_enums,
                is_char_signed=char_sign(header.path),
            )
        except GivenValueError as error:
            if error.input not in usable:
                raise
            session.refused.setdefault(error.input, f"{event.full_name}: {error}")
            del usable[error.input]
        else:
            session.met.update(usable)
            return simulation


def write_title(out: Output, event: Event) -> None:
    """Write an event's name and where it is declared."""
    place = f"  {event.origin}" if event.origin is not None else ""
    out.line()
    out.line(out.style(event.full_name, "bold", "cyan") + place)


def as_document(simulation: Simulation) -> dict[str, Any]:
    """Return a simulation as plain data for JSON."""
    origin = simulation.event.origin
    return {
        "event": simulation.event.full_name,
        "path": origin.span.path if origin else "",
        "line": origin.span.line if origin else 0,
        "format": write_format(simulation.layout),
        "size_bytes": simulation.layout.size_bytes,
        "inputs": [_input(input_) for input_ in simulation.inputs if input_.values],
        "shots": [_shot(shot) for shot in simulation.shots],
        "notes": list(simulation.notes),
        "is_complete": simulation.is_complete,
        "reason": simulation.reason,
    }


def _input(input_: InputValues) -> dict[str, Any]:
    values = [{"hex": v.hex()} if isinstance(v, bytes) else v for v in input_.values]
    return {"expression": input_.text, "ctype": input_.ctype, "values": values, "is_given": input_.is_given}


def _shot(shot: Shot) -> dict[str, Any]:
    fields = [
        {"name": r.name, "offset": r.offset, "size": r.size, "value": r.value, "is_data": r.is_data}
        for r in shot.rows
        if r.name
    ]
    return {
        "record_hex": shot.record.hex(),
        "fields": fields,
        "line": shot.line,
        "is_exact": shot.is_exact,
    }
