"""What a report says of allocations, added up part by part."""

from __future__ import annotations

from collections import Counter
from itertools import compress, islice
from typing import TYPE_CHECKING

from tracepoint.analysis.memory.machine import Fate
from tracepoint.analysis.sums import SampleSums

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from tracepoint.analysis.growing import ClosedPart
    from tracepoint.analysis.memory.machine import AllocationRows
    from tracepoint.analysis.sections import Choice

    #: Of the allocations that have a kind and a caller or a task in common.
    Of: TypeAlias = tuple[int, int]

# So many rows are counted at once: few of them differ, but a part may have millions.
_CHUNK = 1 << 16


class AllocationSum:
    """How many allocations there were with the bytes that they asked for and got; `n_open` were not freed.

    Of `n_cut` others a loss hides whether they were.
    """

    __slots__ = ("asked", "given", "n", "n_cut", "n_open", "open_bytes")

    def __init__(self) -> None:
        self.n = self.asked = self.given = self.n_open = self.open_bytes = self.n_cut = 0

    def add(self, n: int, asked: int, size: int, fate: int) -> None:
        """Add `n` allocations of equal sizes."""
        self.n += n
        self.asked += n * asked
        self.given += n * size
        if fate == Fate.KEPT:
            self.n_open += n
            self.open_bytes += n * size
        elif fate == Fate.CUT:
            self.n_cut += n


class AllocationSums:
    """The figures of the chosen allocations; `names` are those of tasks by id.

    `sites` and `tasks` are by kind and caller, and by kind and task; `lifetimes` are by kind.
    """

    def __init__(self, names: Mapping[int, str], choice: Choice) -> None:
        self._names = names
        self._choice = choice
        self.sites: dict[Of, AllocationSum] = {}
        self.tasks: dict[Of, AllocationSum] = {}
        self.lifetimes: SampleSums[int] = SampleSums()

    def add(self, part: ClosedPart[AllocationRows]) -> None:
        """Add the allocations of a part."""
        rows = part.rows
        flags = self._choice.flags(rows.tid, rows.cpu, self._names)
        # Which of them have no end is counted of all, whatever is chosen.
        self.lifetimes.add(rows.kind, rows.dur, (), part.numbers, flags)
        equal: Iterable[tuple[int, ...]] = zip(
            rows.kind, rows.tid, rows.site, rows.asked, rows.size, rows.fate, strict=True
        )
        if flags is not None:
            equal = compress(equal, flags)
        while found := Counter(islice(equal, _CHUNK)):
            for (kind, tid, site, *what), n in found.items():
                for sums, of in ((self.sites, (kind, site)), (self.tasks, (kind, tid))):
                    own = sums.get(of)
                    if own is None:
                        own = sums[of] = AllocationSum()
                    own.add(n, *what)
