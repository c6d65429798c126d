"""Spark, where it is installed: the same summaries, and recordings as data frames."""

import os
import sys

import pytest

from fleet.making import make_fleet
from fleet.test_fleet import N_HOSTS
from tracefile.making import GOLDEN
from tracepoint import open_trace
from tracepoint.errors import TracepointError
from tracepoint.fleet import open_fleet, register_source
from tracepoint.fleet.spark import Request, cut_parts

CUT = str(GOLDEN / "cut.v6.dat")

# It starts a JVM and a Python process for each CPU.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def session():
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: make test-all installs it")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    made = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    made = made.config("spark.sql.shuffle.partitions", "2")
    found = made.getOrCreate()
    register_source(found)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_fleet(tmp_path_factory.mktemp("spark") / "made", N_HOSTS, 60)


@pytest.mark.parametrize("n_partitions", ["1", "2"])
def test_local_spark_gives_the_same(session, folder, n_partitions):
    """With one partition a task reads a whole block, with two a part of one."""
    (folder / "bad.dat").write_text("not a recording")
    session.conf.set("spark.sql.shuffle.partitions", n_partitions)
    for job in (("sched", ("host", "comm")), ("events", ())):
        assert open_fleet(folder, "spark", session).run(*job) == open_fleet(folder).run(*job)
    (folder / "bad.dat").unlink()


def frame(session, path, **options):
    return session.read.format("tracepoint").options(event="sched:sched_switch", **options).load(str(path))


def test_a_data_frame_has_the_records_of_all_hosts(session, folder):
    rows = frame(session, folder / "*.dat").groupBy("host").count().collect()
    events = open_fleet(folder).run("events", ["host", "event"])
    truth = {
        host: part["records"].low
        for (host, event), part in events.groups.items()
        if event == "sched:sched_switch"
    }
    assert {row["host"]: row["count"] for row in rows} == truth


def test_values_are_those_of_the_table(session):
    rows = sorted(frame(session, CUT).collect(), key=lambda row: row["common_timestamp"])
    with open_trace(CUT) as trace:
        truth = trace["sched_switch"].to_dicts()
    assert rows[0]["host"] == "(none)"
    assert [{name: row[name] for name in truth[0]} for row in rows] == truth


def test_only_the_columns_that_are_asked_for_are_decoded(session):
    found = frame(session, CUT, columns="next_comm,common_cpu")
    assert found.columns == ["next_comm", "common_cpu"]
    assert len(found.collect()) == 10
    with pytest.raises(Exception, match=r"no column .*nxt_comm"):
        frame(session, CUT, columns="nxt_comm").collect()


@pytest.fixture(scope="module")
def kept(session):
    """The records as Spark keeps them: filters of these are its own business."""
    found = frame(session, CUT).cache()
    assert found.count() == 10
    return found


@pytest.mark.parametrize(
    "condition",
    [
        "common_cpu = 0",
        "common_cpu in (1, 7)",
        "common_pid = 0 and next_pid > 15",
        "next_prio <= 100",
        "common_timestamp > 10650000000 and common_timestamp < 10700000000",
        "host = '(none)' and next_pid >= 104",
        "host = 'other'",
        "next_comm = 'sh'",
        "next_pid = -1",
    ],
)
def test_filters_leave_what_they_leave_without_being_handed_over(session, kept, condition):
    rows = {tuple(row) for row in frame(session, CUT).filter(condition).collect()}
    assert rows == {tuple(row) for row in kept.filter(condition).collect()}


def test_a_filter_in_the_kernels_language(session):
    assert len(frame(session, CUT, where="next_pid == 0").collect()) == len(
        frame(session, CUT).filter("next_pid = 0").collect()
    )


def test_large_files_are_cut_and_each_record_is_read_once(session, folder):
    path = sorted(folder.iterdir())[1]
    parts = list(cut_parts(Request([str(path)], "sched:sched_switch", part_bytes=4096)))
    assert len(parts) > 1
    with open_trace(path) as trace:
        n = trace.events["sched:sched_switch"]
    assert frame(session, path, partBytes="4096").count() == n


def test_recordings_that_cannot_be_read_fail_or_are_passed_over(session, tmp_path):
    make_fleet(tmp_path, 2, 30)
    (tmp_path / "zzz.dat").write_text("not a recording")
    with pytest.raises(Exception, match=r"zzz\.dat"):
        frame(session, tmp_path).count()
    assert frame(session, tmp_path, ignoreCorruptFiles="true").count() > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no path"),
        ({"path": CUT}, "no event"),
        ({"path": CUT, "event": "a", "partBytes": "x"}, "partBytes"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(TracepointError, match=message):
        Request.read(options)
