"""Probes: order, data, errors, faults, recursion, threads and grace periods."""

import gc
import random
import signal
import sys
import threading
import time

import pytest

from tracepoint.errors import TracepointError
from tracepoint.model.python.types import u32, u64


@pytest.fixture
def event(runtime):
    @runtime.trace_event(system="p", printk='"%u", n')
    def hit(n: u32, name: str) -> None: ...

    return hit


def errno_of(action, *args, **kwargs):
    with pytest.raises(Exception, match=r".") as caught:
        action(*args, **kwargs)
    return caught.value.errno


class TestOrder:
    def test_priority_then_registration(self, event):
        seen = []
        for label, prio in (("a", 10), ("b", 20), ("c", 10), ("d", 5), ("e", 20)):
            event.register(lambda data, n, name: seen.append(data), data=label, prio=prio)
        event(1, "x")
        assert seen == ["b", "e", "a", "c", "d"]

    def test_records_stand_at_the_default_priority(self, runtime, event):
        seen = []
        event.register(lambda n, name: seen.append(len(runtime.tracing.records())), prio=11)
        event.enable()
        event.register(lambda n, name: seen.append(len(runtime.tracing.records())))
        event(1, "x")
        assert seen == [0, 1]

    def test_data_comes_first_and_none_is_data(self, event):
        seen = []
        event.register(lambda data, n, name: seen.append((data, n, name)), data=None)
        event.register(lambda n, name: seen.append((n, name)))
        event(1, name="x")
        assert seen == [(None, 1, "x"), (1, "x")]


class TestRegistration:
    def test_twice_is_an_error_unless_the_data_differs(self, event):
        def probe(*args): ...

        first = event.register(probe)
        assert errno_of(event.register, probe) == 17
        event.register(probe, data=1)
        event.register(probe, data=2)
        assert errno_of(event.register, probe, data=1) == 17
        first.unregister()
        event.register(probe)
        assert errno_of(first.unregister) == 2

    def test_bound_methods_are_the_same_probe(self, event):
        class Listener:
            def heard(self, n, name): ...

        listener = Listener()
        event.register(listener.heard)
        assert errno_of(event.register, listener.heard) == 17

    @pytest.mark.parametrize(
        "probe",
        [
            lambda: None,
            lambda n: None,
            lambda n, name, more: None,
            lambda name, n: None,
            lambda n, nam: None,
            lambda n, *, name: None,
            "not callable",
        ],
    )
    def test_the_signature_is_checked(self, event, probe):
        assert errno_of(event.register, probe) == 22

    @pytest.mark.parametrize(
        "probe",
        [
            lambda n, name: None,
            lambda *args: None,
            lambda n, *rest: None,
            lambda _n, _: None,
            lambda n, name, extra=3: None,
            print,
        ],
    )
    def test_signatures_that_fit(self, event, probe):
        event.register(probe)

    def test_annotations_must_agree(self, event):
        def same(n: u32, name: str): ...
        def plain(n: int, name): ...
        def wider(n: u64, name): ...
        def text(n: str, name): ...
        def number(n, name: int): ...

        event.register(same)
        event.register(plain)
        for probe in (wider, text, number):
            assert errno_of(event.register, probe) == 22

    def test_truth_value(self, event):
        assert not event
        registration = event.register(lambda n, name: None)
        assert event
        registration.unregister()
        assert not event

    def test_with(self, event):
        with event.register(lambda n, name: None):
            assert event
        assert not event

    def test_reg_and_unreg_run_at_the_edges(self, runtime):
        calls = []

        @runtime.trace_event(
            system="p", printk='"x"', reg=lambda: calls.append("reg"), unreg=lambda: calls.append("unreg")
        )
        def edges(n: u32) -> None: ...

        first = edges.register(lambda n: None)
        edges.enable()
        first.unregister()
        assert calls == ["reg"]
        edges.disable()
        assert calls == ["reg", "unreg"]

    @pytest.fixture
    def guarded(self, runtime):
        """An event whose `reg` and `unreg` raise what is in the list."""
        raised, calls = [], []

        def run(name):
            calls.append(name)
            if raised:
                raise raised.pop()

        @runtime.trace_event(system="p", printk='"x"', reg=lambda: run("reg"), unreg=lambda: run("unreg"))
        def guarded(n: u32) -> None: ...

        return guarded, raised, calls

    def test_a_reg_that_raises_leaves_nothing_enabled(self, runtime, guarded):
        event, raised, calls = guarded
        for action in (event.enable, lambda: event.register(lambda n: None)):
            raised.append(OSError(12, "no memory"))
            assert errno_of(action) == 12
            assert (event.enabled, bool(event)) == (False, False)
        event.enable()
        event(1)
        assert len(runtime.tracing.records()) == 1
        assert calls == ["reg", "reg", "reg"]

    def test_an_unreg_that_raises_ends_the_listening(self, guarded):
        event, raised, calls = guarded
        event.enable()
        raised.append(ValueError("no"))
        with pytest.raises(TracepointError, match=r"^p:guarded: unreg failed: ValueError: no$"):
            event.disable()
        assert (event.enabled, bool(event)) == (False, False)
        event.enable()
        assert (event.enabled, bool(event)) == (True, True)
        assert calls == ["reg", "unreg", "reg"]

    def test_the_others_are_enabled_all_the_same(self, runtime, event, guarded):
        refusing, raised, _ = guarded
        raised.append(OSError(19, "no device"))
        assert errno_of(runtime.tracing["p"].enable) == 19
        assert (refusing.enabled, event.enabled) == (False, True)
        raised.append(ValueError("no"))
        assert errno_of(runtime.tracing.set_event, "p:guarded") == 22


