"""A trace as a notebook shows it: what it is, and a small picture of its records over time on each CPU."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.wording import counted, html_table, tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tracepoint.tracefile.cpudata import CpuData

_N_COLUMNS, _WIDTH, _HEIGHT, _LEFT = 240, 3, 18, 56
_MAX_CPUS, _MAX_EVENTS = 32, 10
# Places of a CPU whose times the picture has: pages, and chunks of compressed data.
_N_SAMPLES, _N_CHUNKS = 400, 50


class CpuRow(NamedTuple):
    """A CPU in the picture: times in ns with as much written between each two, and when it lost events."""

    cpu: int
    times: Sequence[int]
    losses: Sequence[tuple[int, int]]


class TraceFacts(NamedTuple):
    """What a notebook shows of a trace in words; `lost` is by CPU, `events` has the records of each event."""

    path: str
    form: str
    clock: str
    span: tuple[int, int]
    n_records: int
    lost: Mapping[int, int]
    events: Mapping[str, int]


def trace_html(
    trace: TraceFacts, data: Iterable[CpuData], losses: Callable[[int], Sequence[tuple[int, int]]]
) -> str:
    """Return what a notebook shows: the facts, a picture of the data of CPUs, and the most frequent events.

    `losses` says when a CPU lost events.
    """
    (first, last), lost = trace.span, trace.lost.values()
    facts = {
        "recording": tail(trace.path, 80),
        "form": trace.form,
        "clock": trace.clock or "not named",
        "span": f"{first / 1e9:.6f} to {last / 1e9:.6f} ({(last - first) / 1e9:.6f} s)",
        "records": f"{trace.n_records:,}",
        "lost": f"{sum(max(n, 0) for n in lost):,}{' or more' if LOST_UNKNOWN in lost else ''}",
    }
    cpus = sorted((cpu.listed() for cpu in data), key=lambda cpu: cpu.cpu)
    # A compressed chunk is expanded as a whole for the time of its first page.
    rows = [
        CpuRow(c.cpu, c.sample_times(_N_SAMPLES if c.codec is None else _N_CHUNKS), losses(c.cpu))
        for c in cpus
        if c.size
    ]
    ordered = sorted(trace.events.items(), key=lambda item: -item[1])
    n_more = len(ordered) - _MAX_EVENTS
    more = [("...", counted(n_more, "other event"))] if n_more > 0 else []
    shown = [(name, f"{n:,}") for name, n in ordered[:_MAX_EVENTS]]
    return "".join(
        (
            html_table(("", ""), facts.items()),
            _picture(rows[:_MAX_CPUS], first, last),
            html_table(("event", "records"), [*shown, *more]),
        )
    )


def density(stamps: Sequence[int], start: int, stop: int, n_columns: int) -> list[float]:
    """Return how much lies in each of equal ranges of time, 1 between each two stamps.

    >>> density([0, 10, 20, 60], 0, 60, 3)
    [2.0, 0.5, 0.5]
    """
    found = [0.0] * n_columns
    width = max(stop - start, 1) / n_columns
    for a, b in pairwise(stamps):
        low, high = (a - start) / width, (max(b, a + 1) - start) / width
        for column in range(max(int(low), 0), min(int(high) + 1, n_columns)):
            part = min(high, column + 1) - max(low, column)
            found[column] += max(part, 0.0) / (high - low)
    return found


def _picture(cpus: Sequence[CpuRow], start: int, stop: int) -> str:
    """Return an SVG: a row for each CPU, darker where more was written, red where events were lost."""
    if not cpus:
        return ""
    rows = [density(cpu.times, start, stop, _N_COLUMNS) for cpu in cpus]
    most = max(max(row) for row in rows) or 1
    shapes: list[str] = []
    for number, (cpu, row) in enumerate(zip(cpus, rows, strict=True)):
        top = number * _HEIGHT
        shapes.append(f'<text x="0" y="{top + 13}" font-size="11" fill="currentColor">CPU {cpu.cpu}</text>')
        shapes += _columns(row, most, top)
        shapes += _losses(cpu.losses, top, start, stop)
    size = f'width="{_LEFT + _N_COLUMNS * _WIDTH}" height="{len(cpus) * _HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(shapes)}</svg>'


def _columns(row: Iterable[float], most: float, top: int) -> list[str]:
    return [
        f'<rect x="{_LEFT + column * _WIDTH}" y="{top + 2}" width="{_WIDTH}" height="{_HEIGHT - 4}" '
        f'fill="#1f6feb" fill-opacity="{0.15 + 0.85 * value / most:.2f}"/>'
        for column, value in enumerate(row)
        if value
    ]


def _losses(losses: Iterable[tuple[int, int]], top: int, start: int, stop: int) -> list[str]:
    found = []
    for time, n_lost in losses:
        place = (time - start) / max(stop - start, 1)
        at = _LEFT + round(min(max(place, 0), 1) * _N_COLUMNS * _WIDTH)
        text = "events were lost" if n_lost < 0 else f"{n_lost:,} events were lost"
        found.append(
            f'<rect x="{at}" y="{top}" width="2" height="{_HEIGHT}" fill="#d1242f">'
            f"<title>{text}</title></rect>"
        )
    return found
