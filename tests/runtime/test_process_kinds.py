"""Children of every kind, the end of the interpreter, finalisers, handlers, other interpreters, greenlets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

SOURCE = Path(__file__).resolve().parents[2] / "src"
WORK = """
from tracepoint.runtime.declare.event import trace_event, tracing
from tracepoint.model.python.types import u64

@trace_event(system="work", printk='"%llu", n')
def worked(n: u64) -> None: ...

def work(n):
    was_on = bool(worked)
    worked.enable()
    before = len(tracing.records())
    worked(n)
    return n * 2, was_on, before, len(tracing.records()) - before
"""


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work.py").write_text(WORK)
    return f"import sys; sys.path.insert(0, {str(tmp_path)!r})"


@pytest.mark.parametrize(
    ("method", "is_inherited"), [("fork", True), ("spawn", False), ("forkserver", False)]
)
def test_multiprocessing(script, work, method, is_inherited):
    """A forked child goes on recording, into empty buffers; one that begins anew begins with all off."""
    out = script(f"""
        import warnings
        warnings.simplefilter("ignore")
        {work}
        import multiprocessing, work
        work.worked.enable()
        work.worked(1)
        context = multiprocessing.get_context({method!r})
        with context.Pool(1) as pool:
            print(pool.map(work.work, [1]), len(tracing.records()))
    """)
    assert out == f"[(2, {is_inherited}, 0, 1)] 1\n"


def test_executors(script, work):
    out = script(f"""
        import warnings
        warnings.simplefilter("ignore")
        {work}
        import multiprocessing, work
        from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
        work.worked.enable()
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(work.worked, range(30)))
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as children:
            print(children.submit(work.work, 1).result()[3], len(tracing.records()))
    """)
    assert out == "1 30\n"


def test_fork_of_a_fork_with_threads(script):
    out = script("""
        import warnings
        warnings.simplefilter("ignore")
        step.enable()
        stop = threading.Event()
        def fire():
            while not stop.is_set():
                step(1, "thread")
        threads = [threading.Thread(target=fire) for _ in range(3)]
        [t.start() for t in threads]
        child = os.fork()
        if not child:
            again = threading.Thread(target=step, args=(2, "child thread"))
            again.start(); again.join()
            grand = os.fork()
            if not grand:
                step(3, "grandchild")
                os._exit(0 if [r.pid() for r in tracing.records()] == [os.getpid()] else 4)
            is_ok = os.waitpid(grand, 0)[1] == 0
            os._exit(0 if is_ok and len(tracing.records()) == 1 else 5)
        print(os.waitpid(child, 0)[1])
        stop.set()
        [t.join() for t in threads]
    """)
    assert out == "0\n"


def test_the_order_of_atexit_and_finalisers(script):
    """What the program does at its end fires as ever, as long as the event is there."""
    out = script("""
        import atexit, weakref
        seen = []
        step.register(lambda n, name: seen.append((n, name)))
        step.enable()
        atexit.register(lambda: print(seen, len(tracing.records())))
        atexit.register(step, 1, "atexit")
        class Thing: pass
        thing = Thing()
        weakref.finalize(thing, step, 2, "finalize")
        class Late:
            def __del__(self): step(3, "module gone")
        sys.modules["late"] = Late()
        builtins_holder = __builtins__
        setattr(builtins_holder, "very_late", Late())
    """)
    assert out == "[(2, 'finalize'), (1, 'atexit')] 2\n"


def test_sys_exit_in_a_thread_and_os_exit(script):
    assert script("step.enable(); threading.Thread(target=lambda: (step(1, 'x'), sys.exit(3))).start()") == ""
    assert script("step.enable(); step(1, 'x'); print('out', flush=True); os._exit(0)") == "out\n"


def test_collection_in_the_middle_of_everything(script):
    """Finalisers that fire, while the collector runs at every allocation."""
    out = script("""
        import gc
        class Dying:
            def __init__(self): self.me = self
            def __del__(self): step(1, "dying")
        def probe(n, name):
            [[] for _ in range(3)]
        step.register(probe)
        step.enable()
        gc.set_threshold(1, 1, 1)
        for n in range(300):
            Dying()
            step(n, str(n))
        gc.set_threshold(700, 10, 10)
        step.disable()
        gc.collect()
        stats = tracing.stats
        print(len([r for r in tracing.records() if b"dying" not in r.data]), tracing.faults[0], stats["dropped"])
    """)
    assert out == "300 0 0\n"


def test_signals_in_the_middle_of_everything(script):
    """A handler fires the event that it interrupts: no record is torn, none is lost without a count."""
    out = script("""
        import signal
        count = [0]
        def handler(number, frame):
            count[0] += 1
            step(1_000_000 + count[0], "handler")
        class Slow:
            def __index__(self):
                return sum(range(5))
        signal.signal(signal.SIGALRM, handler)
        step.register(lambda n, name: sum(range(50)))
        instance = tracing.make_instance("large", n_pages=2000)
        step.enable(instance)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        n = 0
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            step(Slow() if n % 2 else n, "plain"); n += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        records = [r for r in instance.records() if int.from_bytes(r.data[:2], "little") == step.id]
        plain = sum(r.data[20:25] == b"plain" for r in records)
        handled = sum(r.data[20:27] == b"handler" for r in records)
        stats = instance.stats
        lost = step.n_nested + stats["nested"] + stats["dropped"] + stats["commit_overrun"] + stats["overrun"]
        assert count[0] > 20, count
        assert plain + handled == len(records)
        assert plain + handled + lost == n + count[0], (plain, handled, lost, n, count, stats)
        assert tracing.faults[0] == 0, tracing.faults
        print("ok")
    """)
    assert out == "ok\n"


IN_ANOTHER = """
import os, sys, warnings
sys.path.insert(0, {source!r})
os.environ["TRACEPOINT_PURE"] = ""
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import tracepoint
    from tracepoint import u64

    @tracepoint.trace_event(system="other", printk='"%llu", n')
    def there(n: u64) -> None: ...

    there.enable(); there(1); there(2)
    found = tracepoint.tracing.records()
