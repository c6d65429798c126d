"""An event fired in this process: what it recorded, and its text for users."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Protocol

from tracepoint.layout.format import write_format
from tracepoint.source.cwrite import quote

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tracepoint.assign.machine import Unfollowed
    from tracepoint.assign.values import Input
    from tracepoint.lab.simulate.dump import DumpRow
    from tracepoint.lab.simulate.inputs import Given
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import Event

_BYTES_A_ROW = 16
#: The sections of `tracepoint try`, in order.
SECTIONS = ("format", "inputs", "record", "trace")


class Writer(Protocol):
    """Where the text goes: a terminal with colour, or a string."""

    def line(self, text: str = "") -> None:
        """Write one line."""

    def style(self, text: str, *names: str) -> str:
        """Return the text in the named styles, or unchanged if there are none."""


class _Text:
    """A writer that keeps the text."""

    def __init__(self) -> None:
        self.text = ""

    def line(self, text: str = "") -> None:
        self.text += text + "\n"

    def style(self, text: str, *_names: str) -> str:
        return text


@dataclass(frozen=True, slots=True)
class InputValues:
    """One input as used: its text, C type if known, value, and whether the user set it.

    `values` are those of every record, in order; `is_used` is False when no record's path read it.
    """

    text: str
    ctype: str
    values: tuple[Given, ...]
    is_given: bool
    is_used: bool = True

    @property
    def value(self) -> Given | None:
        """The value in the first record, None when it was not read."""
        return self.values[0] if self.values else None

    @property
    def shown(self) -> str:
        """The first value as C would spell it: addresses in hex, text in quotes; `-` when not read."""
        return show_value(self.value, self.ctype) if self.values else "-"


def show_value(value: Given | None, ctype: str = "") -> str:
    r"""Write a value as `--set` takes it.

    >>> show_value(7), show_value("bash"), show_value(b"\x00\xff"), show_value([1, 2])
    ('7', '"bash"', 'hex:00ff', '[1, 2]')
    """
    if isinstance(value, bytes):
        text = value.rstrip(b"\0")
        if text and len(text) < len(value) and all(32 <= byte < 127 for byte in text):
            return f'"{text.decode()}"'
        return "hex:" + value.hex()
    if isinstance(value, str):
        return quote(value.encode("utf-8", "surrogateescape").decode("latin-1"))
    if isinstance(value, int) and value and ("*" in ctype or value > 0xFFFF_FFFF):
        return hex(value)
    return str(value)


@dataclass(frozen=True, slots=True)
class Shot:
    """One firing: the record, its bytes cut at the fields, the trace line, and whether it is exact.

    `line` is what `trace` would show; empty when TP_CONDITION kept the event from firing.
    `inputs` are the values of this firing by their inputs' text; `written` has a one for every byte
    of the record that the assignment stored to.
    """

    record: bytes
    rows: tuple[DumpRow, ...]
    line: str
    is_exact: bool = True
    inputs: Mapping[str, Given] = field(default_factory=dict)
    written: bytes = b""


@dataclass(frozen=True, slots=True, repr=False)
class Simulation:
    """An event fired in this process.

    `layout` is the record's format; `inputs` the inputs; `shots` one for each firing;
    `unfollowed` the parts of the assignment that could not be followed; `notes` remarks for
    users; `uses` how the assignment uses each input; `is_complete` says that every stored value and every
    line is what the kernel would make of these inputs, `reason` why not.
    """

    event: Event
    layout: EventFormat
    inputs: tuple[InputValues, ...]
    shots: tuple[Shot, ...]
    unfollowed: tuple[Unfollowed, ...] = ()
    notes: tuple[str, ...] = ()
    is_complete: bool = True
    reason: str = ""
    uses: tuple[Input, ...] = ()

    @property
    def records(self) -> tuple[bytes, ...]:
        """The records of all firings."""
        return tuple(shot.record for shot in self.shots if shot.record)

    @property
    def lines(self) -> tuple[str, ...]:
        """The trace lines of all firings."""
        return tuple(shot.line for shot in self.shots if shot.line)

    def __str__(self) -> str:
        """Return the output of `tracepoint try`."""
        text = _Text()
        write_simulation(text, self)
        return text.text

    def __repr__(self) -> str:
        state = "" if self.is_complete else f", not complete: {self.reason[:60]}"
        return f"<Simulation {self.event.full_name}, {len(self.shots)} fired{state}>"

    def _repr_html_(self) -> str:
        """Return the text for a notebook."""
        return f"<pre>{escape(str(self))}</pre>"


def write_simulation(out: Writer, simulation: Simulation, sections: Collection[str] = SECTIONS) -> None:
    """Write format, inputs, record and lines of one event, in the order in which they are read."""
    writers = (_write_format, _write_inputs, _write_records, _write_lines)
    for section, write in zip(SECTIONS, writers, strict=True):
        if section in sections:
            write(out, simulation)
    for note in simulation.notes:
        out.line(f"  note: {note}")
    if not simulation.is_complete:
        out.line("  " + out.style(f"not complete: {simulation.reason}", "yellow"))


def _write_format(out: Writer, simulation: Simulation) -> None:
    write_heading(out, "format")
    write_indented(out, write_format(simulation.layout))


def _write_inputs(out: Writer, simulation: Simulation) -> None:
    write_heading(out, "inputs")
    write_inputs(out, simulation.inputs)


def _write_records(out: Writer, simulation: Simulation) -> None:
    for index, shot in enumerate(simulation.shots):
        if shot.record:
            which = f" {index + 1}" if len(simulation.shots) > 1 else ""
            write_heading(out, f"record{which}", f"{len(shot.record)} bytes")
            for row in shot.rows:
                write_row(out, row)


def _write_lines(out: Writer, simulation: Simulation) -> None:
    write_heading(out, "trace")
    for line in simulation.lines:
        out.line(line)
    if not simulation.lines:
        out.line("  nothing: the event does not fire")


def write_heading(out: Writer, title: str, rest: str = "") -> None:
    """Write the heading of a section, and a remark next to it."""
    out.line()
    out.line(out.style(title, "bold") + (f"  {rest}" if rest else ""))


def write_indented(out: Writer, text: str) -> None:
    """Write lines two columns to the right."""
    for line in text.splitlines():
        out.line(f"  {line}" if line else "")


def write_inputs(out: Writer, inputs: tuple[InputValues, ...]) -> None:
    """Write one row for each input that was used: expression, type, value, where it is from."""
    rows = [
        (input_.text, input_.ctype, _values(input_), "given" if input_.is_given else "sample")
        for input_ in inputs
        if input_.values
    ]
    if not rows:
        out.line("  none: nothing from outside is recorded")
        return
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for text, ctype, value, kind in rows:
        out.line(f"  {text:<{widths[0]}}  {ctype:<{widths[1]}}  {value:<{widths[2]}}  {kind}")


def _values(input_: InputValues) -> str:
    shown = [show_value(value, input_.ctype) for value in input_.values[:4]]
    if len(set(shown)) == 1 and len(input_.values) <= 4:
        return shown[0]
    return ", ".join(shown) + (", ..." if len(input_.values) > 4 else "")


def write_row(out: Writer, row: DumpRow) -> None:
    """Write the bytes of one field in hex, its name and its value."""
    name = f"{row.name} (data)" if row.is_data else row.name
    if not name:
        name = out.style(f"({row.size} bytes of padding)", "dim")
    value = f" = {row.value}" if row.value else ""
    for start in range(0, max(len(row.data), 1), _BYTES_A_ROW):
        part = row.data[start : start + _BYTES_A_ROW].hex(" ")
        label = f"{name}{value}" if start == 0 else ""
        out.line(f"  {row.offset + start:5d}  {part:<48} {label}".rstrip())
