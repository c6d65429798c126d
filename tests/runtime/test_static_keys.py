"""Static keys: sites that are off are jumped over, everything else stays as it is."""

import asyncio
import copy
import gc
import importlib
import marshal
import pickle
import shutil
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest

from runtime.static_sites import heard, make

SOURCE = Path(__file__).resolve().parents[2] / "src"


SITES = {
    "plain": "def run(note):\n hit(note(1), 2)\n",
    "attribute": "def run(note):\n holder.hit(note(1), 2)\n",
    "conditional": "def run(note):\n hit(note(1) if note else 5, 2)\n return note\n",
    "comprehension": "def run(note):\n hit([note(x) for x in (1,)][0], 2)\n",
    "and_or": "def run(note):\n hit(note(1) and 1 or 7, 2)\n return note\n",
    "star": "def run(note):\n hit(*(note(1), 2))\n",
    "keywords": "def run(note):\n hit(n=note(1), m=2)\n",
    "double star": "def run(note):\n hit(**{'n': note(1), 'm': 2})\n",
    "lines": "def run(note):\n hit(\n  note(\n   1\n  ),\n  2,\n )\n",
    "nested": "def run(note):\n def inner():\n  hit(note(1), 2)\n inner()\n",
    "lambda argument": "def run(note):\n hit((lambda: note(1))(), 2)\n",
    "loop": "def run(note):\n for i in (1,):\n  hit(note(i), 2)\n",
    "with": "def run(note):\n import contextlib\n with contextlib.nullcontext():\n  hit(note(1), 2)\n",
    "try": "def run(note):\n try:\n  hit(note(1), 2)\n finally:\n  pass\n",
    "except": "def run(note):\n try:\n  1 / 0\n except ZeroDivisionError:\n  hit(note(1), 2)\n",
    "branch": "def run(note):\n if note:\n  hit(note(1), 2)\n else:\n  hit(3, 4)\n",
    "generator": "def gen(note):\n hit(note(1), 2)\n yield\ndef run(note):\n list(gen(note))\n",
}


@pytest.mark.parametrize("text", SITES.values(), ids=SITES)
def test_off_evaluates_nothing_and_on_is_a_call(keys, hit, text):
    run = make(text, hit)
    notes = []

    def note(x):
        notes.append(x)
        return x

    assert sum(keys.patch(value) for value in list(run.__globals__.values())) >= 1
    for _ in range(40):
        run(note)
    assert notes == []
    for _ in range(3):
        assert heard(hit, lambda: [run(note) for _ in range(40)]) == [(1, 2)] * 40
        assert notes == [1] * 40
        notes.clear()
        run(note)
        assert notes == []


@pytest.mark.parametrize(
    "text",
    [
        "def run(note):\n x = hit(note(1), 2)\n",
        "def run(note):\n [hit(note(x), 2) for x in (1,)]\n",
        "def run(note):\n hit(note(1), 2) or None\n",
        "def run(note):\n f = hit\n f(note(1), 2)\n",
        f"def run(note):\n hit(note(1), 2 if note else ({' + '.join(f'note({i})' for i in range(90))}))\n",
    ],
)
def test_other_calls_stay_calls(keys, hit, text):
    run = make(text, hit)
    assert keys.patch(run) == 0
    notes = []
    run(lambda x: notes.append(x) or x)
    assert notes == [1]
    assert heard(hit, lambda: run(lambda x: x)) == [(1, 2)]


BINDING = {
    "walrus": "def run(note):\n hit(x := note(1), 2)\n return x\n",
    "again": "def run(note):\n x = 0\n hit(x := note(1), 2)\n return x\n",
    "closure": "def run(note):\n hit(x := note(1), 2)\n return (lambda: x)()\n",
    "comprehension": "def run(note):\n hit([x := note(i) for i in (1,)][0], 2)\n return x\n",
    "lambda": "def run(note):\n hit((lambda: [x := note(i) for i in (1,)])()[0], 2)\n return note(1)\n",
    "global": "def run(note):\n global x\n hit(x := note(1), 2)\n return x\n",
    "inner global": "def run(note):\n global x\n hit([x := note(i) for i in (1,)][0], 2)\n return x\n",
}


@pytest.mark.parametrize("text", BINDING.values(), ids=BINDING)
def test_variables_that_arguments_bind_are_bound(keys, hit, text):
    """The compiler relies on it: after `hit(x := 1)` it does not look whether x has a value."""
    run = make(text, hit)
    keys.patch(run)
    for _ in range(40):
        assert run(lambda x: x) == 1
    assert heard(hit, lambda: run(lambda x: x)) == [(1, 2)]


UNBOUND = "def run(is_given):\n if is_given:\n  x = 1\n hit(x, 2)\n return x\n"


