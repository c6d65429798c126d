"""A verified event as text: the kernel's own output, marked where the simulation differs."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from tracepoint.lab.simulate.dump import dump_record
from tracepoint.lab.simulate.simulation import write_heading, write_indented, write_inputs, write_row
from tracepoint.layout.format import write_format

if TYPE_CHECKING:
    from tracepoint.cli.output import Output
    from tracepoint.lab.simulate.simulation import Simulation
    from tracepoint.lab.verify.compare import Difference
    from tracepoint.lab.verify.event import Sighting, Verification
    from tracepoint.lab.verify.script import Answer

_NORMALISED = (
    "taken from the kernel before comparing: ids, flags and pids; task, processor and time of the lines",
    "booted with no_hash_pointers and nokaslr, so that addresses can be compared",
)


def write_verification(out: Output, verification: Verification, release: str) -> None:
    """Write one event as the kernel showed it, with every difference from the simulation."""
    if verification.simulation is None or verification.answer is None:
        out.line(out.style(f"not verified: {verification.reason}", "yellow"))
        return
    simulation, answer = verification.simulation, verification.answer
    found = {(d.what, d.shot): d for d in verification.differences}
    _format(out, simulation, answer, found.get(("format", -1)))
    write_heading(out, "inputs")
    write_inputs(out, simulation.inputs)
    fired = [index for index, shot in enumerate(simulation.shots) if shot.record]
    for index, record in zip(fired, answer.records, strict=False):
        _record(out, simulation, index, record, found.get(("record", index)))
    texts = [d for d in verification.differences if d.what == "text"]
    write_heading(out, "trace", _verdict(out, is_equal=not texts))
    for index, line in zip(fired, answer.lines, strict=False):
        out.line(line)
        if ("text", index) in found:
            out.line(out.style(f"  simulated: {found['text', index].simulated}", "red"))
    if not answer.lines:
        out.line("  nothing: the event does not fire")
    _control(out, verification, answer, release)


def _verdict(out: Output, *, is_equal: bool) -> str:
    return out.style("as simulated", "green") if is_equal else out.style("not as simulated", "red")


def _format(out: Output, simulation: Simulation, answer: Answer, difference: Difference | None) -> None:
    write_heading(out, "format", _verdict(out, is_equal=difference is None))
    if difference is None:
        write_indented(out, answer.format)
        return
    simulated = write_format(simulation.layout)
    for line in difflib.ndiff(simulated.splitlines(), answer.format.splitlines()):
        if not line.startswith("?"):
            out.line(out.style(line, "red") if line[0] in "+-" else line)
    out.line("  (- simulated, + the kernel's)")


def _record(
    out: Output, simulation: Simulation, index: int, record: bytes, difference: Difference | None
) -> None:
    number = f" {index + 1}" if len(simulation.shots) > 1 else ""
    shown = record[: len(simulation.shots[index].record)] if difference is None else record
    verdict = _verdict(out, is_equal=difference is None)
    write_heading(out, f"record{number}", f"{len(shown)} bytes, {verdict}")
    for row in dump_record(shown, simulation.layout):
        write_row(out, row)
    if difference is not None:
        places = ", ".join(str(place) for place in difference.places[:16])
        more = " ..." if len(difference.places) > 16 else ""
        out.line(out.style(f"  simulated otherwise at byte {places}{more}:", "red"))
        for row in dump_record(bytes.fromhex(difference.simulated), simulation.layout):
            if any(row.offset <= place < row.offset + row.size for place in difference.places):
                write_row(out, row)


def _control(out: Output, verification: Verification, answer: Answer, release: str) -> None:
    write_heading(out, "kernel", release)
    rows = [
        ("available_events", "has it" if answer.is_listed else "does not have it"),
        ("id", str(answer.id)),
        ("enable", f"reads {answer.enable} after 1, {answer.disabled} after 0"),
        ("filter", answer.filter or f"refused: {answer.filter_text}"),
        ("probe", f"called {answer.count} times" if answer.count != 1 else "called once"),
    ]
    wrong = {"listed": "available_events", "enable": "enable", "filter": "filter", "probe": "probe"}
    marked = {wrong[d.what] for d in verification.differences if d.what in wrong}
    for name, text in rows:
        mark = "  " + _verdict(out, is_equal=False) if name in marked else ""
        out.line(f"  {name:<17} {text}{mark}")
    for difference in verification.differences:
        if difference.what == "firing":
            words = f"  {difference.recorded} instead of {difference.simulated}"
            out.line(out.style(words, "red"))
    for note in verification.notes:
        out.line(f"  note: {note}")
    if not verification.simulation or not verification.simulation.is_complete:
        reason = verification.simulation.reason if verification.simulation else ""
        out.line("  " + out.style(f"the simulation is not complete: {reason}", "yellow"))


def write_summary(out: Output, sighting: Sighting) -> None:
    """Write how many events were as simulated, which were not, and what the comparison does not cover."""
    out.line()
    for text in sighting.log:
        out.line(out.style(f"kernel log: {text}", "yellow"))
    equal = sum(verification.is_equal for verification in sighting.verifications)
    total = len(sighting.verifications)
    seconds = sum(sighting.seconds.values())
    out.line(f"{equal} of {total} events as simulated on {sighting.release} ({seconds:.1f} s)")
    for verification in sighting.verifications:
        if not verification.is_equal:
            kinds = ", ".join(dict.fromkeys(d.what for d in verification.differences))
            out.line(f"  {verification.event.full_name}: {verification.reason or f'differs in {kinds}'}")
    for text in _NORMALISED:
        out.say(text)
