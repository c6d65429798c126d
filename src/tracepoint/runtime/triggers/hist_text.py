"""What the `hist` file shows: hist_trigger_print_key() in kernel/trace/trace_events_hist.c."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tracepoint.runtime.rings.symbols import symbols

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.runtime.files.state import InstanceState
    from tracepoint.runtime.triggers.hist_rows import HistEntry, HistRows, Key, Value
    from tracepoint.trigger.expression import Operand
    from tracepoint.trigger.hist import HistSpec


class ShownHist(Protocol):
    """What of a `hist.RunningHist` is shown; as a text it is its trigger."""

    spec: HistSpec
    state: InstanceState
    table: HistRows


def hist_text(hist: ShownHist) -> str:
    """Return the part of one trigger."""
    table = hist.table
    rows = list(table.entries.items())
    for name, is_descending in reversed(hist.spec.sort):
        rows.sort(key=lambda row: _sort_value(hist, name, row), reverse=is_descending)
    shares = [_Share(entry.sums[i] for _, entry in rows) for i in range(len(hist.spec.values))]
    lines = "".join(_row(hist, key, entry, shares) for key, entry in rows)
    return (
        f"# event histogram\n#\n# trigger info: {hist}\n#\n\n{lines}\n"
        f"Totals:\n    Hits: {table.n_hits}\n    Entries: {len(rows)}\n    Dropped: {table.n_dropped}\n"
    )


class _Share:
    """What a value is a part of: the sum and the largest of all rows."""

    def __init__(self, values: Iterable[int]) -> None:
        self._total = self._most = 0
        for value in values:
            self._total += value
            self._most = max(self._most, value)

    def percent(self, value: int) -> str:
        """Return the part of the sum in percent."""
        hundredths = _hundredths(value, self._total)
        return "[ERROR]" if hundredths is None else f" {hundredths // 100:3}.{hundredths % 100:02}"

    def bar(self, value: int) -> str:
        """Return the part of the largest as a bar of 20 characters."""
        hundredths = _hundredths(value, self._most)
        return f"{'[ERROR]':>20}" if hundredths is None else ("#" * (hundredths * 20 // 10000)).ljust(20)


def _hundredths(value: int, total: int) -> int | None:
    """Return hundredths of a percent, None for a part of nothing: __get_percentage()."""
    if value and not total:
        return None
    return value * 10000 // total if total else 0


def _sort_value(hist: ShownHist, name: str, row: tuple[Key, HistEntry]) -> tuple[bool, Value]:
    key, entry = row
    spec, operand = hist.spec, hist.spec.sorted_by(name)
    value: Value = entry.n_hits
    if operand in spec.values:
        value = entry.sums[spec.values.index(operand)]
    elif operand in spec.keys:
        value = key[spec.keys.index(operand)]
    return isinstance(value, str), value


def _row(hist: ShownHist, key: Key, entry: HistEntry, shares: list[_Share]) -> str:
    keys = ", ".join(
        shown_key(hist, operand, value) for operand, value in zip(hist.spec.keys, key, strict=True)
    )
    # Nothing comes before the bracket when a stack has lines of its own.
    text = f"{{ {keys}}}" if any(isinstance(value, tuple) for value in key) else f"{{ {keys} }}"
    if hist.spec.has_hitcount:
        text += f" hitcount: {entry.n_hits:10}"
    for operand, total, share in zip(hist.spec.values, entry.sums, shares, strict=True):
        text += f"  {_shown_value(operand, total, share)}"
    for action in hist.spec.actions:
        if action.handler == "onmatch":
            continue
        tracked = entry.tracked.get(str(action), 0)
        text += f"\n\t{'max' if action.handler == 'onmax' else 'changed'}: {tracked:10}"
        for name, value in entry.saved.get(str(action), {}).items():
            text += f"  {name}: {value:<32}" if isinstance(value, str) else f"  {name}: {value:10}"
    return text + "\n"


def _shown_value(operand: Operand, total: int, share: _Share) -> str:
    match operand.modifier:
        case "percent":
            return f"{operand.name} (%):{share.percent(total)}"
        case "graph":
            return f"{operand.name}: {share.bar(total)}"
        case "hex":
            return f"{operand.name}: {total:>10x}"
        case _:
            return f"{operand.name}: {total:10}"


def shown_key(hist: ShownHist, operand: Operand, value: Value) -> str:
    """Return `NAME: VALUE` of a key, the value as its modifier shows it, padded as in the file."""
    name, modifier = operand.name, operand.modifier
    if isinstance(value, tuple):
        frames = "".join(f"\n         {_symbol(address)}" for address in value)
        return f"{name}:{frames}\n"
    if isinstance(value, str):
        return f"{name}: {value:<50}"
    match modifier.partition("=")[0]:
        case "hex":
            return f"{name}: {value:x}"
        case "sym":
            return f"{name}: [{value:x}] {_symbol(value):<45}"
        case "sym-offset":
            return f"{name}: [{value:x}] {_symbol(value, with_offset=True):<55}"
        case "execname":
            return f"{name}: {hist.state.comms().get(value, '<...>'):<16}[{value:10}]"
        case "syscall":
            # Which call a number means is the kernel's; a process has no table of them.
            return f"{name}: {'unknown_syscall':<30}[{value:3}]"
        case "log2":
            return f"{name}: ~ 2^{value:<2}"
        case "buckets":
            return f"{name}: ~ {value}-{value + int(modifier.partition('=')[2], 0) - 1}"
        case _:
            return f"{name}: {value:10}"


def _symbol(address: int, *, with_offset: bool = False) -> str:
    found = symbols().lookup(address)
    if found is None:
        return f"0x{address:x}"
    return f"{found.name}+0x{found.offset:x}/0x{found.size or 0:x}" if with_offset else found.name
