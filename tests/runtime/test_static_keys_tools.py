"""Static keys below debuggers, profilers, coverage and everything else that reads or copies code."""

import bdb
import copy
import dis
import functools
import importlib
import inspect
import io
import json
import marshal
import pdb  # noqa: T100 - it is what is tested
import pickle
import subprocess
import sys
import threading
import traceback
import types
from pathlib import Path

import pytest

from runtime.static_sites import heard, make

SOURCE = Path(__file__).resolve().parents[2] / "src"
FRESH = """
def run(note):
    before = 1
    hit(note(1), 2)
    after = 2
    return before + after
"""


@pytest.fixture
def run(keys, hit):
    return keys.sites(make(FRESH, hit))


def raises(x):
    raise AssertionError("evaluated")


def test_a_profiler_sees_the_calls_that_happen(keys, hit, run):
    def calls():
        seen = []
        old = sys.getprofile()
        sys.setprofile(lambda frame, what, arg: seen.append((what, getattr(arg, "__name__", ""))))
        try:
            run(abs)
        finally:
            sys.setprofile(old)
        return [name for what, name in seen if what == "c_call" and name == "abs"]

    assert calls() == []
    with hit.register(lambda n, m: None):
        assert calls() == ["abs"]
    assert calls() == []


class Steps(bdb.Bdb):
    """Steps through one function and notes its lines; may do something at one of them."""

    def __init__(self, code, at=0, action=None):
        super().__init__()
        self.code, self.at, self.action, self.lines = code, at, action, []

    def user_line(self, frame):
        if frame.f_code is self.code:
            self.lines.append(frame.f_lineno)
            if frame.f_lineno == self.at:
                self.action()
        self.set_step()


def step_through(run, note, at=0, action=None):
    old = sys.gettrace()
    steps = Steps(run.__code__, at, action)
    try:
        assert steps.runcall(run, note) == 3
    finally:
        sys.settrace(old)
    return steps.lines


def test_a_debugger_stops_at_the_same_lines(keys, hit, run):
    for _ in range(3):
        assert step_through(run, raises) == [3, 4, 5, 6]
        with hit.register(lambda n, m: None):
            assert step_through(run, abs) == [3, 4, 5, 6]


def test_switching_at_a_stop_of_the_debugger(keys, hit, run):
    seen, held = [], []

    def on():
        held.append(hit.register(lambda n, m: seen.append(n)))

    assert step_through(run, abs, at=3, action=on) == [3, 4, 5, 6]
    assert seen == [1]
    assert step_through(run, abs, at=3, action=lambda: held.pop().unregister()) == [3, 4, 5, 6]
    assert seen == [1]
    run(raises)


@pytest.mark.filterwarnings("ignore:assigning None to")  # what a jump over assignments says since 3.12
def test_a_breakpoint_on_the_line_of_a_site(keys, hit, tmp_path, monkeypatch):
    (tmp_path / "sk_broken.py").write_text("hit = None\n" + FRESH)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("sk_broken")
    module.hit = hit
    assert keys.patch(module) == 1
    answers = io.StringIO(
        f"break {tmp_path / 'sk_broken.py'}:5\ncontinue\nwhere\njump 6\np before\ncontinue\n"
    )
    told = io.StringIO()
    debugger = pdb.Pdb(stdin=answers, stdout=told, readrc=False, nosigint=True)
    debugger.use_rawinput = False
    old = sys.gettrace()
    try:
        debugger.runcall(module.run, raises)
    finally:
        sys.settrace(old)
        debugger.clear_all_breaks()
        del sys.modules["sk_broken"]
    assert "sk_broken.py(5)run()\n-> hit(note(1), 2)" in told.getvalue()
    assert "sk_broken.py(6)run()\n-> after = 2" in told.getvalue()