def test_a_variable_without_a_value_stays_an_error(keys, hit):
    """From 3.12 on, the first use looks whether there is a value and later ones do not."""
    run = make(UNBOUND, hit)
    keys.patch(run)
    assert run(True) == 1
    for _ in range(40):
        with pytest.raises(UnboundLocalError):
            run(False)


def test_methods_closures_and_properties(keys, hit):
    text = """
class Shop:
    def sell(self, note): hit(note(1))
    @classmethod
    def make(cls, note): hit(note(1))
    @staticmethod
    def help(note): hit(note(1))
    @property
    def state(self): hit(self.note(1)); return 5
    class Part:
        def part(self, note): hit(note(1))
"""
    shop_class = make(text, hit, "Shop")
    assert keys.patch(shop_class) == 5
    shop = shop_class()
    notes = []
    shop.note = notes.append
    shop.sell(notes.append)
    shop_class.make(notes.append)
    shop_class.help(notes.append)
    assert shop.state == 5
    shop_class.Part().part(notes.append)
    assert notes == []
    assert len(heard(hit, lambda: (shop.sell(int), shop.help(int), shop.state))) == 3


def test_a_suspended_generator_and_a_coroutine_switch_at_once(keys, hit):
    run = keys.sites(make("def run():\n while True:\n  yield\n  hit(1)\n", hit))
    steps = run()
    next(steps)
    assert heard(hit, lambda: next(steps)) == [(1, 0)]
    next(steps)

    text = "async def run(gate):\n await gate\n hit(2)\n await gate\n hit(3)\n"
    co = keys.sites(make(text, hit))

    async def main():
        gate = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(co(gate))
        await asyncio.sleep(0)
        gate.set_result(None)
        await task

    assert heard(hit, lambda: asyncio.run(main())) == [(2, 0), (3, 0)]


@pytest.mark.thorough
def test_a_loop_in_another_thread_switches_at_once(keys, hit):
    text = "def run(stop):\n n = 0\n while not stop:\n  hit(n)\n  n += 1\n return n\n"
    run = keys.sites(make(text, hit))
    stop, result = [], []
    thread = threading.Thread(target=lambda: result.append(run(stop)))
    thread.start()
    try:
        for _ in range(200):
            seen = []
            with hit.register(lambda n, m, seen=seen: seen.append(n)):
                deadline = time.monotonic() + 120
                while not seen and time.monotonic() < deadline:
                    time.sleep(0)
            assert seen
    finally:
        stop.append(1)
        thread.join()
    assert result


LINES = """def run(seen):
    a = 1
    hit(a)
    b = 2
    hit(
        b,
    )
    return b
"""


def lines_of(run):
    lines = []

    def trace(frame, what, _):
        if frame.f_code is run.__code__ and what == "line":
            lines.append(frame.f_lineno)
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        run([])
    finally:
        sys.settrace(old)
    return lines


def test_line_events_stay_but_for_the_arguments(keys, hit):
    run = make(LINES, hit)
    before = lines_of(run)
    keys.patch(run)
    assert lines_of(run) == [2, 3, 4, 5, 8]
    seen = []
    with hit.register(lambda n, m: seen.append(n)):
        assert lines_of(run) == before
    assert seen == [1, 2]
    assert lines_of(run) == [2, 3, 4, 5, 8]
    assert set(before) == {2, 3, 4, 5, 6, 8}


def test_switching_while_a_debugger_traces(keys, hit):
    run = keys.sites(make("def run(at):\n at()\n hit(1)\n at()\n hit(2)\n return 3\n", hit))
    registrations = []

    def toggle():
        if registrations:
            registrations.pop().unregister()
        else:
            registrations.append(hit.register(lambda n, m: seen.append(n)))

    for _ in range(3):
        seen = []
        lines_of(lambda _: run(toggle))
        old = sys.gettrace()
        sys.settrace(lambda *_: lambda *_: None)
        try:
            assert run(toggle) == 3
        finally:
            sys.settrace(old)
        assert seen == [1, 1]
        assert not hit
        assert run(lambda: None) == 3
        assert seen == [1, 1]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
def test_switching_while_a_tool_monitors(keys, hit):
    monitoring = sys.monitoring
    run = keys.sites(make("def run():\n hit(1)\n return 3\n", hit))
    events = monitoring.events.LINE | monitoring.events.JUMP | monitoring.events.CALL
    monitoring.use_tool_id(3, "test")
    try:
        for _ in range(3):
            lines = []
            monitoring.register_callback(3, monitoring.events.LINE, lambda code, line: lines.append(line))  # noqa: B023
            monitoring.set_local_events(3, run.__code__, events)
            run()
            assert heard(hit, run) == [(1, 0)]
            run()
            monitoring.set_local_events(3, run.__code__, 0)
            assert lines == [2, 3] * 3
            assert heard(hit, run) == [(1, 0)]
            assert run() == 3
    finally:
        monitoring.set_local_events(3, run.__code__, 0)
        monitoring.register_callback(3, monitoring.events.LINE, None)
        monitoring.free_tool_id(3)


