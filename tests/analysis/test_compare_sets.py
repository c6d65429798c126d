"""What changed between two sets of recordings: a known regression is found, what differs by chance is not."""

import json
import math
import random
import re

import pytest

import tracepoint as tp
from analysis.making import Schedule
from tracepoint.analysis import analyse_sched
from tracepoint.analysis.compare import cliffs_delta
from tracepoint.analysis.resample import least_chance, mean_change
from tracepoint.analysis.sets import compare_sets, figures_of

N = 6


def recording(seed, wait_us=20, hog_us=40):
    """t10 waits some `wait_us` before it runs, t20 runs some `hog_us`, t30 as long as ever; hosts differ."""
    rng = random.Random(seed)
    # What one host has more than another, as a load that lasts does.
    host = rng.uniform(0.85, 1.15)
    schedule, now = Schedule(), 0
    for _ in range(60):
        for task in (10, 20, 30):
            schedule.waking(now, 0, task)
        now += max(round(host * wait_us * rng.uniform(0.5, 1.5)), 1)
        schedule.switch(now, 0, 0, "R", 10)
        schedule.switch(now + 10, 0, 10, "S", 20)
        now += 10 + round(host * hog_us * rng.uniform(0.5, 1.5))
        schedule.switch(now, 0, 20, "S", 30)
        now += round(host * 30)
        schedule.switch(now, 0, 30, "S", 0)
        now += 100
    return schedule


def write_set(folder, seeds, **changes):
    folder.mkdir()
    for seed in seeds:
        (folder / f"{seed:03d}.dat").write_bytes(recording(seed, **changes).data())
    return folder


