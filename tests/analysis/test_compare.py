"""What changed between two recordings: known changes are found, and chance is not taken for one."""

from __future__ import annotations

import json
import pickle
import random
from functools import partial

import pytest

import tracepoint as tp
from analysis.making import Schedule
from analysis.test_sched import x1
from tracefile.making import GOLDEN
from tracepoint.analysis.compare import cliffs_delta, compare_reports, median_change
from tracepoint.analysis.distribution import Bounds, Distribution

CUT = str(GOLDEN / "cut.v6.dat")


def waits(seed: int, n: int = 200, scale: float = 1.0) -> Distribution:
    draw = random.Random(seed)
    return Distribution(int(scale * draw.lognormvariate(10, 1.5)) for _ in range(n))


@pytest.mark.thorough
def test_chance_is_seldom_taken_for_a_change():
    """Of pairs that differ by chance alone, about one in twenty may be taken for a change."""
    verdicts = [median_change(waits(2 * at), waits(2 * at + 1)).verdict for at in range(200)]
    wrong = sum(verdict != "no change shown" for verdict in verdicts)
    assert wrong <= 20


def test_a_change_by_half_is_found():
    found = [median_change(waits(at), waits(1000 + at, 2000, 2.0)) for at in range(20)]
    assert [change.verdict for change in found].count("larger") >= 18
    assert sum(change.confidence.low <= 2.0 <= change.confidence.high for change in found) >= 17
    assert all(change.shift > 0.1 for change in found)
    assert median_change(waits(1, 2000, 2.0), waits(2, 2000)).verdict == "smaller"


def test_many_questions_need_surer_answers():
    one, many = (median_change(waits(1), waits(2), n_tests=n).confidence for n in (1, 50))
    assert many.low < one.low < one.high < many.high


def test_few_samples_and_losses_decide_nothing():
    assert median_change(Distribution([1] * 5), Distribution([9] * 500)).verdict == "too few"
    lossy = Distribution(range(100, 200), n_hidden=150, longest_hidden=10_000)
    assert median_change(lossy, Distribution(range(300, 400))).verdict == "hidden by losses"
    uncounted = Distribution(range(100, 200), n_hidden=None)
    assert median_change(uncounted, uncounted).verdict == "hidden by losses"
    assert median_change(uncounted, Distribution(range(300, 400))).verdict == "hidden by losses"


def test_cliffs_delta_is_that_of_all_pairs():
    draw = random.Random(3)
    for _ in range(30):
        one, two = (sorted(draw.randrange(20) for _ in range(draw.randrange(1, 30))) for _ in range(2))
        pairs = sum((b > a) - (b < a) for a in one for b in two)
        assert cliffs_delta(one, two) == pytest.approx(pairs / len(one) / len(two))


def work(wait_us: int, hog_us: int) -> Schedule:
    """t10 runs 10 us every 200 us after a wait; t20 runs for `hog_us` of them."""
    schedule = Schedule()
    for at in range(0, 20_000, 200):
        schedule.waking(at, 0, 10)
        schedule.switch(at + wait_us + at % 3, 0, 0, "R", 10)
        schedule.switch(at + wait_us + 10, 0, 10, "S", 20)
        schedule.waking(at + 1, 1, 20)
        schedule.switch(at + wait_us + 10 + hog_us, 0, 20, "S", 0)
    return schedule


@pytest.fixture
def report_of(analyse_made):
    return partial(analyse_made, tp.analysis.analyse_sched)


def test_what_changed_and_who_explains_it(report_of):
    found = compare_reports(report_of(work(20, 40)), report_of(work(60, 80)))
    sections = {section.key: section for section in found.sections()}
    wakes = {row[0]: row for row in sections["latency_ns"].rows}
    assert wakes["wake-up"][-1] == "larger"
    tasks = sections["tasks"].rows
    assert tasks[0][0] == "t20"
    assert tasks[0][3] == pytest.approx(200e6, rel=0.02)  # 40 us more of 200
    assert sum(row[4] for row in tasks) == pytest.approx(1)


def test_a_median_that_losses_hide_has_no_change(report_of):
    lossy = work(20, 100)
    lossy.lose(0, -1)
    lossy.switch(100_000, 0, 0, "R", 10)
    found = compare_reports(report_of(work(20, 100)), report_of(lossy))
    rows = next(section.rows for section in found.sections() if section.key == "latency_ns")
    assert {row[2:] for row in rows} == {(None, None, None, None, "hidden by losses")}


def test_a_report_says_how_its_figures_are_handed_over(report_of):
    with pytest.raises(TypeError, match="cannot be pickled or copied: hand over"):
        pickle.dumps(report_of(x1()))


def test_the_same_recording_has_not_changed(report_of):
    report = report_of(work(20, 40))
    for section in compare_reports(report, report).sections():
        if section.key == "latency_ns":
            assert {row[-1] for row in section.rows} <= {"no change shown", "too few"}
            assert all(row[3] == 0 and row[5] == 0 for row in section.rows)
            assert all(isinstance(row[4], Bounds) for row in section.rows)
        else:
            assert all(row[3] == 0 for row in section.rows)


def test_the_command_prints_text_json_and_a_page(tmp_path, run_command):
    for name, schedule in (("a", work(20, 40)), ("b", work(60, 80)), ("x", x1())):
        (tmp_path / f"{name}.dat").write_bytes(schedule.data())

    def run(*words):
        status, out, _ = run_command("compare", tmp_path / "a.dat", tmp_path / "b.dat", *words)
        assert status == 0
        return out

    assert "larger" in run()
    facts = json.loads(run("--format", "json"))
    assert facts["schema"] == "tracepoint.compare/1"
    assert {row["verdict"] for row in facts["latency_ns"]} >= {"larger"}
    run("-o", str(tmp_path / "c.html"))
    html = (tmp_path / "c.html").read_text()
    assert "Waits for a CPU: medians" in html
    assert "a.dat and b.dat" in html


def test_the_command_takes_the_options_of_an_analysis(run_command):
    words = ("compare", CUT, CUT, "latency", "--begin", "softirq_raise", "--end", "softirq_entry")
    status, out, err = run_command(*words, "--key", "vec:common_cpu")
    assert status == 0, err
    assert "medians" in out
    status, _, err = run_command("compare", CUT, CUT, "latency")
    assert (status, "needs --begin" in err) == (2, True)
