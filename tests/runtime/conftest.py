"""The C core for these tests: the installed one, or one compiled here when there is a compiler."""

import gc
import importlib.util
import itertools
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from runtime.processes import PRELUDE
from tracepoint.model.python.types import u64

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
BUILD = ROOT / "tools" / "build_core.py"


def load_core(cache):
    """Return `tracepoint._core`, or the reason why there is none here."""
    if importlib.util.find_spec("tracepoint._core") is not None:
        return importlib.import_module("tracepoint._core")
    if not BUILD.exists():
        return "tools/build_core.py is not here: run the tests from a checkout"
    spec = importlib.util.spec_from_file_location("build_core", BUILD)
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    return builder.why_not() or builder.load(builder.build_once(cache))


@pytest.fixture(scope="session")
def c_core(tmp_path_factory):
    # Beside this session's temporary folders, so that it goes when they go.
    core = load_core(tmp_path_factory.getbasetemp().parent)
    if isinstance(core, str):
        pytest.skip(core)
    return core


RUNTIME = (
    "fire.mechanism",
    "fire.fault_warnings",
    "fire.probes",
    "hierarchy",
    "declare.control",
    "declare.event",
    "declare.named",
    "declare.load",
    "declare.unsuitable",
    "static_keys.targets",
    "static_keys.keys",
)


n_forgotten = itertools.count(1)


def forget_modules(monkeypatch):
    """Let the modules of the runtime be imported anew; each time makes a hierarchy with its buffer."""
    for name in RUNTIME:
        monkeypatch.delitem(sys.modules, f"tracepoint.runtime.{name}", raising=False)
        monkeypatch.delattr(f"tracepoint.runtime.{name}", raising=False)
    # Each has its buffer, and with much in memory the collector comes seldom by itself.
    if next(n_forgotten) % 16 == 0:
        gc.collect()


@pytest.fixture(params=["c", "twin"])
def runtime(request, monkeypatch):
    """The runtime's modules, imported anew over the C core or the twin: an own hierarchy for each test."""
    if request.param == "c":
        request.getfixturevalue("c_core")
        monkeypatch.delenv("TRACEPOINT_PURE", raising=False)
    else:
        monkeypatch.setenv("TRACEPOINT_PURE", "1")
    forget_modules(monkeypatch)
    event = importlib.import_module("tracepoint.runtime.declare.event")
    declaring = sys.modules["tracepoint.runtime.declare.control"]
    assert declaring.Tracepoint is sys.modules["tracepoint.runtime.fire.mechanism"].Tracepoint
    assert sys.modules["tracepoint.runtime.fire.mechanism"].IS_PURE is (request.param == "twin")
    event.tracing.clear_faults()
    yield event
    event.tracing.disable_all()
    event.tracing.clear_faults()


@pytest.fixture
def keys(request, monkeypatch):
    """The module of static keys over the C core; everything is undone afterwards."""
    request.getfixturevalue("c_core")
    monkeypatch.delenv("TRACEPOINT_PURE", raising=False)
    forget_modules(monkeypatch)
    made = importlib.import_module("tracepoint.runtime.static_keys.keys")
    if reason := made.why_not():
        pytest.skip(f"{reason}: run with one of {made.TRIED_VERSIONS}")
    yield made
    made.turn_off()


@pytest.fixture
def hit(keys):
    """A tracepoint `k:hit` with the arguments n and, if given, m."""
    event = importlib.import_module("tracepoint.runtime.declare.event")

    @event.trace_event(system="k", printk='"%llu", n')
    def hit(n: u64, m: u64 = 0) -> None: ...

    yield hit
    event.tracing.disable_all()


@pytest.fixture(params=["c", "twin"])
def script(request):
    """Runs a script over the C core or the twin and returns its output."""
    core = request.getfixturevalue("c_core").__file__ if request.param == "c" else ""

    def run(text, *, check=True, **options):
        prelude = PRELUDE.format(source=str(SOURCE), core=core)
        environment = {**os.environ, "TRACEPOINT_PURE": "" if core else "1", "PYTHONPATH": str(SOURCE)}
        done = subprocess.run(
            [sys.executable, "-c", prelude + textwrap.dedent(text)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=environment,
            **options,
        )
        if check:
            assert (done.returncode, done.stderr[-2000:]) == (0, "")
        return done.stdout

    return run
