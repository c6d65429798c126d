"""Fire in this process what was fired in a guest: the same header, the same inputs, and look at what comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracepoint.assign.inputs import param_types
from tracepoint.lab.verify.script import body_of, read_lines
from tracepoint.runtime.declare.load import load
from tracepoint.runtime.files.tree import ControlFiles
from tracepoint.runtime.hierarchy import Tracing
from tracepoint.source.cvalue import int_type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracepoint.lab.simulate.simulation import Simulation
    from tracepoint.lab.verify.event import Verification
    from tracepoint.model.event import TraceHeader
    from tracepoint.source.ctype import CType

COMMON = 8


@dataclass(frozen=True)
class Seen:
    """One event here: its `format`, and for each firing the record after the common fields and the text."""

    format: str
    records: tuple[bytes, ...]
    texts: tuple[str, ...]


class Named:
    """A C object known by the text of its inputs: `p->sub.b` is what the inputs say of that text."""

    def __init__(self, text: str, inputs: Mapping[str, Any]) -> None:
        self._text = text
        self._inputs = inputs

    def __getattr__(self, name: str) -> Any:
        return value_of((f"{self._text}->{name}", f"{self._text}.{name}"), self._inputs)

    def __getitem__(self, index: int) -> Any:
        return value_of((f"{self._text}[{index}]",), self._inputs)

    def __index__(self) -> int:
        return self._inputs[self._text]


def value_of(texts: tuple[str, ...], inputs: Mapping[str, Any]) -> Any:
    """Return what the inputs say of the first text they know, or an object that knows its parts."""
    for text in texts:
        has_parts = any(other.startswith((f"{text}->", f"{text}.", f"{text}[")) for other in inputs)
        if text in inputs and not has_parts:
            return inputs[text]
    known = [t for t in texts if any(other.startswith(t) for other in inputs)]
    return Named((known or texts)[0], inputs)


def fire_here(
    header: TraceHeader, simulations: Iterable[Simulation], *, is_char_signed: bool
) -> dict[str, Seen]:
    """Load the header into an own hierarchy and fire each event with the inputs of its simulation."""
    tracing = Tracing()
    tree = ControlFiles(tracing, n_cpus=1)
    wanted = list(simulations)
    constants = {
        name: value
        for simulation in wanted
        for shot in simulation.shots
        for name, value in shot.inputs.items()
        if name.startswith("nr_")
    }
    loaded = load(header, functions=constants, is_char_signed=is_char_signed, tracing=tracing)
    assert loaded.problems == {}
    return {
        r.event.name: fire(loaded[r.event.name], tracing.event(r.event.full_name), tree, r) for r in wanted
    }


def as_argument(value: Any, ctype: CType) -> Any:
    """Cut a number to its parameter's type, as a call in C does; here it would be a fault."""
    kind = int_type_of(ctype, 8) if isinstance(value, int) and not ctype.pointers else None
    return value if kind is None else kind.wrap(value)


def fire(tracepoint: Any, control: Any, tree: Any, simulation: Simulation) -> Seen:
    """Fire one event as often as it was simulated."""
    types = param_types(simulation.event.proto)
    tree.tracing.clear()
    control.enable()
    for shot in simulation.shots:
        tracepoint(*(as_argument(value_of((name,), shot.inputs), ctype) for name, ctype in types.items()))
    assert tree.tracing.faults == (0, []), (simulation.event.name, tree.tracing.faults)
    text = tree.read_text("trace").partition("| |         |   |||||     |         |\n")[2]
    control.disable()
    return Seen(
        control.format,
        tuple(record.data[COMMON:] for record in tree.tracing.records()),
        tuple(body_of(line, simulation.event.name) for line in read_lines(text)),
    )


def without_id(text: str) -> str:
    """Return a `format` text without the line of the number."""
    return "\n".join(line for line in text.split("\n") if not line.startswith("ID: "))


def is_same_record(here: bytes, there: bytes, written: bytes) -> bool:
    """Whether records are equal where the assignment stored something (`written`, from the first field on).

    A kernel leaves what was in the ring where nothing is stored; here there are zeros.  One may end
    where its fields end, the other be filled up to 4 bytes.
    """
    if abs(len(here) - len(there)) >= 4 or min(len(here), len(there)) < len(written.rstrip(b"\0")):
        return False
    pairs = zip(here, there, written, strict=False)
    return all(ours == theirs for ours, theirs, is_stored in pairs if is_stored)


def differences(
    header: TraceHeader, verifications: Iterable[Verification], *, is_char_signed: bool
) -> dict[str, list[str]]:
    """Return what is not equal between this process and the guest, by event."""
    wanted = list(verifications)
    simulations = [verification.simulation for verification in wanted]
    seen = fire_here(header, simulations, is_char_signed=is_char_signed)
    found: dict[str, list[str]] = {}
    for verification in wanted:
        here, there, name = seen[verification.event.name], verification.answer, verification.event.name
        written = [shot.written[COMMON:] for shot in verification.simulation.shots if shot.record]
        records = [record[COMMON:] for record in there.records]
        if without_id(here.format) != without_id(there.format):
            found.setdefault(name, []).append(f"format\n{here.format}{there.format}")
        if len(here.records) != len(records) or not all(map(is_same_record, here.records, records, written)):
            found.setdefault(name, []).append(f"records {here.records} {records}")
        if here.texts != there.texts:
            found.setdefault(name, []).append(f"texts {here.texts} {there.texts}")
    return found