(warning,) = seen
assert "tracepoint._core works in the main interpreter only: events run in Python" in str(warning.message)
assert [int.from_bytes(record.data[:2], "little") for record in found] == [there.id] * 2, found
assert [event.full_name for event in tracepoint.tracing.events] == ["other:there"]
try:
    tracepoint.listen()
except tracepoint.TracepointError as error:
    assert "only the main interpreter" in str(error), error
else:
    raise AssertionError("listened")
"""


@pytest.mark.parametrize("has_own_lock", [False, True])
def test_a_second_interpreter_has_events_of_its_own(c_core, has_own_lock, tmp_path):
    """By the twin, with one warning; the main one goes on, and the socket stays its own."""
    if not c_core.__file__.startswith(str(SOURCE)):
        pytest.skip("the core is not installed: run setup.py build_ext --inplace")
    if sys.version_info >= (3, 13):
        start = f"import _interpreters as i; n = i.create({'isolated' if has_own_lock else 'legacy'!r}); found = i.exec(n, code)"
    else:
        start = f"import _xxsubinterpreters as i; n = i.create(isolated={has_own_lock}); found = i.run_string(n, code)"
    text = f"""
import sys; sys.path.insert(0, {str(SOURCE)!r})
import tracepoint
from tracepoint import u64
@tracepoint.trace_event(system="own", printk='"%llu", n')
def hit(n: u64) -> None: ...
code = {IN_ANOTHER.format(source=str(SOURCE))!r}
hit.enable(); hit(1)
{start}
assert found is None, found
i.destroy(n)
hit(2)
print(len(tracepoint.tracing.records()), tracepoint.listen().exists())
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TRACEPOINT": "1", "TRACEPOINT_SOCKETS": str(tmp_path / "s")},
    )
    assert (done.stdout, done.stderr) == ("2 True\n", "")


def test_greenlets(script):
    """They switch inside a probe and inside a value: each has its own Python stack, all are one thread."""
    pytest.importorskip("greenlet", reason="pip install greenlet")
    out = script("""
        import greenlet
        order = []
        def probe(n, name):
            order.append(("probe", n))
            if n < 3:
                main.switch()
        def run(n):
            step(n, "green")
            order.append(("end", n))
        step.register(probe)
        main = greenlet.getcurrent()
        greens = [greenlet.greenlet(run) for _ in range(4)]
        for n, green in enumerate(greens):
            green.switch(n)
        for green in greens[::-1]:
            if not green.dead:
                green.switch()
        step(9, "after")
        print(order, step.n_nested, tracing.faults[0])
    """)
    assert out == (
        "[('probe', 0), ('probe', 1), ('probe', 2), ('probe', 3), ('end', 3), ('end', 2), ('end', 1), "
        "('end', 0), ('probe', 9)] 0 0\n"
    )


def test_every_module_of_the_runtime_loads_without_a_warning():
    names = sorted(p.stem for p in (SOURCE / "tracepoint/runtime").glob("*.py") if p.stem != "__init__")
    text = f"import importlib\nfor n in {names!r}: importlib.import_module('tracepoint.runtime.' + n)"
    command = [sys.executable, "-W", "error", "-X", "dev", "-c", text]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(SOURCE)}
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
