"""Distributions as pictures: how many samples there are by length, with quantiles and their bounds."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from math import ceil, log2, log10
from typing import TYPE_CHECKING

from tracepoint.analysis.figures import QUANTILES, value_text
from tracepoint.generate.catalog.text import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tracepoint.analysis.distribution import Bounds, Samples
    from tracepoint.analysis.sections import DistributionSection, Unit

_WIDTH, _HEIGHT, _FOOT, _ROOM = 560, 110, 18, 14
_BARS_BY_OCTAVE = 2
# The width of a letter of a label.
_LETTER = 7
_MAX_TICKS = 6


def distribution_charts(section: DistributionSection) -> str:
    """Return a picture for each group of a section that has samples."""
    groups = [(name, samples) for name, samples in section.groups.items() if len(samples)]
    if not groups:
        return ""
    low = min(_place(samples.values[0]) for _, samples in groups)
    high = max(_place(samples.values[-1]) for _, samples in groups)
    return "".join(_chart(name, samples, section.unit, (low, high)) for name, samples in groups)


def _place(value: float) -> float:
    """Return where a value is on a scale that doubles; 0 and 1 are both at its begin."""
    return log2(value) if value > 1 else 0.0


def _bars(values: Sequence[float], low: int, n: int) -> list[int]:
    # The values are in order: the first of each bar is found without looking at all.
    firsts = [
        bisect_left(values, low + bar, key=lambda value: int(_place(value) * _BARS_BY_OCTAVE))
        for bar in range(n)
    ]
    return [stop - first for first, stop in pairwise([*firsts, len(values)])]


def _chart(name: str, samples: Samples, unit: Unit, span: tuple[float, float]) -> str:
    low = int(span[0] * _BARS_BY_OCTAVE)
    n = int(span[1] * _BARS_BY_OCTAVE) - low + 1
    counts = _bars(samples.values, low, n)
    most, width = max(counts), _WIDTH / n

    def across(value: float) -> float:
        return min(max((_place(value) * _BARS_BY_OCTAVE - low) * width, 0), _WIDTH)

    shapes = []
    for at, count in enumerate(counts):
        if count:
            tall = max(count / most * (_HEIGHT - _ROOM), 1)
            ends = (2 ** ((low + at + end) / _BARS_BY_OCTAVE) for end in (0, 1))
            first, last = (value_text(end if at or low else round(end), unit) for end in ends)
            shapes.append(
                f'<rect class="count" x="{at * width + 0.5:.1f}" y="{_HEIGHT - tall:.1f}" '
                f'width="{max(width - 1, 0.5):.1f}" height="{tall:.1f}">'
                f"<title>{first} to {last}: {count:,}</title></rect>"
            )
    marks = [(label, samples.quantile(q)) for label, q in QUANTILES]
    shapes += _marks([(label, bounds) for label, bounds in marks if bounds is not None], unit, across)
    shapes += _ticks(low, n, width, unit)
    about = ", ".join(f"{label} {value_text(bounds, unit)}" for label, bounds in marks)
    total = value_text(samples.count, unit.COUNT)
    return (
        f'<figure class="chart"><figcaption><strong>{escape(name)}</strong> '
        f"{total} samples; {about}</figcaption>"
        f'<svg viewBox="-2 -2 {_WIDTH + 4} {_HEIGHT + _FOOT + 4}" role="img" '
        f'aria-label="{escape(name)}: {total} samples; {about}">{"".join(shapes)}</svg></figure>'
    )


def _marks(
    marks: Sequence[tuple[str, Bounds]], unit: Unit, across: Callable[[float], float]
) -> Iterator[str]:
    """Yield a mark for each quantile; one label for those that lie too close for two."""
    places = [_WIDTH if bounds.high is None else across(bounds.high) for _, bounds in marks]
    shown = ""
    for at, (label, bounds) in enumerate(marks):
        shown = f"{shown}, {label}" if shown else label
        is_close = at + 1 < len(marks) and places[at + 1] - places[at] < _LETTER * (len(shown) + 3)
        yield _mark(label, "" if is_close else shown, bounds, unit, across)
        if not is_close:
            shown = ""


def _mark(label: str, shown: str, bounds: Bounds, unit: Unit, across: Callable[[float], float]) -> str:
    """Return a line at a quantile, with what is `shown` above it.

    Between its bounds is a band, where losses leave it open.
    """
    first = across(bounds.low)
    last = _WIDTH if bounds.high is None else across(bounds.high)
    text = f"<title>{escape(label)}: {value_text(bounds, unit)}</title>"
    wide = max(last - first, 0)
    half = _LETTER * len(shown) / 2
    anchor = "end" if last > _WIDTH - half else "start" if last < half else "middle"
    tall = _HEIGHT - _ROOM
    return (
        f'<g class="quantile">{text}<rect x="{first:.1f}" y="{_ROOM}" width="{wide:.1f}" height="{tall}"/>'
        f'<line x1="{last:.1f}" x2="{last:.1f}" y1="{_ROOM}" y2="{_HEIGHT}"/>'
        f'<text x="{last:.1f}" y="{_ROOM - 3}" text-anchor="{anchor}">{escape(shown)}</text></g>'
    )


def _ticks(low: int, n: int, width: float, unit: Unit) -> list[str]:
    """Return the base line, with marks at powers of ten."""
    first, last = (2 ** (bar / _BARS_BY_OCTAVE) for bar in (low, low + n))
    powers = range(ceil(log10(first)), int(log10(last)) + 1)
    step = max(ceil(len(powers) / _MAX_TICKS), 1)
    found = [f'<line class="base" x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}"/>']
    for power in powers[::step]:
        at = (log2(10**power) * _BARS_BY_OCTAVE - low) * width
        found.append(f'<line class="base" x1="{at:.1f}" x2="{at:.1f}" y1="{_HEIGHT}" y2="{_HEIGHT + 4}"/>')
        text = value_text(10**power, unit).replace(".000 ", " ").replace(".00 ", " ").replace(".0 ", " ")
        # At the right end there is no room for more than the mark.
        if at < _WIDTH - 40:
            found.append(f'<text x="{at + 2:.1f}" y="{_HEIGHT + _FOOT - 3}">{text}</text>')
    return found
