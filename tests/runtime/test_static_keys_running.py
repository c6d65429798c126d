"""Sites that are switched while the code that they are in runs."""

import asyncio
import errno
import gc
import os
import signal
import sys
import threading
import time
import weakref
from types import SimpleNamespace

import pytest

from runtime.static_sites import heard, make
from tracepoint.runtime.fire import mechanism


def test_in_the_middle_of_the_arguments(keys, hit):
    """The call that was begun is finished, whichever way the site is switched meanwhile."""
    run = keys.sites(make("def run(at):\n hit(at())\n return 5\n", hit))
    held, seen = [], []

    def off():
        held.pop().unregister()
        return 1

    for _ in range(50):
        held.append(hit.register(lambda n, m: seen.append(n)))
        assert run(off) == 5
    assert seen == [], "nobody listened any more when the call was made"
    assert run(None) == 5


def test_by_a_probe(keys, hit):
    """A probe that unregisters itself switches the site off below its own call."""
    run = keys.sites(make("def run(note):\n hit(note(1))\n return 5\n", hit))
    for _ in range(50):
        held, seen = [], []
        held.append(hit.register(lambda n, m, h=held, s=seen: (s.append(n), h.pop().unregister())))
        assert [run(abs), run(None), run(None)] == [5, 5, 5]
        assert seen == [1]


def test_in_recursion(keys, hit):
    text = "def run(n, at):\n hit(n)\n at(n)\n if n:\n  run(n - 1, at)\n hit(100 + n)\n"
    run = keys.sites(make(text, hit))
    held, seen = [], []

    def at(n):
        if n == 3:
            held.append(hit.register(lambda n, m: seen.append(n)))
        elif n == 1:
            held.pop().unregister()

    for _ in range(20):
        seen.clear()
        run(5, at)
        assert seen == [2, 1]


def test_a_generator_that_waits_in_the_arguments(keys, hit):
    run = keys.sites(make("def run():\n while True:\n  hit((yield 1))\n  yield 2\n", hit))
    steps = run()
    assert [next(steps) for _ in range(3)] == [2, 2, 2]
    seen = []
    registration = hit.register(lambda n, m: seen.append(n))
    assert [next(steps), steps.send(7)] == [1, 2]
    assert next(steps) == 1
    registration.unregister()
    assert steps.send(8) == 2, "the call was begun; it is made, and nobody listens"
    assert next(steps) == 2
    assert seen == [7]
    steps.close()


def test_many_coroutines(keys, hit):
    text = "async def run(gate, done):\n for i in range(3):\n  await gate.wait()\n  hit(i, done)\n return 5\n"
    run = keys.sites(make(text, hit))

    async def main():
        gate = asyncio.Event()
        tasks = [asyncio.ensure_future(run(gate, k)) for k in range(100)]
        await asyncio.sleep(0)
        gate.set()
        return await asyncio.gather(*tasks)

    results = []
    seen = heard(hit, lambda: results.extend(asyncio.run(main())))
    assert results == [5] * 100
    assert sorted(seen) == sorted((i, k) for i in range(3) for k in range(100))
    assert asyncio.run(main()) == [5] * 100


def test_asynchronous_generators(keys, hit):
    run = keys.sites(make("async def run():\n for i in range(3):\n  hit(i)\n  yield i\n", hit))

    async def main():
        return [i async for i in run()]

    assert asyncio.run(main()) == [0, 1, 2]
    assert heard(hit, lambda: asyncio.run(main())) == [(0, 0), (1, 0), (2, 0)]


def test_code_gets_warm_in_every_order(keys, hit):
    """The interpreter specialises LOAD_GLOBAL and what follows; switches meet it in every state."""
    text = "def run(note, a, b):\n hit(note(a + b), a * b)\n return a + b\n"
    for cold_runs in (0, 1, 2, 7, 8, 9, 16, 17, 63, 64, 65, 200):
        run = make(text, hit)
        for _ in range(cold_runs):
            run(abs, 1, 2)
        keys.patch(run)
        for i in range(80):
            assert run(None, 1.5, i) == 1.5 + i
            if i % 3 == 0:
                assert heard(hit, lambda i=i, run=run: [run(abs, 1, i) for _ in range(i)]) == [(1 + i, i)] * i
        keys.turn_off()
        assert heard(hit, lambda run=run: run(abs, 1, 2)) == [(3, 2)]


