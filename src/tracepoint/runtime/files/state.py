"""What one instance has beside its rings and events: options, pids, snapshot, readers."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.filter.numbers import MAX_CPUS, read_cpulist
from tracepoint.filter.tree import And, Comparator, Predicate, Source
from tracepoint.runtime.files.file import failure
from tracepoint.runtime.files.texts import NO_EFFECT, OPTIONS

if TYPE_CHECKING:
    from tracepoint.filter.tree import Expression
    from tracepoint.runtime.hierarchy import Instance, Tracing

SUB_BUFFER = 4080


def count_possible_cpus() -> int:
    """Return how many CPUs the machine may have, as readers of per_cpu expect."""
    try:
        mask = read_cpulist(Path("/sys/devices/system/cpu/possible").read_bytes().strip(), MAX_CPUS)
    except OSError:
        mask = None
    return mask.bit_length() if mask else os.cpu_count() or 1


def _pid_is_in(pids: set[int], op: Comparator) -> Predicate:
    """Compare `common_pid`, which every record has at the same place, with a set."""
    return Predicate("common_pid", op, Source.NUMBER_IN_SET, offset=4, size=4, numbers=frozenset(pids))


@dataclass(slots=True, eq=False)
class InstanceState:
    """One instance as its files see it.

    `pids` and `hidden_pids` are set_event_pid and set_event_notrace_pid; `snapshot` holds the
    pages of the snapshot by CPU, None when it is freed; `readers` are the CPUs whose pipe is open,
    -1 for all; `n_open` counts open files, `n_stops` those that keep everything from being recorded
    (pause-on-trace).
    """

    tracing: Tracing
    instance: Instance
    n_cpus: int
    options: dict[str, bool] = field(default_factory=lambda: dict(OPTIONS))
    pids: set[int] = field(default_factory=set)
    hidden_pids: set[int] = field(default_factory=set)
    cpumask: int = 0
    snapshot: dict[int, list[bytes]] | None = None
    is_expanded: bool = False
    wake_percent: int = 50
    n_open: int = 0
    readers: set[int] = field(default_factory=set)
    triggers: dict[str, Any] = field(default_factory=dict)
    n_stops: int = 0
    _is_wanted: bool = True

    def __post_init__(self) -> None:
        self.cpumask = self.all_cpus

    @property
    def all_cpus(self) -> int:
        """The mask of all CPUs."""
        return (1 << self.n_cpus) - 1

    def expand(self) -> None:
        """Note that the rings have their whole size now."""
        self.is_expanded = True

    def switch(self, is_on: bool) -> None:
        """Set `tracing_on`; it counts when nothing stops recording any more."""
        self._is_wanted = is_on
        self.instance.is_on = is_on and not self.n_stops

    def stop(self) -> None:
        """Record nothing until `start()` was called as often: tracing_stop_tr() in kernel/trace/trace.c."""
        if not self.n_stops:
            self._is_wanted = self.instance.is_on
        self.n_stops += 1
        self.instance.is_on = False

    def start(self) -> None:
        """Undo a `stop()`, if there is one."""
        if self.n_stops:
            self.n_stops -= 1
            self.instance.is_on = self._is_wanted and not self.n_stops

    def set_option(self, name: str, value: bool) -> None:
        """Set an option; raises OSError (EINVAL) for an unknown one and one without meaning here."""
        if name not in self.options or (value and name in NO_EFFECT):
            raise failure(errno.EINVAL)
        self.options[name] = value
        if name == "overwrite":
            self.instance.buffer.overwrite = value

    def set_wake_percent(self, value: int) -> None:
        """Keep `buffer_percent` (0 to 100); readers here wake for every record."""
        if value > 100:
            raise failure(errno.EINVAL)
        self.wake_percent = value

    def apply_gate(self) -> None:
        """Let only the wanted threads and CPUs record."""
        terms: list[Expression] = []
        if self.pids:
            terms.append(_pid_is_in(self.pids, Comparator.EQ))
        if self.hidden_pids:
            terms.append(_pid_is_in(self.hidden_pids, Comparator.NE))
        if self.cpumask != self.all_cpus:
            terms.append(Predicate("CPU", Comparator.BAND, Source.CPU_IN_CPUS, value=self.cpumask))
        self.instance.set_gate(And(tuple(terms)) if terms else None)

    @property
    def size_kb(self) -> int:
        """KB of one ring: pages of 4080 bytes, rounded down."""
        n_pages: int = self.instance.buffer.n_pages
        return n_pages * SUB_BUFFER // 1024

    def resize(self, size_kb: int) -> None:
        """Give every ring at least `size_kb` KB; raises OSError (EINVAL, ENOMEM).

        What was recorded goes: rings belong to threads that write at this moment.  Those in files stay as
        they are (EBUSY).
        """
        if not size_kb:
            raise failure(errno.EINVAL)
        if self.instance.directory:
            raise failure(errno.EBUSY)
        n_pages = max(2, -(-size_kb * 1024 // SUB_BUFFER))
        old = self.instance.buffer
        self.expand()
        if n_pages == old.n_pages:
            return
        try:
            made = self.tracing.mechanism.core.Buffer(n_pages, overwrite=old.overwrite, clock=old.clock)
        except (ValueError, MemoryError):
            raise failure(errno.ENOMEM) from None
        made.is_on = old.is_on
        self.instance.set_buffer(made)

    def serials(self, cpu: int = -1) -> list[int]:
        """Return the rings that a CPU's files show, oldest first; -1 for all."""
        found = [ring[0] for ring in self.instance.buffer.rings()]
        return sorted(s for s in found if cpu < 0 or s % self.n_cpus == cpu)

    def take_pages(self, cpu: int = -1) -> dict[int, list[bytes]]:
        """Take all pages out, by CPU."""
        buffer = self.instance.buffer
        found: dict[int, list[bytes]] = {}
        for serial in self.serials(cpu):
            try:
                pages = list(iter(partial(buffer.read, serial), None))
            except KeyError:
                continue
            found.setdefault(serial % self.n_cpus, []).extend(pages)
        return found

    def peek_rings(self, cpu: int = -1) -> list[list[bytes]]:
        """Return all pages and leave them, ring by ring."""
        found = []
        for serial in self.serials(cpu):
            try:
                found.append(list(self.instance.buffer.peek(serial)))
            except KeyError:
                continue
        return found

    def clear(self, cpu: int = -1) -> None:
        """Empty the rings of one CPU, or all and their counts."""
        if cpu < 0:
            self.instance.clear()
        else:
            self.take_pages(cpu)

    def arm_snapshot(self) -> None:
        """Make room for a snapshot; raises OSError (EBUSY) where the rings are in files.

        A snapshot would take the records out of them: tracing_arm_snapshot_locked() in kernel/trace/trace.c
        refuses it for a mapped buffer too.
        """
        if self.instance.directory:
            raise failure(errno.EBUSY)
        if self.snapshot is None:
            self.snapshot = {}

    def take_snapshot(self) -> None:
        """Move what was recorded into the snapshot, and start with empty rings; raises OSError (EBUSY)."""
        self.arm_snapshot()
        self.snapshot = self.take_pages()

    def stats(self, cpu: int = -1) -> dict[str, int]:
        """Return the counts of one CPU's rings, or of all."""
        if cpu < 0:
            return self.instance.stats
        rings = [(ring[0] % self.n_cpus, ring[4]) for ring in self.instance.buffer.rings()]
        total: dict[str, int] = {}
        for _, counts in (ring for ring in rings if ring[0] == cpu):
            for name, value in counts.items():
                total[name] = total.get(name, 0) + value
        if cpu == 0:
            # What rings of ended threads lost, and threads that got no ring, is in no ring's counts.
            for name, value in self.instance.stats.items():
                if name in ("overrun", "commit_overrun", "dropped"):
                    gone = value - sum(counts.get(name, 0) for _, counts in rings)
                    total[name] = total.get(name, 0) + max(gone, 0)
        oldest = [c["oldest_stamp"] for where, c in rings if where == cpu and c["oldest_stamp"]]
        total["oldest_stamp"] = min(oldest, default=0)
        return total

    def comms(self) -> dict[int, str]:
        """Return the names of the threads that recorded, by kernel thread id."""
        rings = self.instance.buffer.rings()
        return {tid: comm.decode(errors="replace") for _, tid, _, comm, _ in rings}
