"""Requests of a program and what their threads did meanwhile: exact on generated schedules, true after losses."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracepoint as tp
from analysis.losing import US, Record, lost_places, schedule_of
from analysis.making import Schedule, recorded_formats
from tracepoint.analysis import analyse_service, needed_events
from tracepoint.analysis.sections import Choice
from tracepoint.analysis.service.lanes import TimeKind
from tracepoint.errors import TracepointError

BEGIN, END = "app:request_begin", "app:request_end"
APP = recorded_formats("formats-app.txt")
READ, FUTEX = 0, 202
NAMES = {"running": 0, "runnable": 1, "sleeping": 2, "uninterruptible": 3, "unknown": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("service")


class Worker:
    """A thread alone on a CPU, step by step, with what it did in each us."""

    def __init__(self, tid, cpu, start=10):
        self.tid, self.cpu, self.us = tid, cpu, start
        self.records, self.did = [], {}
        self._switch(0, "R", tid)

    def _switch(self, prev, state, after):
        states = {"R": 0, "S": 1, "D": 2, "R+": 256}
        values = {"prev_pid": prev, "prev_state": states[state], "next_pid": after, "next_prio": 120}
        self._add("sched:sched_switch", values | {"prev_comm": f"t{prev}", "next_comm": f"t{after}"}, prev)

    def _add(self, event, values, by):
        self.records.append(Record(self.us, self.cpu, event, values, by))

    def _pass(self, us, kind):
        self.did |= dict.fromkeys(range(self.us, self.us + us), kind)
        self.us += us

    def run(self, us):
        self._pass(us, TimeKind.RUNNING)

    def preempt(self, us):
        self._switch(self.tid, "R+", 900 + self.cpu)
        self._pass(us, TimeKind.RUNNABLE)
        self._switch(900 + self.cpu, "S", self.tid)

    def block(self, us, wait, state="S", call=None, waker=0):
        if call is not None:
            self._add("raw_syscalls:sys_enter", {"id": call}, self.tid)
            self.run(1)
        self._switch(self.tid, state, 0)
        self._pass(us, TimeKind.UNINTERRUPTIBLE if state == "D" else TimeKind.SLEEPING)
        for event in ("waking", "wakeup"):
            self._add(f"sched:sched_{event}", {"pid": self.tid, "comm": f"t{self.tid}"}, waker)
        self._pass(wait, TimeKind.RUNNABLE)
        self._switch(0, "R", self.tid)
        if call is not None:
            self.run(1)
            self._add("raw_syscalls:sys_exit", {"id": call, "ret": 0}, self.tid)


def app(requests, clock="mono"):
    """The recording of a program: requests as begin, end, thread and id."""
    made = Schedule(formats=APP, clock=clock)
    events = []
    for begin, end, tid, number, *more in requests:
        events.append((begin, BEGIN, {"id": number, "path": "/"}, tid))
        events.append((end, END, {"id": number, "status": 200}, *(more or (tid,))))
    for us, event, values, tid in sorted(events, key=lambda one: one[0]):
        made.add(us, 0, event, values, tid)
    return made


def both(folder, workers, program, lost=frozenset()):
    records = sorted((one for worker in workers for one in worker.records), key=lambda one: one.us)
    paths = folder / "kernel.dat", folder / "program.dat"
    for path, schedule in zip(paths, (schedule_of(records, lost), program), strict=True):
        path.write_bytes(schedule.data())
    return list(paths)


def reported(folder, workers, program, lost=frozenset(), **options):
    with tp.open_trace(both(folder, workers, program, lost)) as trace:
        return analyse_service(trace, BEGIN, END, **options)


def parts(row):
    return [row[name] // US for name in NAMES]


def one_worker():
    """Running 10 to 20, a read asleep 21 to 51, waiting to 55, running to 60, preempted to 67, running to 70."""
    worker = Worker(7, 0)
    worker.run(10)
    worker.block(30, 4, call=READ, waker=8)
    worker.run(4)
    worker.preempt(7)
    worker.run(3)
    worker.block(20, 2, "D")
    worker.run(50)
    worker.block(1, 1)
    return worker


def test_the_parts_of_a_request(folder):
    report = reported(folder, [one_worker()], app([(15, 69, 7, 1), (120, 130, 7, 2)]), key="id")
    rows = list(report.service_request)
    assert [(row["ts"] // US, row["dur"] // US, row["key"]) for row in rows] == [
        (15, 54, "id=1"),
        (120, 10, "id=2"),
    ]
    assert parts(rows[0]) == [13, 11, 30, 0, 0]
    assert parts(rows[1]) == [10, 0, 0, 0, 0]
    blocked = [row for row in report.service_part if row["kind"] == "sleeping"]
    assert [(row["state"], row["waker_tid"], row["dur"] // US) for row in blocked] == [("S", 8, 30)]
    assert blocked[0]["blocked_in"].endswith(("read", "syscall 0"))
    kinds = {row[-1]: row[0] // US for row in report.sections()[1].rows}
    assert kinds == {"running": 23, "runnable (waiting for a CPU)": 11, "blocked, interruptible": 30}
    assert report.sections()[2].rows[0][4] == "S"
    assert report.fit == (2, 0, 0, 0)
    assert not report.sections(Choice(tasks=[99]))[1].rows


def test_uninterruptible_sleep_is_apart_and_has_no_call(folder):
    report = reported(folder, [one_worker()], app([(68, 100, 7, 1)]))
    (row,) = report.service_request
    assert parts(row) == [10, 2, 0, 20, 0]
    (piece,) = (row for row in report.service_part if row["kind"] == "uninterruptible")
    assert piece["blocked_in"] == "no system call"


def test_requests_of_one_thread_at_once_and_of_two_threads_are_noted(folder):
    program = app([(15, 69, 7, 1), (18, 60, 7, 2), (100, 110, 7, 3, 9)])
    report = reported(folder, [one_worker()], program, key="id")
    notes = "\n".join(report.notes())
    assert "1 of 3 requests begin while another of their thread is open" in notes
    assert "1 request ended in another thread" in notes
    assert report.service_request.to_dicts(2, 3)[0]["end_tid"] == 9


def test_what_is_not_recorded_is_unknown(folder):
    report = reported(folder, [one_worker()], app([(15, 69, 7, 1), (20, 30, 77, 2)]), key="id")
    assert parts(report.service_request.to_dicts(1, 2)[0]) == [0, 0, 0, 0, 10]
    assert any("nothing of the threads of 1 request" in note for note in report.notes())


def test_clocks_that_differ_are_refused(folder):
    with pytest.raises(TracepointError, match="begin in a thread that does not run then"):
        reported(folder, [one_worker()], app([(30, 50, 7, 1)]), key="id")
    with pytest.raises(TracepointError, match="its clock is local"):
        reported(folder, [one_worker()], app([(15, 69, 7, 1)], clock="local"))


def test_text_json_and_events(run, folder):
    paths = both(folder, [one_worker()], app([(15, 69, 7, 1)]))
    with tp.open_trace(paths) as trace:
        tp.write_cut(trace, folder / "merged.dat")
    words = (folder / "merged.dat", "--begin", BEGIN, "--end", END, "--key", "id")
    status, out, _ = run("service", *words)
    assert status == 0
    assert "54.00 us  13.00 us  11.00 us  30.00 us" in out
    facts = json.loads(run("service", *words, "--format", "json")[1])
    assert facts["slowest"][0]["running"] == 13_000
    assert {BEGIN, END, "sched:sched_switch", "raw_syscalls:sys_enter"} <= set(
        needed_events("service", begin=BEGIN, end=END)
    )


def generated(rng, n_workers, n_steps):
    """Workers, and requests that begin and end while their thread runs."""
    workers, requests = [], []
    for cpu in range(n_workers):
        worker = Worker(100 + cpu, cpu, 10 + cpu)
        for _ in range(n_steps):
            match rng.randrange(4):
                case 0:
                    worker.run(rng.randrange(1, 30))
                case 1:
                    worker.run(1)
                    worker.preempt(rng.randrange(1, 20))
                case _:
                    worker.run(1)
                    call = rng.choice([None, READ, FUTEX])
                    worker.block(rng.randrange(1, 50), rng.randrange(1, 9), rng.choice("SD"), call)
            worker.run(2)
        # The switch that ends what is known.
        worker.block(1, 1)
        running = [us for us, kind in worker.did.items() if kind is TimeKind.RUNNING]
        times = sorted(rng.sample(running, min(len(running), 2 * rng.randrange(1, 12)) // 2 * 2))
        requests += [(a, b, worker.tid) for a, b in zip(times[::2], times[1::2], strict=True)]
        workers.append(worker)
    return workers, [(a, b, tid, number) for number, (a, b, tid) in enumerate(requests)]


def truth(workers, begin, end, tid):
    did = next(worker.did for worker in workers if worker.tid == tid)
    return [sum(did[us] is kind for us in range(begin, end)) for kind in TimeKind]


@pytest.mark.thorough
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 32), n_workers=st.integers(1, 4), n_steps=st.integers(1, 25))
def test_generated_requests_have_exact_parts(folder, seed, n_workers, n_steps):
    workers, requests = generated(random.Random(seed), n_workers, n_steps)
    rows = list(reported(folder, workers, app(requests), key="id").service_request)
    assert len(rows) == len(requests)
    for row in rows:
        begin, end, tid, _ = requests[int(row["key"].removeprefix("id="))]
        assert (row["ts"], row["dur"], row["tid"]) == (begin * US, (end - begin) * US, tid)
        assert parts(row) == truth(workers, begin, end, tid)


@pytest.mark.thorough
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1 << 32), share=st.sampled_from([0.02, 0.1, 0.3]))
def test_after_losses_what_is_known_is_true_and_the_rest_unknown(folder, seed, share):
    rng = random.Random(seed)
    workers, requests = generated(rng, 3, 25)
    records = sorted((one for worker in workers for one in worker.records), key=lambda one: one.us)
    lost = lost_places(records, rng, share, per_page=3)
    report = reported(folder, workers, app(requests), lost, key="id")
    for row in report.service_request:
        begin, end, tid, _ = requests[int(row["key"].removeprefix("id="))]
        if row["dur"] < 0:
            assert row["is_cut"]
            continue
        found = parts(row)
        assert sum(found) == end - begin
        for name, known, true in zip(NAMES, found, truth(workers, begin, end, tid), strict=True):
            assert known <= true or name == "unknown"
