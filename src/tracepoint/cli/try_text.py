"""The simulation of an event as people read it: format, inputs, record, trace lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.layout.format import write_format

if TYPE_CHECKING:
    from collections.abc import Collection

    from tracepoint.cli.output import Output
    from tracepoint.lab.dump import DumpRow
    from tracepoint.lab.given import Given
    from tracepoint.lab.rehearse import LeafInput, Rehearsal

_BYTES_A_ROW = 16
#: What `tracepoint try` shows of an event, in this order.
SECTIONS = ("format", "inputs", "record", "trace")


def write_rehearsal(out: Output, rehearsal: Rehearsal, sections: Collection[str] = SECTIONS) -> None:
    """Write format, inputs, record and lines of one event, in the order a person likes to read."""
    writers = (_write_format, _write_inputs, _write_records, _write_lines)
    for section, write in zip(SECTIONS, writers, strict=True):
        if section in sections:
            write(out, rehearsal)
    for note in rehearsal.notes:
        out.line(f"  note: {note}")
    if not rehearsal.is_complete:
        out.line("  " + out.style(f"not complete: {rehearsal.reason}", "yellow"))


def _write_format(out: Output, rehearsal: Rehearsal) -> None:
    write_heading(out, "format")
    write_indented(out, write_format(rehearsal.layout))


def _write_inputs(out: Output, rehearsal: Rehearsal) -> None:
    write_heading(out, "inputs")
    write_inputs(out, rehearsal.leaves)


def _write_records(out: Output, rehearsal: Rehearsal) -> None:
    for index, shot in enumerate(rehearsal.shots):
        if shot.record:
            which = f" {index + 1}" if len(rehearsal.shots) > 1 else ""
            write_heading(out, f"record{which}", f"{len(shot.record)} bytes")
            for row in shot.rows:
                write_row(out, row)


def _write_lines(out: Output, rehearsal: Rehearsal) -> None:
    write_heading(out, "trace")
    for line in rehearsal.lines:
        out.line(line)
    if not rehearsal.lines:
        out.line("  nothing: the event does not fire")


def write_heading(out: Output, title: str, rest: str = "") -> None:
    """Write the heading of a part, and what is said beside it."""
    out.line()
    out.line(out.style(title, "bold") + (f"  {rest}" if rest else ""))


def write_indented(out: Output, text: str) -> None:
    """Write lines two columns to the right."""
    for line in text.splitlines():
        out.line(f"  {line}" if line else "")


def write_inputs(out: Output, leaves: tuple[LeafInput, ...]) -> None:
    """Write one row for each input that was used: expression, type, value, where it is from."""
    rows = [
        (leaf.text, leaf.ctype, _values(leaf), "given" if leaf.is_given else "sample")
        for leaf in leaves
        if leaf.values
    ]
    if not rows:
        out.line("  none: nothing from outside is recorded")
        return
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for text, ctype, value, kind in rows:
        out.line(f"  {text:<{widths[0]}}  {ctype:<{widths[1]}}  {value:<{widths[2]}}  {kind}")


def _values(leaf: LeafInput) -> str:
    shown = [show_value(value, leaf.ctype) for value in leaf.values[:4]]
    if len(set(shown)) == 1 and len(leaf.values) <= 4:
        return shown[0]
    return ", ".join(shown) + (", ..." if len(leaf.values) > 4 else "")


def show_value(value: Given, ctype: str = "") -> str:
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
        return f'"{value}"'
    if isinstance(value, int) and ("*" in ctype or value > 0xFFFF_FFFF):
        return hex(value)
    return str(value)


def write_row(out: Output, row: DumpRow) -> None:
    """Write the bytes of one field in hex, its name and its value."""
    name = f"{row.name} (data)" if row.is_data else row.name
    if not name:
        name = out.style(f"({row.size} bytes of padding)", "dim")
    value = f" = {row.value}" if row.value else ""
    for start in range(0, max(len(row.data), 1), _BYTES_A_ROW):
        part = row.data[start : start + _BYTES_A_ROW].hex(" ")
        label = f"{name}{value}" if start == 0 else ""
        out.line(f"  {row.offset + start:5d}  {part:<48} {label}".rstrip())
