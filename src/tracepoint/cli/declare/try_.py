"""`tracepoint try`: simulate in this process what a declared event does."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from tracepoint.check.reports.json_lines import finding_as_data
from tracepoint.cli import numbers, settings
from tracepoint.cli.declare.examples import example_names, example_path
from tracepoint.cli.declare.try_session import (
    SCHEMA,
    Session,
    as_document,
    find_findings,
    simulate_with,
    write_findings,
    write_title,
)
from tracepoint.cli.inputs import find_abi, open_input
from tracepoint.cli.lab import suites
from tracepoint.cli.status import EXIT_CANNOT_RUN, EXIT_DONE, EXIT_FINDINGS
from tracepoint.diagnostics import Severity
from tracepoint.errors import TracepointError
from tracepoint.lab.simulate.inputs import GivenValueError, split_assignment
from tracepoint.lab.simulate.simulation import SECTIONS, write_simulation
from tracepoint.wording import counted

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.diagnostics import Diagnostic
    from tracepoint.model.event import Event, TraceHeader


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="HEADER[:EVENT]",
        help="headers, events in them, folders, or names of events",
    )
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
        "--kernel", metavar="KERNEL", help="verify the events in a booted kernel too: 6.1, 6.12, a package"
    )
    suites.add_argument(parser)
    _add_what_is_shown(parser)
    parser.add_argument("--json", action="store_true", help=f"print JSON ({SCHEMA})")
    settings.add_arguments(parser, "include", "define", "exclude", "abi", "select", "ignore")


def _add_what_is_shown(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--example",
        action="append",
        default=[],
        metavar="NAME[:EVENT]",
        help=f"a header that comes with this program: {', '.join(example_names())}",
    )
    parser.add_argument(
        "--only",
        type=_sections,
        default=SECTIONS,
        metavar="SECTION[,...]",
        help=f"show only these of {', '.join(SECTIONS)}",
    )
    parser.add_argument(
        "--summary",
        action="store_true",
        help="only count the events that could be simulated; -v lists the others",
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Simulate every event that the words name; the exit status is 1 when one could not be simulated."""
    args.inputs += [_example(word) for word in args.example]
    chosen = settings.read_settings(args)
    if settings.shows_settings(args, chosen, out):
        return EXIT_DONE
    session = Session(args, out, chosen, dict(split_assignment(text) for text in args.set))
    find_abi(chosen.abi)
    if not args.inputs:
        raise TracepointError("name a header, or try an example: tracepoint try --example swap")
    if args.suite and not args.kernel:
        raise TracepointError("--suite says where to find the kernel of --kernel, and there is no --kernel")
    if args.kernel:
        from tracepoint.cli.declare import try_kernel  # noqa: PLC0415 - the lab is not needed without it

        return try_kernel.run(session)
    inputs = [open_input(word, chosen, out) for word in args.inputs]
    if not any(header.events for item in inputs for header in item.headers):
        out.error(f"no trace events in {', '.join(args.inputs)}; `try` needs a header with TRACE_EVENT()")
        return EXIT_CANNOT_RUN
    findings = find_findings(inputs, chosen)
    events = [(header, event) for item in inputs for header, event in item.events()]
    seen: set[str] = set()
    with out.progress("simulating", len(events)) as progress:
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


def _one(session: Session, header: TraceHeader, event: Event) -> None:
    """Simulate one event and show it."""
    out = session.out
    try:
        simulation = simulate_with(session, header, event)
    except GivenValueError:
        raise
    except TracepointError as error:
        session.failed.append((event.full_name, str(error)))
        if session.args.json:
            session.documents.append({"event": event.full_name, "is_complete": False, "reason": str(error)})
        elif session.shows_events:
            write_title(out, event)
            out.line(out.style(f"cannot be simulated: {error}", "yellow"))
        return
    if simulation.is_complete:
        session.simulated += 1
    else:
        session.failed.append((event.full_name, simulation.reason))
    if session.args.json:
        session.documents.append(as_document(simulation))
    elif session.shows_events:
        write_title(out, event)
        write_simulation(out, simulation, session.args.only)


def _write_summary(session: Session) -> None:
    out = session.out
    if session.total == session.simulated == 1 and session.shows_events:
        return
    lists_all = out.verbosity > 0 or not session.args.summary
    share = f" ({100 * session.simulated / session.total:.1f} %)" if session.failed else ""
    hint = "" if lists_all or not session.failed else "; -v lists the rest"
    if session.shows_events:
        out.line()
    out.line(f"{session.simulated:,} of {counted(session.total, 'event')} simulated{share}{hint}")
    for name, reason in session.failed if lists_all else ():
        out.line(f"  {name}: {reason}")


def _example(word: str) -> str:
    name, colon, event = word.partition(":")
    return f"{example_path(name)}{colon}{event}"


def _sections(text: str) -> tuple[str, ...]:
    """Return the sections named in a comma-separated text, in the order of output."""
    unknown = sorted(set(text.split(",")) - set(SECTIONS))
    if unknown:
        raise ArgumentTypeError(f"no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    return tuple(section for section in SECTIONS if section in text.split(","))


def _write_json(session: Session, findings: list[Diagnostic]) -> None:
    document = {
        "schema": SCHEMA,
        "findings": [finding_as_data(d) for d in findings],
        "events": session.documents,
        "summary": {
            "simulated": session.simulated,
            "total": session.total,
            "failed": [{"event": name, "reason": reason} for name, reason in session.failed],
        },
    }
    session.out.line(json.dumps(document, indent=1))
