"""The first fault of an event is a warning with the place of the call; all are counted, none is raised."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

from tracepoint.errors import FaultWarning
from tracepoint.model.python.types import u8


def line_of(found) -> str:
    return Path(found.filename).read_text().splitlines()[found.lineno - 1].strip()


@pytest.fixture
def small(runtime):
    @runtime.trace_event(system="shop", printk='"n=%u", n')
    def small(n: u8) -> None: ...

    small.enable()
    return small


def test_the_first_fault_of_an_event_names_the_call(runtime, small):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        small(300)
        small(300)
        small("x")
    assert [f.category for f in found] == [FaultWarning]
    assert str(found[0].message).startswith("shop:small: was called with a value that does not fit: ")
    assert line_of(found[0]) == "small(300)"
    assert small.n_faults == 3


def test_a_call_with_too_many_arguments(small):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        small(1, 2)
    assert "shop:small: was called wrongly: TypeError: " in str(found[0].message)
    assert line_of(found[0]) == "small(1, 2)"


def test_a_probe_that_fails(runtime, small):
    def probe(n: u8) -> None:
        raise LookupError("no such order")

    small.register(probe)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        small(1)
    assert "a probe failed: LookupError: no such order" in str(found[0].message)
    assert line_of(found[0]) == "small(1)"


def test_where_warnings_are_errors_it_is_logged(small, caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING, "tracepoint"):
        warnings.simplefilter("error")
        small(300)
    assert [r.name for r in caplog.records] == ["tracepoint"]
    assert "test_fault_warnings.py:" in caplog.text
    assert "shop:small: " in caplog.text


def test_any_log_can_be_written(small, tmp_path):
    class StrangeNumber:
        def __index__(self):
            raise ValueError("no \ud800")

    handler = logging.FileHandler(tmp_path / "shop.log", encoding="utf-8")
    log = logging.getLogger("tracepoint")
    log.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            small(StrangeNumber())
    finally:
        log.removeHandler(handler)
        handler.close()
    assert r"no \ud800; further faults" in (tmp_path / "shop.log").read_text("utf-8")


def test_off_and_right_calls_warn_of_nothing(small):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(255)
        small.disable()
        small(300)
    assert small.n_faults == 0


@pytest.mark.parametrize("pure", ["", "1"])
def test_a_program_is_told_without_asking(tmp_path, pure):
    script = tmp_path / "shop.py"
    script.write_text(
        textwrap.dedent("""\
            import tracepoint as tp

            @tp.trace_event(system="shop", printk='"n=%u", n')
            def small(n: tp.u8) -> None: ...

            small.enable()
            small(300)
            print("goes on", small.n_faults)
        """)
    )
    done = subprocess.run(
        [sys.executable, script], env={"TRACEPOINT_PURE": pure}, capture_output=True, text=True, check=False
    )
    assert done.stdout == "goes on 1\n"
    assert f"{script}:7: FaultWarning: shop:small: was called with a value that does not fit" in done.stderr


HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "tracepoint._core":
            raise {error}

sys.meta_path.insert(0, Hidden())
import tracepoint as tp
tp.tracing
tp.tracing
"""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("ModuleNotFoundError('none', name=name)", "the C module tracepoint._core is not built: "),
        ("ImportError('wrong version')", "the C module tracepoint._core cannot be loaded (wrong version): "),
    ],
)
@pytest.mark.parametrize("name", ["_core", "_decode"])
def test_without_a_module_one_warning_says_what_it_costs(error, words, name):
    words = words.replace("_core", name)
    command = [sys.executable, "-c", HIDE.format(error=error).replace("_core", name)]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=True)
    assert done.stderr.count("RuntimeWarning") == 1
    assert words in done.stderr
    assert "gcc python3-dev" in done.stderr
    quiet = subprocess.run(command, env={"TRACEPOINT_PURE": "1"}, capture_output=True, text=True, check=True)
    assert quiet.stderr == ""
