"""Other programs on the mounted control files: libtracefs, trace-cmd; the same events, fields and text."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LINE = re.compile(r"^ *\S.*?-(\d+) +\[\d+\] +(?:\S+ +)??(\d+\.\d{6}): (\w+): +(.*)$", re.MULTILINE)
RECORD = re.compile(r"^record shop:(\d+) (\d+) (\w+): (.*)$", re.MULTILINE)
EVENTS = {"shop:order_placed", "shop:order_checked", "shop:measured"}
FIELDS = {
    "shop:order_placed u64 order_id 8 8",
    "shop:order_placed __data_loc char[] customer 16 4",
    "shop:order_placed char[8] code 20 8",
    "shop:order_placed s32 left 28 4",
    "shop:order_checked u8 small 8 1",
    "shop:order_checked s16 short 10 2",
    "shop:order_checked bool sure 12 1",
    "shop:measured u32 n 8 4",
    "shop:measured double at 16 8",
}


def why_not():
    if os.geteuid() != 0:
        return "needs root: a mount namespace"
    if not Path("/dev/fuse").exists():
        return "there is no /dev/fuse"
    missing = [name for name in ("unshare", "setpriv", "cc") if shutil.which(name) is None]
    return f"{' '.join(missing)} missing" if missing else ""


def build(source, target, *options):
    """Compile a program; return its path, or an empty text where that cannot be done."""
    done = subprocess.run(
        ["cc", "-o", target, HERE / source, *options], capture_output=True, text=True, check=False
    )
    return str(target) if done.returncode == 0 else ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with what every program said."""
    if why_not():
        pytest.skip(why_not())
    pytest.importorskip("mfusepy", reason="pip install 'tracepoint[mount]'")
    made = tmp_path_factory.mktemp("tools")
    headers = ("-I/usr/include/tracefs", "-I/usr/include/traceevent")
    environment = {
        **os.environ,
        "FOLDER": str(made),
        "PYTHON": sys.executable,
        "PROGRAM": str(HERE / "traced_program.py"),
        "LIBTRACEFS": build("libtracefs.c", made / "look", *headers, "-ltracefs", "-ltraceevent"),
        "SHIM": build("mounts_shim.c", made / "shim.so", "-shared", "-fPIC", "-ldl"),
        "TRACEPOINT_SOCKETS": str(made / "sockets"),
    }
    command = ["bash", str(HERE / "isolated.sh"), "bash", str(HERE / "tools.sh")]
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", *command],
        env=environment, capture_output=True, text=True, timeout=120, check=False, start_new_session=True,
    )  # fmt: skip
    assert done.stdout.startswith("isolated\n"), done.stdout
    assert "not isolated" not in done.stdout
    assert (made / "libtracefs.txt").exists() or not environment["LIBTRACEFS"], done.stdout + done.stderr
    return made


def text_of(folder, name, reason):
    if not (folder / name).exists():
        pytest.skip(reason)
    return (folder / name).read_text()


NO_LIBRARY = "libtracefs cannot be linked: apt-get install libtracefs-dev"
NO_PROGRAM = "trace-cmd is missing: apt-get install trace-cmd"


def lines_of(text):
    """Return (pid, microseconds, event, text) of every line of a trace."""
    return [
        (int(pid), int(stamp.replace(".", "")), name, body) for pid, stamp, name, body in LINE.findall(text)
    ]


@pytest.mark.root
def test_libtracefs_finds_the_same_events_and_fields(folder):
    text = text_of(folder, "libtracefs.txt", NO_LIBRARY)
    assert (folder / "libtracefs.status").read_text() == "0\n", text
    assert set(re.findall(r"^event (.*)$", text, re.MULTILINE)) == EVENTS
    assert set(re.findall(r"^field (.*)$", text, re.MULTILINE)) == FIELDS


@pytest.mark.root
def test_libtracefs_reads_the_same_records(folder):
    ours, _, theirs = text_of(folder, "libtracefs.txt", NO_LIBRARY).partition("\n---\n")
    records = RECORD.findall(theirs)
    assert len(records) > 100
    told = [(int(pid), (int(ns) + 500) // 1000, name, body) for pid, ns, name, body in records]
    assert sorted(told) == sorted(lines_of(ours))
    assert len({pid for pid, *_ in told}) == 2, "both threads"


@pytest.mark.root
def test_libtracefs_makes_an_event_probe(folder):
    text = text_of(folder, "probe.txt", NO_LIBRARY)
    assert (folder / "probe.status").read_text() == "0\n", text
    assert set(re.findall(r"^event (.*)$", text, re.MULTILINE)) == {*EVENTS, "eprobes:seen"}
    assert [line for line in text.splitlines() if line.startswith("field eprobes:seen")] == [
        "field eprobes:seen u16 id 8 2",
        "field eprobes:seen __data_loc char[] who 10 4",
        "field eprobes:seen u8[] code 14 2",
    ]
    bodies = re.findall(r"^record eprobes:\d+ \d+ seen: +(.*)$", text, re.MULTILINE)
    assert len(bodies) > 20
    assert all(re.fullmatch(r'id=\d+ who="customer \d" code=\{\d+,\d+\}', body) for body in bodies), bodies[
        :3
    ]


@pytest.mark.root
def test_trace_cmd_lists_events_and_formats(folder):
    assert set(text_of(folder, "list.txt", NO_PROGRAM).split()) == EVENTS
    shown = text_of(folder, "fields.txt", NO_PROGRAM)
    assert "name: order_placed\n" in shown
    assert "\tfield:__data_loc char[] customer;\toffset:16;\tsize:4;" in shown


@pytest.mark.root
def test_trace_cmd_records_and_reports(folder):
    found = lines_of(text_of(folder, "record.report", NO_PROGRAM))
    assert (folder / "record.errors").read_text() == ""
    assert {name for _, _, name, _ in found} == {"order_placed", "order_checked", "measured"}
    assert len(found) > 100
    numbers = {}
    for pid, _, name, body in found:
        if name == "order_placed":
            numbers.setdefault(pid, []).append(int(re.match(r"order=(\d+) ", body)[1]))
    assert all(seen == list(range(seen[0], seen[0] + len(seen))) for seen in numbers.values()), "none lost"


@pytest.mark.root
def test_trace_cmd_extracts_what_the_trace_shows(folder):
    extracted = lines_of(text_of(folder, "extract.report", NO_PROGRAM))
    assert (folder / "extract.errors").read_text() == ""
    ours = lines_of((folder / "trace.txt").read_text())
    assert len(ours) > 100
    assert extracted == ours
    assert lines_of((folder / "show.txt").read_text()) == ours
    halves = [body for _, _, name, body in ours if name == "measured"]
    assert all(re.fullmatch(r"at=\d+\.(00|25|50|75)0000 n=\d+", body) for body in halves), "floating point"


@pytest.mark.root
def test_trace_cmd_resets(folder):
    assert text_of(folder, "left.txt", NO_PROGRAM) == ""
