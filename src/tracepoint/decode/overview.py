"""A trace as a notebook shows it: what it is, and a small picture of its records over time on each CPU."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tracepoint.wording import counted, html_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_N_COLUMNS, _WIDTH, _HEIGHT, _LEFT = 240, 3, 18, 56
_MAX_CPUS, _MAX_EVENTS = 32, 10


class CpuRow(NamedTuple):
    """A CPU in the picture: times in ns with as much written between each two, and when it lost events."""

    cpu: int
    times: Sequence[int]
    losses: Sequence[tuple[int, int]]


def overview_html(
    facts: Mapping[str, str], events: Mapping[str, int], span: tuple[int, int], cpus: Iterable[CpuRow]
) -> str:
    """Return what a notebook shows: the facts, the picture, and the events with most records."""
    ordered = sorted(events.items(), key=lambda item: -item[1])
    n_more = len(ordered) - _MAX_EVENTS
    more = [("...", counted(n_more, "other event"))] if n_more > 0 else []
    shown = [(name, f"{n:,}") for name, n in ordered[:_MAX_EVENTS]]
    return "".join(
        (
            html_table(("", ""), facts.items()),
            _picture(list(cpus)[:_MAX_CPUS], *span),
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
