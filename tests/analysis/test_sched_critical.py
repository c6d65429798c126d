"""Critical paths and wake-up chains: hand-made ones exactly, and generated ones whose answers are known."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracepoint as tp
from analysis.making import Schedule
from analysis.test_sched import US, A, B, C, D, x1
from analysis.test_sched_generated import world_of
from tracepoint.analysis import analyse_sched
from tracepoint.cli.main import main
from tracepoint.errors import TracepointError

IRQ = 0x08


def analysed(schedule, folder, **options):
    path = folder / "made.dat"
    path.write_bytes(schedule.data())
    with tp.open_trace(str(path)) as trace:
        return analyse_sched(trace, **options)


def path_of(report, tid, start=None, stop=None):
    """The steps in us: begin, end, task, kind, what ran instead or ended it, depth."""
    tids = report.thread["tid"].tolist()
    times = (None if time is None else time * US for time in (start, stop))
    steps = report.critical_path(tid, *times)
    return [
        (step.start // US, step.stop // US, tids[step.utid], step.kind, step.by, step.depth) for step in steps
    ]


def test_1_running_runnable_and_blocked_on_another_task(tmp_path):
    report = analysed(x1(), tmp_path)
    assert path_of(report, A, 0, 600) == [
        (0, 100, A, "running", (), 0),
        (100, 200, B, "running", (), 1),
        (200, 230, A, "runnable", ("swapper/0",), 0),
        (230, 330, A, "running", (), 0),
        (330, 380, A, "runnable", ("t30-30",), 0),
        (380, 480, A, "running", (), 0),
        (480, 540, A, "runnable", ("t40-40",), 0),
        (540, 600, A, "running", (), 0),
    ]
    # Without times: from when it is first known to when it is dead.
    assert path_of(report, A) == path_of(report, A, 0, 600)
    assert path_of(report, A, 150, 210) == [
        (150, 200, B, "running", (), 1),
        (200, 210, A, "runnable", ("swapper/0",), 0),
    ]
    # It sleeps at the end, so that nobody has woken it yet.
    assert path_of(report, A, 90, 150) == [(90, 100, A, "running", (), 0), (100, 150, A, "blocked", (), 0)]


def nested():
    """A waits for B, which waits for C, which an interrupt wakes and which D takes the CPU from."""
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.switch(0, 1, 0, "R", B)
    s.switch(0, 2, 0, "R", C)
    s.switch(10, 0, A, "S", 0)
    s.switch(20, 1, B, "D", 0)
    s.switch(30, 2, C, "S", 0)
    s.waking(50, 3, C, by=7, flags=IRQ)
    s.switch(55, 2, 0, "R", C)
    s.switch(60, 2, C, "R+", D)
    s.switch(70, 2, D, "S", C)
    s.waking(80, 2, B, by=C)
    s.switch(84, 1, 0, "R", B)
    s.waking(90, 1, A, by=B)
    s.switch(96, 0, 0, "R", A)
    s.switch(100, 0, A, "S", 0)
    return s


def test_waits_within_waits_and_an_interrupt_at_their_root(tmp_path):
    report = analysed(nested(), tmp_path)
    assert path_of(report, A, 0, 100) == [
        (0, 10, A, "running", (), 0),
        (10, 20, B, "running", (), 1),
        (20, 30, C, "running", (), 2),
        (30, 50, C, "blocked", ("interrupt",), 2),
        (50, 55, C, "runnable", ("swapper/2",), 2),
        (55, 60, C, "running", (), 2),
        (60, 70, C, "runnable", ("t40-40",), 2),
        (70, 80, C, "running", (), 2),
        (80, 84, B, "runnable", ("swapper/1",), 1),
        (84, 90, B, "running", (), 1),
        (90, 96, A, "runnable", ("swapper/0",), 0),
        (96, 100, A, "running", (), 0),
    ]


def test_the_longest_waits_say_who_woke_whom(tmp_path):
    report = analysed(nested(), tmp_path)
    chains = {
        chain.text: (chain.wait // US, [(wake.ts // US, wake.in_interrupt) for wake in chain.wakes])
        for chain in report.wake_chains(3)
    }
    assert chains == {
        "t10-10 < t20-20 < t30-30 < interrupt": (6, [(90, False), (80, False), (50, True)]),
        "t30-30 < interrupt": (5, [(50, True)]),
        "t20-20 < t30-30 < interrupt": (4, [(80, False), (50, True)]),
    }


def test_a_new_task_depends_on_its_maker(tmp_path):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.add(20, 0, "task:task_newtask", {"pid": B, "comm": "t20"}, A)
    s.wakeup_new(21, 0, B, by=A)
    s.switch(30, 1, 0, "R", B)
    s.switch(50, 1, B, "S", 0)
    assert path_of(analysed(s, tmp_path), B, 0, 50) == [
        (0, 21, A, "running", (), 0),
        (21, 30, B, "runnable", (), 0),
        (30, 50, B, "running", (), 0),
    ]


def test_what_a_loss_hides_is_unknown(tmp_path):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.switch(0, 1, 0, "R", B)
    s.switch(10, 0, A, "S", 0)
    s.waking(11, 1, C, by=B)
    s.lose(1, 3)
    s.switch(80, 1, 0, "R", B)
    s.switch(90, 0, 0, "R", A)
    s.switch(99, 0, A, "S", 0)
    found = path_of(analysed(s, tmp_path), A, 0, 99)
    assert found == [
        (0, 10, A, "running", (), 0),
        (10, 11, A, "blocked", (), 0),
        (11, 90, A, "unknown", (), 0),
        (90, 99, A, "running", (), 0),
    ]


def test_tasks_that_seem_to_wake_each_other_at_one_time_end_the_walk(tmp_path):
    s = Schedule()
    s.switch(0, 0, 0, "R", A)
    s.switch(0, 1, 0, "R", B)
    s.switch(10, 0, A, "S", 0)
    s.switch(10, 1, B, "S", 0)
    s.waking(20, 2, A, by=B)
    s.waking(20, 2, B, by=A)
    s.switch(30, 0, 0, "R", A)
    s.switch(40, 0, A, "S", 0)
    steps = path_of(analysed(s, tmp_path), A, 0, 40)
    assert (steps[0][0], steps[-1][1]) == (0, 40)
    assert all(before[1] == after[0] for before, after in pairwise(steps))


class Plan:
    """A task that runs, is preempted and blocks, each on a CPU of its own; `path` is what it depended on."""

    def __init__(self, rng):
        self.rng = rng
        self.records = []
        self.path = []
        self.n_tasks = 0
        self.now = 10

    def add(self, name, us, cpu, *values, **options):
        self.records.append((us, len(self.records), name, (cpu, *values), options))

    def task(self, depth):
        """Run a new task for a while from now on; return it with its CPU."""
        self.n_tasks += 1
        number = self.n_tasks
        tid, cpu = 10 * number, number
        self.add("switch", self.now - self.rng.randint(1, 9), cpu, 0, "R", tid)
        for _ in range(self.rng.randint(1, 4)):
            self.step(tid, "running", (), depth)
            what = self.rng.choice(["preempted", "interrupt", "task"])
            if what == "preempted":
                self.add("switch", self.now, cpu, tid, "R+", tid + 1)
                self.step(tid, "runnable", (f"t{tid + 1}-{tid + 1}",), depth)
                self.add("switch", self.now, cpu, tid + 1, "S", tid)
                continue
            self.add("switch", self.now, cpu, tid, "SD"[self.rng.randrange(2)], 0)
            if what == "task" and depth < 4 and self.n_tasks < 20:
                waker, place, flags = *self.task(depth + 1), 0
            else:
                self.step(tid, "blocked", ("interrupt",), depth)
                waker, place, flags = 9999, 0, IRQ
            self.add("waking", self.now, place, tid, by=waker, flags=flags)
            if waker != 9999:
                self.add("switch", self.now + self.rng.randint(1, 5), place, waker, "S", 0)
            self.step(tid, "runnable", (f"swapper/{cpu}",), depth)
            self.add("switch", self.now, cpu, 0, "R", tid)
        self.step(tid, "running", (), depth)
        return tid, cpu

    def step(self, tid, kind, by, depth):
        start = self.now
        self.now += self.rng.randint(1, 30)
        last = self.path[-1] if self.path else None
        if last and kind == "running" and last[2:] == (tid, kind, by, depth):
            self.path[-1] = (last[0], self.now, *last[2:])
        else:
            self.path.append((start, self.now, tid, kind, by, depth))

    def schedule(self):
        made = Schedule()
        for us, _, name, values, options in sorted(self.records):
            getattr(made, name)(us, *values, **options)
        return made


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_generated_paths_are_found_exactly(tmp_path_factory, rng):
    plan = Plan(rng)
    tid, cpu = plan.task(0)
    plan.add("switch", plan.now, cpu, tid, "S", 0)
    report = analysed(plan.schedule(), tmp_path_factory.mktemp("plan"))
    assert path_of(report, tid, 10, plan.now) == plan.path


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(rng=st.randoms(use_true_random=False), n_cpus=st.integers(1, 4), n_steps=st.integers(20, 150))
def test_a_path_has_all_of_its_interval_and_nothing_that_was_not(tmp_path_factory, rng, n_cpus, n_steps):
    world = world_of(rng, n_cpus, n_steps)
    # What a CPU loses at its end no page says.
    last = {line[2][0]: number for number, line in enumerate(world.lines)}
    lost = {n for n in range(1, len(world.lines)) if rng.random() < 0.05} - set(last.values())
    report = analysed(world.schedule(lambda number: number not in lost), tmp_path_factory.mktemp("path"))
    tids = report.thread["tid"].tolist()
    for task in {tids[utid] for utid in report.thread_state["utid"].tolist()}:
        start, stop = sorted((rng.randint(0, world.now), rng.randint(0, world.now)))
        steps = report.critical_path(task, start * US, stop * US)
        assert sum(step.dur for step in steps) == (stop - start) * US
        at = start * US
        for step in steps:
            assert step.start == at
            at = step.stop
            truth = [*world.rows.get(tids[step.utid], []), (world.since.get(tids[step.utid], 0), 10**9, "")]
            known = {
                state for ts, dur, state in truth if ts * US <= step.start and step.stop <= (ts + dur) * US
            }
            if step.kind == "running" and tids[step.utid] in world.rows:
                assert known & {"Running", ""}


def test_the_command_shows_the_path(tmp_path, capsys):
    path = tmp_path / "made.dat"
    path.write_bytes(nested().data())
    assert main(["analyse", "sched", "-q", str(path), "--critical", "10:0-0.0001", "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert sum(row["time"] for row in facts["critical_path"]) == 100 * US
    assert [row["task"] for row in facts["critical_steps"]][:3] == ["t10-10", "t20-20", "t30-30"]


@pytest.mark.parametrize("critical", ["x", "10:", "10:5", "10:2-1", "10:a-b", "", "77", "10:nan-1"])
def test_a_path_of_nothing_is_an_error(tmp_path, critical):
    with pytest.raises(TracepointError, match=r"--critical|no task 77"):
        analysed(nested(), tmp_path, critical=critical).sections()
