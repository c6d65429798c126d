"""Limits of time that do not depend on the machine: CPU time, in turns of an empty Python loop."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TURNS = 500_000


def _cpu_of_a_million() -> float:
    begin = time.process_time()
    for _ in range(_TURNS):
        pass
    return (time.process_time() - begin) * 1_000_000 / _TURNS


@contextlib.contextmanager
def fewer_turns(millions: float) -> Iterator[None]:
    """Fail when what is inside takes the CPU longer than so many million turns of an empty loop.

    The loop is measured before and after, and the slower counts: a busy neighbour slows both.  A million
    turns take about 0.05 s of a CPU of today.
    """
    before = _cpu_of_a_million()
    begin = time.process_time()
    yield
    taken = time.process_time() - begin
    turn = max(before, _cpu_of_a_million())
    assert taken < millions * turn, (
        f"as long as {taken / turn:.0f} million turns of a loop; at most {millions}"
    )
