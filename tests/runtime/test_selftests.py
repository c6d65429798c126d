"""The kernel's own tests of ftrace, unmodified, on the control files of a Python process.

docs/reference/selftests.md lists every test with what it needs; what is said there is what is checked here.
They write to the settings of a machine: they run in a mount namespace without the real tracefs.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tracepoint.lab.build.source import tree_version
from tracepoint.tree.cache import cache_folder

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent / "selftests"
PAGE = ROOT / "docs" / "reference" / "selftests.md"
SOURCE = cache_folder() / "sources" / "linux-source-6.1"
SUITE = SOURCE / "tools/testing/selftests/ftrace"
ROW = re.compile(r"^\| (\S+\.tc) \| (\S+) \| ([A-Z]+) \| ([^|]*) \|$", re.MULTILINE)
# What a run prints: number, whether in an instance, description, result.
RESULT = re.compile(r"^\[(\d+)\]( \(instance\) )?.*\[([A-Z]+)\]$", re.MULTILINE)


def listed():
    """Path of a test to (result on a booted 6.1, result here, what it needs)."""
    return {match[1]: (match[2], match[3], match[4].strip()) for match in ROW.finditer(PAGE.read_text())}


def those_that_need(*needs):
    """The listed tests with one of these needs, of those that the source at hand has."""
    return [
        path
        for path, (_, _, need) in listed().items()
        if need in needs and (SUITE / "test.d" / path).is_file()
    ]


def suite_or_skip():
    if not SUITE.is_dir():
        pytest.skip(f"{SUITE} is not here: tools/debian.py tests fetches linux-source-6.1")


@pytest.mark.oracle
def test_every_test_of_the_suite_is_listed():
    suite_or_skip()
    there = {str(path.relative_to(SUITE / "test.d")) for path in (SUITE / "test.d").rglob("*.tc")}
    page_version = re.search(r"all (\d+) tests of Linux (\S+) ", PAGE.read_text())
    assert int(page_version[1]) == len(listed())
    if tree_version(SOURCE) == page_version[2]:
        assert set(listed()) == there
    else:
        # Other point releases have some more or fewer.
        assert len(set(listed()) ^ there) < 0.1 * len(there)


def test_all_that_need_only_control_syntax_pass():
    """What the page promises: none of these may be listed with another result than the kernel's."""
    rows = [row for row in listed().values() if row[2] in {"control syntax", "trace_marker"}]
    assert len(rows) > 20
    assert [row for row in rows if row[0] != row[1]] == []


def why_not():
    if os.geteuid() != 0:
        return "needs root: a mount namespace"
    if not Path("/dev/fuse").exists():
        return "there is no /dev/fuse"
    missing = [name for name in ("unshare", "setpriv", "busybox") if shutil.which(name) is None]
    return f"{' '.join(missing)} missing: tools/debian.py tests installs what is needed" if missing else ""


def run_suite(folder, tests):
    """Run tests and return what was printed, and (test, in an instance) to result."""
    environment = {
        **os.environ,
        "FOLDER": str(folder),
        "PYTHON": sys.executable,
        "STAND_IN": str(HERE / "stand_in.py"),
        "INCLUDE": str(SOURCE / "include"),
        "SUITE": str(SUITE),
        "TESTS": " ".join(str(SUITE / "test.d" / test) for test in tests),
        "TRACEPOINT_SOCKETS": str(folder / "sockets"),
    }
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "bash", str(HERE.parent / "isolated.sh"), "bash", str(HERE / "run.sh")],
        env=environment, capture_output=True, text=True, timeout=600, check=False, start_new_session=True,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert said.startswith("isolated\n"), said
    names = {}
    for log in (folder / "logs").glob("*-log.*"):
        path = log.read_text(errors="replace").splitlines()[0].rpartition(" ")[2]
        names[log.name.partition("-")[0]] = str(Path(path).relative_to(SUITE / "test.d"))
    return said, {(names[m[1]], bool(m[2])): m[3] for m in RESULT.finditer(said)}


def mount_or_skip():
    if why_not():
        pytest.skip(why_not())
    suite_or_skip()
    pytest.importorskip("mfusepy", reason="pip install 'tracepoint[mount]'")


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    mount_or_skip()
    needs = ("control syntax", "trace_marker", "events")
    return run_suite(tmp_path_factory.mktemp("selftests"), those_that_need(*needs))


def tail_of(said, wrong):
    return f"{wrong}\n{said[-3000:]}"


@pytest.mark.root
def test_those_of_control_syntax_and_markers_pass(ran):
    said, results = ran
    wanted = set(those_that_need("control syntax", "trace_marker"))
    assert {path for path, _ in results} >= wanted, said[-3000:]
    wrong = {key: got for key, got in results.items() if key[0] in wanted and got != listed()[key[0]][1]}
    assert wrong == {}, tail_of(said, wrong)


@pytest.mark.root
def test_those_that_wait_for_events_pass(ran, tmp_path):
    said, results = ran
    if "no process connector" in said:
        pytest.skip("this kernel does not tell of its processes (CONFIG_PROC_EVENTS, CAP_NET_ADMIN)")
    wanted = set(those_that_need("events"))
    assert len(wanted) > 15
    assert {path for path, _ in results} >= wanted, said[-3000:]
    late = {path for (path, _), got in results.items() if path in wanted and got != listed()[path][1]}
    if late:
        # The stand-in hears of a process a little after it began; a test that looked too early has a second go.
        said, results = run_suite(tmp_path, sorted(late))
    wrong = {key: got for key, got in results.items() if key[0] in late and got != listed()[key[0]][1]}
    assert wrong == {}, tail_of(said, wrong)
