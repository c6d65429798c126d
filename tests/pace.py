"""Limits of time that do not depend on the machine: CPU time, in turns of an empty Python loop."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TURNS = 500_000
# What a million turns count for at least: where the empty loop runs faster than this, other code does not.
_LEAST_S = 0.05


def _cpu_of_a_million() -> float:
    begin = time.process_time()
    for _ in range(_TURNS):
        pass
    return (time.process_time() - begin) * 1_000_000 / _TURNS


@dataclass
class Taken:
    """How long something took the CPU, in million turns of an empty loop; known at its end."""

    millions: float = 0.0


@contextlib.contextmanager
def count_turns() -> Iterator[Taken]:
    """Measure what is inside.

    The loop is measured before and after, and the slower counts: a busy neighbour slows both.  A million
    turns count for 0.05 s at least.
    """
    taken = Taken()
    before = _cpu_of_a_million()
    begin = time.process_time()
    yield taken
    seconds = time.process_time() - begin
    taken.millions = seconds / max(before, _cpu_of_a_million(), _LEAST_S)


@contextlib.contextmanager
def fewer_turns(millions: float) -> Iterator[None]:
    """Fail when what is inside takes the CPU longer than so many million turns of an empty loop."""
    with count_turns() as taken:
        yield
    assert taken.millions < millions, f"as long as {taken.millions:.0f} million turns; at most {millions}"
