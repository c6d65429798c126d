"""SARIF reports are valid by the schema that the format's editors publish."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from oracles import ROOT
from tracepoint.check.engine import check_text
from tracepoint.check.reports.sarif import write_sarif
from tracepoint.source.text import SourceFile

sys.path.insert(0, str(ROOT / "tools/docs"))

from npm import NpmError, fetch_package

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.programs

#: Findings with related places and with fixes.
FAULTY = """TRACE_EVENT(foo,
	TP_PROTO(struct net_device *dev),
	TP_ARGS(dev),
	TP_STRUCT__entry(__field(u8, flag) __field(struct net_device *, dev) __field(int, idle)),
	TP_fast_assign(__entry->dev = dev;),
	TP_printk("dev=%d\\n", __entry->dev->ifindex)
);
"""
PATHS = ["include/trace/events/foo bar.h", "/srv/linux/foo%#?.h", "bad-\udcff.h"]


@pytest.fixture(scope="module")
def problems() -> Callable[[Any], list[str]]:
    """What is wrong with a report, by the schema."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: make setup")
    try:
        file = fetch_package("@microsoft/jest-sarif") / "lib/schemas/sarif-2.1.0-rtm.5.json"
    except NpmError as error:
        pytest.skip(str(error))
    validator = jsonschema.Draft4Validator(json.loads(file.read_text(encoding="utf-8")))
    return lambda report: [f"{error.json_path}: {error.message}" for error in validator.iter_errors(report)]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("has_sources", [True, False])
def test_reports_are_valid(problems, path: str, has_sources: bool) -> None:
    found = check_text(FAULTY, path)
    assert any(finding.fix and finding.fix.edits for finding in found)
    assert any(finding.related for finding in found)
    sources = {path: SourceFile(path, FAULTY)} if has_sources else None
    report = json.loads(write_sarif(found, sources, version="1.0", docs_url="https://docs.example.org/tp"))
    assert len(report["runs"][0]["results"]) == len(found)
    assert problems(report) == []


def test_the_schema_finds_what_is_wrong(problems) -> None:
    report = json.loads(write_sarif(check_text(FAULTY, "foo.h")))
    for spoil in (
        lambda run: run["results"][0].update(level="fatal"),
        lambda run: run["tool"]["driver"].pop("name"),
        lambda run: run["results"][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0),
    ):
        spoiled = copy.deepcopy(report)
        spoil(spoiled["runs"][0])
        assert problems(spoiled) != []


def test_the_report_of_the_command_is_valid(problems, tmp_path: Path) -> None:
    (tmp_path / "foo trace.h").write_text(FAULTY)
    command = [
        sys.executable,
        "-m",
        "tracepoint",
        "check",
        "--output-format",
        "sarif",
        ".",
        str(ROOT / "examples"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["runs"][0]["results"]
    assert problems(report) == []
