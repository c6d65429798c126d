"""Histograms: the table of a `hist` trigger as rows of typed values.

Facts: hist_trigger_show() and its print functions in
kernel/trace/trace_events_hist.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tracepoint.errors import TracefsError
from tracepoint.trigger.command import read_shown_trigger
from tracepoint.trigger.error import TriggerError
from tracepoint.trigger.hist import HistTrigger, read_hist_trigger
from tracepoint.wording import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Named:
    """A number with its name: a process of `.execname`, a call of `.syscall`, an address of `.sym`."""

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}[{self.number}]"


Value: TypeAlias = "int | float | str | range | Named | tuple[str, ...]"


@dataclass(frozen=True, slots=True)
class HistRow:
    """One entry: keys by name, and counts by name (`hitcount` first)."""

    keys: dict[str, Value]
    values: dict[str, Value]


@dataclass(frozen=True, slots=True)
class HistTable:
    """One histogram: its trigger as the kernel shows it, rows in the kernel's order, and the totals."""

    trigger: str
    rows: tuple[HistRow, ...]
    hits: int
    entries: int
    dropped: int

    def __repr__(self) -> str:
        return f"<HistTable {one_line(self.trigger, 70)}, {counted(len(self.rows), 'row')}>"

    @property
    def hist(self) -> HistTrigger:
        """The trigger in its parts."""
        try:
            return read_hist_trigger(read_shown_trigger(self.trigger).parameters, is_shown=True)
        except TriggerError as error:
            raise TracefsError(f"the histogram's trigger {one_line(self.trigger)!r}: {error}") from error


_INFO = "# trigger info: "
_ROW = re.compile(
    r"^\{ (?P<keys>.*?)[ \n]\} hitcount:\s*(?P<hitcount>[^\s]+)(?P<values>(?:  \S[^\n]*)?)$",
    re.MULTILINE | re.DOTALL,
)
_VALUE = re.compile(r"  (\S+):\s+(\S+)")
_TOTAL = re.compile(r"^ {4}(Hits|Entries|Dropped): (\d+)$", re.MULTILINE)


def read_hist_tables(text: str) -> list[HistTable]:
    r"""Read what a `hist` file shows; an event without histograms gives an empty list.

    >>> table = read_hist_tables(
    ...     "# event histogram\n#\n# trigger info: hist:keys=pid:vals=hitcount:sort=hitcount:size=2048 "
    ...     "[active]\n#\n\n{ pid:          7 } hitcount:          3\n\n"
    ...     "Totals:\n    Hits: 3\n    Entries: 1\n    Dropped: 0\n"
    ... )[0]
    >>> table.rows[0].keys, table.rows[0].values, table.hits
    ({'pid': 7}, {'hitcount': 3}, 3)
    """
    return [_table(part) for part in text.split("# event histogram\n")[1:]]


def _table(text: str) -> HistTable:
    trigger = next((line[len(_INFO) :] for line in text.splitlines() if line.startswith(_INFO)), "")
    body, _, tail = text.rpartition("\nTotals:\n")
    totals = {name: int(number) for name, number in _TOTAL.findall(tail)}
    table = HistTable(trigger, (), totals.get("Hits", 0), totals.get("Entries", 0), totals.get("Dropped", 0))
    hist = table.hist
    modifiers = dict(item.split(".", 1) for item in hist.values if "." in item)
    rows = tuple(_row(match, hist.keys, modifiers) for match in _ROW.finditer(body))
    return HistTable(trigger, rows, table.hits, table.entries, table.dropped)


def _row(match: re.Match[str], wanted: tuple[str, ...], modifiers: dict[str, str]) -> HistRow:
    keys: dict[str, Value] = {}
    rest = match["keys"]
    for number, item in enumerate(wanted):
        name, _, modifier = item.partition(".")
        rest = rest.removeprefix(", ").removeprefix(name + ":")
        # A text may hold ", " itself: the next key's name says where it ends.
        following = wanted[number + 1].partition(".")[0] if number + 1 < len(wanted) else None
        end = _end_of_cell(rest, f", {following}:") if following else -1
        shown, rest = (rest[:end], rest[end:]) if end >= 0 else (rest, "")
        keys[name] = read_value(shown.removeprefix(" "), modifier)
    values: dict[str, Value] = {"hitcount": read_value(match["hitcount"])}
    values.update(
        (name, read_value(shown, modifiers.get(name, ""))) for name, shown in _VALUE.findall(match["values"])
    )
    return HistRow(keys, values)


def _end_of_cell(rest: str, following: str) -> int:
    """Return where a cell ends: after its padding when it is a text, else at the next key's name."""
    padded = 1 + _TEXT_WIDTH + 1
    return padded if rest.startswith(following, padded) else rest.find(following)


_NUMBER = re.compile(r"-?[0-9]+")
_LOG2 = re.compile(r"~ 2\^([0-9]+)")
_BUCKET = re.compile(r"~ (-?[0-9]+)-(-?[0-9]+)")
_NAMED = re.compile(r"(.*?)\s*\[\s*([0-9]+)\]", re.DOTALL)
_ADDRESS = re.compile(r"\[([0-9a-f]+)\]\s*(.*)", re.DOTALL)
# Texts are padded to this width on the right, numbers to ten on the left.
_TEXT_WIDTH = 49


def read_value(shown: str, modifier: str = "") -> Value:
    """Return the value of a cell of the table, given the modifier of its field.

    A `.log2` cell is read as its range: `~ 2^3` counts 5 to 8.  A cell that does not
    match its modifier stays text.

    >>> read_value("bash            [       812]", "execname"), read_value("~ 2^3", "log2")
    (Named(name='bash', number=812), range(5, 9))
    >>> read_value("        10"), read_value("        10", "hex"), read_value("10".ljust(50))
    (10, 16, '10')
    """
    text = shown.strip()
    read = _READERS.get(modifier.partition("=")[0])
    if read is not None:
        found = read(text)
        return text if found is None else found
    if "\n" in shown:
        return tuple(line.strip() for line in shown.splitlines() if line.strip())
    if len(shown) >= _TEXT_WIDTH:
        return shown.rstrip(" ")
    return int(text) if _NUMBER.fullmatch(text) else text


def _hex(text: str) -> Value | None:
    return int(text, 16) if re.fullmatch(r"[0-9a-f]+", text) else None


def _log2(text: str) -> Value | None:
    match = _LOG2.fullmatch(text)
    if match is None:
        return None
    power = min(int(match[1]), 64)
    return range((1 << (power - 1)) + 1 if power else 0, (1 << power) + 1)


def _bucket(text: str) -> Value | None:
    match = _BUCKET.fullmatch(text)
    return range(int(match[1]), int(match[2]) + 1) if match else None


def _named(text: str) -> Value | None:
    match = _NAMED.fullmatch(text)
    return Named(match[1], int(match[2])) if match else None


def _symbol(text: str) -> Value | None:
    match = _ADDRESS.fullmatch(text)
    return Named(match[2], int(match[1], 16)) if match else None


def _percent(text: str) -> Value | None:
    return float(text) if re.fullmatch(r"[0-9]+\.[0-9]+", text) else None


_READERS: dict[str, Callable[[str], Value | None]] = {
    "hex": _hex,
    "log2": _log2,
    "bucket": _bucket,
    "buckets": _bucket,
    "execname": _named,
    "syscall": _named,
    "sym": _symbol,
    "sym-offset": _symbol,
    "percent": _percent,
}