class TestRunning:
    def test_a_probe_may_unregister_itself_and_others(self, event):
        seen = []
        registrations = []

        def once(n, name):
            seen.append("once")
            for registration in registrations:
                registration.unregister()
            registrations.clear()

        registrations.append(event.register(once))
        registrations.append(event.register(lambda n, name: seen.append("other")))
        event(1, "x")
        assert seen == ["once", "other"], "the running pass finishes"
        event(1, "x")
        assert seen == ["once", "other"]

    def test_a_probe_may_register(self, event):
        seen = []
        event.register(
            lambda n, name: seen or (event.register(lambda n, name: seen.append(2)) and seen.append(1))
        )
        event(1, "x")
        assert seen == [1]
        event(1, "x")
        assert seen == [1, 2]

    def test_exceptions_are_kept_not_raised(self, runtime, event):
        class TextFailsError(Exception):
            def __str__(self):
                raise ValueError("no text")

        for error in (ValueError("bad"), SystemExit(3), TextFailsError()):

            def fail(n, name, error=error):
                raise error

            event.register(fail)
        seen = []
        event.register(lambda n, name: seen.append(n))
        assert event(1, "x") is None
        assert seen == [1]
        count, last = runtime.tracing.faults
        assert count == event.n_faults == 3
        assert [(name, where) for name, where, _ in last] == [("p:hit", "probe")] * 3
        assert [t for *_, t in last] == ["ValueError: bad", "SystemExit: 3", "TextFailsError"]

    def test_the_last_64_faults_are_kept(self, runtime, event):
        def fail(n, name):
            raise ValueError(n)

        event.register(fail)
        for i in range(100):
            event(i, "x")
        count, last = runtime.tracing.faults
        assert (count, len(last), last[-1][2]) == (100, 64, "ValueError: 99")

    def test_the_exception_being_handled_stays(self, event):
        def fail(n, name):
            raise ValueError

        event.register(fail)
        try:
            {}["mine"]
        except KeyError:
            event(1, "x")
            assert isinstance(sys.exc_info()[1], KeyError)

    def test_ctrl_c_in_a_probe_reaches_the_program(self, event):
        def interrupted(n, name):
            raise KeyboardInterrupt

        def program():
            event(1, "x")
            for _ in range(1000):
                time.sleep(0.001)

        event.register(interrupted)
        # Shells start background jobs with SIGINT ignored.
        old = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                program()
        finally:
            signal.signal(signal.SIGINT, old)

    def test_recursion_is_limited_and_counted(self, event):
        seen = []

        def again(n, name):
            seen.append(n)
            event(n + 1, name)

        event.register(again)
        event(1, "x")
        assert seen == [1, 2, 3, 4]
        assert event.n_nested == 1
        seen.clear()
        event(1, "x")
        assert seen == [1, 2, 3, 4], "the level is free again"

    def test_index_may_fire(self, runtime, event):
        class Number:
            def __index__(self):
                event(9, "inner")
                return 5

        event.enable()
        event(Number(), "outer")
        names = [r.data[16:21] for r in runtime.tracing.records()]
        assert names == [b"inner", b"outer"]

    def test_a_finaliser_may_fire(self, runtime, event):
        class Dying:
            def __init__(self):
                self.cycle = self

            def __del__(self):
                event(1, "dying")

        event.enable()
        event.register(lambda n, name: gc.collect())
        Dying()
        event(2, "probe")
        gc.collect()
        assert sorted(r.data[16:21] for r in runtime.tracing.records()) == [b"dying", b"probe"]

    def test_a_signal_handler_may_fire(self, runtime, event):
        def handler(number, frame):
            event(2, "signal")

        event.enable()
        event.register(lambda n, name: n == 1 and signal.raise_signal(signal.SIGUSR1))
        old = signal.signal(signal.SIGUSR1, handler)
        try:
            event(1, "before")
            for _ in range(100):
                pass
        finally:
            signal.signal(signal.SIGUSR1, old)
        assert sorted(r.data[16:22] for r in runtime.tracing.records()) == [b"before", b"signal"]


