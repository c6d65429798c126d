"""Judged by others: recorded data, the counts of per_cpu/cpuN/stats, trace-cmd's text."""

import re
import shutil
import subprocess
from collections import Counter

import pytest

import tracepoint as tp
from decode.test_trace import as_slow, slow_tables
from oracles import data_file
from tracepoint.decode.engine import count_records
from tracepoint.record.layout import read_page_layout
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.cpudata import CpuData

pytestmark = pytest.mark.oracle
needs_zstd = pytest.mark.skipif(not has_zstd(), reason="no library for zstd: pip install zstandard")
LINE = re.compile(
    r"^ *(?P<comm>.+)-(?P<pid>\d+) +\[(?P<cpu>\d+)\] +(?P<s>\d+)\.(?P<ns>\d{9}): +(?P<event>\w+): +(?P<rest>.*)$"
)


@pytest.fixture
def small():
    with tp.open_trace(data_file("small.v7.zstd.dat")) as trace:
        yield trace


def report(*words):
    if shutil.which("trace-cmd") is None:
        pytest.skip("no trace-cmd: apt-get install trace-cmd")
    done = subprocess.run(["trace-cmd", "report", *words], capture_output=True, check=True)
    return [
        match for line in done.stdout.decode(errors="replace").splitlines() if (match := LINE.match(line))
    ]


@needs_zstd
def test_every_value_is_that_of_the_slow_reader(small):
    expected = slow_tables(data_file("small.v7.zstd.dat"))
    assert small.events == {name: len(rows) for name, rows in sorted(expected.items())}
    assert (small.n_records, small.damage, set(small.lost.values())) == (30_791, (), {0})
    for name, table in small.tables().items():
        assert [as_slow(row) for row in table.to_dicts()] == expected[name], name


@needs_zstd
def test_counts_and_times_are_those_of_trace_cmd(small):
    lines = report("-t", "-N", "-i", str(data_file("small.v7.zstd.dat")))
    counts = Counter(line["event"] for line in lines)
    assert counts == {name.partition(":")[2]: n for name, n in small.events.items()}
    for name, table in small.tables().items():
        own = [line for line in lines if line["event"] == name.partition(":")[2]]
        times = [int(line["s"]) * 10**9 + int(line["ns"]) for line in own]
        assert times == table["common_timestamp"].tolist(), name
        assert [int(line["cpu"]) for line in own] == table["common_cpu"].tolist()
        assert [int(line["pid"]) for line in own] == table["common_pid"].tolist()


@needs_zstd
def test_values_are_those_of_trace_cmd_raw(small):
    lines = report("-R", "-t", "-F", "sched_switch", "-i", str(data_file("small.v7.zstd.dat")))
    found = small["sched_switch"].to_dicts()
    assert len(lines) == len(found) > 500
    for line, row in zip(lines, found, strict=True):
        values = dict(re.findall(r"(\w+)=(\S*)", line["rest"]))
        for name in ("prev_pid", "prev_prio", "next_pid", "next_prio", "prev_state"):
            assert int(values[name], 0) == row[name], (name, line[0])


@pytest.mark.slow
@needs_zstd
def test_a_large_recording_has_what_trace_cmd_counts():
    with tp.open_trace(data_file("big.v7.zstd.dat")) as trace:
        assert trace.n_records == 7_427_422
        assert len(trace["sched_switch"]) == trace.events["sched:sched_switch"] == 659_308
        times = trace["sched_switch"].numpy("common_timestamp")
        assert (times[1:] >= times[:-1]).all()


def test_pages_of_trace_pipe_raw_hold_what_the_kernel_counted():
    layout, found = read_page_layout(data_file("raw/header_page").read_text()), []
    for cpu in range(4):
        data = data_file(f"raw/cpu{cpu}.pipe_raw").read_bytes()
        counts = count_records([CpuData(cpu, 0, len(data), layout, data)], 1)
        found.append(sum(n for part in counts for n in part.by_id.values()))
    stats = [
        int(re.search(r"^entries: (\d+)", data_file(f"raw/cpu{n}.stats").read_text(), re.MULTILINE)[1])
        for n in range(4)
    ]
    assert found == stats == [9548, 17156, 9793, 9141]
