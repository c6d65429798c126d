"""Scheduling of generated schedules whose answers are known, whole and with events taken out."""

import random
from dataclasses import dataclass, field
from math import ceil

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tracepoint as tp
from analysis.making import Schedule
from tracepoint.analysis import analyse_sched
from tracepoint.analysis.sched.rows import RowFlag

US = 1000

pytestmark = pytest.mark.usefixtures("form")
N_TASKS = 6


@dataclass
class World:
    """CPUs and tasks that act at random; what each task did is `rows`: start, end and state."""

    rng: random.Random
    n_cpus: int
    now: int = 0
    lines: list = field(default_factory=list)
    rows: dict = field(default_factory=dict)
    waits: list = field(default_factory=list)

    def __post_init__(self):
        self.running = dict.fromkeys(range(self.n_cpus), 0)
        self.state = dict.fromkeys(range(1, N_TASKS + 1), None)
        self.since = {}

    def add(self, name, *values):
        self.lines.append((self.now, name, values))

    def change(self, task, state):
        """A task is in a state from now on; what it did before is known once it was seen."""
        before = self.state[task]
        if before is not None:
            self.rows.setdefault(task, []).append((self.since[task], self.now - self.since[task], before))
            if before in {"R", "R+"} and state == "Running":
                self.waits.append(self.now - self.since[task])
        self.state[task], self.since[task] = state, self.now

    def step(self):
        self.now += self.rng.randint(1, 50)
        cpu = self.rng.randrange(self.n_cpus)
        asleep = [task for task, state in self.state.items() if state in {None, "S", "D"}]
        if asleep and self.rng.random() < 0.5:
            self.wake(cpu, self.rng.choice(asleep))
        else:
            self.switch(cpu)

    def wake(self, cpu, task):
        self.add("waking", cpu, task)
        self.change(task, "R")
        self.now += 1
        self.add("wakeup", cpu, task)

    def switch(self, cpu):
        ready = [task for task, state in self.state.items() if state in {"R", "R+"}]
        prev, after = self.running[cpu], self.rng.choice([*ready, 0])
        if prev == after:
            return
        left = self.rng.choice(["S", "D", "R", "R+"]) if prev else "R"
        is_raced = left == "S" and self.rng.random() < 0.3
        if is_raced:
            self.add("waking", (cpu + 1) % self.n_cpus, prev)
            self.now += 1
        self.add("switch", cpu, prev, left, after)
        if prev:
            self.change(prev, "R" if is_raced else left)
        if after:
            self.change(after, "Running")
        self.running[cpu] = after
        if is_raced:
            self.now += 1
            self.add("wakeup", (cpu + 1) % self.n_cpus, prev)

    def schedule(self, is_kept=lambda _: True, host=""):
        """The recording; each record for which `is_kept` is not true is lost on its CPU."""
        made = Schedule(host=host)
        for number, (us, name, (cpu, *values)) in enumerate(self.lines):
            if is_kept(number):
                getattr(made, name)(us, cpu, *values)
            else:
                made.lose(cpu, 1)
        return made


def analysed(schedule, tmp_path):
    path = tmp_path / "made.dat"
    path.write_bytes(schedule.data())
    with tp.open_trace(path) as trace:
        return analyse_sched(trace)


def rows_of(report):
    tids = {row["utid"]: row["tid"] for row in report.thread}
    found = {}
    for row in report.thread_state:
        if row["dur"] >= 0 and not row["flags"] & RowFlag.UNSEEN_WAKE:
            entry = (row["ts"] // US, row["dur"] // US, row["state"])
            found.setdefault(tids[row["utid"]], []).append(entry)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("generated")


def world_of(rng, n_cpus, n_steps):
    world = World(rng, n_cpus)
    while len(world.lines) < n_steps:
        world.step()
    return world


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n_steps=st.integers(1, 150))
def test_every_interval_and_latency_is_exact(folder, rng, n_cpus, n_steps):
    world = world_of(rng, n_cpus, n_steps)
    report = analysed(world.schedule(), folder)
    assert rows_of(report) == world.rows
    assert list(report.latency().values) == sorted(us * US for us in world.waits)
    ran = {
        task: sum(dur for _, dur, state in rows if state == "Running") for task, rows in world.rows.items()
    }
    assert {t.tid: t.run.low // US for t in report.tasks if t.tid in ran} == ran
    assert report.n_unseen_wakes == report.n_lost_switches == report.overlap_ns == 0


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n_steps=st.integers(20, 150))
def test_what_is_known_after_losses_is_true_and_figures_are_within_their_bounds(folder, rng, n_cpus, n_steps):
    world = world_of(rng, n_cpus, n_steps)
    # What a CPU loses at its end no page says; what was before the first record is no part of the trace.
    last = {line[2][0]: number for number, line in enumerate(world.lines)}
    lost = {n for n in range(1, len(world.lines)) if rng.random() < 0.1} - set(last.values())
    # Without any, nothing says that wakings were recorded.
    assume(any(line[1] == "waking" and n not in lost for n, line in enumerate(world.lines)))
    report = analysed(world.schedule(lambda number: number not in lost), folder)
    for task, rows in rows_of(report).items():
        known = [*world.rows.get(task, []), (world.since[task], 10**9, world.state[task])]
        for start, length, state in rows:
            inside = [row for row in known if row[0] <= start and start + length <= row[0] + row[1]]
            assert length == 0 or state in {row[2] for row in inside}, (task, start, length, state)
    waits, count = report.latency(), len(world.waits)
    assert waits.count.low <= count
    assert waits.count.high is None or count <= waits.count.high
    truth = sorted(us * US for us in world.waits)
    for q in (0.5, 0.9, 1.0):
        bounds = waits.quantile(q)
        if bounds is not None and truth:
            true = truth[max(ceil(q * len(truth)), 1) - 1]
            assert bounds.low <= true
            assert bounds.high is None or true <= bounds.high