def figures(folder):
    found = []
    for path in sorted(folder.iterdir()):
        with tp.open_trace(path) as trace:
            found.append(figures_of(analyse_sched(trace), trace.events))
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two sets of the same work, and one in which t10 waits longer and t20 runs longer."""
    folder = tmp_path_factory.mktemp("sets")
    return {
        "before": write_set(folder / "before", range(N)),
        "same": write_set(folder / "same", range(100, 100 + N)),
        "worse": write_set(folder / "worse", range(200, 200 + N), wait_us=40, hog_us=80),
    }


@pytest.fixture(scope="module")
def sets(folders):
    return {name: figures(folder) for name, folder in folders.items()}


def sections_of(before, after):
    return {section.key: section for section in compare_sets(before, after).sections()}


def test_a_known_regression_is_found_and_who_explains_it_comes_first(sets):
    found = sections_of(sets["before"], sets["worse"])
    waits = {row[0]: row for row in found["latency_ns"].rows}["wake-up"]
    assert waits[1:3] == (N, N)
    assert waits[-1] == "larger"
    change, sure, shift = waits[5:8]
    # The median is what t20 waits: 10 us more than t10, so from 30 us to 50.
    assert sure.low <= 2 / 3 <= sure.high
    assert change == pytest.approx(2 / 3, rel=0.2)
    assert shift == 1
    tasks = found["tasks"].rows
    assert tasks[0][0] == "t20"
    assert tasks[0][-1] == "larger"
    # Where t20 runs longer all others run more seldom.
    assert {row[0]: row[-1] for row in tasks}["t30"] == "smaller"
    assert sum(row[5] for row in tasks) == pytest.approx(1)
    low, high = tasks[0][4]
    assert low < tasks[0][3] < high
    events = {row[0]: row for row in found["records"].rows}
    assert found["records"].rows[0][0] == "sched:sched_switch"
    assert events["sched:sched_switch"][-1] == "smaller"


def test_the_other_way_round_all_of_it_is_smaller(sets):
    found = sections_of(sets["worse"], sets["before"])
    assert {row[0]: row[-1] for row in found["latency_ns"].rows}["wake-up"] == "smaller"
    assert {row[0]: row[-1] for row in found["tasks"].rows}["t20"] == "smaller"


def test_hosts_that_differ_by_chance_show_no_change(sets):
    for section in sections_of(sets["before"], sets["same"]).values():
        assert {row[-1] for row in section.rows} <= {"no change shown", "too few"}


def test_equal_seeds_have_equal_figures(sets):
    one, two = (sections_of(sets["before"], sets["worse"]) for _ in range(2))
    assert one == two


@pytest.mark.parametrize(("n_before", "n_after"), [(1, 1), (2, 6), (3, 3), (1, 6)])
def test_few_recordings_decide_nothing(sets, n_before, n_after):
    found = sections_of(sets["before"][:n_before], sets["worse"][:n_after])
    for section in found.values():
        assert {row[-1] for row in section.rows} == {"too few"}


def test_a_set_without_recordings_and_two_analyses_are_refused(sets):
    with pytest.raises(ValueError, match="nothing to compare"):
        compare_sets(sets["before"], [])


def test_losses_that_could_have_made_a_difference_hide_it(folders, tmp_path):
    folder = tmp_path / "lossy"
    folder.mkdir()
    for seed in range(300, 300 + N):
        schedule = recording(seed, 24)
        schedule.lose(0, 60)
        schedule.switch(1_000_000, 0, 0, "R", 10)
        schedule.switch(1_000_010, 0, 10, "S", 0)
        (folder / f"{seed}.dat").write_bytes(schedule.data())
    lossy = figures(folder)
    found = compare_sets(figures(folders["worse"]), lossy)
    waits = {row[0]: row for row in found.sections()[0].rows}["all"]
    assert waits[-1] == "hidden by losses"
    assert f"after: {N} of {N} recordings lost events; figures are of what is left" in list(found.notes())


@pytest.mark.thorough
@pytest.mark.parametrize("n", [4, 6, 10])
def test_chance_is_seldom_taken_for_a_change(n):
    """Of groups that differ by chance alone one in twenty may be taken for a change."""
    wrong = 0
    for seed in range(100):
        rng = random.Random(seed)
        one, two = ([math.exp(rng.gauss(0, 0.5)) for _ in range(n)] for _ in range(2))
        change = mean_change(one, two, seed=seed)
        wrong += change.chance <= 0.05 and not change.confidence.low <= 0 <= change.confidence.high
    assert wrong <= 10


@pytest.mark.thorough
@pytest.mark.parametrize(("n_before", "n_after"), [(4, 4), (8, 8), (5, 60)])
def test_bounds_have_the_true_change(n_before, n_after):
    n_true = 0
    for seed in range(100):
        rng = random.Random(seed)
        one, two = ([rng.gauss(mean, 5) for _ in range(n)] for mean, n in ((100, n_before), (150, n_after)))
        change = mean_change(one, two, seed=seed)
        n_true += change.confidence.low <= 50 <= change.confidence.high
        assert change.chance <= 0.05
    assert n_true >= 90


@pytest.mark.thorough
@pytest.mark.parametrize(("n_before", "n_after"), [(300, 300), (5, 300), (90, 70)])
def test_sets_of_hundreds_have_the_same_risk_and_little_more_cost(n_before, n_after):
    wrong = n_true = 0
    for seed in range(40):
        rng = random.Random(seed)
        one, two, other = (
            [rng.gauss(mean, 5) for _ in range(n)]
            for mean, n in ((50, n_before), (50, n_after), (62, n_after))
        )
        same, larger = mean_change(one, two, seed=seed), mean_change(one, other, seed=seed)
        wrong += same.chance <= 0.05 and not same.confidence.low <= 0 <= same.confidence.high
        n_true += larger.chance <= 0.05 and larger.confidence.low <= 12 <= larger.confidence.high
    assert wrong <= 5
    assert n_true >= 34
    # Equal figures differ as much in each division.
    assert mean_change([1.0] * n_before, [1.0] * n_after).chance == 1


def test_the_normal_division_is_that_of_draws(monkeypatch):
    rng = random.Random(5)
    one, two = ([rng.gauss(mean, 5) for _ in range(80)] for mean in (50, 51))
    computed = mean_change(one, two).chance
    monkeypatch.setattr("tracepoint.analysis.resample.MANY", 100)
    assert mean_change(one, two).chance == pytest.approx(computed, abs=0.03)


def test_no_chance_is_less_than_the_least():
    for n_before, n_after in ((1, 1), (1, 5), (4, 4), (3, 7), (20, 20)):
        change = mean_change(range(n_before), range(100, 100 + n_after))
        assert change.chance >= min(least_chance(n_before, n_after), 1 / 4001)
        if n_before + n_after < 12:
            assert change.chance == pytest.approx(least_chance(n_before, n_after))


def test_the_shift_of_sets_is_that_of_their_medians(sets):
    found = sections_of(sets["before"], sets["same"])["latency_ns"]
    for row in found.rows:
        medians = [
            sorted(one.medians["latency_ns"].groups[row[0]].seen for one in sets[name])
            for name in ("before", "same")
        ]
        assert row[7] == pytest.approx(cliffs_delta(*medians))


def test_the_command_takes_folders_patterns_and_a_recording(folders, run_command):
    before, worse = folders["before"], folders["worse"]
    status, out, err = run_command("compare", before, f"{worse}/*.dat")
    assert status == 0
    assert f"before: {N} of {N} recordings have no records of sched:sched_wakeup, " in err
    assert "means of the medians of recordings" in out
    assert "larger" in out
    status, out, _ = run_command("compare", before, worse, "--format", "json")
    facts = json.loads(out)
    assert facts["schema"] == "tracepoint.compare/1"
    assert {row["of"]: row["verdict"] for row in facts["latency_ns"]}["wake-up"] == "larger"
    status, out, _ = run_command("compare", before, worse / "200.dat")
    assert status == 0
    assert "too few" in out


def test_a_page_of_sets_has_their_figures(folders, tmp_path, run_command):
    page = tmp_path / "page.html"
    status, out, err = run_command("compare", folders["before"], folders["worse"], "-o", page)
    assert (status, out) == (0, "")
    assert "have no records of" in err
    html = page.read_text()
    rows = [re.findall(r">([^<>]+)</t[dh]>", row) for row in re.findall("<tr.*?</tr>", html)]
    (row,) = [row for row in rows if row[:1] == ["wake-up"]]
    assert row[1:4] == ["larger", f"{N}", f"{N}"]
    assert f"{N} recordings of sched" in html
    # No recording is shown itself, and links lead somewhere.
    assert 'id="timeline"' not in html
    targets = set(re.findall(r'href="#([^"]+)"', html))
    assert targets <= set(re.findall(r'id="([^"]+)"', html))
    # A page never takes the place of a recording.
    recording = next(folders["before"].glob("*.dat"))
    data = recording.read_bytes()
    status, _, _ = run_command("compare", folders["before"], folders["worse"], "-o", recording)
    assert (status, recording.read_bytes() == data) == (2, True)


def test_the_command_reports_what_it_cannot_read_and_compares_the_rest(folders, tmp_path, run_command):
    bad = tmp_path / "bad"
    bad.mkdir()
    for seed in (1, 2):
        (bad / f"{seed}.dat").write_bytes(recording(seed).data())
    (bad / "x.dat").write_text("not a recording")
    status, out, err = run_command("compare", folders["before"], bad)
    assert status == 3
    assert "x.dat" in err
    assert "medians of recordings" in out
    for path in bad.iterdir():
        path.write_text("no recording")
    status, _, err = run_command("compare", folders["before"], bad)
    assert status == 2
    assert "none of 3 recordings can be compared" in err
    status, _, err = run_command("compare", folders["before"], tmp_path / "*.none")
    assert (status, "no recordings match" in err) == (2, True)
