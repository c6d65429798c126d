"""`tracepoint try`: what a declared event does, rehearsed in this process."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracepoint.check.engine import check_headers
from tracepoint.check.report_json import finding_as_data
from tracepoint.check.report_text import write_concise, write_full
from tracepoint.cli import numbers, settings, suites
from tracepoint.cli.inputs import char_sign, find_abi, open_input
from tracepoint.cli.status import EXIT_CANNOT_RUN, EXIT_DONE, EXIT_FINDINGS
from tracepoint.cli.try_text import write_rehearsal
from tracepoint.diagnostics import Severity
from tracepoint.errors import TracepointError
from tracepoint.lab.given import GivenValueError, split_assignment
from tracepoint.lab.rehearse import Rehearsal, rehearse_event
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.format import write_format

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.inputs import Input
    from tracepoint.cli.output import Output
    from tracepoint.cli.settings import Settings
    from tracepoint.diagnostics import Diagnostic
    from tracepoint.lab.given import Given
    from tracepoint.lab.rehearse import LeafInput, Shot
    from tracepoint.layout.btf import Btf
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event, TraceHeader
    from tracepoint.printk.facts import RenderFacts

SCHEMA = "tracepoint.try/1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("inputs", nargs="+", metavar="HEADER[:EVENT]", help="headers, events, or folders")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="INPUT=VALUE",
        help="the value of an input, such as 'prev->pid=7' or 'prev->comm=\"bash\"'; repeatable",
    )
    parser.add_argument(
        "--count", type=numbers.whole(1, 10_000), default=1, metavar="N", help="fire N times (default: 1)"
    )
    parser.add_argument(
        "--kernel", metavar="KERNEL", help="show the events in a booted kernel too: 6.1, 6.12, or a package"
    )
    suites.add_argument(parser)
    parser.add_argument("--summary", action="store_true", help="only say how many events could be rehearsed")
    parser.add_argument("--json", action="store_true", help=f"print JSON ({SCHEMA})")
    settings.add_arguments(parser, "include", "define", "exclude", "abi", "select", "ignore")


@dataclass(slots=True)
class Session:
    """One run: what was asked, how it went so far.

    `failed` holds the events that could not be rehearsed with the reason, `met` the given inputs
    that some event has, `refused` what was said first of each that an event does not have.
    """

    args: argparse.Namespace
    out: Output
    chosen: Settings
    given: dict[str, str]
    rehearsed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    met: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    documents: list[dict[str, Any]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many events were tried."""
        return self.rehearsed + len(self.failed)

    def raise_unmet(self) -> None:
        """Raise GivenValueError for given values that no event has."""
        unmet = [text for name, text in self.refused.items() if name not in self.met]
        if unmet:
            raise GivenValueError("\n".join(unmet))

    @property
    def shows_events(self) -> bool:
        """Whether each event is written out as text."""
        return not self.args.json and not self.args.summary


def run(args: argparse.Namespace, out: Output) -> int:
    """Rehearse every event that the words name; the exit status is 1 when some could not be."""
    chosen = settings.read_settings(args)
    if settings.shows_settings(args, chosen, out):
        return EXIT_DONE
    session = Session(args, out, chosen, dict(split_assignment(text) for text in args.set))
    find_abi(chosen.abi)
    if args.suite and not args.kernel:
        raise TracepointError("--suite says where the kernel of --kernel is found, and no --kernel is given")
    if args.kernel:
        from tracepoint.cli import try_kernel  # noqa: PLC0415 - the lab is not needed without it

        return try_kernel.run(session)
    inputs = [open_input(word, chosen, out) for word in args.inputs]
    if not any(header.events for item in inputs for header in item.headers):
        out.error(f"no trace events in {', '.join(args.inputs)}; a header with TRACE_EVENT() is wanted")
        return EXIT_CANNOT_RUN
    findings = find_findings(inputs, chosen)
    events = [(header, event) for item in inputs for header, event in item.events()]
    seen: set[str] = set()
    with out.progress("rehearsing", len(events)) as progress:
        for header, event in progress.over(events):
            if session.shows_events and header.path not in seen:
                seen.add(header.path)
                write_findings(out, header, findings)
            _one(session, header, event)
    session.raise_unmet()
    if args.json:
        _write_json(session, findings)
    else:
        _write_summary(session)
    is_bad = any(d.severity is Severity.ERROR for d in findings)
    return EXIT_FINDINGS if session.failed or (is_bad and not args.summary) else EXIT_DONE


def find_findings(inputs: list[Input], chosen: Settings) -> list[Diagnostic]:
    """Return what `check` says of the named events, or of whole headers."""
    headers = [header for item in inputs for header in item.headers]
    found = check_headers(headers, select=chosen.select, ignore=chosen.ignore, abi=chosen.abi)
    wanted = {item.event for item in inputs}
    if "" in wanted:
        return found
    names = {event.full_name for item in inputs for _, event in item.events()}
    return [d for d in found if not d.event or d.event in names]