def test_globals_that_change_under_a_specialised_load(keys, hit):
    """New versions of the globals' dictionary send specialised loads back; the site stays what it is."""
    run = keys.sites(make("def run(note):\n hit(note(1))\n return other\n", hit, other=1))
    for i in range(300):
        run.__globals__[f"new_{i}"] = i
        assert run(None) == 1
        if i % 10 == 0:
            assert heard(hit, lambda: [run(abs) for _ in range(20)]) == [(1, 0)] * 20


@pytest.mark.thorough
@pytest.mark.parametrize("seconds", [1, pytest.param(30, marks=pytest.mark.fuzz)])
def test_threads_run_while_others_switch(keys, hit, seconds):
    text = (
        "def run(note, n):\n total = 0\n for i in range(n):\n  hit(note(i), m=i)\n  total += i\n"
        "  if i % 7 == 0:\n   hit(*(i,))\n return total\n"
    )
    run = keys.sites(make(text, hit))
    stop, wrong, n_switches = threading.Event(), [], [0]

    def work():
        while not stop.is_set():
            if run(abs, 200) != 19900:
                wrong.append(1)

    def switch():
        while not stop.is_set():
            with hit.register(lambda n, m: None):
                n_switches[0] += 1

    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=t) for t in (work, work, work, switch, switch)]
    try:
        for thread in threads:
            thread.start()
        time.sleep(seconds)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(old)
    assert not wrong
    assert n_switches[0] > 100
    assert not hit
    assert run(wrong.append, 3) == 3
    assert not wrong


def test_after_a_fork(keys, hit):
    """A child switches its own copy; a thread that held the lock when it forked does not hang it."""
    run = keys.sites(make("def run(note):\n hit(note(1))\n return 5\n", hit))
    stop = threading.Event()

    def switch():
        while not stop.is_set():
            with hit.register(lambda n, m: None):
                pass

    thread = threading.Thread(target=switch)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if not child:
                signal.alarm(20)
                hit.enable()
                is_ok = run(abs) == 5 and bool(hit)
                os._exit(0 if is_ok else 3)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
    assert run(None) == 5


def test_code_goes_when_its_function_goes(keys, hit):
    run = keys.sites(make("def run(note):\n hit(note(1))\n", hit))
    gone = weakref.ref(run.__code__)
    n_known = len(keys._registry.seen)
    run.__globals__.clear()
    del run
    gc.collect()
    assert gone() is None
    assert len(keys._registry.seen) == n_known - 1


def test_a_self_test_that_fails_means_calls(keys, hit, monkeypatch):
    """Where poking does not do what it should, everything stays a call, without a word."""
    run = make("def run(note):\n hit(note(1))\n return 5\n", hit)
    keys.passes_self_test.cache_clear()
    lame = SimpleNamespace(poke=lambda *args: False)
    monkeypatch.setattr(mechanism, "DEFAULT", mechanism.Mechanism(mechanism.DEFAULT.core, lame))
    try:
        assert keys.why_not() == "the self-test failed"
        assert not keys.static_keys()
        assert keys.sites(run) is run
        notes = []
        assert run(notes.append) == 5
        assert notes == [1]
    finally:
        keys.passes_self_test.cache_clear()


@pytest.mark.parametrize(
    ("what", "value", "reason"),
    [
        ("version_info", (3, 99, 0, "final", 0), "was not tried"),
        ("version_info", (3, 13, 0, "candidate", 1), "was not tried"),
        ("_is_gil_enabled", lambda: False, "not a CPython with its global lock"),
    ],
)
def test_interpreters_that_are_refused(keys, monkeypatch, what, value, reason):
    if what == "version_info":
        value = type("V", (tuple,), {"releaselevel": value[3]})(value)
    monkeypatch.setattr(sys, what, value, raising=False)
    assert reason in keys.why_not()


def test_a_program_without_descriptors_goes_on(keys, monkeypatch):
    """Only then may the interpreter's own description not be read."""

    def none_left(name):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(keys.sysconfig, "get_config_var", none_left)
    assert "Too many open files" in keys.why_not()
    assert keys.static_keys("nowhere") is False


def test_a_compiler_at_run_time_is_refused(keys, monkeypatch):
    monkeypatch.setattr(keys.sysconfig, "get_config_var", lambda name: "'--enable-experimental-jit'")
    assert "just-in-time" in keys.why_not()
