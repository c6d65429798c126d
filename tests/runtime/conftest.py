"""The C core for these tests: the installed one, or one compiled here when there is a compiler."""

import functools
import gc
import importlib.util
import itertools
import os
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest

from runtime.processes import PRELUDE
from tracepoint.model.python.types import u64
from tracepoint.runtime.declare import event, named
from tracepoint.runtime.declare import load as load_module
from tracepoint.runtime.fire import mechanism
from tracepoint.runtime.hierarchy import Tracing, switch_events
from tracepoint.runtime.static_keys import keys as static_keys

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


n_hierarchies = itertools.count(1)


def make_runtime(over):
    """Return what declares events, over a hierarchy of its own."""
    # Each has its buffer, and with much in memory the collector comes seldom by itself.
    if next(n_hierarchies) % 16 == 0:
        gc.collect()
    tracing = Tracing(over)
    # A free-threaded Python 3.13 keeps classes for good once a thread was started, and a process has 1,024 buffers.
    own = weakref.ref(tracing)

    class Maker(event.EventMaker):
        """Puts events of classes into that hierarchy too."""

        def __new__(mcs, name, bases, namespace, /, **options):
            return super().__new__(mcs, name, bases, namespace, tracing=own(), **options)

    return SimpleNamespace(
        tracing=tracing,
        is_pure=over.compiled is None,
        trace_event=functools.partial(event.trace_event, tracing=tracing),
        make_tracepoint=functools.partial(event.make_tracepoint, tracing=tracing),
        load=functools.partial(load_module.load, tracing=tracing),
        TraceEvent=Maker("TraceEvent", (), {}),
    )


def mechanism_of(request, kind):
    """Return the mechanism of the C core, or that of its twin."""
    return mechanism.over(request.getfixturevalue("c_core")) if kind == "c" else mechanism.PURE


@pytest.fixture(params=["c", "twin"])
def runtime(request, monkeypatch):
    """The runtime over the C core or the twin, with an own hierarchy for each test."""
    made = make_runtime(mechanism_of(request, request.param))
    # Pickles find the events of the process by their names.
    monkeypatch.setattr(named, "_finders", [made.tracing.tracepoint])
    made.tracing.clear_faults()
    yield made
    switch_events(made.tracing.events, made.tracing, is_on=False)
    made.tracing.clear_faults()


@pytest.fixture
def keys(request, monkeypatch):
    """The module of static keys over the C core; everything is undone afterwards."""
    monkeypatch.setattr(mechanism, "DEFAULT", mechanism_of(request, "c"))
    if reason := static_keys.why_not():
        pytest.skip(f"{reason}: run with one of {static_keys.TRIED_VERSIONS}")
    yield static_keys
    static_keys.turn_off()


@pytest.fixture
def hit(keys, monkeypatch):
    """A tracepoint `k:hit` with the arguments n and, if given, m."""
    own = make_runtime(mechanism.DEFAULT)
    monkeypatch.setattr(named, "_finders", [own.tracing.tracepoint])

    @own.trace_event(system="k", printk='"%llu", n')
    def hit(n: u64, m: u64 = 0) -> None: ...

    yield hit
    switch_events(own.tracing.events, own.tracing, is_on=False)


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
