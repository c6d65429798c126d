"""The rows of interrupts and of what they deferred: columns of numbers, which grow."""

from __future__ import annotations

from array import array

from tracepoint.named import NamedTuple

#: The parent of what interrupted no interrupt, and of one of which that is not known yet.
NO_PARENT, UNPLACED = -1, -2


class IrqRows(NamedTuple):
    """Times of all kinds (`NUMBERS`) by their begin in ns (`dur`: OPEN without an end), and where they began.

    `what` is a number of `IrqReader.names`, `late` how much later than due a timer was (OPEN: not known).
    Interrupts and softirqs have an `id` of their own (others: OPEN), the `parent` that they interrupted
    (NO_PARENT), and `net`, the time without interrupts (OPEN: no end).  `is_cut`: a loss may hide the end.
    """

    kind: array[int]
    ts: array[int]
    dur: array[int]
    cpu: array[int]
    tid: array[int]
    what: array[int]
    late: array[int]
    id: array[int]
    parent: array[int]
    net: array[int]
    is_cut: array[int]


def no_irqs() -> IrqRows:
    """Return no rows."""
    return IrqRows(*(array(code) for code in "bqqiqiqqqqb"))
