"""What the commands run and leave out, and what no test may do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oracles import ROOT

CLOCK = re.compile(r"(?:monotonic|perf_counter|process_time|thread_time)(?:_ns)?\(\)")
#: A clock's reading less another one, compared with a number: `time.monotonic() - begin < 5`.
SECONDS = re.compile(rf"{CLOCK.pattern} - \w+ (?:<|<=|>|>=) [\d.]+\b")


def made(target: str) -> str:
    """The commands of a target of the Makefile, which are not run."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    # Under `make test` the outer make hands its own flags down: its words would stand among the commands.
    alone = {
        name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    }
    done = subprocess.run(
        ["make", "-n", target], cwd=ROOT, env=alone, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_make_test_leaves_out_what_is_slow_and_make_test_all_runs_it() -> None:
    chosen = {target: re.search(r'-m "([^"]*)"', made(target))[1] for target in ("test", "test-all")}
    assert chosen == {"test": "not bench and not fuzz and not slow", "test-all": "not bench and not fuzz"}


def test_help_names_every_command_and_no_other() -> None:
    done = subprocess.run(["sh", "-c", made("help")], cwd=ROOT, capture_output=True, text=True, check=True)
    named = [line.split()[1] for line in done.stdout.splitlines()]
    targets = re.search(
        r"^\.PHONY: help (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )[1]
    assert named == [
        target for target in targets.split() if target not in ("setup", "debian", "spark", "clean")
    ]


@pytest.mark.programs
def test_a_run_says_what_it_left_out_and_what_runs_it() -> None:
    """`.ci/run` shows it before the last line, which is pytest's."""
    words = [
        "-m",
        "not bench and not fuzz and not slow",
        "--collect-only",
        "-q",
        "tests/guest",
        "tests/record",
        "tests/tracefile",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    said, last = done.stdout.splitlines()[-2:]
    assert re.fullmatch(
        r"left out: \d+ bench \(make bench\), \d+ fuzz \(make fuzz\), \d+ slow \(make test-all\)", said
    )
    total = sum(map(int, re.findall(r"(\d+) \w+ \(", said)))
    assert f"({total} deselected)" in last


@pytest.mark.programs
def test_the_tests_of_a_file_run_in_one_process() -> None:
    words = ["-n", "2", "-v", "tests/analysis/test_histogram.py", "tests/analysis/test_names.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    ran = re.findall(r"^\[(gw\d)\] .* PASSED (\S+?)::", done.stdout, re.MULTILINE)
    assert len(ran) > 20
    assert len({file for _, file in ran}) == len(set(ran)) == 2


@pytest.mark.programs
def test_kernels_are_built_and_recorded_only_by_what_is_slow() -> None:
    words = ["-m", "not slow", "--setup-plan", "-q", "tests/guest"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    planned = set(re.findall(r"SETUP +\w +(\w+)", done.stdout))
    assert "guest" in planned
    assert planned.isdisjoint({"patched", "recorded", "cycle"})


@pytest.mark.programs
def test_an_example_of_an_extra_that_is_missing_is_skipped_and_says_what(tmp_path: Path) -> None:
    sdk = tmp_path / "opentelemetry/__init__.py"
    sdk.parent.mkdir()
    sdk.write_text("raise ModuleNotFoundError(__name__)")
    words = ["-q", "-p", "no:randomly", "src/tracepoint/analysis/otel"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert len(said) == 1
    assert said[0].endswith("in_memory_span_exporter is not installed: make setup")


def test_no_test_asserts_seconds() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.name not in {"pace.py", "test_suite.py"}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if SECONDS.search(line)
    ]
    assert found == []
    assert SECONDS.search("assert time.monotonic() - begin < 5")
