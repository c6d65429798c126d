"""Differences between what a kernel showed of an event and its simulation.

Some bytes cannot be the same, and are taken from the kernel before comparing: the common fields
(the id that it gave, the flags and pid of the task that fired it), and bytes that nothing stores to (holes,
ends of arrays after a string), where the ring buffer shows what was there before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.lab.verify.script import body_of
from tracepoint.layout.format import write_format

if TYPE_CHECKING:
    from tracepoint.lab.simulate.simulation import Shot, Simulation
    from tracepoint.lab.verify.script import Answer
    from tracepoint.layout.format import EventFormat

# Lengths in the ring buffer are multiples of four.
_ROUNDING = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between kernel and simulation.

    `what` is `format`, `record`, `text`, `listed`, `enable`, `filter`, `firing` or `probe`; `shot` the
    number of the firing from 0 (-1: none); `places` the offsets of bytes that differ.
    """

    what: str
    simulated: str
    recorded: str
    shot: int = -1
    places: tuple[int, ...] = ()


def expected_record(shot: Shot, recorded: bytes, layout: EventFormat) -> bytes:
    """Return the simulated record, with what only the kernel knows copied from the recorded one."""
    record = bytearray(shot.record)
    for field in layout.common_fields:
        end = field.offset + field.size
        if end <= len(recorded):
            record[field.offset : end] = recorded[field.offset : end]
    for offset in stale_offsets(shot, layout):
        if offset < len(recorded):
            record[offset] = recorded[offset]
    return bytes(record)


def stale_offsets(shot: Shot, layout: EventFormat) -> list[int]:
    """Return the offsets of bytes of a record that nothing stores to."""
    stored = bytearray(shot.written.ljust(len(shot.record), b"\0"))
    for field in (*layout.common_fields, *(f for f in layout.fields if f.is_data_loc)):
        stored[field.offset : field.offset + field.size] = b"\x01" * field.size
    return [offset for offset in range(len(shot.record)) if not stored[offset]]


def find_differences(simulation: Simulation, answer: Answer, filter_text: str) -> tuple[Difference, ...]:
    """Return all differences between the kernel's answer and the simulation.

    The simulation's layout carries the id that the kernel gave.
    """
    found = []
    expected = write_format(simulation.layout)
    if answer.format != expected:
        found.append(Difference("format", expected, answer.format))
    if not answer.is_listed:
        found.append(Difference("listed", "in available_events", "not in available_events"))
    if (answer.enable, answer.disabled) != ("1", "0"):
        found.append(Difference("enable", "1, then 0", f"{answer.enable}, then {answer.disabled}"))
    if filter_text and answer.filter != filter_text:
        found.append(Difference("filter", filter_text, answer.filter or answer.filter_text))
    fired = [(number, shot) for number, shot in enumerate(simulation.shots) if shot.record]
    if len(answer.records) != len(fired):
        found.append(Difference("firing", f"{len(fired)} records", f"{len(answer.records)} records"))
    if answer.count not in (-1, len(fired)):
        found.append(Difference("probe", f"{len(fired)} calls", f"{answer.count} calls"))
    for (number, shot), record, text in zip(fired, answer.records, answer.texts, strict=False):
        found += _shot_differences(number, shot, record, text, simulation)
    return tuple(found)


def _shot_differences(
    number: int, shot: Shot, record: bytes, text: str, simulation: Simulation
) -> list[Difference]:
    found = []
    expected = expected_record(shot, record, simulation.layout)
    places = differing_bytes(expected, record)
    if places:
        found.append(Difference("record", expected.hex(), record.hex(), number, places))
    simulated = body_of(shot.line, simulation.event.name)
    if simulated != text:
        found.append(Difference("text", simulated, text, number))
    return found


def differing_bytes(expected: bytes, record: bytes) -> tuple[int, ...]:
    """Return the offsets at which two records differ; padding from rounding up does not count.

    >>> differing_bytes(bytes([1, 2, 3]), bytes([1, 0, 3, 9]))
    (1,)
    """
    length = max(len(expected), len(record))
    if len(expected) <= len(record) <= len(expected) + _ROUNDING:
        length = len(expected)
    return tuple(
        i for i in range(length) if i >= len(expected) or i >= len(record) or expected[i] != record[i]
    )
