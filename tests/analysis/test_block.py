"""Requests to block devices: queues, parts, requeues, merges and flushes, and what losses leave of them."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.losing import US, Record, analysed, held, schedule_of
from tracepoint.analysis import analyse_block

SDA = 8 << 20
ALL_BITS = (1 << 64) - 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("block")


def rq(us, event, sector, n_sectors, rwbs="R", dev=SDA, cpu=0, **more):
    values = {"dev": dev, "sector": sector, "nr_sector": n_sectors, "rwbs": rwbs} | more
    return Record(us, cpu, f"block:block_{event}", values, 9)


def rows(records, folder):
    return analysed(schedule_of(records), folder, analyse_block).tables["block_request"].to_dicts()


def test_trace_10(folder):
    records = [
        rq(0, "rq_insert", 100, 8), rq(5, "rq_issue", 100, 8), rq(8, "rq_requeue", 100, 8),
        rq(20, "rq_issue", 100, 8), rq(21, "rq_issue", 0, 0, "FF"), rq(30, "rq_complete", 100, 4),
        rq(35, "rq_complete", ALL_BITS, 0, "FF"), rq(40, "rq_complete", 104, 4),
    ]  # fmt: skip
    report = analysed(schedule_of(records), folder, analyse_block)
    read, flush = report.tables["block_request"].to_dicts()
    assert [read[name] for name in ("dur", "queue_dur", "service_dur")] == [40 * US, 5 * US, 20 * US]
    assert (read["n_parts"], read["n_requeues"], read["error"]) == (2, 1, 0)
    assert (flush["dur"], flush["rwbs"]) == (14 * US, "FF")
    assert list(report.service()["8:0 flush"].values) == [14 * US]
    depth = report.tables["linux_active_block_io_operations_by_device"].to_dicts()
    assert [(row["ts"] // US, row["ops_in_queue_or_device"]) for row in depth] == [
        (0, 1),
        (21, 2),
        (35, 1),
        (40, 0),
    ]
    assert list(report.notes())[-1].startswith("no records here of block:block_rq_merge")
    device = report.sections()[0].rows[0]
    assert device[:5] == (2, 4096, pytest.approx(54 / 40), 2, 1.0)


def test_merges_move_and_remove_queued_requests(folder):
    records = [
        rq(1, "rq_insert", 100, 8, "W"), rq(2, "bio_backmerge", 108, 8, "W"), rq(3, "bio_frontmerge", 92, 8, "W"),
        rq(4, "rq_insert", 116, 8, "W"), rq(5, "rq_merge", 116, 8, "W"), rq(9, "rq_issue", 92, 32, "W"),
        rq(12, "rq_complete", 92, 32, "W"),
    ]  # fmt: skip
    report = analysed(schedule_of(records), folder, analyse_block)
    whole, gone = report.requests
    assert (whole.n_sectors, whole.done - whole.ts, whole.is_whole) == (32, 11 * US, True)
    assert gone.is_merged
    assert report.sections()[0].rows[0][5] == 3


@pytest.mark.parametrize(
    ("records", "durations"),
    [
        ([rq(1, "rq_issue", 8, 8), rq(2, "rq_issue", 8, 8), rq(5, "rq_complete", 8, 8), rq(9, "rq_complete", 8, 8)],
         [4, 7]),
        ([rq(1, "rq_issue", 8, 8), rq(2, "rq_complete", 8, 8, dev=SDA + 1)], [-1]),
        ([rq(1, "rq_complete", 8, 8)], []),
        ([rq(1, "rq_issue", 8, 0, "FWS"), rq(3, "rq_complete", 8, 0, "FWS")], [2]),
        ([rq(1, "rq_requeue", 8, 8), rq(2, "rq_merge", 8, 8), rq(3, "rq_issue", 8, 8)], [-1]),
        ([rq(1, "rq_issue", ALL_BITS, 2**32 - 1), rq(3, "rq_complete", ALL_BITS, 1)], [-1]),
    ],
)  # fmt: skip
def test_keys_are_a_device_and_a_sector_in_order(folder, records, durations):
    found = [
        row["dur"] for row in rows([rq(0, "rq_complete", 1, 1), rq(0, "rq_issue", 1, 1), *records], folder)
    ]
    assert found[1:] == [us * US if us >= 0 else -1 for us in durations]


def test_errors_and_operations(folder):
    records = [
        rq(1, "rq_issue", 8, 8, "WFS"), rq(2, "rq_complete", 8, 8, "WFS", error=-5),
        rq(3, "rq_issue", 16, 8, "DE"), rq(4, "rq_complete", 16, 8, "DE"), rq(5, "rq_issue", 9, 1, "N", dev=0),
        rq(6, "rq_complete", 9, 1, "N", dev=0),
    ]  # fmt: skip
    report = analysed(schedule_of(records), folder, analyse_block)
    assert set(report.service()) == {"8:0 write", "8:0 erase", "no disk other"}
    assert [row[7] for row in report.sections()[0].rows] == [1, 0]


def generated(rng, n_cpus, n, has_queue):
    """Requests of one device, and how long they were queued, served, and took, in ns."""
    records, truth = [], {"queue": [], "service": [], "total": []}
    todo, now, sector = [], 0, 0
    while len(records) < n:
        now += rng.randint(1, 20)
        cpu = rng.randrange(n_cpus)
        if not todo or rng.random() < 0.4:
            sector += 8
            event = "rq_insert" if has_queue else "rq_issue"
            records.append(rq(now, event, sector, 8, cpu=cpu))
            todo.append((sector, now, None if has_queue else now))
            continue
        own, start, issued = todo.pop(rng.randrange(len(todo)))
        if issued is None:
            records.append(rq(now, "rq_issue", own, 8, cpu=cpu))
            truth["queue"].append((now - start) * US)
            todo.append((own, start, now))
        else:
            records.append(rq(now, "rq_complete", own, 8, cpu=cpu))
            truth["service"].append((now - issued) * US)
            truth["total"].append((now - start) * US)
    return records, truth


def figures(schedule, folder):
    report = analysed(schedule, folder, analyse_block)
    found = {"queue": report.queue(), "service": report.service(), "total": report.total()}
    return {name: made["8:0 read"] for name, made in found.items() if made}


@pytest.mark.thorough
@settings(max_examples=30, deadline=None)
@given(
    rng=st.randoms(use_true_random=False),
    n_cpus=st.integers(1, 4),
    n=st.integers(6, 120),
    has_queue=st.booleans(),
)
def test_generated_requests_are_exact(folder, rng, n_cpus, n, has_queue):
    records, truth = generated(rng, n_cpus, n, has_queue)
    found = figures(schedule_of(records), folder)
    assert {name: list(made.values) for name, made in found.items()} == {
        name: sorted(values) for name, values in truth.items() if values
    }


@pytest.mark.parametrize("has_queue", [True, False])
def test_bounds_hold_where_pages_were_lost(folder, has_queue):
    rng = random.Random(has_queue)
    records, truth = generated(rng, 2, 900, has_queue)
    share, n = held(records, truth, figures, rng, folder)
    assert share >= 0.95
    assert n >= 80
