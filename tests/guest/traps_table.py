"""What becomes of every trap of x86-64: raised in a guest, followed through the trace, written as a table."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tracepoint.lab.guest.machine import Guest

_EVENT = re.compile(r"^ +(?:traps|insmod)-(\d+) +\[\d+\] \S+ +[\d.]+: (\w+): (.*)$")
_LINE = re.compile(r"^(\d+) +(\S+) +pid=(\d+) +(\S+) +(\S+) +trap=(\d+) +error=(\S+) +(.*)$")
_NEVER = re.compile(r"^(\d+) +(\S+) +never: (.*)$")
_RECORD = """
cd /sys/kernel/tracing
echo 0 >tracing_on; echo >trace; echo 8192 >buffer_size_kb
for system in traps exceptions signal; do echo 'comm == "@COMM@"' >events/$system/filter; done
echo 'stacktrace if comm == "@COMM@"' >events/traps/trap_entry/trigger
for system in traps exceptions signal; do echo 1 >events/$system/enable; done
echo 1 >tracing_on; @COMMAND@; echo 0 >tracing_on
for system in traps exceptions signal; do echo 0 >events/$system/enable; echo 0 >events/$system/filter; done
echo '!stacktrace if comm == "@COMM@"' >events/traps/trap_entry/trigger
cat per_cpu/cpu*/stats | grep -E 'overrun|dropped' >/tmp/lost; cat trace >/tmp/trace
echo 1 >tracing_on
"""


@dataclass(slots=True)
class Entry:
    """One `trap_entry`: its number and text, the functions it came through (innermost first).

    `others` are the page fault events within it; `is_left` tells that its `trap_exit` came.
    """

    number: int
    text: str
    functions: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    is_left: bool = False

    @property
    def passes(self) -> list[str]:
        """The kernel's functions from the entry code on, without those of the tracer."""
        ours = [name for name in self.functions if not re.match(r"trace_|__traceiter_|__trace_", name)]
        first = next(n for n, name in enumerate(ours) if name.startswith("asm_exc_"))
        return ours[first::-1]


@dataclass(frozen=True, slots=True)
class Raised:
    """A trap as the program wanted it (`vector`, `what`), and what came of it (`entry` None: nothing)."""

    vector: int
    name: str
    what: str
    signal: str
    entry: Entry | None


def raise_all(guest: Guest) -> tuple[list[Raised], list[Entry]]:
    """Raise all traps in a guest; returns one item a trap, and all entries of all its processes."""
    said, entries, guilty = _record(guest, "traps", "traps")
    found = []
    for line in said.splitlines():
        vector, name, pid, signal, code, _trap, _error, what = _LINE.fullmatch(line).groups()
        entry = guilty.get(int(pid)) or silent(entries.get(int(pid), []))
        shown = "" if signal == "none" else f"{signal} {code}"
        found.append(Raised(int(vector), name, what, shown, entry))
    return found, [entry for mine in entries.values() for entry in mine]


def raise_in_kernel(guest: Guest) -> dict[int, Entry]:
    """Load the module /tmp/raise_traps.ko; returns the entry of each vector that it raised."""
    _, entries, _ = _record(guest, "insmod", "insmod /tmp/raise_traps.ko; rmmod raise_traps")
    return {entry.number: entry for mine in entries.values() for entry in mine if entry.number != 14}


def _record(guest: Guest, comm: str, command: str) -> tuple[str, dict[int, list[Entry]], dict[int, Entry]]:
    said = guest.run(_RECORD.replace("@COMMAND@", command).replace("@COMM@", comm), timeout=120).text
    assert set(re.findall(r": (\d+)", guest.read("/tmp/lost"))) == {"0"}
    return said, *follow(guest.read("/tmp/trace"))


def follow(trace: str) -> tuple[dict[int, list[Entry]], dict[int, Entry]]:
    """Read a trace; returns the entries of each pid, and of each the one within which a signal was made."""
    entries: dict[int, list[Entry]] = {}
    guilty: dict[int, Entry] = {}
    last: Entry | None = None
    for line in trace.splitlines():
        event = _EVENT.match(line)
        if event is None:
            if line.startswith(" => ") and last is not None:
                last.functions.append(line[4:].strip())
            continue
        pid, name, text = int(event[1]), event[2], event[3]
        mine = entries.setdefault(pid, [])
        inside = [entry for entry in mine if not entry.is_left]
        if name == "trap_entry":
            number = int(re.match(r"number=(\d+)", text)[1])
            last = Entry(number, text.partition(" ip=")[0])
            mine.append(last)
        elif name == "trap_exit":
            assert inside[-1].number == int(re.match(r"number=(\d+)", text)[1]), line
            inside[-1].is_left = True
        elif name == "signal_generate" and inside and f"pid={pid} " in text:
            guilty.setdefault(pid, inside[-1])
        elif name.startswith("page_fault") and inside:
            inside[-1].others.append(name)
    return entries, guilty


def silent(entries: list[Entry]) -> Entry | None:
    """Return the last trap that was no page fault: one that ended without a signal."""
    return next((entry for entry in reversed(entries) if entry.number != 14), None)


def reasons(program: Path) -> dict[int, tuple[str, str]]:
    """Return name and reason of the vectors that are never raised, as the program lists them."""
    said = subprocess.run([program, "-l"], capture_output=True, text=True, check=True).stdout
    found = (match.groups() for line in said.splitlines() if (match := _NEVER.match(line)))
    return {int(vector): (name, reason) for vector, name, reason in found}


def write_table(
    raised: list[Raised],
    by_kernel: dict[int, Entry],
    never: dict[int, tuple[str, str]],
    natively: dict[str, str],
) -> str:
    """Return the table of one kernel.

    `by_kernel` are the traps that a module raised, `never` name and reason of the vectors that no
    program raises; `natively` tells, by the name of a trap that the guest's emulated processor does
    not raise, which signal this machine's processor makes of it.
    """
    rows = [(item.vector, _row(item, natively)) for item in raised]
    for vector, (name, reason) in never.items():
        entry = by_kernel.get(vector)
        passes, seen = (", ".join(entry.passes), f"trap_entry {entry.text}") if entry else ("-", "-")
        what = "raise_traps.ko" if entry else "-"
        rows.append((vector, f"| {vector} {name} | {what} | {passes} | {seen} | never: {reason} |"))
    for vector, entry in by_kernel.items():
        if vector not in never:
            row = (
                f"| {vector} | raise_traps.ko | {', '.join(entry.passes)} | trap_entry {entry.text} | none |"
            )
            rows.append((vector, row))
    head = "| vector | raised by | passes | seen as | signal |\n| --- | --- | --- | --- | --- |\n"
    return head + "".join(f"{row}\n" for _, row in sorted(rows, key=lambda row: row[0]))


def _row(item: Raised, natively: dict[str, str]) -> str:
    start = f"| {item.vector} {item.name} | {item.what} |"
    if item.entry is None:
        signal = natively.get(item.name)
        note = f"; a processor does: {signal}" if signal else ""
        return f"{start} - | - | none: QEMU's emulation does not raise it{note} |"
    seen = ", ".join(["trap_entry " + item.entry.text, *item.entry.others])
    signal = item.signal or "none: the kernel answers it"
    if item.entry.number != item.vector:
        signal += f"; QEMU's emulation raises {item.entry.number} instead"
    return f"{start} {', '.join(item.entry.passes)} | {seen} | {signal} |"