class TestSynchronize:
    def test_nobody_runs_afterwards(self, runtime, event):
        started, release, finished = threading.Event(), threading.Event(), []

        def slow(n, name):
            started.set()
            release.wait(10)
            finished.append(n)

        registration = event.register(slow)
        thread = threading.Thread(target=event, args=(1, "x"))
        thread.start()
        started.wait(10)
        registration.unregister()
        threading.Timer(0.05, release.set).start()
        runtime.tracing.synchronize()
        assert finished == [1]
        thread.join()

    def test_it_does_not_wait_for_those_who_come_later(self, runtime, event):
        runtime.tracing.synchronize()
        event.register(lambda n, name: None)
        event(1, "x")
        runtime.tracing.synchronize()

    def test_in_a_probe_it_is_an_error(self, runtime, event):
        event.register(lambda n, name: runtime.tracing.synchronize())
        event(1, "x")
        ((_, where, text),) = runtime.tracing.faults[1]
        assert where == "probe"
        assert "would wait for itself" in text

    @pytest.mark.thorough
    def test_storm(self, runtime, event):
        """Register, unregister and synchronize while others fire: no probe runs after synchronize."""
        stop = threading.Event()
        late = []

        def fire():
            while not stop.is_set():
                event(1, "x")

        def churn():
            while not stop.is_set():
                gone = []
                probe = lambda n, name, gone=gone: gone and late.append(1)  # noqa: E731
                registration = event.register(lambda n, name, probe=probe: probe(n, name))
                registration.unregister()
                runtime.tracing.synchronize()
                gone.append(True)

        threads = [threading.Thread(target=t) for t in (fire, fire, churn, churn)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        stop.set()
        for thread in threads:
            thread.join()
        assert not late
        assert not event


class TestClearing:
    @pytest.fixture
    def held(self, event):
        """Fires the event in a thread and holds it before it is recorded, until it is let go."""
        begun, may_go = threading.Event(), threading.Event()

        def probe(n, name):
            begun.set()
            may_go.wait(60)

        registration = event.register(probe, prio=20)
        thread = threading.Thread(target=event, args=(1, "x"))

        def start():
            thread.start()
            assert begun.wait(60)

        def let_go():
            may_go.set()
            thread.join()
            registration.unregister()

        return start, let_go

    @pytest.mark.parametrize("clear", ["clear", "clock"])
    def test_what_was_being_made_does_not_appear_afterwards(self, runtime, event, held, clear):
        start, let_go = held
        event.enable()
        start()
        event.disable()
        if clear == "clear":
            runtime.tracing.clear()
        else:
            runtime.tracing.clock = runtime.tracing.clock
        let_go()
        assert runtime.tracing.records() == []
        event.enable()
        event(2, "x")
        assert len(runtime.tracing.records()) == 1
        assert runtime.tracing.stats["dropped"] == 0

    def test_what_begins_in_it_after_the_clearing_is_recorded(self, runtime, event):
        @runtime.trace_event(system="p", printk='"%u", n')
        def inner(n: u32) -> None: ...

        def probe(n, name):
            runtime.tracing.clear()
            inner(n)

        inner.enable()
        event.enable()
        event.register(probe, prio=20)
        event(1, "x")
        found = [int.from_bytes(record.data[:2], "little") for record in runtime.tracing.records()]
        assert found == [inner.id]


class TestThreads:
    def test_rings_of_threads_that_ended_stay(self, runtime, event):
        event.enable()
        thread = threading.Thread(target=event, args=(1, "x"))
        thread.start()
        thread.join()
        event(2, "x")
        first, second = runtime.tracing.records()
        assert first.pid() != second.pid()
        # join() returns a moment before the thread itself is gone.
        while sum(r[2] for r in runtime.tracing.buffer.rings()) < 1:
            time.sleep(0.001)
        assert sorted(r[2] for r in runtime.tracing.buffer.rings()) == [False, True]

    def test_a_thread_for_each_request_loses_nothing(self, runtime, event):
        event.enable()
        for i in range(500):
            thread = threading.Thread(target=event, args=(i, "x"))
            thread.start()
            thread.join()
        stats = runtime.tracing.stats
        assert (stats["entries"], stats["overrun"]) == (500, 0)
        found = [int.from_bytes(record.data[8:12], "little") for record in runtime.tracing.read_records()]
        assert found == list(range(500))

    def test_ended_threads_share_the_space_of_some_rings(self, runtime, event):
        """Those that filled their rings make room, the oldest first, and what goes is counted."""
        instance = runtime.tracing.make_instance("small", n_pages=2)
        event.enable(instance)

        def run(number):
            for _ in range(8):
                event(number, "x" * 1500)

        for number in range(150):
            thread = threading.Thread(target=run, args=(number,))
            thread.start()
            thread.join()
        stats = instance.stats
        assert 60 <= len(instance.buffer.rings()) <= 75
        assert stats["entries"] + stats["overrun"] == 150 * 8
        records = instance.read_records()
        assert len(records) == stats["entries"]
        found = {int.from_bytes(record.data[8:12], "little") for record in records}
        assert found == set(range(150 - len(found), 150))
        event.disable(instance)
        runtime.tracing.remove_instance("small")

    def test_every_event_is_accounted_for(self, runtime):
        @runtime.trace_event(system="p", printk='"%u", n')
        def counted(n: u64) -> None: ...

        instance = runtime.tracing.make_instance("small", n_pages=4)
        counted.enable(instance)
        per_thread, n_threads, read = 5000, 4, []
        done = threading.Event()

        def drain():
            while not done.is_set():
                read.extend(instance.read_records())

        def fire():
            for i in range(per_thread):
                counted(i)

        reader = threading.Thread(target=drain)
        reader.start()
        writers = [threading.Thread(target=fire) for _ in range(n_threads)]
        for thread in writers:
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        reader.join()
        read.extend(instance.read_records())
        stats = instance.stats
        assert stats["entries"] == 0
        assert len(read) == stats["read"]
        assert stats["read"] + stats["overrun"] + stats["dropped"] == per_thread * n_threads
        runtime.tracing.remove_instance("small")


def test_threads_that_switch_one_event_at_once(runtime):
    """Every client of the control files has a thread: none finds the event half switched."""

    @runtime.trace_event(system="storm", printk='"%llu", n')
    def switched(n: u64) -> None: ...

    failed = []

    def toggle(seed):
        chance = random.Random(seed)
        try:
            for _ in range(5000):
                (switched.enable if chance.random() < 0.5 else switched.disable)()
                switched(1)
        except TracepointError as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=toggle, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failed == []
    switched.disable()
    assert not switched