@pytest.mark.thorough
@pytest.mark.parametrize("core", ["ctrace", "pytrace", "sysmon"])
def test_coverage_of_a_program(keys, tmp_path, core):
    """Lines and branches are covered as they are without static keys."""
    pytest.importorskip("coverage", reason="pip install coverage")
    if core == "sysmon" and sys.version_info < (3, 12):
        pytest.skip("sys.monitoring came with 3.12")
    # Branches by sys.monitoring came with 3.14.
    branch = [] if core == "sysmon" else ["--branch"]
    (tmp_path / "shop.py").write_text(
        "import tracepoint\n"
        "from tracepoint import u64\n"
        "@tracepoint.trace_event(system='cov', printk='\"%llu\", n')\n"
        "def hit(n: u64) -> None: ...\n"
        "def sell(n):\n"
        "    if n > 1:\n"
        "        hit(n)\n"
        "    for i in range(n):\n"
        "        hit(i)\n"
        "    return n\n"
    )
    (tmp_path / "main.py").write_text(
        "import sys, tracepoint\n"
        "if len(sys.argv) > 1 and not tracepoint.static_keys('shop'): raise SystemExit(3)\n"
        "import shop\n"
        "[shop.sell(n) for n in (0, 3)]\n"
        "shop.hit.enable()\n"
        "shop.sell(2)\n"
        "shop.hit.disable()\n"
        "shop.sell(2)\n"
        "assert len(tracepoint.tracing.records()) == 3\n"
    )

    def covered(*words):
        for part in (["run", *branch, "--include=shop.py", "main.py", *words], ["json", "-q", "-o", "-"]):
            done = subprocess.run(
                [sys.executable, "-m", "coverage", *part],
                cwd=tmp_path,
                env={
                    "PYTHONPATH": str(SOURCE),
                    "PATH": "/usr/bin:/bin",
                    "HOME": str(tmp_path),
                    "COVERAGE_CORE": core,
                },
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
        files = json.loads(done.stdout)["files"]
        return files["shop.py"]["executed_lines"], files["shop.py"].get("executed_branches")

    with_keys = covered("keys")
    assert with_keys == covered()
    assert with_keys[0] == [1, 2, 5, 6, 7, 8, 9, 10]
    assert with_keys[1] is None if core == "sysmon" else len(with_keys[1]) == 4


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
@pytest.mark.parametrize(
    "names", ["INSTRUCTION", "INSTRUCTION LINE", "LINE BRANCH JUMP CALL PY_START PY_RETURN"]
)
@pytest.mark.parametrize("is_local", [True, False])
def test_tools_for_every_instruction(keys, hit, run, names, is_local):
    """Sites switch while a tool has events for every instruction, and stay switched when it goes."""
    monitoring = sys.monitoring
    wanted = 0
    for name in names.split():
        wanted |= getattr(monitoring.events, name)

    def use(events):
        if is_local:
            monitoring.set_local_events(4, run.__code__, events)
        else:
            monitoring.set_events(4, events)

    monitoring.use_tool_id(4, "test")
    try:
        for name in names.split():
            monitoring.register_callback(4, getattr(monitoring.events, name), lambda *_: None)
        for _ in range(3):
            use(wanted)
            assert run(raises) == 3
            assert heard(hit, lambda: run(abs)) == [(1, 2)]
            assert run(raises) == 3
            with hit.register(lambda n, m: None) as one:
                use(0)
                assert heard(hit, lambda: run(abs)) == [(1, 2)]
                use(wanted)
                assert one.owner is not None
            assert run(raises) == 3
            use(0)
            assert run(raises) == 3
            assert heard(hit, lambda: run(abs)) == [(1, 2)]
    finally:
        use(0)
        for name in names.split():
            monitoring.register_callback(4, getattr(monitoring.events, name), None)
        monitoring.free_tool_id(4)


def test_a_tracer_for_every_instruction(keys, hit, run):
    def trace(frame, what, arg):
        frame.f_trace_opcodes = True
        return trace

    old = sys.gettrace()
    for _ in range(3):
        sys.settrace(trace)
        try:
            assert run(raises) == 3
            assert heard(hit, lambda: run(abs)) == [(1, 2)]
            assert run(raises) == 3
        finally:
            sys.settrace(old)
        assert run(raises) == 3
        assert heard(hit, lambda: run(abs)) == [(1, 2)]


def test_tracers_in_threads(keys, hit, run):
    """Threads that are traced and threads that are not run the same code while it is switched."""
    stop = threading.Event()
    wrong = []

    def work(is_traced):
        if is_traced:
            sys.settrace(lambda *_: lambda *_: None)
        while not stop.is_set():
            if run(abs) != 3:
                wrong.append(1)

    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        heard(hit, lambda: None)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_reads_code_sees_the_call(keys, hit):
    plain, run = make(FRESH, hit), keys.sites(make(FRESH, hit))
    for state in (False, True):
        for _ in range(20):
            run(abs)
        first = [(i.opname, i.argval, i.offset, i.positions) for i in dis.get_instructions(run)]
        assert first == [(i.opname, i.argval, i.offset, i.positions) for i in dis.get_instructions(plain)]
        assert run.__code__.co_code == plain.__code__.co_code
        # These read the instructions themselves: the one thing that differs while a site is off.
        assert (run.__code__ == plain.__code__) is state
        assert (hash(run.__code__) == hash(plain.__code__)) is (state or sys.version_info < (3, 12))
        assert list(run.__code__.co_lines()) == list(plain.__code__.co_lines())
        assert list(run.__code__.co_positions()) == list(plain.__code__.co_positions())
        assert inspect.signature(run) == inspect.signature(plain)
        assert inspect.getclosurevars(run).globals == {"hit": hit}
        # 3.13 pairs the instructions that are there with the operands of the compiler's, and trips over that.
        if state or sys.version_info < (3, 13):
            dis.dis(run, file=io.StringIO(), adaptive=True, show_caches=True)
        if not state:
            hit.enable()


def test_copies_of_functions(keys, hit, run):
    for code in (run.__code__.replace(co_name="x"), marshal.loads(marshal.dumps(run.__code__))):
        twin = types.FunctionType(code, run.__globals__)
        seen = []
        twin(seen.append)
        assert seen == [1], "a copy of the code is not known: its calls are calls"
        assert heard(hit, lambda twin=twin: twin(abs)) == [(1, 2)]
        assert keys.patch(twin) == 1
        twin(raises)
    assert copy.deepcopy(run) is run
    assert heard(hit, functools.partial(copy.copy(run), abs)) == [(1, 2)]


def test_cloudpickle(keys, hit):
    cloudpickle = pytest.importorskip("cloudpickle", reason="pip install cloudpickle")
    run = make(FRESH, None)
    del run.__globals__["holder"]
    run.__globals__["hit"] = hit
    keys.patch(run)
    run(raises)
    again = pickle.loads(cloudpickle.dumps(run))
    assert again is not run
    assert again.__globals__["hit"] is hit
    assert again.__code__.co_code == run.__code__.co_code
    assert heard(hit, lambda: again(abs)) == [(1, 2)]
    assert keys.patch(again) == 1
    again(raises)


def test_tracebacks_name_line_and_columns(keys, hit):
    text = "def run(note):\n hit(1)\n hit(note(1) and 1 /\n     0)\n hit(2)\n raise KeyError(3)\n"
    run = keys.sites(make(text, hit))

    def places():
        try:
            run(abs)
        except Exception as error:  # noqa: BLE001
            last = traceback.extract_tb(error.__traceback__)[-1]
            return type(error), last.lineno, last.colno
        return None

    assert places() == (KeyError, 6, 1)
    with hit.register(lambda n, m: None):
        assert places() == (ZeroDivisionError, 3, 17)
    assert places() == (KeyError, 6, 1)
