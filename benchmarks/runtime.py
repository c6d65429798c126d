"""What a tracepoint in a Python process costs, off and on, against its peers in the same run."""

from __future__ import annotations

import importlib.util
import logging
import math
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

from benchmarks.harness import MissingError, Row

ROOT = Path(__file__).resolve().parent.parent
# Short pieces in turn and the least of many: on a busy machine most pieces are interrupted, some are not.
CALLS = 4_000
ROUNDS = 250
FIELDS = (("a", 0, 1, 8, 4, 0, 0), ("b", 0, 1, 12, 4, 0, 1), ("c", 0, 1, 16, 8, 0, 2))
TEXT_FIELDS = (
    ("s", 6, 0, 8, 4, 1, 0),
    ("a", 0, 1, 12, 4, 0, 1),
    ("b", 0, 1, 16, 4, 0, 2),
    ("c", 0, 1, 24, 8, 0, 3),
)
N_PAGES = 352
# The four ways in which Python code names a value: local, constant, global, attribute.
OPERANDS = (
    ("local variables", "s", "a, b, c"),
    ("constants", "'some text'", "1, 2, 3"),
    ("globals", "S", "A, B, C"),
    ("attributes", "o.s", "o.a, o.b, o.c"),
)


def _core() -> Any:
    """The C core: the installed one, else compiled with the flags of a release."""
    if "tracepoint._core" in sys.modules or importlib.util.find_spec("tracepoint._core") is not None:
        return importlib.import_module("tracepoint._core")
    builder = _builder()
    if reason := builder.why_not():
        raise MissingError(reason)
    return builder.load(builder.build_once(Path(tempfile.gettempdir())))


def _builder() -> Any:
    spec = importlib.util.spec_from_file_location("build_core", ROOT / "tools" / "build_core.py")
    if spec is None or spec.loader is None:
        raise MissingError("tools/build_core.py is not here: run from a checkout")
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _events(core: Any, clock: str = "mono", *, is_on: bool = False) -> tuple[Any, Any, Any]:
    """A buffer, an event of three integers, and one with a string before them; on: recorded to the buffer."""
    buffer = core.Buffer(N_PAGES, clock=clock)
    plain = core.Tracepoint("bench:plain", ("a", "b", "c"), FIELDS, 24, 24)
    text = core.Tracepoint("bench:text", ("s", "a", "b", "c"), TEXT_FIELDS, 32, 32)
    if is_on:
        plain.set_entries((("record", buffer, 20, None),))
        text.set_entries((("record", buffer, 21, None),))
    return buffer, plain, text


class _Values:
    def __init__(self) -> None:
        self.a, self.b, self.c, self.s = 1, 2, 3, "some text"


def _loop(statement: str, **names: Any) -> Any:
    """Return a function that gives the nanoseconds of one `statement`, the empty loop taken off."""
    names |= {"A": 1, "B": 2, "C": 3, "S": "some text", "O": _Values()}
    text = "def run(n):\n a = A; b = B; c = C; s = S; o = O\n for _ in range(n):\n  "
    spaces = [dict(names), dict(names)]
    exec(text + statement, spaces[0])
    exec(text + "pass", spaces[1])
    least = [math.inf, math.inf]

    def measure() -> float:
        for i in (0, 1):
            begin = time.perf_counter_ns()
            spaces[i]["run"](CALLS)
            least[i] = min(least[i], time.perf_counter_ns() - begin)
        return (least[0] - least[1]) / CALLS

    measure.statement = spaces[0]["run"]
    return measure


def _side_by_side(*measures: Callable[[], float]) -> list[float]:
    """The least of each, measured in turn."""
    for _ in range(ROUNDS):
        least = [measure() for measure in measures]
    return least


def _ratio(name: str, floor: float, ours: float, theirs: float, peer: str) -> Row:
    return Row(name, ours / theirs, "x", floor, True, f"{ours:.1f} ns; {peer} {theirs:.1f} ns")


def runtime_off() -> Row:
    """A call with three arguments, off, against a C function that does nothing."""
    core = _core()
    _, plain, _ = _events(core)
    ours, noop = _side_by_side(_loop("ev(a, b, c)", ev=plain), _loop("noop(a, b, c)", noop=core.noop))
    return _ratio("tracepoint off, over a no-op C function", 1.1, ours, noop, "no-op")


