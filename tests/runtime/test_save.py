"""Saved recordings: read by our own reader and by trace-cmd, with the same text."""

import functools
import os
import re
import shutil
import subprocess
import threading

import pytest

from tracefile import kernelshark
from tracepoint.cli.main import main
from tracepoint.errors import LossWarning, TracepointError
from tracepoint.model.python.types import s32, u64
from tracepoint.runtime.files.tree import ControlFiles
from tracepoint.runtime.rings.save import save
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.recording import read_tgids
from tracepoint.tracefile.text import TextWriter, facts_of
from tracepoint.tracefile.textoptions import TextOptions
from tracepoint.tracefile.tracedat import open_tracedat

kshark = kernelshark.kshark
KINDS = [(6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")]


@pytest.fixture
def filled(runtime):
    @runtime.trace_event(system="shop", printk='"order=%llu by %s left=%d", order_id, customer, left')
    def order_placed(order_id: u64, customer: str, left: s32) -> None: ...

    tree = ControlFiles(runtime.tracing)
    order_placed.enable()
    for number in range(300):
        order_placed(number, f"customer {number}", -number)
    other = threading.Thread(target=order_placed, args=(1000, "thread", 0))
    other.start()
    other.join()
    tree.write_text("trace_marker", "the end")
    tree.save = functools.partial(save, files=tree)
    return tree


def bodies(text):
    """Return what stands after the time stamp, and the stamp itself, of each line."""
    found = re.findall(r"^ *\S.*?-(\d+) +\[\d+\] +(?:\S+ +)??(\d+\.\d+): (.*)$", text, re.MULTILINE)
    return [(pid, stamp, " ".join(body.split())) for pid, stamp, body in found]


@pytest.mark.parametrize(("version", "compression"), KINDS)
def test_our_reader_finds_every_record(filled, tmp_path, version, compression):
    if compression == "zstd" and not has_zstd():
        pytest.skip("zstandard is missing: pip install zstandard")
    target = tmp_path / "x.dat"
    filled.save(target, version=version, compression=compression)
    with open_tracedat(target) as trace:
        records = sorted(trace.buffers[0].records(), key=lambda r: r.timestamp)
        writer = TextWriter(trace.events, facts_of(trace))
        shown = [writer.line(record) for record in records]
        assert trace.damage == ()
    assert len(records) == 302
    ours = [line + "\n" for line in filled.read_text("trace").splitlines() if not line.startswith("#")]
    assert shown == ours


# Debian's trace-cmd has no zlib.
@pytest.mark.parametrize(("version", "compression"), [kind for kind in KINDS if kind[1] != "zlib"])
def test_trace_cmd_reads_the_same(filled, tmp_path, version, compression):
    if shutil.which("trace-cmd") is None:
        pytest.skip("trace-cmd is missing: apt install trace-cmd")
    if compression == "zstd" and not has_zstd():
        pytest.skip("zstandard is missing: pip install zstandard")
    target = tmp_path / "x.dat"
    filled.save(target, version=version, compression=compression)
    done = subprocess.run(
        ["trace-cmd", "report", "-i", str(target)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""
    theirs = bodies(done.stdout)
    ours = bodies(filled.read_text("trace"))
    assert len(ours) == 302
    ours[-1] = (*ours[-1][:2], f"print: {ours[-1][2]}")
    assert theirs == ours


def test_processes_are_saved_where_the_option_is_on(filled, tmp_path):
    target = tmp_path / "x.dat"
    filled.save(target)
    with open_tracedat(target) as trace:
        assert trace.saved_tgids is None
    filled.write_text("options/record-tgid", "1")
    filled.save(target)
    with open_tracedat(target) as trace:
        options = TextOptions(clock=trace.clock, record_tgid=True)
        writer = TextWriter(trace.events, facts_of(trace), options, read_tgids(trace.saved_tgids))
        shown = "".join(writer.lines(sorted(trace.buffers[0].records(), key=lambda r: r.timestamp)))
    assert f"({os.getpid():7d})" in shown
    assert shown == "".join(line + "\n" for line in filled.read_text("trace").splitlines() if line[0] != "#")
    if shutil.which("trace-cmd") is not None:
        command = ["trace-cmd", "report", "-i", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, len(bodies(done.stdout))) == (0, 302)
        assert done.stderr.strip() in ("", "unknown option 29808")


@pytest.mark.oracle
@pytest.mark.parametrize(("version", "compression"), [kind for kind in KINDS if kind[1] != "zlib"])
def test_kernelshark_sees_the_same(filled, tmp_path, kshark, version, compression):
    target = tmp_path / "x.dat"
    filled.save(target, version=version, compression=compression)
    rows = [row.split(" ", 4) for row in kshark(target)]
    seen = [(pid, int(ns), event.rpartition("/")[2], body) for _, pid, ns, event, body in rows]
    with open_tracedat(target) as trace:
        stamps = sorted(record.timestamp for record in trace.buffers[0].records())
    assert [ns for _, ns, _, _ in seen] == stamps
    ours = [(pid, *body.split(": ", 1)) for pid, _, body in bodies(filled.read_text("trace"))]
    assert len(ours) == 302
    assert [(pid, name, " ".join(body.split())) for pid, _, name, body in seen[:-1]] == ours[:-1]
    assert seen[-1][3].split() == ["tracing_mark_write:", "the", "end"]


@pytest.mark.parametrize("name", ["x.csv", "x.JSON", "x.parquet", "x.dat.gz"])
def test_the_name_of_another_form_is_refused(filled, tmp_path, name):
    with pytest.raises(
        TracepointError, match=r"a trace.dat, not .*: end the name with .dat; tracepoint convert"
    ):
        filled.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_text_file_is_the_trace(filled, tmp_path):
    filled.save(tmp_path / "x.txt")
    text = (tmp_path / "x.txt").read_text()
    assert "order_placed: order=299 by customer 299 left=-299\n" in text
    assert text == filled.read_text("trace")


@pytest.fixture
def lossy(filled, runtime):
    """Rings of two pages, an instance too: most of what is recorded is overwritten."""
    filled.write_text("buffer_size_kb", "8")
    filled.mkdir("instances/small")
    filled.write_text("instances/small/buffer_size_kb", "8")
    event = runtime.tracing.event("shop:order_placed")
    event.enable(runtime.tracing.instances["small"])
    for number in range(3000):
        event.tracepoint(number, f"customer {number}", -number)
    return filled


@pytest.mark.parametrize("version", [6, 7])
def test_what_was_overwritten_is_in_the_file(lossy, tmp_path, version, capsys):
    target = tmp_path / "x.dat"
    with pytest.warns(LossWarning, match=r"x\.dat: \d+ of 6\d{3} events were overwritten, 0 dropped") as told:
        saved = lossy.save(target, version=version)
    assert told[0].filename == __file__
    heading = lossy.read_text("trace").splitlines()[2]
    entries, written = map(int, re.search(r"written: (\d+)/(\d+) ", heading).groups())
    assert 0 < entries < written == 3000
    for words in ([], ["--instance", "small"]):
        assert main(["read", str(target), *words]) == 0
        said = capsys.readouterr()
        assert said.out.splitlines()[2] == heading
        assert f"{3000 - entries} events were lost" in said.err
        assert main(["read", str(target), *words, "--strict"]) == 3
        capsys.readouterr()
    assert (saved.path, saved.n_records, saved.overrun) == (target, 2 * entries, 2 * (3000 - entries))
    assert {cpu.instance for cpu in saved.cpus} == {"", "small"}
    if shutil.which("trace-cmd") is not None:
        command = ["trace-cmd", "report", "--stat", "-i", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        counts = [int(n) for n in re.findall(r"^overrun: (\d+)$", done.stdout, re.MULTILINE)]
        assert (sum(counts), done.stderr) == (2 * (3000 - entries), "")


def test_a_text_tells_what_was_overwritten_too(lossy, tmp_path):
    with pytest.warns(LossWarning, match="of 3000 events were overwritten"):
        saved = lossy.save(tmp_path / "x.txt")
    assert f"written: {saved.n_records}/3000 " in (tmp_path / "x.txt").read_text()


def test_nothing_is_missing(filled, tmp_path):
    saved = filled.save(tmp_path / "x.dat")
    assert (saved.n_records, saved.overrun, saved.dropped, saved.missing) == (302, 0, 0, "")
    assert main(["read", str(tmp_path / "x.dat"), "--strict"]) == 0


def test_the_rings_of_ended_threads_count(filled, runtime, tmp_path):
    """What a ring lost stays in the counts when its thread has ended and the ring was given up."""
    filled.write_text("buffer_size_kb", "8")
    event = runtime.tracing.event("shop:order_placed")

    def fire():
        for number in range(1000):
            event.tracepoint(number, "customer", 0)

    for _ in range(3):
        thread = threading.Thread(target=fire)
        thread.start()
        thread.join()
        filled.write_text("per_cpu/cpu0/trace", "")
        for cpu in range(filled.n_cpus):
            filled.write_text(f"per_cpu/cpu{cpu}/trace", "")
    with pytest.warns(LossWarning):
        saved = filled.save(tmp_path / "x.dat")
    assert saved.overrun == filled.state_of(runtime.tracing).stats()["overrun"] > 0


def test_wrong_combinations_are_refused(filled, tmp_path):
    with pytest.raises(TracepointError, match="never compressed"):
        filled.save(tmp_path / "x.dat", version=6, compression="zlib")
    with pytest.raises(TracepointError, match="6 and 7"):
        filled.save(tmp_path / "x.dat", version=5)