def write_findings(out: Output, header: TraceHeader, findings: list[Diagnostic]) -> None:
    """Write the header's path and those of the findings that are its own."""
    mine = [d for d in findings if d.span.path == header.path]
    out.line(out.style(header.path, "bold"))
    if not mine:
        out.line("findings: none")
        return
    out.line(f"findings: {len(mine)}")
    out.line()
    sources = {header.path: header.source} if header.source is not None else {}
    out.write(write_full(mine, sources) if len(mine) <= 5 else write_concise(mine))


def _one(session: Session, header: TraceHeader, event: Event) -> None:
    """Rehearse one event and show it."""
    out = session.out
    try:
        rehearsal = _rehearse(session, header, event)
    except GivenValueError:
        raise
    except TracepointError as error:
        session.failed.append((event.full_name, str(error)))
        if session.args.json:
            session.documents.append({"event": event.full_name, "is_complete": False, "reason": str(error)})
        elif session.shows_events:
            write_title(out, event)
            out.line(out.style(f"cannot be rehearsed: {error}", "yellow"))
        return
    if rehearsal.is_complete:
        session.rehearsed += 1
    else:
        session.failed.append((event.full_name, rehearsal.reason))
    if session.args.json:
        session.documents.append(as_document(rehearsal))
    elif session.shows_events:
        write_title(out, event)
        write_rehearsal(out, rehearsal)


def _rehearse(session: Session, header: TraceHeader, event: Event) -> Rehearsal:
    layout = compute_layout(
        event,
        find_abi(session.chosen.abi),
        environment=header.environment,
        is_char_signed=char_sign(header.path),
        enums=header.exported_enums,
    )
    return rehearse_with(session, header, event, layout)


def rehearse_with(
    session: Session,
    header: TraceHeader,
    event: Event,
    layout: EventFormat,
    *,
    facts: RenderFacts | None = None,
    btf: Btf | None = None,
) -> Rehearsal:
    """Rehearse with those of the given values that name an input of this event."""
    abi = find_abi(session.chosen.abi)
    usable: dict[str, str | Given] = dict(session.given)
    while True:
        try:
            rehearsal = rehearse_event(
                event,
                abi=abi,
                set_values=usable,
                count=session.args.count,
                environment=header.environment,
                btf=btf,
                facts=facts,
                format=layout,
                enums=header.exported_enums,
            )
        except GivenValueError as error:
            if error.leaf not in usable:
                raise
            session.refused.setdefault(error.leaf, f"{event.full_name}: {error}")
            del usable[error.leaf]
        else:
            session.met.update(usable)
            return rehearsal


def write_title(out: Output, event: Event) -> None:
    """Write an event's name and where it is declared."""
    place = f"  {event.origin}" if event.origin is not None else ""
    out.line()
    out.line(out.style(event.full_name, "bold", "cyan") + place)


def _write_summary(session: Session) -> None:
    out = session.out
    is_long = out.verbosity > 0 or not session.args.summary
    out.line()
    share = f" ({100 * session.rehearsed / session.total:.1f} %)" if session.failed else ""
    out.line(f"{session.rehearsed} of {session.total} events rehearsed{share}")
    if is_long:
        for name, reason in session.failed:
            out.line(f"  {name}: {reason}")
        return
    reasons = Counter(_kind(reason) for _, reason in session.failed)
    for reason, count in reasons.most_common():
        out.line(f"  {count:5d}  {reason}")


def _kind(reason: str) -> str:
    """Return a reason without the names that differ from event to event."""
    for mark in (" is not ", "unknown type", "cannot be known", "cannot be followed", "not known"):
        if mark in reason:
            return reason[reason.index(mark) :].strip()[:80] if mark != " is not " else reason[:80]
    return reason[:80]


def as_document(rehearsal: Rehearsal) -> dict[str, Any]:
    """Return a rehearsal as plain values for JSON."""
    origin = rehearsal.event.origin
    return {
        "event": rehearsal.event.full_name,
        "path": origin.span.path if origin else "",
        "line": origin.span.line if origin else 0,
        "format": write_format(rehearsal.layout),
        "size_bytes": rehearsal.layout.size_bytes,
        "inputs": [_input(leaf) for leaf in rehearsal.leaves if leaf.values],
        "shots": [_shot(shot) for shot in rehearsal.shots],
        "notes": list(rehearsal.notes),
        "is_complete": rehearsal.is_complete,
        "reason": rehearsal.reason,
    }


def _input(leaf: LeafInput) -> dict[str, Any]:
    values = [{"hex": v.hex()} if isinstance(v, bytes) else v for v in leaf.values]
    return {"expression": leaf.text, "ctype": leaf.ctype, "values": values, "is_given": leaf.is_given}


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


def _write_json(session: Session, findings: list[Diagnostic]) -> None:
    document = {
        "schema": SCHEMA,
        "findings": [finding_as_data(d) for d in findings],
        "events": session.documents,
        "summary": {
            "rehearsed": session.rehearsed,
            "total": session.total,
            "failed": [{"event": name, "reason": reason} for name, reason in session.failed],
        },
    }
    session.out.line(json.dumps(document, indent=1))
