"""Interrupts and system calls against Perfetto's own result for our export: the same rows."""

from collections import Counter

import pytest

import tracepoint as tp
from convert.test_perfetto import query
from oracles import data_file
from tracepoint.analysis import analyse_irq, analyse_syscalls
from tracepoint.analysis.sql.database import AnalysisDatabase
from tracepoint.tracefile.compression import has_zstd

IRQS = "include perfetto module linux.irqs; select ts, dur, name, is_soft_irq from linux_irqs"
CALLS = """select s.ts, s.dur, s.name, t.tid from slice s join thread_track k on s.track_id = k.id
 join thread t using (utid)"""

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not has_zstd(), reason="no library for zstd: pip install zstandard"),
]


def test_all_rows_of_a_recording_are_perfettos(tmp_path):
    path = tmp_path / "out.pftrace"
    with tp.open_trace(data_file("small.v7.zstd.dat")) as trace:
        tp.write_perfetto(trace.select("irq", "raw_syscalls"), path)
        irqs, calls = analyse_irq(trace).tables["linux_irqs"], analyse_syscalls(trace).syscall
    theirs, their_calls = (Counter(map(tuple, rows)) for rows in query(path, IRQS, CALLS))
    assert Counter((r["ts"], r["dur"], r["name"], r["is_soft_irq"]) for r in irqs) == theirs
    # It shows rt_sigreturn as an instant.
    assert their_calls == Counter(
        (r["ts"], 0 if r["name"] == "rt_sigreturn" else r["dur"], f"sys_{r['name']}", r["tid"]) for r in calls
    )
    assert (theirs.total(), their_calls.total()) == (256, 3089)


def test_slices_of_sql_are_perfettos(tmp_path):
    pytest.importorskip("duckdb", reason="no DuckDB: pip install duckdb")
    path = tmp_path / "out.pftrace"
    irqs = "select s.ts, s.dur, s.name, cpu from slice s join cpu_track k on s.track_id = k.id"
    with tp.open_trace(data_file("small.v7.zstd.dat")) as trace:
        tp.write_perfetto(trace.select("irq", "raw_syscalls", "sched", "task"), path)
        database = AnalysisDatabase(trace)
        own, own_irqs = (Counter(database.run(sql).fetchall()) for sql in (CALLS, irqs))
    theirs, their_irqs = (Counter(map(tuple, rows)) for rows in query(path, CALLS, irqs))
    # It shows rt_sigreturn as an instant.
    assert (
        Counter(
            (ts, 0 if name == "sys_rt_sigreturn" else dur, name, tid) for ts, dur, name, tid in own.elements()
        )
        == theirs
    )
    assert own_irqs == their_irqs
