"""Whether the bounds of figures hold where pages of a kernel's own recording are dropped: the rate is printed."""

import random
from collections import Counter
from typing import NamedTuple

import pytest

import tracepoint as tp
from analysis.losing import SHARES, figure_checks, seen_alone, shown_rate
from oracles import data_file
from tracefile.making import written
from tracepoint.analysis.registry import analyse
from tracepoint.record.write import PageWriter, event_size
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.content import BufferContent, CpuPages

MS = 1_000_000
N_TIMES = 3


class Part(NamedTuple):
    """What is read for an analysis: events, and where the recording has many of them, in ms."""

    events: tuple
    starts: tuple
    length: int


PARTS = {
    "sched": Part(("sched", "task"), (20_000, 33_000, 44_500, 49_000), 250),
    "syscalls": Part(("raw_syscalls",), (20_000, 33_000, 44_500, 49_000), 250),
    "memory": Part(("kmem",), (20_000, 33_000, 44_500, 49_000), 250),
    "faults": Part(("exceptions", "raw_syscalls", "sched"), (44_500, 45_500, 46_500, 49_000), 250),
    "traps": Part(("exceptions", "signal"), (44_500, 45_500, 46_500, 49_000), 1000),
    "irq": Part(("irq",), (13_000,), 37_000),
}

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.thorough,
    pytest.mark.skipif(not has_zstd(), reason="no library for zstd: pip install zstandard"),
]


def pages_of(records, layout):
    """Records as the pages that hold as many of them, with room for the number of lost ones."""
    pages, size = [[]], 0
    for record in records:
        own = event_size(len(record.data))
        if size + own > layout.data_size - 16:
            pages.append([])
            size = 0
        pages[-1].append((record.timestamp, record.data))
        size += own
    return pages


def kept(pages, rng, share):
    """The pages without some, each with how many records were lost before it; the ends of a CPU stay."""
    lost = 0
    for at, page in enumerate(pages):
        if 0 < at < len(pages) - 1 and rng.random() < share:
            lost += len(page)
        else:
            yield lost, page
            lost = 0


def recording(content, cpus, layout, rng, share):
    """The trace.dat of records by CPU, with a share of the pages dropped, as a kernel says that it dropped them."""
    made = []
    for cpu, pages in cpus.items():
        writer = PageWriter(layout)
        for lost, page in kept(pages, rng, share):
            if lost:
                writer.lose(lost)
            for record in page:
                writer.add(*record)
        made.append(CpuPages(cpu, (writer.pages(),)))
    return written(content._replace(buffers=(BufferContent(tuple(made), "", "mono"),)))


@pytest.fixture(scope="module")
def trace():
    with tp.open_trace(data_file("big.v7.zstd.dat")) as found:
        yield found


@pytest.mark.parametrize("analysis", PARTS)
def test_figures_are_within_their_bounds_where_pages_were_dropped(trace, tmp_path, analysis):
    rng = random.Random(analysis)
    content, path = trace.file.content(), tmp_path / "made.dat"
    counts, alone = ({share: Counter() for share in SHARES} for _ in range(2))
    by_figure, part = {}, PARTS[analysis]
    for start in part.starts:
        chosen = trace.select(*part.events).between(start * MS, (start + part.length) * MS)
        by_cpu = {}
        for record in chosen.in_order.records():
            by_cpu.setdefault(record.cpu, []).append(record)
        layout = trace.file.layout
        cpus = {cpu: pages_of(records, layout) for cpu, records in sorted(by_cpu.items())}
        path.write_bytes(recording(content, cpus, layout, rng, 0))
        with tp.open_trace(path) as whole:
            truth = analyse(whole, analysis)
            assert whole.n_records == sum(map(len, by_cpu.values()))
        for share in SHARES:
            for _ in range(N_TIMES):
                path.write_bytes(recording(content, cpus, layout, rng, share))
                with tp.open_trace(path) as lossy:
                    report = analyse(lossy, analysis)
                for name, is_true in figure_checks(report, truth):
                    counts[share][is_true] += 1
                    by_figure.setdefault(name, Counter())[is_true] += 1
                alone[share].update(is_true for _, is_true in figure_checks(report, truth, seen_alone))
    for share, own in counts.items():
        shown_rate(f"{analysis} of a kernel's recording, {share:.0%} of pages", own)
        shown_rate("  what was seen, without bounds", alone[share])
        assert own.total() >= 40
        assert own[True] >= 0.95 * own.total()
    # Else nothing that matters was lost.
    assert alone[SHARES[-1]][True] < 0.98 * own.total()
    wrong = {name: own for name, own in by_figure.items() if own[True] < 0.95 * own.total()}
    assert not wrong
