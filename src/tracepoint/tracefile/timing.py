"""From the stamps in the pages to the times a reader shows.

The order is that of trace-cmd: a guest's clock to its host's, cycles to ns, then fixed offsets.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.record.decode import DECODE
from tracepoint.tracefile.cursor import Cursor
from tracepoint.tracefile.options import (
    OptionId,
    find_options,
    read_offset,
    read_time_shift,
    read_tsc_scale,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.tracefile.options import ClockSample, Option, TimeShift

_INTERPOLATE = 1
_U64 = (1 << 64) - 1


def shift_time(stamp: int, samples: Sequence[ClockSample], flags: int) -> int:
    """Return a guest's stamp in the time of its host.

    >>> from tracepoint.tracefile.options import ClockSample
    >>> shift_time(150, [ClockSample(100, 10, 1), ClockSample(200, 30, 1)], 1)
    170
    """
    if not samples:
        return stamp
    if len(samples) == 1:
        return stamp + samples[0].offset
    after = bisect_right(samples, stamp, key=lambda sample: sample.time)
    at = min(max(after - 1, 0), len(samples) - 2)
    low, high = samples[at], samples[at + 1]
    offset = low.offset
    if flags & _INTERPOLATE:
        span = high.time - low.time
        moved = (stamp - low.time) * (high.offset - low.offset) + span // 2
        # C rounds towards zero.
        offset += moved // span if moved >= 0 else -(-moved // span)
    return (stamp * low.scaling >> low.fraction) + offset


def _packed(sample: ClockSample) -> bytes:
    return struct.pack("QqQQ", sample.time, sample.offset, sample.scaling, sample.fraction)


def fixed_offset(options: Sequence[Option]) -> int:
    """Return what DATE (in us) and OFFSET (in ns) options add to every time, in ns."""
    dates = sum(read_offset(o.text) * 1000 for o in find_options(options, OptionId.DATE))
    return dates + sum(read_offset(o.text) for o in find_options(options, OptionId.OFFSET))


@dataclass(frozen=True)
class TimeMap:
    """From the stamp of a CPU's record to the time to show, both in the range of 64 bits.

    A guest's clock is shifted to its host's, then a cycle is `mult` / 2**`n_bits` ns, then `offset` ns is
    added.
    """

    shift: TimeShift | None = None
    mult: int = 1
    n_bits: int = 0
    offset: int = 0

    def __call__(self, stamp: int, cpu: int) -> int:
        """Return the time to show in ns."""
        if self.shift is not None and cpu < len(self.shift.cpus):
            stamp = shift_time(stamp, self.shift.cpus[cpu], self.shift.flags)
        return ((stamp * self.mult >> self.n_bits) + self.offset) & _U64

    @property
    def is_affine(self) -> bool:
        """Whether later stamps of all CPUs are later times, in proportion."""
        return self.shift is None

    @cached_property
    def in_c(self) -> object | None:
        """The same map as a clock of the C module, None without it."""
        if DECODE is None:
            return None
        shift, offset = self.shift, self.offset & _U64
        cpus = () if shift is None else tuple(b"".join(map(_packed, own)) for own in shift.cpus)
        interpolates = shift is not None and bool(shift.flags & _INTERPOLATE)
        made: object = DECODE.clock(self.mult, self.n_bits, offset, interpolates, cpus)
        return made

    def first_stamp(self, time_ns: int) -> int:
        """Return the first stamp whose time is not before `time_ns`, of a map that is affine.

        >>> TimeMap(mult=1, n_bits=1, offset=100).first_stamp(105)
        10
        """
        return max(-(-(time_ns - self.offset << self.n_bits) // self.mult), 0)


def time_map(options: Sequence[Option], *, is_big_endian: bool) -> TimeMap | None:
    """Return how stamps become times to show; None when they are the same.

    Raises DecodeError for a damaged option.
    """
    scales = [
        read_tsc_scale(Cursor(o.data, big=is_big_endian)) for o in find_options(options, OptionId.TSC2NSEC)
    ]
    shifts = [
        read_time_shift(Cursor(o.data, big=is_big_endian)) for o in find_options(options, OptionId.TIME_SHIFT)
    ]
    offset = fixed_offset(options)
    scale = scales[-1] if scales and scales[-1].mult else None
    shift = shifts[-1] if shifts else None
    if not (scale or shift or offset):
        return None
    return TimeMap(shift, scale.mult if scale else 1, scale.shift if scale else 0, offset)
