"""What all tests share: reproducible hypothesis runs, and a clean environment for the program."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from effort import examples

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

ROOT = Path(__file__).resolve().parent.parent

# Shells start background jobs with SIGINT ignored, and every process that a test starts would inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

EFFORT = {"deadline": None, "max_examples": examples(100), "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, **EFFORT)
settings.register_profile("dev", **EFFORT)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


#: What runs the tests that a command leaves out, by their marker; the first that a test has counts.
RUN_BY = {
    "bench": "make bench",
    "fuzz": "make fuzz",
    "slow": "make test-all",
    "limits": "make test",
    "thorough": "make test",
    "programs": "make test",
    "guest": "make test",
    "root": "make test",
    "oracle": "make test",
}
left_out: Counter[str] = Counter()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count what is left out, by the marker that says why."""
    for item in items:
        left_out[next((name for name in RUN_BY if item.get_closest_marker(name)), "")] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand a worker's count to the process that shows it."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Take the count of a worker; each collects, and leaves out, the same tests.  One that crashed has none."""
    left_out.update({} if left_out else getattr(node, "workeroutput", {}).get("left_out", {}))


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Iterator[object]:
    """Escape lone surrogates of messages and captured logs: `pytest -n` sends reports as UTF-8."""
    return _without_surrogates((yield))


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _without_surrogates(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_without_surrogates, value))
    return value


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep tests that share a fixture in one process of `pytest -n`: a file's, and those of the shared guests.

    xdist hands out together what has the same text after an @ in its id.  It would write this itself from a
    mark, but not where pytest (since 9.2) reads it.  Guests come first: what takes longest must not begin last.
    """
    items.sort(key=lambda item: item.get_closest_marker("guest") is None)
    # Only processes of `pytest -n` have this option.
    if getattr(config.option, "loadgroup", False):
        for item in items:
            name = f"{item.nodeid}@{_group(item)}"
            if hasattr(item, "_id"):
                item._id = type(item._id).parse(name)
            else:
                item._nodeid = name


def _group(item: pytest.Item) -> str:
    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    if item.path.is_relative_to(ROOT / "tests/guest"):
        for name in ("guest", "patched", "recorded"):
            if name in given:
                return f"{name}-{given[name]}"
    return item.nodeid.partition("::")[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests were left out, and what runs them; nothing of those that -k leaves out."""
    if config.getoption("keyword"):
        return
    words = [f"{left_out[name]} {name} ({command})" for name, command in RUN_BY.items() if left_out[name]]
    words += [f"{left_out['']} not chosen"] if left_out[""] else []
    if words:
        terminalreporter.write_line(f"left out: {', '.join(words)}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector from the thousands of tests, which stay: each full collection would walk them.

    That is 0.4 s for each ``gc.collect()`` of a test and each collection that its garbage causes.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Keep the collector from what the tests of a file left too, such as modules and caches."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_unconfigure() -> None:
    """Let the interpreter free all of it at its end, in its order."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TRACEPOINT_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture
def run_command(monkeypatch: pytest.MonkeyPatch):
    """Run the program in this process; returns its status, stdout and stderr."""
    from tracepoint.cli.main import main  # noqa: PLC0415 - most tests need none of it

    def call(*words: object, stdin: str | None = None) -> tuple[int, str, str]:
        out, err = StringIO(), StringIO()
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", StringIO(stdin))
        return main([*map(str, words)]), out.getvalue(), err.getvalue()

    return call


@pytest.fixture
def made(tmp_path: Path):
    """Write a recording that a test made to a file; returns its path."""

    def write(recording):
        path = tmp_path / "made.dat"
        path.write_bytes(recording.data())
        return path

    return write


# Programs beside the tests, which `make fuzz` runs with their own folder in the path.
collect_ignore_glob = ["fuzz/run.py", "fuzz/fuzz_one.py"]
