"""SQL over the events of a trace: which are views, what is decoded, what the command prints."""

import json
import re
import signal
import subprocess
import sys
import time
from functools import partial
from io import StringIO

import pytest

import tracepoint as tp
from tracefile.making import GOLDEN
from tracepoint.convert.sql import TraceDatabase

CUT = str(GOLDEN / "cut.v6.dat")
pytest.importorskip("duckdb", reason="no DuckDB: pip install duckdb")


@pytest.fixture
def trace():
    with tp.open_trace(CUT) as trace:
        yield trace


@pytest.fixture
def run(run_command):
    return partial(run_command, "sql", CUT)


def test_every_recorded_event_is_a_view_with_its_rows(trace):
    database = TraceDatabase(trace)
    for name, n_records in trace.events.items():
        system, _, short = name.partition(":")
        assert database.run(f"select count(*) from {system}.{short}").fetchall() == [(n_records,)], name
    rows = database.run("select * from sched_switch").fetchall()
    assert [list(row) for row in rows] == [list(row.values()) for row in trace["sched_switch"]]


def test_only_named_events_are_decoded(trace):
    database = TraceDatabase(trace)
    database.run("select 1 from SCHED.sched_switch join irq.softirq_entry using (common_pid)")
    assert "2 events named" in repr(database)


def test_a_trace_without_records_has_views_without_rows(trace):
    assert tp.sql(trace.between(0, 1), "select count(*) from sched_switch").fetchall() == [(0,)]


def test_what_duckdb_refuses_is_our_error(trace):
    with pytest.raises(tp.TracepointError, match="nothing"):
        tp.sql(trace, "select nothing from sched_switch")


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("select * from sched_swich", "sched_switch"),
        ("select * from SCHED_SWICH", "sched_switch"),
        ("select * from sched.sched_swich", "sched.sched_switch"),
        ("from sched.sched_switch join sch.sched_waking using (common_pid)", "sched.sched_waking"),
        ("from thread_stat", "thread_state"),
        ("create table mine(a int); from mini", "mine"),
    ],
)
def test_a_misspelt_table_is_guessed(run, query, meant):
    status, out, err = run(query)
    assert (status, out) == (2, "")
    assert re.findall(r"Did you mean .*", err) == [f'Did you mean "{meant}"?']


def test_a_table_unlike_any_is_not_guessed(run):
    status, _, err = run("from sqlite_zzz")
    assert (status, "does not exist" in err, "Did you mean" in err) == (2, True, False)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select 7 as a; select 8 as b", "a\n7\nb\n8\n"),
        ("create table x(a int); insert into x values (1), (2); set threads=1; from x;", "a\n1\n2\n"),
        ('select 1 where false; select 3 as "Count";', "1\nCount\n3\n"),
        ("create table x(a int, b int); insert into x values (1, 2); pivot x on a using sum(b)", "1\n2\n"),
    ],
)
def test_each_statement_prints_its_rows(run, query, rows):
    assert run(query, "--format", "csv")[:2] == (0, rows)


def test_what_is_before_a_statement_that_fails_is_printed(run):
    status, out, err = run("select 7 as a; select b; select 8", "--format", "csv")
    assert (status, out) == (2, "a\n7\n")
    assert 'column "b"' in err


def test_a_query_without_statements_is_an_error(run):
    assert "there is no statement in it" in run("; -- nothing")[2]


def test_a_query_that_is_no_utf8_is_an_error(run):
    status, _, err = run("select '\udcff'")
    assert (status, "not UTF-8 from character 8" in err) == (2, True)


def test_the_query_may_stand_after_options(run):
    assert run("--format", "csv", "select 7 as n")[1].split() == ["n", "7"]


def test_without_duckdb_the_error_says_how_to_get_it(trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(tp.TracepointError, match=r"pip install 'tracepoint\[sql\]'"):
        tp.sql(trace, "select 1")


def test_the_command_prints_a_table(run):
    status, out, _ = run(
        "select next_comm, count(*) as n from sched_switch group by 1 order by 2 desc, 1 limit 2"
    )
    assert status == 0
    assert out == "next_comm    n\n-----------  -\nrcu_preempt  4\nswapper/0    4\n"


def test_csv_and_json_lines(run):
    query = "select common_cpu, next_comm from sched_switch limit 1"
    assert run(query, "--format", "csv")[1] == "common_cpu,next_comm\n1,rcu_preempt\n"
    assert json.loads(run(query, "--format", "jsonl")[1]) == {"common_cpu": 1, "next_comm": "rcu_preempt"}


def test_what_json_does_not_have_is_null_or_text(run):
    query = r"select 'nan'::double as n, '\x00\xff'::blob as b, null as z, [1.5, 'inf'::double] as l"
    assert run(query, "--format", "jsonl")[1] == '{"n":null,"b":"00ff","z":null,"l":[1.5,null]}\n'


def test_csv_tells_null_from_an_empty_text(run):
    assert run("select null as a, '' as b, 1 as c", "--format", "csv")[1] == 'a,b,c\n,"",1\n'
    assert run("select unnest([null, '']) as a", "--format", "csv")[1] == 'a\n\n""\n'


def test_a_person_at_the_shell_has_seen_what_failed(run, monkeypatch):
    typed = StringIO("select b;")
    monkeypatch.setattr(typed, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", typed)
    assert run("--shell")[0] == 0


def test_the_shell_runs_queries_and_goes_on_after_an_error(run):
    status, out, err = run("--shell", "--format", "csv", stdin="select 7\nas a;\nselect b;\nselect 8 as c")
    assert (status, out) == (3, "a\n7\nc\n8\n")
    assert 'column "b"' in err


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_while_a_query_runs(number, status, tmp_path):
    # The first statement says that the command is past its start, where a signal ends Python itself.
    query = f"""copy (select 1) to '{tmp_path}/begun';
        select count(*) from range(10000000) a, range(10000000) b where a.range * b.range % 7 = 3"""
    command = [sys.executable, "-m", "tracepoint", "sql", CUT, query]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not (tmp_path / "begun").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        try:
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == status


def test_no_query_is_an_error(run):
    assert run()[0] == 2


def test_what_is_damaged_or_lost_is_reported_with_the_rows(run_command, tmp_path):
    path = tmp_path / "half.dat"
    whole = (GOLDEN / "cut.v6.dat").read_bytes()
    path.write_bytes(whole[: len(whole) * 5 // 6])
    query = "select count(*) from ftrace_event"
    status, out, err = run_command("sql", path, query, "--strict")
    assert (status, "bytes of data where the file has" in err) == (3, True)
    assert run_command("sql", path, query) == (0, out, err)
    # Once, not after each query.
    status, _, of_shell = run_command("sql", path, "--shell", stdin=f"{query};\n{query};\n")
    assert (status, of_shell) == (0, err)
    assert run_command("sql", GOLDEN / "cut.v6.dat", query, "--strict")[0] == 0


def test_a_recording_without_records_has_tables_without_rows(run_command, tmp_path):
    path = tmp_path / "empty.txt"
    path.write_text("# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:2\n#\n")
    status, out, err = run_command("sql", path, "select count(*) from ftrace_event")
    assert (status, out.split()[-1], err) == (0, "0", "")
