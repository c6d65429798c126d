"""The rules on whole kernel trees: no internal error, and the listed real faults at their lines."""

from __future__ import annotations

import re
import time
from functools import cache
from pathlib import Path

import pytest

from oracles import ROOT, kernel_source
from tracepoint.check.engine import check_headers
from tracepoint.tree.facts import TreeFacts
from tracepoint.tree.headers import HeaderReader, paused_collector
from tracepoint.tree.scan import find_headers

pytestmark = pytest.mark.oracle
FACTS = {"linux-source-6.1": TreeFacts(2, False), "linux-source-6.12": TreeFacts(1, False)}
ROW = re.compile(r"^\| ((?:[\w./-]+/)+[\w.-]+\.h) \| ([\d, ]+) \| .*?\((TP\d+)[),]")


@cache
def headers_of(tree: str):
    root = kernel_source(tree)
    reader = HeaderReader()
    with paused_collector():
        paths = [
            p
            for p in find_headers([str(root)])
            if p.relative_to(root).parts[0] not in {"tools", "Documentation"}
        ]
        return root, [reader.read(p) for p in paths]


@cache
def findings_of(tree: str):
    root, headers = headers_of(tree)
    with paused_collector():
        return root, check_headers(headers, select=["ALL"], facts=FACTS[tree])


@pytest.mark.parametrize("tree", sorted(FACTS))
def test_every_rule_runs_over_the_whole_tree(tree):
    _, found = findings_of(tree)
    assert len(found) > 1000


#: From here on the page lists what the newest kernel has.
NEWEST = "## Still there, or new, in 7.2"


def documented(*, newest=False):
    older, _, newer = (ROOT / "docs/explanation/real-faults.md").read_text("utf-8").partition(NEWEST)
    for line in (newer if newest else older).splitlines():
        match = ROW.match(line)
        if match:
            for number in match[2].split(","):
                yield match[1], int(number), match[3]


def test_the_listed_faults_are_found_where_the_list_says():
    root, found = findings_of("linux-source-6.1")
    told = {(str(Path(d.span.path).relative_to(root)), d.span.line, d.code) for d in found}
    listed = set(documented())
    assert len(listed) > 40
    assert listed - told == set()


def test_the_listed_faults_of_the_newest_kernel_are_found():
    root, headers = headers_of("linux-source-7.2")
    listed = set(documented(newest=True))
    assert len(listed) >= 4
    suspects = [h for h in headers if any(h.path.endswith(path) for path, _, _ in listed)]
    told = {
        (str(Path(d.span.path).relative_to(root)), d.span.line, d.code)
        for d in check_headers(suspects, select=["ALL"], facts=TreeFacts(1, False))
    }
    assert listed - told == set()


def test_what_a_kernel_that_builds_cannot_have_is_not_found():
    """Each of these would stop the compiler: a finding is false."""
    impossible = {
        "TP001",
        "TP002",
        "TP003",
        "TP004",
        "TP007",
        "TP008",
        "TP011",
        "TP012",
        "TP014",
        "TP016",
        "TP017",
    }
    impossible |= {"TP018", "TP101", "TP102", "TP105", "TP108", "TP212", "TP310", "TP318", "TP501"}
    for tree in sorted(FACTS):
        _, found = findings_of(tree)
        assert [f"{d.span} {d.code} {d.message}" for d in found if d.code in impossible] == []


def test_checking_the_tree_takes_seconds():
    _, headers = headers_of("linux-source-6.1")
    with paused_collector():
        begin = time.process_time()
        check_headers(headers, facts=FACTS["linux-source-6.1"])
        assert time.process_time() - begin < 15
