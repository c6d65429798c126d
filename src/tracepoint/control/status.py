"""How a recording goes: rates, losses and the fill level, from the counts of the ring buffers."""

from __future__ import annotations

import contextlib
import threading
import time

from tracepoint.errors import TracepointError
from tracepoint.named import NamedTuple
from tracepoint.tracefile.recording import read_stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_PERIOD_S = 1.0
_LOST = ("overrun", "commit overrun", "dropped events")
_MADE = ("entries", "read events", "overrun")


class RecordStatus(NamedTuple):
    """The last second of a recording: rates a second, and how full the fullest ring buffer is (0 to 1)."""

    seconds: float
    events_per_s: float
    lost_per_s: float
    bytes_per_s: float
    fill: float

    @property
    def text(self) -> str:
        """One line of it.

        >>> RecordStatus(12.0, 41200.4, 0.0, 2.5e6, 0.25).text
        '12 s: 41,200 events/s, 2.5 MB/s, fullest buffer 25 %, 0 lost/s'
        """
        return (
            f"{self.seconds:.0f} s: {self.events_per_s:,.0f} events/s, {self.bytes_per_s / 1e6:.1f} MB/s, "
            f"fullest buffer {100 * self.fill:.0f} %, {self.lost_per_s:,.0f} lost/s"
        )


class _Counts(NamedTuple):
    """The counts of all CPUs at one time."""

    at: float
    n_made: int
    n_lost: int
    fill: float

    @classmethod
    def read(cls, read_cpu: Callable[[str], str], sizes: Mapping[str, int]) -> _Counts:
        now = time.monotonic()
        cpus = {cpu: read_stats(read_cpu(cpu)) for cpu in sizes}
        return cls(
            now,
            sum(found.get(name, 0) for found in cpus.values() for name in _MADE),
            sum(found.get(name, 0) for found in cpus.values() for name in _LOST),
            max(
                (min(cpus[cpu].get("bytes", 0) / max(size, 1), 1.0) for cpu, size in sizes.items()),
                default=0.0,
            ),
        )


@contextlib.contextmanager
def watching(
    read_cpu: Callable[[str], str],
    sizes: Mapping[str, int],
    n_bytes: Callable[[], int],
    watch: Callable[[RecordStatus], None],
) -> Iterator[None]:
    """Call `watch` every second in a thread of its own.

    `read_cpu` gives the text of per_cpu/CPU/stats, `sizes` has the bytes of each ring buffer, and `n_bytes`
    says how much is saved.
    """
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(read_cpu, sizes, n_bytes, watch, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(
    read_cpu: Callable[[str], str],
    sizes: Mapping[str, int],
    n_bytes: Callable[[], int],
    watch: Callable[[RecordStatus], None],
    over: threading.Event,
) -> None:
    # A process that is recorded may end: the readers of its pages find out too, and say so.
    with contextlib.suppress(TracepointError, OSError):
        began = time.monotonic()
        last, last_bytes = _Counts.read(read_cpu, sizes), n_bytes()
        while not over.wait(_PERIOD_S):
            now, now_bytes = _Counts.read(read_cpu, sizes), n_bytes()
            passed = max(now.at - last.at, 1e-9)
            watch(
                RecordStatus(
                    now.at - began,
                    (now.n_made - last.n_made) / passed,
                    (now.n_lost - last.n_lost) / passed,
                    (now_bytes - last_bytes) / passed,
                    now.fill,
                )
            )
            last, last_bytes = now, now_bytes