def test_copies_of_code_are_whole(keys, hit):
    """Who copies code while a site is off gets the call, not the jump."""
    run = make("def run(note):\n hit(note(1), 2)\n", hit)
    before = run.__code__.co_code
    keys.patch(run)
    run(int)
    assert run.__code__.co_code == before
    for code in (
        run.__code__.replace(co_name="other"),
        marshal.loads(marshal.dumps(run.__code__)),
        copy.copy(run.__code__),
    ):
        twin = types.FunctionType(code, run.__globals__)
        assert heard(hit, lambda twin=twin: twin(int)) == [(1, 2)]
    copied = copy.deepcopy(run)
    assert copied is run


def test_functions_pickle_by_name(keys, hit, tmp_path, monkeypatch):
    (tmp_path / "sk_shop.py").write_text("hit = None\ndef run():\n    hit(1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("sk_shop")
    module.hit = hit
    assert keys.patch(module) == 1
    assert pickle.loads(pickle.dumps(module.run)) is module.run
    del sys.modules["sk_shop"]


def test_the_import_hook(keys, hit, tmp_path, monkeypatch):
    (tmp_path / "sk_own.py").write_text("from sk_events import hit\ndef run(note):\n    hit(note(1))\n")
    (tmp_path / "sk_other.py").write_text("from sk_events import hit\ndef run(note):\n    hit(note(1))\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "sk_events", types.SimpleNamespace(hit=hit))
    assert keys.static_keys("sk_own")
    notes = []
    importlib.import_module("sk_own").run(notes.append)
    assert notes == []
    importlib.import_module("sk_other").run(notes.append)
    assert notes == [1]
    keys.turn_off()
    sys.modules["sk_own"].run(notes.append)
    assert notes == [1, 1]
    for name in ("sk_own", "sk_other"):
        del sys.modules[name]


def test_code_that_goes_away_is_forgotten(keys, hit):
    for _ in range(5):
        keys.patch(make("def run():\n hit(1)\n", hit))
    gc.collect()
    assert heard(hit, lambda: None) == []
    assert (
        all(site.code() is None for site in keys._registry.sites["k:hit"])
        or not keys._registry.sites["k:hit"]
    )


def test_tracebacks_keep_their_lines(keys, hit):
    run = keys.sites(make("def run():\n hit(1)\n hit(2)\n raise ValueError\n", hit))
    with pytest.raises(ValueError, match=r"^$") as caught:
        run()
    assert caught.traceback[-1].lineno + 1 == 4


def test_nothing_is_changed_where_it_was_not_tried(keys, hit, monkeypatch):
    run = make("def run(note):\n hit(note(1))\n", hit)
    monkeypatch.setattr(keys, "TRIED_BYTE_CODES", {})
    assert "was not tried" in keys.why_not()
    assert not keys.static_keys()
    assert keys.patch(run) == 0
    assert not any(isinstance(finder, keys.Finder) for finder in sys.meta_path)


def test_a_patch_release_of_a_tried_byte_code_passes_the_self_test_in_a_process_first(keys, monkeypatch):
    monkeypatch.setattr(keys, "TRIED_VERSIONS", ())
    assert keys.why_not() == ""


def test_a_release_whose_tables_of_events_are_not_known_is_left_alone(keys, monkeypatch):
    """A module that was built with 3.13.0 may be loaded by 3.13.5, where its changes would lose line events."""
    monkeypatch.setattr(keys, "_NEWEST_TRIED", (3, 11, 0))
    assert "tables that are not known" in keys.why_not()
    assert not keys.static_keys()


@pytest.mark.parametrize("executable", ["", "/no/such/python", shutil.which("false")])
def test_an_interpreter_that_does_not_pass_there_is_left_alone(keys, monkeypatch, executable):
    monkeypatch.setattr(keys, "TRIED_VERSIONS", ())
    monkeypatch.setattr(sys, "executable", executable)
    assert keys.why_not() == "the self-test failed in a process of its own"
    assert not keys.static_keys()


def test_without_positions_calls_stay_calls(c_core):
    text = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n"
        "from tracepoint.runtime.static_keys.keys import why_not, patch, static_keys\n"
        "print(why_not(), static_keys())\n"
    )
    command = [sys.executable, "-X", "no_debug_ranges", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(" False\n")
