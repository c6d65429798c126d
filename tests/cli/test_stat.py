"""`tracepoint stat`: the outline, the counts, what is lost or damaged."""

from __future__ import annotations

import json
import random
from functools import partial

import pytest

import tracepoint as tp
from decode.test_columns import cpus_of, mutated, twin
from tracefile.making import GOLDEN, content_of, written
from tracepoint.decode import engine
from tracepoint.decode.engine import count_records
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.content import BufferContent
from tracepoint.tracefile.tracedat import open_tracedat

CUT = str(GOLDEN / "cut.v6.dat")
PACKED = str(GOLDEN / "cut.v7.zstd.dat")


@pytest.fixture
def run(run_command):
    return partial(run_command, "stat")


def test_text_has_the_outline_first_then_the_counts(run):
    status, out, _ = run(CUT)
    lines = out.splitlines()
    assert status == 0
    assert lines[3:5] == [
        "span      10.629676 to 10.727468 (0.097791 s)",
        "records   400 records on 4 pages",
    ]
    assert "            73   18.25% kmem:kmem_cache_alloc" in lines
    assert "         1           198           0  10.634872 to 10.698720 (0.063848 s)" in lines
    assert "           125   31.25% sh-104" in lines


@pytest.mark.parametrize("path", [CUT, *([PACKED] if has_zstd() else [])])
def test_json_has_what_the_tables_have(run, path):
    status, out, _ = run(path, "--json")
    facts = json.loads(out)
    with tp.open_trace(path) as trace:
        assert facts["events"] == trace.events
        assert (facts["first"], facts["last"]) == trace.span
        assert {cpu["cpu"]: cpu["lost"] for cpu in facts["cpus"]} == trace.lost
        pids = [pid for table in trace.tables().values() for pid in table["common_pid"].tolist()]
    assert {task["pid"]: task["n_records"] for task in facts["tasks"]} == {p: pids.count(p) for p in pids}
    assert facts["outline"]["n_records"] == facts["n_records"] == 400
    assert (facts["damage"], status) == ([], 0)


def test_quick_reads_no_more_than_the_outline(run):
    facts = json.loads(run(CUT, "--json", "--quick")[1])
    assert "events" not in facts
    assert facts["outline"]["n_pages"] == 4


def test_a_trace_without_records_is_shown(run, tmp_path):
    path = tmp_path / "empty.dat"
    path.write_bytes(written(content_of()._replace(buffers=(BufferContent(()),))))
    status, out, _ = run(str(path))
    assert status == 0
    assert "span      no records" in out


def test_damage_is_told_and_strict_says_so(run, tmp_path):
    path = tmp_path / "cut.dat"
    path.write_bytes((GOLDEN / "cut.v6.dat").read_bytes()[:-100])
    status, _, err = run(str(path), "--strict")
    assert status == 3
    assert "cut.dat: cpu 1, offset" in err


@pytest.mark.skipif(engine.DECODE is None, reason="tracepoint._decode is not built")
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("is_big_endian", [False, True])
def test_tasks_are_counted_as_the_twin_counts_them(seed, is_big_endian):
    rng = random.Random(seed)
    cpus = [mutated(cpu, rng) for cpu in cpus_of(seed, is_big_endian)]
    quick = count_records(cpus, 1, 4)
    with twin():
        slow = count_records(cpus, 1, 4)
    assert [part.by_task for part in quick] == [part.by_task for part in slow]
    assert any(part.by_task for part in quick)


def test_a_text_and_a_folder(run, tmp_path):
    text = tmp_path / "trace.txt"
    text.write_text((GOLDEN / "cut.trace.txt").read_text())
    status, out, _ = run(str(text))
    assert (status, out.splitlines()[0]) == (
        0,
        f"file      {text}: text of a trace, 57.4 KiB, not compressed",
    )
    with open_tracedat(CUT) as file:
        for cpu in file.buffers[0].cpus:
            (tmp_path / f"cpu{cpu.cpu}.pipe_raw").write_bytes(b"".join(cpu.blocks()))
    status, out, _ = run(str(tmp_path), "--json")
    facts = json.loads(out)
    assert (facts["form"], facts["n_records"]) == ("folder of trace_pipe_raw files", 400)
