"""The GitHub Action and the GitLab template report findings on changed lines only."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from oracles import ROOT

pytestmark = pytest.mark.programs
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: make setup")

EVENT = """TRACE_EVENT({name},
	TP_PROTO(int n),
	TP_ARGS(n),
	TP_STRUCT__entry(__field(int, n)),
	TP_fast_assign(__entry->n = n;),
	TP_printk("n=%d\\n", __entry->n)
);
"""


@pytest.fixture
def base(tmp_path: Path) -> str:
    def git(*words: str) -> str:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        return subprocess.run(
            ["git", *who, *words], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    header = tmp_path / "foo.h"
    header.write_text(EVENT.format(name="old"))
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    header.write_text(EVENT.format(name="old") + EVENT.format(name="new"))
    git("commit", "-qam", "two")
    return git("rev-parse", "HEAD~")


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-ec", script],
        cwd=folder,
        env=os.environ | {"PATH": path} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def annotated(folder: Path, base: str) -> list[int]:
    """The lines that the action warns of."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    done = run(action["runs"]["steps"][-1]["run"], folder, BASE=base, PATHS=".")
    assert done.returncode == 1
    found = [
        re.match(r"::warning file=foo.h,line=(\d+),.*title=TP305 ", line) for line in done.stdout.splitlines()
    ]
    return [int(line[1]) for line in found if line]


def test_action_annotates_changed_lines(tmp_path: Path, base: str) -> None:
    assert annotated(tmp_path, base) == [13]


@pytest.mark.parametrize("nothing", ["", "0" * 40])
def test_action_annotates_all_lines_of_a_new_branch(nothing: str, tmp_path: Path, base: str) -> None:
    assert annotated(tmp_path, nothing) == [6, 13]


def test_gitlab_template_reports_changed_lines(tmp_path: Path, base: str) -> None:
    job = yaml.safe_load((ROOT / "examples/ci/gitlab.yml").read_text())["tracepoint-check"]
    script = "\n".join(job["script"])
    done = run(script, tmp_path, CI_MERGE_REQUEST_DIFF_BASE_SHA=base, TRACEPOINT_PATHS=".")
    assert done.returncode == 1
    report = json.loads((tmp_path / job["artifacts"]["reports"]["codequality"]).read_text())
    found = [one["location"]["lines"]["begin"] for one in report if one["check_name"] == "TP305"]
    assert found == [13]