def runtime_static_key() -> Row:
    """The same call jumped over by a static key, against `if flag:`."""
    core = _core()
    from tracepoint.runtime.static_keys import keys as static_keys  # noqa: PLC0415 - it must find the core

    if reason := static_keys.why_not():
        raise MissingError(f"{reason}: run with one of {static_keys.TRIED_VERSIONS}")
    _, plain, _ = _events(core)
    calls, flags = _loop("ev(a, b, c)", ev=plain), _loop("if flag: pass", flag=False)
    if static_keys.patch(calls.statement) != 1:
        raise MissingError("the call site was not found")
    ours, flag = _side_by_side(calls, flags)
    # The loop itself jitters by half a nanosecond.
    ours = max(ours, 0.0)
    detail = f"{ours:.2f} ns, at most 1.5; if flag: {flag:.2f} ns"
    return Row("static key off, over `if flag:`", min(ours / flag, ours / 3), "x", 0.5, True, detail)


def runtime_off_logging() -> Row:
    """The same against a disabled logging.debug."""
    _, plain, _ = _events(_core())
    log = logging.getLogger("bench")
    log.setLevel(logging.WARNING)
    debug = _loop("log.debug('%d %d %d', a, b, c)", log=log)
    ours, theirs = _side_by_side(_loop("ev(a, b, c)", ev=plain), debug)
    return _ratio("tracepoint off, over logging.debug off", 0.2, ours, theirs, "logging")


def _beside_viztracer() -> tuple[float, float, float, float]:
    """Ours by clock_gettime and by the default clock, viztracer's with the same three integers and without."""
    if importlib.util.find_spec("viztracer") is None:
        raise MissingError("viztracer is not installed: pip install viztracer")
    viztracer = importlib.import_module("viztracer")
    core = _core()
    ours = [_loop("ev(a, b, c)", ev=_events(core, clock, is_on=True)[1]) for clock in ("mono", "local")]
    # As its users have it: nothing but what it prints is set, and its million entries fill while it runs.
    # It is stopped in between, because it slows every call of others while it runs.
    tracer = viztracer.VizTracer(verbose=0)
    full = _loop("tracer.add_instant('x', {'a': a, 'b': b, 'c': c})", tracer=tracer)
    empty = _loop("tracer.add_instant('x')", tracer=tracer)

    def while_tracing(instant: Callable[[], float]) -> float:
        tracer.start()
        try:
            return instant()
        finally:
            tracer.stop()

    least = _side_by_side(*ours, partial(while_tracing, full), partial(while_tracing, empty))
    tracer.clear()
    mono, local, peer, bare = least
    return mono, local, peer, bare


def runtime_on_viztracer() -> Row:
    """Three integers recorded by clock_gettime, against viztracer's add_instant with the same three."""
    mono, _, peer, bare = _beside_viztracer()
    peers = f"viztracer without them {bare:.1f} ns, {mono / bare:.2f} x; with"
    return _ratio("3 integers recorded, over viztracer's", 0.15, mono, peer, peers)


def runtime_on_viztracer_local() -> Row:
    """The same by the default clock."""
    _, local, peer, bare = _beside_viztracer()
    peers = f"viztracer without them {bare:.1f} ns, {local / bare:.2f} x; with"
    return _ratio("3 integers, clock local, over viztracer's", 0.15, local, peer, peers)


def runtime_on_text() -> Row:
    """A string and three integers, against three integers: the mean of the ways in which values are named."""
    _, plain, text = _events(_core(), is_on=True)
    measures = [
        _loop(statement, ev=event)
        for _, string, numbers in OPERANDS
        for statement, event in ((f"ev({string}, {numbers})", text), (f"ev({numbers})", plain))
    ]
    least = _side_by_side(*measures)
    ours, numbers = least[::2], least[1::2]
    ratios = [f"{kind[0]} {a / b:.2f}" for kind, a, b in zip(OPERANDS, ours, numbers, strict=True)]
    return _ratio(
        "string + 3 integers, over 3 integers",
        1.15,
        fmean(ours),
        fmean(numbers),
        f"{', '.join(ratios)}; 3 integers",
    )


def runtime_filter() -> Row:
    """A filter that rejects, against recording."""
    from tracepoint.filter.parse import parse_filter  # noqa: PLC0415 - only this row needs it
    from tracepoint.filter.program import compile_filter  # noqa: PLC0415
    from tracepoint.layout.format import EventFormat, FieldFormat  # noqa: PLC0415

    core = _core()
    layout = EventFormat("b", "e", (FieldFormat("b", "int", 12, 4, True),), "", n_common=0)
    program = core.Filter(compile_filter(parse_filter("b > 100", layout)).pack())
    buffer, plain, _ = _events(core, is_on=True)
    _, filtered, _ = _events(core)
    filtered.set_entries((("record", buffer, 20, program),))
    ours, recorded = _side_by_side(_loop("ev(a, b, c)", ev=filtered), _loop("ev(a, b, c)", ev=plain))
    return _ratio("rejected by a filter, over recorded", 1.0, ours, recorded, "recorded")


