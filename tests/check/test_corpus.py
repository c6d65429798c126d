"""The rules on whole kernel trees: no internal error, and the listed real faults are found.

docs/explanation/real-faults.md gives the lines of one point release.  In a source of another one a fault is looked
for by what its line says: golden/listed_faults.txt has a digest of each.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from check.whole_tree import Checked, check_tree
from oracles import ROOT, kernel_source
from tracepoint.lab.build.source import tree_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

pytestmark = pytest.mark.oracle
ROW = re.compile(r"^\| ((?:[\w./-]+/)+[\w.-]+\.h) \| ([\d, ]+) \| .*?\((TP\d+)[),]")
PAGE = ROOT / "docs/explanation/real-faults.md"
#: From here on the page lists what the newest kernel has.
NEWEST = "## Still there, or new, in 7.2"
GOLDEN = Path(__file__).parent / "golden/listed_faults.txt"


class Fault(NamedTuple):
    """A listed fault of a series: its header, its code, and a digest of its line without the white space."""

    series: str
    path: str
    code: str
    digest: str


@pytest.fixture(scope="module")
def checked(request: pytest.FixtureRequest) -> Checked:
    """A source, all of it checked by every rule."""
    return check_tree(kernel_source(request.param))


OF_6_1 = pytest.mark.parametrize("checked", ["linux-source-6.1"], indirect=True)
OF_BOTH = pytest.mark.parametrize("checked", ["linux-source-6.1", "linux-source-6.12"], indirect=True)


@OF_BOTH
def test_every_rule_runs_over_the_whole_tree(checked):
    assert len(checked.findings) > 1000


def documented(series: str) -> tuple[str, set[tuple[str, int, str]]]:
    """The point release that the page is about, and its faults: header, line, code."""
    older, _, newer = PAGE.read_text("utf-8").partition(NEWEST)
    text = older if series == "6.1" else newer
    version = re.search(rf"\(({re.escape(series)}\.\d+)\)", text)
    assert version is not None, series
    rows = [row for row in map(ROW.match, text.splitlines()) if row]
    return version[1], {(row[1], int(number), row[3]) for row in rows for number in row[2].split(",")}


def faults_at(series: str, root: Path, places: Iterable[tuple[str, int, str]]) -> set[Fault]:
    """What stands at these places of a source."""
    found = set()
    for path, line, code in places:
        lines = (root / path).read_text(errors="replace").splitlines()
        found.add(Fault(series, path, code, digest_of(lines[line - 1])))
    return found


def digest_of(line: str) -> str:
    return hashlib.sha256(" ".join(line.split()).encode()).hexdigest()[:16]


def listed(series: str) -> set[Fault]:
    """The faults of a series as they are kept; TRACEPOINT_UPDATE_GOLDEN=1 takes them from the page's source."""
    version, places = documented(series)
    root = kernel_source(f"linux-source-{series}")
    kept = {Fault(*line.split()) for line in GOLDEN.read_text().splitlines()}
    if tree_version(root) == version:
        there = faults_at(series, root, places)
        if os.environ.get("TRACEPOINT_UPDATE_GOLDEN"):
            kept = {fault for fault in kept if fault.series != series} | there
            GOLDEN.write_text("".join(f"{' '.join(fault)}\n" for fault in sorted(kept)))
        assert {fault for fault in kept if fault.series == series} == there, "TRACEPOINT_UPDATE_GOLDEN=1"
    return {fault for fault in kept if fault.series == series}


def still_there(root: Path, faults: Iterable[Fault]) -> Iterator[Fault]:
    """Those whose line a source of any point release still has."""
    for fault in faults:
        path = root / fault.path
        if path.is_file() and fault.digest in map(digest_of, path.read_text(errors="replace").splitlines()):
            yield fault


def assert_found(series: str, checked: Checked, at_least: int) -> None:
    root, faults = checked.root, listed(series)
    there = set(still_there(root, faults))
    paths = {fault.path for fault in there}
    places = {(found.path, found.line, found.code) for found in checked.findings}
    assert there - faults_at(series, root, [place for place in places if place[0] in paths]) == set()
    assert len(there) >= at_least
    version, lines = documented(series)
    if tree_version(root) == version:
        assert there == faults
        assert lines - places == set()


@OF_6_1
def test_the_listed_faults_are_found(checked):
    assert_found("6.1", checked, at_least=40)


def test_the_listed_faults_of_the_newest_kernel_are_found():
    root = kernel_source("linux-source-7.2")
    suspects = {path for path, _, _ in documented("7.2")[1] if (root / path).is_file()}
    assert_found("7.2", check_tree(root, *suspects), at_least=2)


@OF_BOTH
def test_what_a_kernel_that_builds_cannot_have_is_not_found(checked):
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
    impossible |= {"TP018", "TP101", "TP102", "TP105", "TP108", "TP212", "TP216", "TP310", "TP318", "TP501"}
    assert [found for found in checked.findings if found.code in impossible] == []


@OF_6_1
def test_checking_the_tree_is_quick(checked):
    assert checked.millions < 300
