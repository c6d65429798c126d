"""What a selection leaves: the records that a loop over all of them keeps, whatever the form of the file."""

import pickle
from fnmatch import fnmatchcase
from itertools import pairwise

import pytest

import tracepoint as tp
from decode.test_columns import twin
from tracefile.making import GOLDEN
from tracepoint.filter.error import FilterError
from tracepoint.tracefile.compression import has_zstd
from tracepoint.tracefile.recording import read_pairs

FILES = ["cut.v6.dat"] + (["cut.v7.zstd.dat"] if has_zstd() else [])


@pytest.fixture(params=FILES)
def trace(request):
    with tp.open_trace(GOLDEN / request.param) as opened:
        yield opened


def shown(trace):
    return [(r.timestamp, r.cpu, r.event, r.data) for r in trace.records()]


def test_records_come_by_time_with_fields_and_text(trace):
    records = list(trace.records())
    assert len(records) == trace.n_records == 400
    assert all(a.timestamp <= b.timestamp for a, b in pairwise(records))
    switch = next(r for r in records if r.event == "sched:sched_switch")
    assert switch["prev_pid"] == switch.fields["prev_pid"] == switch.pid
    assert switch.text.startswith("prev_comm=")
    assert repr(switch).startswith(
        f"<Record sched:sched_switch, CPU {switch.cpu}, {switch.timestamp} ns: prev_comm"
    )


@pytest.mark.thorough
@pytest.mark.parametrize("is_quick", [True, False])
def test_each_choice_keeps_what_a_loop_keeps(trace, is_quick):
    everything = list(trace.records())
    first, last = trace.span
    start, stop = first + (last - first) // 3, first + (last - first) // 2
    comms = read_pairs(trace.file.saved_cmdlines)
    choices = {
        "between": (trace.between(start, stop), lambda r: start <= r.timestamp < stop),
        "select": (
            trace.select("irq", "sched_switch"),
            lambda r: r.event.startswith("irq:") or "switch" in r.event,
        ),
        "on_cpus": (trace.on_cpus(1), lambda r: r.cpu == 1),
        "of_tasks": (trace.of_tasks(104), lambda r: r.pid == 104),
        "names": (trace.of_tasks("s*"), lambda r: fnmatchcase(comms.get(r.pid, ""), "s*")),
        "where": (trace.where("prev_pid > 10"), lambda r: "prev_pid" in r.fields and r["prev_pid"] > 10),
        "comm": (trace.where('COMM == "sh"'), lambda r: comms.get(r.pid) == "sh"),
        "not": (trace.where('COMM != "sh"'), lambda r: comms.get(r.pid) != "sh"),
        "field": (
            trace.where('comm == "sh"'),
            lambda r: r.fields.get("comm", comms.get(r.pid)) == "sh",
        ),
        "idle": (trace.where('COMM == "swapper/1"'), lambda r: r.pid == 0 and r.cpu == 1),
        "cpu": (trace.where("CPU == 0 && common_pid != 0"), lambda r: r.cpu == 0 and r.pid),
        "all": (
            trace.between(start, stop)
            .select("sched")
            .on_cpus(0)
            .where("common_pid > 0")
            .where("prev_pid != 1"),
            lambda r: (
                start <= r.timestamp < stop
                and r.event.startswith("sched:")
                and r.cpu == 0
                and r.pid > 0
                and r.fields.get("prev_pid", 1) != 1
            ),
        ),
    }
    for name, (chosen, keep) in choices.items():
        expected = [(r.timestamp, r.cpu, r.event, r.data) for r in everything if keep(r)]
        if is_quick:
            assert shown(chosen) == expected, name
            counts = chosen.events
        else:
            with twin():
                assert shown(chosen) == expected, name
                counts = chosen.events
        assert counts == {e: sum(1 for r in expected if r[2] == e) for e in sorted({r[2] for r in expected})}
        for event in counts:
            assert len(chosen[event]) == counts[event]
        assert chosen.n_records == len(expected)
    assert len([n for n, (c, _) in choices.items() if c.n_records]) > 8


def test_choices_are_narrowed_not_replaced(trace):
    assert trace.on_cpus(0).on_cpus(1).n_records == 0
    assert trace.of_tasks(104).of_tasks(0).n_records == 0
    assert trace.select("irq").select("sched").n_records == 0
    assert trace.select().n_records == 400


def test_a_filter_that_no_event_takes(trace):
    with pytest.raises(FilterError, match="Field not found"):
        _ = trace.where("nosuch == 1").events
    with pytest.raises(FilterError, match="Invalid operator"):
        _ = trace.where("prev_pid = 1").events
    with pytest.raises(FilterError, match="Missing matching quote"):
        _ = trace.where('comm == "sh').events


def test_filters_that_no_event_takes_together_leave_nothing(trace):
    assert trace.where("prev_pid > 0").where("bytes_alloc > 0").n_records == 0
    assert trace.select("irq").where("prev_pid > 0").n_records == 0
    with pytest.raises(FilterError, match="Field not found"):
        _ = trace.where("prev_pid > 0").where("nosuch == 1").events


def test_what_is_no_choice_is_refused(trace):
    with pytest.raises(ValueError, match="an empty filter"):
        trace.where(" ")
    for cpu, error, text in ((-1, ValueError, "no CPU has the number -1"), ("0", TypeError, "not '0'")):
        with pytest.raises(error, match=text):
            trace.on_cpus(cpu)
    with pytest.raises(TypeError, match="a task is its id, an int, or its name, a str, not None"):
        trace.of_tasks(None)
    path = str(GOLDEN / FILES[0])
    with pytest.raises(ValueError, match="-1 threads"):
        tp.open_trace(path, threads=-1)
    for ask in (
        lambda: trace[999], lambda: trace.format(None), lambda: trace.with_stacks(b"a"), lambda: trace.select(5),
        lambda: trace.tables(5), lambda: trace.where(5), lambda: trace.open_instance(5), lambda: trace.joined({5: ()}),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"is a str, not (999|None|b'a'|5)"):
            ask()
    with pytest.raises(TypeError, match=r"os.fsdecode\(\)"):
        tp.open_trace(path.encode())


def test_an_id_of_more_than_32_bits_is_that_of_no_task():
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        (pid, *_) = trace["sched_switch"]["common_pid"].tolist()
        assert trace.of_tasks(pid).n_records
        assert trace.of_tasks(pid + (1 << 32), 1 << 40).n_records == 0


def test_what_is_no_time_path_column_or_filter_says_what_to_give():
    with tp.open_trace(GOLDEN / "cut.v6.dat") as trace:
        for start in (1.5e9, "a"):
            with pytest.raises(TypeError, match="a time is an int in ns"):
                trace.between(start, None)
        with pytest.raises(KeyError, match="did you mean 'prev_pid'"):
            trace["sched_switch"]["prev_pidd"]
        with pytest.raises(ValueError, match="NUL, which is character 8"):
            trace.where("cpu == 1\0 || junk")
        for thing in (trace, trace["sched_switch"]):
            with pytest.raises(TypeError, match="cannot be pickled"):
                pickle.dumps(thing)
    for path in (5, [5], None):
        with pytest.raises(TypeError, match="a path is a str"):
            tp.open_trace(path)


def test_a_recording_that_is_closed_while_it_is_read_is_an_error():
    trace = tp.open_trace(GOLDEN / "cut.v6.dat")
    records = trace.records()
    cpu = trace.buffer.cpus[0]
    trace.close()
    with pytest.raises(tp.TracepointError, match="the recording is closed"):
        list(records)
    with pytest.raises(tp.TracepointError, match="the recording is closed"):
        list(cpu.blocks())