def runtime_keywords() -> Row:
    """Keyword arguments, against the same by position."""
    _, plain, _ = _events(_core(), is_on=True)
    named, placed = _side_by_side(_loop("ev(a=a, b=b, c=c)", ev=plain), _loop("ev(a, b, c)", ev=plain))
    return _ratio("on, by keywords, over by position", 1.6, named, placed, "by position")


def runtime_enabled() -> Row:
    """`event.enabled`, against the call of a function that does nothing."""
    from tracepoint.runtime.declare.event import trace_event  # noqa: PLC0415 - only this row needs it

    def asked(a: int) -> None:
        pass

    event = trace_event(system="bench", printk='"%d", a')(asked)
    ours, noop = _side_by_side(_loop("ev.enabled", ev=event), _loop("ev(a)", ev=asked))
    return _ratio("event.enabled, over a Python no-op", 6.0, ours, noop, "no-op")


def runtime_accounting() -> Row:
    """Eight threads fire ten million events while a reader drains: events not accounted for."""
    core = _core()
    n_threads, n_each = 8, 1_250_000
    buffer = core.Buffer(64)
    event = core.Tracepoint("bench:count", ("a",), (("a", 0, 0, 8, 8, 0, 0),), 16, 16)
    event.set_entries((("record", buffer, 20, None),))
    run = _counted_run(event)
    threads = [threading.Thread(target=run, args=(n_each,)) for _ in range(n_threads)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        _drain(buffer)
        time.sleep(0.001)
    seconds = time.perf_counter() - begin
    _drain(buffer)
    stats = buffer.stats()
    missing = n_threads * n_each - stats["read"] - stats["overrun"] - stats["dropped"] - stats["entries"]
    detail = f"{stats['read']} read, {stats['overrun']} overrun, {n_threads * n_each / seconds / 1e6:.1f} M/s"
    return Row("8 threads, 10 M events: unaccounted", abs(missing), "events", 0, True, detail)


def _counted_run(event: Any) -> Callable[[int], None]:
    def run(n: int) -> None:
        for i in range(n):
            event(i)

    return run


def _drain(buffer: Any) -> None:
    for ring in buffer.rings():
        try:
            while buffer.read(ring[0]) is not None:
                pass
        except KeyError:
            continue


COUNTED = """
import sys
sys.path[:0] = {paths!r}
from benchmarks.runtime import _core, _events
core = _core()
buffer, plain, text = _events(core, is_on={is_on})
noop = core.noop
def run(n):
    a = 1; b = 2; c = 3; s = "some text"
    for _ in range(n):
        {statement}
run({n})
"""


def _instructions(statement: str, *, is_on: bool) -> float:
    """Instructions of one statement, the empty loop taken off, as callgrind counts them."""
    if shutil.which("valgrind") is None:
        raise MissingError("valgrind is not installed: apt-get install valgrind")
    _core()
    # The first run after a change compiles modules, which is not what is counted.
    _count("pass", 1, is_on=is_on)
    counts = [_count(text, n, is_on=is_on) for text in (statement, "pass") for n in (1000, 11_000)]
    return (counts[1] - counts[0] - counts[3] + counts[2]) / 10_000


def _count(statement: str, n: int, *, is_on: bool) -> int:
    paths = [str(ROOT), str(ROOT / "src")]
    text = COUNTED.format(paths=paths, is_on=is_on, statement=statement, n=n)
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "0"})
    line = next(line for line in done.stderr.splitlines() if "Collected" in line)
    return int(line.rsplit(":", 1)[1])


def runtime_off_instructions() -> Row:
    """Instructions of a call that is off, against a C function that does nothing."""
    ours, noop = _instructions("plain(a, b, c)", is_on=False), _instructions("noop(a, b, c)", is_on=False)
    detail = f"{ours:.0f}; no-op C function {noop:.0f}"
    return Row("instructions: off, over a no-op C function", ours / noop, "x", 1.1, True, detail)


def runtime_on_instructions() -> Row:
    """Instructions of recording three integers."""
    count = _instructions("plain(a, b, c)", is_on=True)
    return Row("instructions: 3 integers recorded", count, "instr", 440, True)


def runtime_text_instructions() -> Row:
    """Instructions of a string and three integers, against three integers."""
    ours, plain = _instructions("text(s, a, b, c)", is_on=True), _instructions("plain(a, b, c)", is_on=True)
    detail = f"{ours:.0f}; 3 integers {plain:.0f}"
    return Row("instructions: string + 3 integers, over 3", ours / plain, "x", 1.16, True, detail)


ROWS = (
    runtime_off,
    runtime_static_key,
    runtime_off_logging,
    runtime_on_viztracer,
    runtime_on_viztracer_local,
    runtime_on_text,
    runtime_filter,
    runtime_keywords,
    runtime_enabled,
    runtime_accounting,
    runtime_off_instructions,
    runtime_on_instructions,
    runtime_text_instructions,
)
