"""Recordings that lost pages on purpose, and whether the bounds of figures hold: for every analysis.

A test gives `Record`s with the answers that the whole recording has (`Sample`s by group), and what analyses
a recording; `held` loses pages of it again and again and says which part of all bounds was true.
"""

from collections import Counter
from math import ceil
from typing import NamedTuple

import tracepoint as tp
from analysis.making import Schedule
from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.sections import DistributionSection, Unit

US = 1000
QUANTILES = (0.5, 0.9, 1.0)
SHARES = (0.01, 0.1)


class Record(NamedTuple):
    """What `Schedule.add` takes."""

    us: int
    cpu: int
    event: str
    values: dict
    by: int = 0
    flags: int = 0


def schedule_of(records, lost=frozenset(), *events):
    """The recording of records, by time; those at the places `lost` are lost on their CPU."""
    made = Schedule(*events)
    for place, record in enumerate(records):
        if place in lost:
            made.lose(record.cpu, 1)
        else:
            made.add(*record)
    return made


def analysed(schedule, folder, analyse, *args, **options):
    """What an analysis says of a recording."""
    path = folder / "made.dat"
    path.write_bytes(schedule.data())
    with tp.open_trace(path) as trace:
        return analyse(trace, *args, **options)


def lost_places(records, rng, share, per_page=8):
    """The places of records on pages of CPUs, of which `share` are lost.

    Not the first and the last page of a CPU: what was before is no part of a recording, and no page says
    what a CPU lost at its end.
    """
    by_cpu = {}
    for place, record in enumerate(records):
        by_cpu.setdefault(record.cpu, []).append(place)
    lost = set()
    for places in by_cpu.values():
        pages = [places[at : at + per_page] for at in range(0, len(places), per_page)]
        for page in pages[1:-1]:
            if rng.random() < share:
                lost.update(page)
    return lost


def _given(bounds):
    return bounds


def seen_alone(bounds):
    """A figure as it would be without bounds: what was seen, and no more."""
    return Bounds(bounds.low, bounds.low)


def checks(samples, truth, of=_given):
    """Whether each bound of a distribution is true; `truth` are all values in ns."""
    truth = sorted(truth)
    yield _holds(of(samples.count), len(truth))
    yield _holds(of(samples.sum), sum(truth))
    for q in QUANTILES:
        bounds = samples.quantile(q)
        if bounds is not None and truth:
            yield _holds(of(bounds), truth[max(ceil(q * len(truth)), 1) - 1])


def _holds(bounds, value):
    return bounds.low <= value and (bounds.high is None or value <= bounds.high)


def shown_rate(what, counts):
    """Print which part of bounds was true."""
    print(f"{what}: {counts[True]:,} of {counts.total():,} bounds hold, {counts[True] / counts.total():.2%}")  # noqa: T201


def held(records, truth, figures, rng, folder, n_times=6):
    """The share of bounds that are true, over recordings with pages lost, and how many bounds there were.

    `truth` are all values in ns by group, and `figures(schedule, folder)` the distributions by group.
    """
    counts = Counter()
    for share in SHARES:
        for _ in range(n_times):
            lost = lost_places(records, rng, share)
            found = figures(schedule_of(records, lost), folder)
            for group, samples in found.items():
                counts.update(checks(samples, truth.get(group, [])))
    shown_rate(f"{figures.__module__.rpartition('test_')[2]}, generated", counts)
    return counts[True] / max(counts.total(), 1), counts.total()


_NAMES = (Unit.WORD, Unit.NUMBER, Unit.ADDRESS)


def figure_checks(found, truth, of=_given):
    """Whether each bound of a report is true: (section, column), and a bool; `truth` is of the whole recording.

    `of` makes what is checked of a bound.
    """
    whole = {section.key: section for section in truth.sections()}
    for section in found.sections():
        true = whole[section.key]
        if isinstance(section, DistributionSection):
            for name, samples in section.groups.items():
                values = true.groups[name].values if name in true.groups else ()
                yield from (((section.key, name), is_true) for is_true in checks(samples, values, of))
            continue
        rows = {_name_of(section, row): row for row in true.rows}
        for row in section.rows:
            own = rows.get(_name_of(section, row))
            for at, value in enumerate(row):
                if isinstance(value, Bounds):
                    figure = 0 if own is None else own[at]
                    figure = figure.low if isinstance(figure, Bounds) else figure
                    yield (section.key, section.headings[at].key), _holds(of(value), figure)


def _name_of(section, row):
    # `utid` numbers the threads of one reading, in the order in which they came.
    return tuple(
        value
        for value, heading in zip(row, section.headings, strict=True)
        if heading.unit in _NAMES and heading.key != "utid"
    )


def held_figures(records, analyse, rng, folder, n_times=4, schedule=schedule_of):
    """How many bounds of the figures of a report are true and false, by section and column."""
    truth = analysed(schedule(records), folder, analyse)
    counts = {}
    for share in SHARES:
        for _ in range(n_times):
            made = schedule(records, lost_places(records, rng, share))
            for name, is_true in figure_checks(analysed(made, folder, analyse), truth):
                counts.setdefault(name, Counter())[is_true] += 1
    shown_rate(f"{analyse.__name__}, generated", sum(counts.values(), Counter()))
    return counts
