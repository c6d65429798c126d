"""Texts of records typed back into columns: against the recording that they are of."""

from __future__ import annotations

import codecs
import re
import shutil
import subprocess

import pytest

import tracepoint as tp
from oracles import data_file, unpacked
from tracefile.making import GOLDEN, content_of, recorded_layouts, written
from tracefile.perfmaking import PerfMaker
from tracefile.test_folder import put_formats
from tracepoint.layout.format import COMMON_FIELDS, EventFormat, FieldFormat, write_format
from tracepoint.tracefile.lines import read_flags, read_line, split_event
from tracepoint.tracefile.text import TextWriter, facts_of, flags_text
from tracepoint.tracefile.tracedat import open_tracedat, read_tracedat
from tracepoint.wording import one_line

# What lines do not show, or not exactly.
NOT_COMPARED = {"text", "common_type", "common_timestamp"}


def compare(text, recorded, *, but=(), unit_ns=1000):
    """Every column that the text gives has the values of the recording; returns how many were compared."""
    n_columns = 0
    assert text.n_records == recorded.n_records
    tables = text.tables()
    for name, found in tables.items():
        if name in but:
            continue
        wanted = recorded[name]
        assert len(found) == len(wanted), name
        times = [(t + unit_ns // 2) // unit_ns * unit_ns for t in wanted["common_timestamp"].tolist()]
        assert found["common_timestamp"].tolist() == times
        for column in set(found.columns) - NOT_COMPARED:
            if column in wanted.columns:
                assert found[column].tolist() == wanted[column].tolist(), (name, column)
                n_columns += 1
    return n_columns


def test_the_text_that_we_write_is_read_back(tmp_path):
    with open_tracedat(GOLDEN / "cut.v6.dat") as recorded:
        writer = TextWriter(recorded.events, facts_of(recorded))
        text = "# tracer: nop\n#\n" + "".join(writer.lines(recorded.buffers[0].records()))
        put_formats(tmp_path, recorded.content())
    path = tmp_path / "trace"
    path.write_text(text)
    with tp.open_trace(path) as read, tp.open_trace(GOLDEN / "cut.v6.dat") as recorded:
        assert read.events == recorded.events
        assert compare(read, recorded) > 100
        assert read.damage == ()
        assert read["sched_switch"]["next_comm"].tolist() == recorded["sched_switch"]["next_comm"].tolist()
        # What is shown is the line as it was.
        again = TextWriter(read.file.events, facts_of(read.file))
        lines = list(again.lines(read.file.buffers[0].records()))
        assert [line.split(": ", 1)[1] for line in lines if "sched_switch" in line] == [
            line.split(": ", 1)[1] for line in text.splitlines(keepends=True) if "sched_switch" in line
        ]


def test_without_formats_the_text_is_a_column(tmp_path):
    path = tmp_path / "pipe"
    path.write_text(
        "   my task-12      [003] d.h1.    10.634872: some_event: a=1 b=x\n"
        "          <idle>-0       [001] ..s..    10.634873: <stack trace>\n => one\n => two\n"
        "CPU:1 [LOST 5 EVENTS]\n"
        "          sh-104     (    103) [001] .....    11.000001: sys_write(fd: 1, buf: 5, count: 2)\n"
        "          sh-104     (-------) [001] .....    11.000002: bright_x64_sys <-do_call\n"
    )
    with tp.open_trace(path) as trace:
        assert trace["some_event"].to_dicts()[0] | {"common_type": 0} == {
            "common_timestamp": 10634872000, "common_cpu": 3, "common_type": 0, "common_flags": 9,
            "common_preempt_count": 1, "common_pid": 12, "text": "a=1 b=x",
        }  # fmt: skip
        assert trace["kernel_stack"]["text"].tolist() == ["<stack trace>\n => one\n => two"]
        assert trace["function"]["text"].tolist() == ["bright_x64_sys <-do_call"]
        assert trace["syscalls:sys_enter_write"]["text"].tolist() == ["sys_write(fd: 1, buf: 5, count: 2)"]
        lines = "".join(TextWriter(trace.file.events).lines(trace.file.buffers[0].records()))
        assert "11.000001: sys_enter_write: sys_write(fd: 1, buf: 5, count: 2)" in lines
        assert trace.lost == {1: 5, 3: 0}
        assert (trace.file.saved_tgids, trace.damage) == ("104 103\n", ())
        assert "12 my task\n" in trace.file.saved_cmdlines


def test_lines_that_do_not_fit_are_kept_as_text(tmp_path):
    put_formats(tmp_path, content_of())
    path = tmp_path / "trace"
    lines = ["n=1 name=a", "n=2 name=b c", "n=two name=b", "n=99999999999999999999999999 name=b"]
    path.write_text(
        "".join(f"  a-1  [000] .....  1.00000{n}: tick: {text}\n" for n, text in enumerate(lines))
    )
    with tp.open_trace(path) as trace:
        assert trace["demo:tick"]["n"].tolist() == [1, 2]
        assert trace["demo:tick"]["name"].tolist() == ["a", "b c"]
        assert trace["text:tick"]["text"].tolist() == lines[2:]
        assert [damage.reason for damage in trace.damage] == [
            "2 lines of demo:tick do not match its print format: see text:tick"
        ]


LAST_LINES = {
    "trace": "          sh-104     [001] .....    11.000002: tick: n=12 name=abc",
    "trace-cmd report": "              sh-104   [001]    11.000002: tick:                 n=12 name=abc",
    "perf script": "sh   104 [001]    11.000002:   demo:tick: n=12 name=abc",
    "a stack": "          sh-104     [001] .....    11.000002: <stack trace>\n => one\n => two",
    "a loss": "CPU:1 [LOST 55 EVENTS]",
}


@pytest.mark.parametrize("tool", LAST_LINES)
def test_a_last_line_without_a_newline_is_left_out_and_reported(tmp_path, tool):
    put_formats(tmp_path, content_of())
    path, last = tmp_path / "trace", LAST_LINES[tool]
    whole = f"          sh-104     [001] .....    11.000001: tick: n=1 name=a\n{last}"
    begin = whole.rindex("\n") + 1
    path.write_text(f"{whole}\n")
    with tp.open_trace(path) as trace:
        assert trace.damage == ()
        records = [*trace.record_table()]
    for stop in range(begin + 1, len(whole) + 1):
        path.write_text(whole[:stop])
        with tp.open_trace(path) as trace:
            found = [*trace.record_table()]
            assert (found[0], trace["tick"]["name"].tolist()[0]) == (records[0], "a")
            assert len(found) == (2 if tool == "a stack" else 1)
            assert sum(trace.lost.values()) == 0
            [damage] = trace.damage
        assert damage.offset == begin
        assert damage.reason.startswith("the last line has no newline, so it may be cut off")
        assert repr(one_line(whole[begin:stop], 60)) in damage.reason


def test_an_event_with_its_system_and_without_is_one(tmp_path):
    put_formats(tmp_path, content_of())
    names = ("tick", "demo:tick", "tick")
    lines = (f"  a-1  [000] .....  1.00000{n}: {name}: n={n} name=b\n" for n, name in enumerate(names))
    (tmp_path / "trace").write_text("".join(lines))
    with tp.open_trace(tmp_path / "trace") as trace:
        assert (trace.events, trace.damage) == ({"demo:tick": 3}, ())
        assert trace["tick"]["n"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("block", [1, 7, 1 << 16])
def test_lines_are_the_same_whatever_the_blocks_that_a_text_is_read_in(tmp_path, monkeypatch, block):
    text = "".join(f"  a-1  [00{n % 2}] .....  1.00000{n}: tick: n={n} name=b\r\n => x\n" for n in range(9))
    put_formats(tmp_path, content_of())
    (tmp_path / "trace").write_text(text, newline="")
    monkeypatch.setattr("tracepoint.tracefile.textfile._BLOCK", block)
    with tp.open_trace(tmp_path / "trace") as trace:
        assert [row["text"] for row in trace.record_table()] == [f"n={n} name=b\n => x" for n in range(9)]
        assert trace.damage == ()


def test_lines_and_texts_that_are_too_long_are_counted(tmp_path):
    line = "  a-1  [000] .....  1.000001: tick: x"
    path = tmp_path / "trace"
    path.write_text(f"{line}\n{line}{'y' * (1 << 16)}\nno record\n{line}{'z' * (1 << 14)}\n{line}\n")
    with tp.open_trace(path) as trace:
        assert [len(text) for text in trace["tick"]["text"].tolist()] == [1, 1 << 13, 1]
        assert [damage.reason for damage in trace.damage] == [
            "1 lines that are not records",
            "1 lines longer than 65536 bytes were left out",
            "the texts of 1 records were cut to 8192 bytes",
        ]


@pytest.mark.parametrize("digits", ["", "0", "00", "000"])
def test_lines_of_one_time_keep_their_order(tmp_path, digits):
    cpus = [3, 1, 2, 0, 0, 3, 2, 1]
    unit = 10 ** (3 - len(digits))
    times = [f"1.{at // 4:06d}{digits}" for at in range(16)]
    lines = [
        f"  a-1  [{cpu:03d}] .....  {time}: e: n={at}\n"
        for at, (cpu, time) in enumerate(zip(cpus * 2, times, strict=True))
    ]
    (tmp_path / "trace").write_text("".join(lines))
    with tp.open_trace(tmp_path / "trace") as trace:
        texts = trace["e"]["text"].tolist()
        assert texts == [record.text for record in trace.records()]
        stamps = [stamp // unit * unit for stamp in trace["e"]["common_timestamp"].tolist()]
        assert stamps == [10**9 + at // 4 * 1000 for at in range(16)]
        shown = "".join(trace.text_writer.lines(trace.file.buffers[0].records()))
        assert re.findall(r" ([0-9.]+): e:", shown) == [time[:8] for time in times]
        # Nanoseconds are as they are written: of equal ones the lower CPU is first, as in the kernel.
        assert (texts == [f"n={at}" for at in range(16)]) == (unit > 1)


@pytest.mark.parametrize(("digits", "n_kept"), [("", 500), ("0", 50), ("00", 5)])
def test_lines_of_one_time_that_cannot_keep_their_order_are_counted(tmp_path, digits, n_kept):
    texts = [
        f"  a-1  [{cpu:03d}] .....  1.000001{digits}: e: n={at}\n"
        for at in range(n_kept + 3)
        for cpu in (1, 0)
    ]
    (tmp_path / "trace").write_text("".join(texts))
    with tp.open_trace(tmp_path / "trace") as trace:
        rows = trace["e"]
        found = list(zip(rows["text"].tolist(), rows["common_cpu"].tolist(), strict=True))
        wanted = [(f"n={at}", cpu) for at in range(n_kept + 3) for cpu in (1, 0)]
        assert sorted(found) == sorted(wanted)
        n_same = 2 * n_kept - 2
        assert found[:n_same] == wanted[:n_same]
        assert found != wanted
        assert [damage.reason for damage in trace.damage] == [
            "4 records may come before some of lines above: times have few digits"
        ]


@pytest.mark.parametrize("block", [1, 1 << 16])
def test_a_mark_of_utf_8_and_nul_bytes_do_not_keep_a_text_from_being_read(tmp_path, monkeypatch, block):
    monkeypatch.setattr("tracepoint.tracefile.textfile._BLOCK", block)
    line = "a-1  [000] .....  1.000001: tick: x"
    (tmp_path / "t").write_bytes(codecs.BOM_UTF8 + f"{line}\0y\n\0\0{line}\0\0\nb{line}\n".encode())
    with tp.open_trace(tmp_path / "t") as trace:
        assert trace["tick"]["text"].tolist() == ["xy", "x", "x"]
        assert trace.file.saved_cmdlines == "1 a\n"
        assert [damage.reason for damage in trace.damage] == ["NUL bytes were left out of 2 lines"]


def test_losses_are_where_their_lines_are(tmp_path):
    losses = "CPU:3 [LOST 1 EVENTS]\nCPU:2 [LOST 2 EVENTS]\n"
    lines = [f"  a-1  [{cpu:03d}] .....  1.000000: e: {cpu}\n" for cpu in (3, 2, 1, 2, 3)]
    (tmp_path / "trace").write_text("".join(losses + line for line in lines) + losses)
    with tp.open_trace(tmp_path / "trace") as trace:
        assert trace.lost == {1: 0, 2: 12, 3: 6}
        shown = "".join(trace.text_writer.lines(trace.file.buffers[0].records()))
    # Those of a CPU are before its next record; after the last line there is none.
    assert re.findall(r"(?:CPU:(\d) \[LOST (\d+)|e: (\d))", shown) == [
        ("3", "1", ""), ("", "", "3"), ("2", "4", ""), ("", "", "2"), ("", "", "1"), ("2", "4", ""), ("", "", "2"),
        ("3", "4", ""), ("", "", "3"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  sh-104   [000]    10.629994: sys_exit:             NR 33 = 1", (0, 10629994000, 104, "", "sys_exit")),
        ("  a b-1  [002] d...1 10.629994123: x: ", (2, 10629994123, 1, "", "x")),
        ("sh   104 [000]    10.629676:   raw_syscalls:sys_exit: NR 1", (0, 10629676000, 104, "raw_syscalls", "sys_exit")),
        ("sh   104/105 [001] 10.629676:    1 sched:sched_switch: a", (1, 10629676000, 105, "sched", "sched_switch")),
        ("  sh-104  [000] .....  123456789: tick: a", (0, 123456789, 104, "", "tick")),
        (" :-1    -1 [000]    10.629676:   raw_syscalls:sys_exit: NR 1", (0, 10629676000, -1, "raw_syscalls", "sys_exit")),
        (" :-1    -1/-1 [000]    10.629676:   raw_syscalls:sys_exit: NR 1", (0, 10629676000, -1, "raw_syscalls", "sys_exit")),
        (f"  <{'X' * 3}>--1  [000] .....    10.629676: tick: a", (0, 10629676000, -1, "", "tick")),
        ("  sh--1  [000] .....    10.629676: tick: a", (0, 10629676000, 1, "", "tick")),
        ("  sh-104   [000]    10.629676: (+274)   tick:      a", (0, 10629676000, 104, "", "tick")),
        ("  sh-104   [000]    10.629676:          tick:      a", (0, 10629676000, 104, "", "tick")),
    ],
)  # fmt: skip
def test_lines_of_every_tool(line, expected):
    found = read_line(line)
    assert (found.cpu, found.stamp, found.pid, found.system, found.event) == expected


def test_flags_and_names():
    for flags in range(256):
        for count in (0, 1, 15, 0x31):
            again = read_flags(flags_text(flags, count))
            assert flags_text(*again) == flags_text(flags, count)
            again = read_flags(flags_text(flags, count, may_be_lazy=True))
            assert flags_text(*again, may_be_lazy=True) == flags_text(flags, count, may_be_lazy=True)
    assert read_line("#           TASK-PID  CPU#  |||||  TIMESTAMP  FUNCTION") is None
    assert split_event("0: hello") == ("", "line", "0: hello")


def test_stacks_of_perf_script_are_no_part_of_a_record(tmp_path):
    put_formats(tmp_path, content_of())
    stack = (
        "\tffffffff81000010 schedule+0x10 ([kernel.kallsyms])\n\t    7f01 [unknown] (/bin/sh)\n  sh.c:12\n"
    )
    lines = [f"sh   104 [001]    11.00000{n}:   demo:tick: n={n} name=abc\n" for n in range(4)]
    (tmp_path / "t").write_text(f"{lines[0]}{stack}\n{lines[1]}{stack}\njunk\n{lines[2]}\n{lines[3]}\tf0\n")
    with tp.open_trace(tmp_path / "t") as trace:
        assert trace.events == {"demo:tick": 4}
        assert trace["tick"]["n"].tolist() == [0, 1, 2, 3]
        assert set(trace["tick"]["name"].tolist()) == {"abc"}
        assert [damage.reason for damage in trace.damage] == [
            "1 lines that are not records",
            "the stacks of 3 records were left out: those of perf script are not read",
        ]


def test_other_samples_of_perf_script_are_no_part_of_a_record(tmp_path):
    put_formats(tmp_path, content_of())
    head = "sh   104 [001]    11.000001:"
    others = f"{head}     250000 cycles:  7f01 [unknown] (/bin/sh)\n{head} PERF_RECORD_COMM: sh:104/104\n"
    (tmp_path / "t").write_text("".join(f"{head}   demo:tick: n={n} name=a\n{others}" for n in range(3)))
    with tp.open_trace(tmp_path / "t") as trace:
        assert trace.events == {"demo:tick": 3}
        assert trace["tick"]["n"].tolist() == [0, 1, 2]
        assert [damage.reason for damage in trace.damage] == ["6 lines that are not records"]


def test_stacks_in_a_text_are_events_with_their_lines(tmp_path):
    # With formats the addresses of ftrace:kernel_stack would be missing.
    content = content_of()
    form = write_format(EventFormat("ftrace", "kernel_stack", (*COMMON_FIELDS,), '"%d", REC->common_pid', 5))
    put_formats(tmp_path, content)
    (tmp_path / "events/ftrace/kernel_stack").mkdir(parents=True)
    (tmp_path / "events/ftrace/kernel_stack/format").write_text(form)
    head = "  <...>-3 [001] d..2. 1.00000"
    (tmp_path / "t").write_text(
        f"{head}1: <stack trace>\n => one\n => two\n{head}2: <user stack trace>\n =>  <0001>\n"
        f"{head}3: kernel_stack:         <stack trace >\n=> one (1)\n"
    )
    with tp.open_trace(tmp_path / "t") as trace:
        assert trace.events == {"text:kernel_stack": 2, "text:user_stack": 1}
        assert trace["kernel_stack"]["text"].tolist() == [
            "<stack trace>\n => one\n => two",
            "<stack trace >\n=> one (1)",
        ]
        assert trace["user_stack"]["text"].tolist() == ["<user stack trace>\n =>  <0001>"]
        assert trace.damage == ()


def test_what_was_written_to_trace_marker_is_in_the_text_of_a_report(tmp_path):
    buf = (FieldFormat("ip", "unsigned long", 8, 8, False), FieldFormat("buf", "char[]", 16, 0, True))
    shown = '"%ps: %s", (void *)REC->ip, REC->buf'
    form = write_format(EventFormat("ftrace", "print", (*COMMON_FIELDS, *buf), shown, 5))
    (tmp_path / "events/ftrace/print").mkdir(parents=True)
    (tmp_path / "events/ftrace/print/format").write_text(form)
    head = "  sh-104   [000]    10.629676: print:                "
    (tmp_path / "t").write_text(f"{head}tracing_mark_write: hello\n{head}some_function: a: b\n")
    with tp.open_trace(tmp_path / "t") as trace:
        assert trace["ftrace:print"]["buf"].tolist() == ["hello", "a: b"]
        assert trace["print"]["text"].tolist() == ["tracing_mark_write: hello", "some_function: a: b"]
        # Without `ip` the line of the kernel cannot be made, but it is there.
        shown = "".join(trace.text_writer.lines(trace.file.buffers[0].records()))
        assert re.findall(r"629676: (.*)", shown) == [
            "print: tracing_mark_write: hello",
            "print: some_function: a: b",
        ]


def test_headings_of_trace_cmd_report_are_no_damage(tmp_path):
    line = "  sh-104   [000]    10.629676: tick:      a\n"
    (tmp_path / "t").write_text(f"version = 6\nCPU 1 is empty\ncpus=2\n{line}cpus=3\n")
    with tp.open_trace(tmp_path / "t") as trace:
        assert trace["tick"]["text"].tolist() == ["a\ncpus=3"]
        assert trace.damage == ()


@pytest.mark.oracle
def test_text_of_the_kernel_has_the_values_of_its_recording():
    recorded = tp.open_trace(data_file("small.v6.dat.zst"))
    with recorded, tp.open_trace(data_file("small.trace.txt.zst")) as text:
        # What was written to trace_marker has the name of a function in the text.
        assert len(text["tracing_mark_write"]) == len(recorded["ftrace:print"]) == 1
        assert set(text.events.items()) ^ set(recorded.events.items()) == {
            ("text:tracing_mark_write", 1),
            ("ftrace:print", 1),
        }
        assert text.damage == ()
        assert compare(text, recorded, but={"text:tracing_mark_write"}) > 300


@pytest.mark.oracle
def test_records_have_the_order_of_the_lines_of_a_kernel():
    shown = unpacked("raw/trace.txt.zst").decode(errors="replace")
    lines = re.findall(r"^.{16}-(\d+) +(?:\(.{7}\) )?\[(\d+)\] \S+ +([\d.]+): ", shown, re.MULTILINE)
    with tp.open_trace(data_file("raw/trace.txt.zst")) as text:
        table = text.record_table()
        found = zip(*(table[name].tolist() for name in ("pid", "cpu", "timestamp")), strict=True)
        assert [(f"{pid}", f"{cpu:03d}", f"{time // 1000 / 10**6:.6f}") for pid, cpu, time in found] == lines


@pytest.mark.oracle
@pytest.mark.skipif(not shutil.which("perf") or not shutil.which("trace-cmd"), reason="no perf or trace-cmd")
@pytest.mark.parametrize("tool", ["perf", "trace-cmd", "differences"])
def test_texts_of_the_tools_have_the_values_of_their_recording(tmp_path, tool):
    original = GOLDEN / "cut.v6.dat"
    with open_tracedat(original) as recorded:
        put_formats(tmp_path, recorded.content())
        (tmp_path / "made").write_bytes(PerfMaker(recorded).file())
    command = {
        "perf": ["perf", "script", "-f", "--ns", "-F", "comm,tid,cpu,time,event,trace", "-i", str(tmp_path / "made")],
        "trace-cmd": ["trace-cmd", "report", "-t", "-N", "-i", str(original)],
        "differences": ["trace-cmd", "report", "--ts-diff", "-t", "-N", "-i", str(original)],
    }[tool]  # fmt: skip
    done = subprocess.run(command, capture_output=True, check=True)
    path = tmp_path / "text"
    path.write_bytes(done.stdout)
    with tp.open_trace(path) as text, tp.open_trace(original) as recorded:
        assert text.n_records == recorded.n_records
        assert text.damage == ()
        found, wanted = text["sched_switch"], recorded["sched_switch"]
        assert {"prev_comm", "next_pid"} <= set(found.columns)
        for column in set(found.columns) - {"text", "common_type", "common_flags", "common_preempt_count"}:
            assert found[column].tolist() == wanted[column].tolist(), column


def test_a_text_of_many_events_is_read_in_bounds(tmp_path):
    path = tmp_path / "trace"
    path.write_text(
        "".join(f"  a-1  [{9000 if n == 9 else 0:03d}] .....  1.000000: e{n}: x\n" for n in range(9500))
    )
    with tp.open_trace(path) as trace:
        assert len(trace.events) <= (1 << 13) + 1
        assert any("impossible CPUs" in damage.reason for damage in trace.damage)


def test_texts_in_a_big_endian_recording_can_be_written(tmp_path):
    recorded = read_tracedat(written(content_of(True, n_records=9)))
    writer = TextWriter(recorded.events, facts_of(recorded), is_big_endian=True)
    put_formats(tmp_path, recorded.content())
    (tmp_path / "t").write_text("".join(writer.lines(recorded.buffers[0].records())))
    with tp.open_trace(tmp_path / "t") as trace:
        assert trace["tick"]["n"].tolist() == list(range(9))


def test_a_graph_is_no_part_of_the_records_among_it(tmp_path):
    shown = recorded_layouts()["6.1"]["recordings"]["graph"]["texts"][""]
    (tmp_path / "graph.txt").write_text(shown)
    with tp.open_trace(tmp_path / "graph.txt") as trace:
        stacks = [row["text"] for row in trace["text:kernel_stack"]]
        damage = [one.reason for one in trace.damage]
    lines = [line for line in shown.split("\n") if line.startswith(" => ")]
    assert stacks
    assert sum(text.count("\n => ") for text in stacks) == len(lines)
    assert not any(";" in text or "{" in text for text in stacks)
    assert len(damage) == 1
    assert "lines of function_graph were left out" in damage[0]
