"""`tracepoint cut`: what is left reads as it did in the whole, by us and by trace-cmd."""

import shutil
import subprocess

import pytest

import tracepoint as tp
from oracles import data_file
from tracefile.making import GOLDEN, content_of, layout_of, tick, written
from tracepoint.cli.main import main
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.options import OptionId, text_option

CUT = GOLDEN / "cut.v6.dat"


@pytest.fixture
def run(run_command):
    return lambda *words: run_command("cut", *words)[::2]


def rows(path, window=(None, None), patterns=()):
    with tp.open_trace(path) as trace:
        part = trace.between(*window)
        tables = part.tables(*patterns)
        return {name: table.to_dicts() for name, table in tables.items()}, trace.damage


@pytest.mark.parametrize("version", [6, 7])
def test_everything_stays_without_a_selection(run, tmp_path, version):
    path = tmp_path / "all.dat"
    assert run(CUT, "-o", path, "--file-version", version) == (0, "")
    assert rows(path) == rows(CUT)


@pytest.mark.parametrize("patterns", [["sched"], ["irq:*entry", "timer"]])
def test_patterns_choose_events(run, tmp_path, patterns):
    path = tmp_path / "some.dat"
    assert run(CUT, *patterns, "-o", path)[0] == 0
    assert rows(path) == rows(CUT, patterns=patterns)


def test_a_range_of_times(run, tmp_path):
    path = tmp_path / "some.dat"
    assert run(CUT, "--from", "10.63", "--to", "10.65", "-o", path)[0] == 0
    found, damage = rows(path)
    assert (found, damage) == (rows(CUT, (10_630_000_000, 10_650_000_000))[0], ())
    assert found


def test_times_that_the_file_shifts_are_shifted_once(run, tmp_path):
    source, path = tmp_path / "whole.dat", tmp_path / "some.dat"
    source.write_bytes(written(content_of(options=(text_option(OptionId.OFFSET, "5000000000"),))))
    assert run(source, "--from", "5.0001", "-o", path)[0] == 0
    assert rows(path) == rows(source, (5_000_100_000, None))


@pytest.mark.parametrize("is_big_endian", [False, True])
@pytest.mark.parametrize("long_size", [4, 8])
def test_any_byte_order_and_word_size(run, tmp_path, is_big_endian, long_size):
    source, path = tmp_path / "whole.dat", tmp_path / "some.dat"
    source.write_bytes(written(content_of(is_big_endian, long_size)))
    assert run(source, "-o", path)[0] == 0
    assert rows(path) == rows(source)


def test_losses_stay_before_the_record_that_followed_them(tmp_path):
    writer = PageWriter(layout_of())
    for stamp, lost in ((1000, 0), (2000, 3), (3000, 4), (4000, LOST_UNKNOWN)):
        if lost:
            writer.lose(lost)
        writer.add(stamp, tick(stamp))
    source, path = tmp_path / "whole.dat", tmp_path / "some.dat"
    buffers = (BufferContent((CpuPages(0, [writer.pages()]),)),)
    source.write_bytes(written(content_of()._replace(buffers=buffers)))
    with tp.open_trace(source) as trace:
        tp.write_cut(trace.between(3000, 4000), path)
    with tp.open_trace(path) as trace:
        assert (trace.n_records, trace.lost) == (1, {0: 4})


def test_a_pattern_without_events_is_told(run, tmp_path):
    status, err = run(CUT, "nothing", "-o", tmp_path / "some.dat")
    assert status == 1
    assert "matches 'nothing'" in err


def test_a_write_that_fails_leaves_no_file(tmp_path):
    def fail(_):
        raise KeyboardInterrupt

    with tp.open_trace(CUT) as trace, pytest.raises(KeyboardInterrupt):
        tp.write_cut(trace, tmp_path / "some.dat", progress=fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.oracle
@pytest.mark.skipif(not has_zstd(), reason="no library for zstd: pip install zstandard")
@pytest.mark.parametrize("version", [6, 7])
def test_trace_cmd_reports_the_lines_of_the_selection(run, tmp_path, version):
    if shutil.which("trace-cmd") is None:
        pytest.skip("no trace-cmd: apt-get install trace-cmd")
    source, path = data_file("small.v7.zstd.dat"), tmp_path / "some.dat"
    assert run(source, "sched", "irq", "-o", path, "--file-version", version)[0] == 0

    def report(file, *words):
        command = ["trace-cmd", "report", "-t", "-i", str(file), *words]
        text = subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")
        return [line for line in text.splitlines() if not line.startswith("cpus=")]

    with tp.open_trace(source) as trace:
        wanted = {name.partition(":")[2] for name in trace.events if name.startswith(("sched:", "irq:"))}
    expected = [line for line in report(source) if line.split(": ")[1].strip().rstrip(":") in wanted]
    found = report(path)
    assert len(found) > 3000
    assert found == expected


@pytest.mark.parametrize("command", ["cut", "merge"])
def test_a_minus_is_stdout(command, tmp_path, capsysbinary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([command, str(CUT.resolve()), "-o", "-"]) == 0
    (tmp_path / "out.dat").write_bytes(capsysbinary.readouterr().out)
    assert rows(tmp_path / "out.dat") == rows(CUT)
    assert [path.name for path in tmp_path.iterdir()] == ["out.dat"]


def test_the_name_of_another_form_is_refused(run, tmp_path):
    status, err = run(CUT, "-o", tmp_path / "x.csv")
    assert status == 2
    assert "x.csv: what is written is a trace.dat, not .csv" in err
    assert list(tmp_path.iterdir()) == []
