"""`tracepoint try --kernel`: the events of a header in a booted kernel, next to their simulations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tracepoint.check.reports.json_lines import finding_as_data
from tracepoint.cli.declare.try_kernel_text import write_summary, write_verification
from tracepoint.cli.declare.try_session import (
    SCHEMA,
    as_document,
    find_findings,
    simulate_with,
    write_findings,
    write_title,
)
from tracepoint.cli.inputs import open_input
from tracepoint.cli.status import EXIT_CANNOT_RUN, EXIT_DONE, EXIT_FINDINGS
from tracepoint.diagnostics import Severity
from tracepoint.errors import TracepointError
from tracepoint.lab.build.as_written import compile_as_written
from tracepoint.lab.kernels.suites import apt_options
from tracepoint.lab.verify.event import fetch_kernel_at_hand, verify_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.cli.declare.try_session import Session
    from tracepoint.cli.inputs import InputWord
    from tracepoint.cli.output import Output
    from tracepoint.cli.settings import Settings
    from tracepoint.diagnostics import Diagnostic
    from tracepoint.lab.simulate.simulation import Simulation
    from tracepoint.lab.verify.event import KernelAtHand, Sighting, Verification
    from tracepoint.layout.btf import Btf
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event, TraceHeader
    from tracepoint.printk.facts import RenderFacts


def run(session: Session) -> int:
    """Verify every named event in the kernel; the exit status is 1 when one is not as simulated.

    Raises LabError when the kernel cannot be booted, or a module with the events cannot be built or loaded.
    """
    out, chosen = session.out, session.chosen
    if chosen.abi != "x86_64":
        raise TracepointError(f"--kernel boots x86_64 kernels, not --abi {chosen.abi}")
    kernel = fetch_kernel_at_hand(session.args.kernel, out.say, apt_options(session.args.suite, out.say))
    inputs = [_as_kernel_reads(open_input(word, chosen, out), kernel, chosen) for word in session.args.inputs]
    events = [(header, event) for item in inputs for header, event in item.events()]
    if not events:
        out.error(f"no trace events in {', '.join(session.args.inputs)}; give a header with TRACE_EVENT()")
        return EXIT_CANNOT_RUN
    private = [note for item in inputs for note in _compile(item, kernel, chosen, out)]
    findings = find_findings(inputs, chosen)

    def simulate(
        header: TraceHeader, event: Event, layout: EventFormat, facts: RenderFacts, btf: Btf | None
    ) -> Simulation:
        return simulate_with(session, header, event, layout, facts=facts, btf=btf)

    sighting = verify_events(events, kernel, simulate=simulate, say=out.say)
    session.raise_unmet()
    if session.args.json:
        _write_json(out, sighting, findings, private)
    else:
        _write_text(session, events, sighting, findings)
        for note in private:
            out.line(f"note: {note}")
    is_bad = any(d.severity is Severity.ERROR for d in findings)
    return EXIT_DONE if all(w.is_equal for w in sighting.verifications) and not is_bad else EXIT_FINDINGS


def _as_kernel_reads(given: InputWord, kernel: KernelAtHand, chosen: Settings) -> InputWord:
    """Read the headers again with the includes and macros of that kernel's build."""
    macros = {
        name: value if equals else "1" for name, equals, value in (w.partition("=") for w in chosen.define)
    }
    reader = kernel.reader([Path(folder) for folder in chosen.include], macros or None)
    again = []
    for header in given.headers:
        if header.path == "<stdin>" and header.source is not None:
            again.append(reader.read_text(header.source.text, header.path))
        else:
            again.append(reader.read(header.path))
    return replace(given, headers=tuple(again))


def _compile(given: InputWord, kernel: KernelAtHand, chosen: Settings, out: Output) -> Iterator[str]:
    """Compile the headers exactly as they are written; yield what only the traced code knows about them.

    Raises BuildError with the compiler's output for a header that does not compile.
    """
    for header in given.headers:
        if not header.events or header.source is None:
            continue
        out.say(f"compiling {header.path} as it is written")
        with TemporaryDirectory(prefix="tracepoint-") as folder:
            path = Path(header.path)
            if not path.is_file():
                path = Path(folder) / "header.h"
                path.write_text(header.source.text, errors="surrogateescape")
            private = compile_as_written(
                path, kernel.headers, include=chosen.include, defines=chosen.define, path=header.path
            )
        for name in private:
            yield (
                f"{header.path}: no header of this kernel defines {name}: its members are not checked"
                ", and variables take their place"
            )


def _write_text(
    session: Session,
    events: list[tuple[TraceHeader, Event]],
    sighting: Sighting,
    findings: list[Diagnostic],
) -> None:
    out = session.out
    shown: set[str] = set()
    by_name = {verification.event.full_name: verification for verification in sighting.verifications}
    for header, event in events if not session.args.summary else ():
        if header.path not in shown:
            shown.add(header.path)
            write_findings(out, header, findings)
        write_title(out, event)
        write_verification(out, by_name[event.full_name], sighting.release)
    write_summary(out, sighting)


def _write_json(out: Output, sighting: Sighting, findings: list[Diagnostic], private: list[str]) -> None:
    equal = sum(verification.is_equal for verification in sighting.verifications)
    document = {
        "schema": SCHEMA,
        "kernel": {
            "release": sighting.release,
            "seconds": sighting.seconds,
            "warnings": list(sighting.log),
            "notes": private,
        },
        "findings": [finding_as_data(d) for d in findings],
        "events": [_document(verification) for verification in sighting.verifications],
        "summary": {"verified": equal, "total": len(sighting.verifications)},
    }
    out.line(json.dumps(document, indent=1))


def _document(verification: Verification) -> dict[str, Any]:
    """Return the simulation's document with the kernel's results under `kernel`."""
    answer = verification.answer
    if verification.simulation is None or answer is None:
        return {"event": verification.event.full_name, "is_complete": False, "reason": verification.reason}
    shown = {
        "system": verification.system,
        "is_listed": answer.is_listed,
        "id": answer.id,
        "format": answer.format,
        "enable": answer.enable,
        "filter": {"written": verification.filter, "read": answer.filter},
        "probe_count": answer.count,
        "shots": [
            {"record_hex": record.hex(), "line": line}
            for record, line in zip(answer.records, answer.lines, strict=True)
        ],
        "is_equal": verification.is_equal,
        "differences": [
            {"what": d.what, "shot": d.shot, "simulated": d.simulated, "recorded": d.recorded}
            for d in verification.differences
        ],
        "notes": list(verification.notes),
    }
    return {**as_document(verification.simulation), "kernel": shown}
