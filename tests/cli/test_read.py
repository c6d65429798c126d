"""`tracepoint read`: text, JSON lines, what is missing, exit statuses."""

from __future__ import annotations

import csv
import json
import struct
import sys
from functools import partial
from io import BytesIO, StringIO
from types import SimpleNamespace

import pytest

import tracepoint as tp
from tracefile.making import GOLDEN, content_of, layout_of, recorded_layouts, tick, write_folder, written
from tracepoint.cli.main import main
from tracepoint.cli.output import Output
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.opening import open_container
from tracepoint.tracefile.options import OptionId, text_option
from tracepoint.tracefile.tracedat import read_tracedat

CUT = str(GOLDEN / "cut.v6.dat")


@pytest.fixture
def run(run_command):
    """Run the command in this process; returns status, stdout, stderr."""
    return partial(run_command, "read")


@pytest.fixture
def file_of(tmp_path):
    def write(content, version=7):
        path = tmp_path / "some.dat"
        path.write_bytes(content if isinstance(content, bytes) else written(content, version))
        return str(path)

    return write


def test_text_has_the_kernels_heading_and_lines(run) -> None:
    status, out, _ = run(CUT)
    assert status == 0
    lines = out.split("\n")
    assert lines[2] == "# entries-in-buffer/entries-written: 400/400   #P:2"
    assert lines[12] == "              sh-104     [000] .....    10.629676: sys_exit: NR 1 = 2"
    assert len(lines) == 12 + 400 + 1


def test_patterns_choose_events(run) -> None:
    status, out, _ = run(CUT, "sched_switch", "irq:*entry")
    assert status == 0
    names = {line.split(": ")[1] for line in out.split("\n") if line and not line.startswith("#")}
    assert names == {"sched_switch", "softirq_entry"}


def test_pattern_that_means_nothing(run) -> None:
    status, _, err = run(CUT, "sched_swich")
    assert status == 1
    assert "no event of" in err


def test_json_lines(run, file_of) -> None:
    status, out, _ = run(file_of(content_of(True, 4, n_records=2)), "--format", "jsonl")
    assert status == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {
            "timestamp": 10**9 + 1000 * n,
            "cpu": n,
            "pid": 7,
            "comm": "worker",
            "event": "demo:tick",
            "fields": {"n": n, "name": "a"},
            "text": f"n={n} name=a",
        }
        for n in range(2)
    ]


def test_unknown_event_in_json(run, file_of) -> None:
    _, out, _ = run(file_of(content_of(n_records=1)._replace(formats=())), "--format", "jsonl")
    data = json.loads(out)
    assert (data["event"], data["text"]) == ("unknown:400", "Unknown type 400")
    assert data["fields"]["data"].startswith("9001")


def test_idle_task_by_its_names(run) -> None:
    expected = run(CUT, "--pid", "0")[1]
    assert "<idle>-0 " in expected
    for name in ("<idle>", "swapper/0", "swapper"):
        assert run(CUT, "--pid", name)[1] == expected
    assert "<idle>-0 " not in run(CUT, "--pid", "s*")[1]


def test_tracer_without_a_layout_is_refused(run) -> None:
    status, _, shown = run(CUT, "--tracer", "bogus")
    assert status == 2
    assert "bogus" in shown
    assert all(name in shown for name in ("function_graph", "mmiotrace", "nop", "wakeup_rt"))


@pytest.mark.parametrize("form", ["jsonl", "csv", "arrow", "parquet"])
@pytest.mark.parametrize(
    "words",
    [("-O", "raw"), ("--latency",), ("--tracer", "nop"), ("-O", "nofuncgraph-cpu"), ("-O", "norecord-tgid")],
)
def test_layout_is_refused_with_a_format_that_has_none(run, words, form) -> None:
    status, out, err = run(CUT, *words, "--format", form)
    assert (status, out) == (2, "")
    assert f"{' '.join(words)} is for lines of text as the kernel's, which --format {form} has not" in err


def test_options_of_texts_are_taken_with_every_format(run) -> None:
    assert run(CUT, "-O", "sym-offset", "-O", "overwrite", "--format", "jsonl")[0] == 0
    assert run(CUT, "-O", "overwrite", "--format", "report")[0] == 0


@pytest.mark.parametrize(
    "words", [("--latency",), ("--tracer", "nop"), ("-O", "raw"), ("-O", "sym-offset"), ("--tgids", CUT)]
)
def test_layout_is_refused_with_the_text_of_trace_cmd(run, words) -> None:
    status, out, err = run(CUT, *words, "--format", "report")
    assert (status, out) == (2, "")
    assert f"{words[0] if words[0] == '--tgids' else ' '.join(words)} is for lines of text" in err


@pytest.mark.parametrize("words", [("--formats", "/"), ("--delay", "1")])
def test_what_is_for_following_is_refused_without_it(run, words) -> None:
    status, out, err = run(CUT, *words)
    assert (status, out) == (2, "")
    assert f"{words[0]} is for --follow" in err


@pytest.mark.parametrize("text", ["", "  "])
def test_empty_filter_is_refused(run, text) -> None:
    status, out, err = run(CUT, "--where", text)
    assert (status, out) == (2, "")
    assert "an empty filter" in err


def test_unknown_event_is_chosen_by_its_name(run, file_of) -> None:
    path = file_of(content_of(n_records=4)._replace(formats=()))
    status, out, err = run(path, "unknown:400", "--pid", "7", "--cpu", "1")
    assert (status, out.count("Unknown type 400"), "matches" in err) == (0, 2, False)
    assert run(path, "unknown:401")[0] == 1


def test_instances(run, file_of) -> None:
    path = file_of(content_of(instances=("one",), n_records=4))
    assert run(path, "--instance", "one")[1].count("tick:") == 4
    status, _, err = run(path, "--instance", "two")
    assert status == 2
    assert "no instance 'two'; buffers: the top one, one" in err


def lossy(n_lost=9):
    writer = PageWriter(layout_of())
    writer.add(1, tick(0))
    writer.lose(n_lost)
    writer.add(2, tick(1))
    return content_of()._replace(buffers=(BufferContent((CpuPages(0, (writer.pages(),)),)),))


def test_lost_events_are_said_and_strict_tells(run, file_of) -> None:
    path = file_of(lossy())
    status, out, err = run(path)
    assert status == 0
    assert "CPU:0 [LOST 9 EVENTS]\n" in out
    assert "9 events were lost" in err
    unknown = run(file_of(lossy(LOST_UNKNOWN)))[2]
    assert "warning: an unknown number of events was lost while recording" in unknown
    assert run(path, "--strict")[0] == 3
    assert run(CUT, "--strict")[0] == 0


def test_overwritten_events_show_where_buffers_begin(run, file_of) -> None:
    content = content_of(n_records=6, n_cpus=3)
    stats = text_option(OptionId.CPUSTAT, "CPU: 0\nentries: 2\noverrun: 5\n")
    out = run(file_of(content._replace(options=(*content.options, stats))))[1]
    assert "# entries-in-buffer/entries-written: 6/11   #P:3" in out
    assert out.count("buffer started") == 1


def test_each_buffer_has_its_own_losses(run, file_of) -> None:
    """As trace-cmd writes them: the counts of an instance stand after a line with its name."""
    content = content_of(instances=("one",), n_records=2)
    texts = ("CPU: 0\noverrun: 5\n", "\nBuffer: one\n\n", "CPU: 0\noverrun: 7\ncommit overrun: 1\n",
             "CPU: 1\noverrun: 70\ndropped events: 2\n")  # fmt: skip
    options = (*content.options, *(text_option(OptionId.CPUSTAT, text) for text in texts))
    path = file_of(content._replace(options=options))
    _, out, err = run(path)
    assert ("written: 2/7 " in out, "5 events were lost" in err) == (True, True)
    status, out, err = run(path, "--instance", "one", "--strict")
    assert ("written: 2/79 " in out, "80 events were lost" in err, status) == (True, True, 3)


TGID_HEADING = """\
#                                          _-----=> irqs-off/BH-disabled
#                                         / _----=> need-resched
#                                        | / _---=> hardirq/softirq
#                                        || / _--=> preempt-depth
#                                        ||| / _-=> migrate-disable
#                                        |||| /     delay
#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP  FUNCTION
#              | |           |       |   |||||     |         |
          worker-7       (      5) [000] .....     1.000000: tick: n=0 name=a
"""


@pytest.mark.parametrize("version", [6, 7])
def test_processes_are_shown_where_they_were_recorded(run, file_of, version) -> None:
    path = file_of(content_of(n_records=1, saved_tgids="7 5\n"), version)
    assert run(path)[1].endswith(TGID_HEADING)
    assert json.loads(run(path, "--format", "jsonl")[1])["tgid"] == 5
    # The option was on, and nothing had been kept when the recording ended.
    assert (
        "worker-7       (-------) [000]" in run(file_of(content_of(n_records=1, saved_tgids=""), version))[1]
    )
    assert "TGID" not in run(file_of(content_of(n_records=1), version))[1]


def test_processes_from_a_copy_of_the_file(run, file_of, tmp_path) -> None:
    copy = tmp_path / "saved_tgids"
    copy.write_text("7 5\n")
    assert run(file_of(content_of(n_records=1)), "--tgids", str(copy))[1].endswith(TGID_HEADING)
    assert run(file_of(content_of(n_records=1)), "--tgids", str(tmp_path / "nowhere"))[0] == 2


def test_damage_is_said(run, file_of) -> None:
    data = bytearray(written(content_of()))
    struct.pack_into("<Q", data, read_tracedat(bytes(data)).buffers[0].cpus[1].offset + 8, 5000)
    path = file_of(bytes(data))
    status, _, err = run(path)
    assert status == 0
    assert "cpu 1, offset" in err
    assert "claims 5000 bytes" in err
    assert run(path, "--strict")[0] == 3


def test_a_text_that_is_cut_off_is_said(run, file_of) -> None:
    line = "  sh-104  [001] .....  11.000001: tick: n=12\n"
    path = file_of((line + line[:-2]).encode())
    status, text, err = run(path)
    assert (status, text.count("tick: n=12\n")) == (0, 1)
    assert f"offset {len(line):#x}: the last line has no newline, so it may be cut off" in err
    assert run(path, "--strict")[0] == 3
    assert run(file_of((line * 2).encode()), "--strict")[0] == 0


def test_file_that_is_none(run, file_of) -> None:
    status, _, err = run(file_of(b"hello"))
    assert status == 2
    assert "is not a trace.dat" in err
    assert "some.dat" in err


def test_from_stdin(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=BytesIO(written(content_of(n_records=3)))))
    assert run("-")[1].count("tick:") == 3


def test_latency_trace_is_its_text(run, file_of) -> None:
    assert run(file_of(content_of(latency_text="# tracer: irqsoff\n")))[1] == "# tracer: irqsoff\n"


def test_latency_format_names_the_kernel(run) -> None:
    out = run(CUT, "--latency")[1]
    assert "# nop latency trace v1.1.5 on 6.1.0-53-amd64\n" in out
    assert "      sh-104       0....." in out


def test_latency_tracers_have_their_format(run) -> None:
    _, out, err = run(CUT, "--tracer", "irqsoff")
    assert "# irqsoff latency trace v1.1.5 on 6.1.0-53-amd64\n" in out
    assert "# latency: ? us, " in out
    assert "#  => started at: ?\n#  => ended at:   ?\n#\n#\n" in out
    assert "      sh-104       0....." in out
    assert "a ? in the heading is for what is not in the recording" in err
    plain = run(CUT, "--tracer", "irqsoff", "-O", "nolatency-format")
    assert plain[1].startswith("# tracer: irqsoff\n#\n# entries-in-buffer")
    assert "heading" not in plain[2]


def lines_of(out: str) -> list[str]:
    return [line for line in out.split("\n") if line and not line.startswith("#")]


def test_options_choose_records(run) -> None:
    everything = lines_of(run(CUT)[1])
    status, out, _ = run(CUT, "--from", "10.63", "--to", "10.65")
    assert status == 0
    assert lines_of(out) == [line for line in everything if 10.63 <= float(line.split()[3][:-1]) < 10.65]
    status, out, _ = run(CUT, "--cpu", "1", "--pid", "104", "--pid", "0")
    assert status == 0
    assert lines_of(out) == [
        line for line in everything if "[001]" in line and line.split()[0].endswith(("-104", "-0"))
    ]
    status, out, _ = run(CUT, "sched_switch", "--where", "prev_pid == 104", "--where", "next_pid == 0")
    assert status == 0
    assert lines_of(out) == [line for line in everything if "prev_pid=104" in line and "next_pid=0 " in line]
    assert "entries-in-buffer/entries-written" in out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--cpu", "x"], "'x' is not a list of CPUs"),
        (["--from", "soon"], "'soon' is not a time in seconds"),
        (["--where", "nosuch == 1"], "Field not found"),
        (["--format", "arrow", "sched"], "--format arrow is for one event"),
    ],
)
def test_choices_that_cannot_be(run, monkeypatch, words, reason) -> None:
    monkeypatch.setattr(Output, "binary", lambda _: BytesIO())
    try:
        status, _, err = run(CUT, *words)
    except SystemExit as ended:
        status, err = ended.code, sys.stderr.getvalue()
    assert status == 2
    assert reason in err


def test_csv_of_one_event_and_of_several(run) -> None:
    status, out, _ = run(CUT, "sched_switch", "--format", "csv")
    assert status == 0
    rows = list(csv.DictReader(StringIO(out)))
    with tp.open_trace(CUT) as trace:
        assert [row["prev_pid"] for row in rows] == [
            str(v) for v in trace["sched_switch"]["prev_pid"].tolist()
        ]
        assert list(rows[0]) == list(trace["sched_switch"].columns)
    rows = list(csv.DictReader(StringIO(run(CUT, "--format", "csv")[1])))
    assert len(rows) == 400
    assert rows[0].keys() == {"timestamp", "cpu", "pid", "comm", "event", "text"}
    assert rows[0]["text"] == "NR 1 = 2"


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_tables_to_stdout(run, monkeypatch, form) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    written_to = BytesIO()
    monkeypatch.setattr(Output, "binary", lambda _: written_to)
    assert run(CUT, "sched_switch", "--cpu", "0", "--format", form)[0] == 0
    data = BytesIO(written_to.getvalue())
    found = parquet.read_table(data) if form == "parquet" else pyarrow.ipc.open_stream(data).read_all()
    with tp.open_trace(CUT) as trace:
        assert found.to_pylist() == trace.on_cpus(0)["sched_switch"].to_dicts()


def test_a_terminal_shows_no_binary_format(run, monkeypatch) -> None:
    monkeypatch.setattr("tracepoint.cli.output.is_terminal", lambda _: True)
    status, _, err = run(CUT, "sched_switch", "--format", "arrow")
    assert status == 2
    assert "redirect it" in err


def test_options_of_the_text(run) -> None:
    assert (
        run(CUT, "sched_wakeup_new", "-O", "nocontext-info")[1]
        .split("\n")[2]
        .startswith("sched_wakeup_new: ")
    )
    raw = run(CUT, "sched_wakeup_new", "-O", "raw")[1].split("\n")[-2]
    assert raw.split()[-2:] == ["type:", str(_id_of("sched_wakeup_new"))]
    fields = run(CUT, "sched_wakeup_new", "-O", "fields=yes", "-O", "context-info=no")[1].split("\n")[2]
    assert fields.startswith("sched_wakeup_new: comm=sh pid=0x")
    assert run(CUT, "-O", "overwrite", "-O", "nosleep-time")[0] == 0


def _id_of(name):
    with open_container(CUT) as trace:
        return next(event.id for event in trace.events.values() if event.name == name)


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("sym-ofset", "did you mean sym-offset?"),
        ("nonsense", "no option"),
        ("raw=1", "NAME=no"),
        ("noraw=no", "no option"),
        ("sym-userobj", "in no recording"),
    ],
)
def test_what_is_no_option(run, word, words) -> None:
    status, out, err = run(CUT, "-O", word)
    assert (status, out) == (2, "")
    assert words in err


def test_the_layout_is_that_of_the_tracer_that_recorded(run, tmp_path) -> None:
    made = recorded_layouts()["6.1"]
    write_folder(tmp_path, made, made["recordings"]["graph"])
    graph = str(tmp_path)
    out = run(graph)[1]
    assert out.startswith("# tracer: function_graph\n#\n# CPU  DURATION ")
    assert run(graph, "--tracer", "nop")[1].startswith("# tracer: nop\n#\n# entries-in-buffer")
    assert "# CPU  TASK/PID " in run(graph, "-O", "funcgraph-proc")[1]
    (tmp_path / "current_tracer").unlink()
    assert run(graph)[1] == out


def test_settings_of_the_recording_count(run, tmp_path) -> None:
    made = recorded_layouts()["tracers"]
    write_folder(tmp_path, made, made["recordings"]["timerlat"])
    assert run(str(tmp_path))[1].startswith("# tracer: timerlat\n#\n#                                _---")
    (tmp_path / "current_tracer").write_text("hwlat\n")
    (tmp_path / "trace_options").write_text("nocontext-info\nnoprint-parent\nof-another-kernel\n")
    assert run(str(tmp_path))[1].startswith("# tracer: hwlat\n#\n#1     context ")
    assert "entries-in-buffer" in run(str(tmp_path), "-O", "context-info")[1]


def test_the_text_of_trace_cmd(run) -> None:
    status, out, err = run(CUT, "sched_switch", "sched_waking", "--format", "report")
    assert status == 0
    assert out.startswith("cpus=2\n")
    assert ": sched_switch:         swapper/1:0 [120] R ==> " in out
    assert "the kernel would" not in err
    assert "as trace-cmd would" in run(CUT, "mm_page_alloc", "--format", "report")[2]


def test_a_filter_that_leaves_nothing_is_said(run) -> None:
    status, out, err = run(CUT, "irq", "--where", "prev_pid > 0")
    assert (status, err) == (1, "tracepoint: no record that is chosen passes 'prev_pid > 0'\n")
    assert "entries-written: 0/0" in out


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (("--cpu", "9"), "no records of CPU 9: the recording has CPU 0, 1"),
        (("--from", "99"), "no records in this range of times: the recording is from 10.629676 to"),
        (("--to", "1"), "no records in this range of times: the recording is from 10.629676 to"),
        (("--pid", "nosuch"), "no record that is chosen is of these tasks"),
    ],
)
@pytest.mark.parametrize("command", ["read", "cut", "convert", "merge"])
def test_a_choice_that_leaves_nothing_is_said(capsys, tmp_path, command, words, note) -> None:
    words = ["--until" if command == "convert" and word == "--to" else word for word in words]
    out = [
        *(["-o"] if command in ("cut", "merge") else []),
        str(tmp_path / ("out.csv" if command == "convert" else "out.dat")),
    ]
    status = main([command, CUT, *(out if command != "read" else ()), *words])
    err = capsys.readouterr().err
    assert (status, err.count("\n")) == (1, 1)
    assert err.startswith(f"tracepoint: {note}")


def test_a_recording_without_records_is_no_fault_of_a_choice(run, file_of) -> None:
    path = file_of(content_of(n_records=0))
    assert run(path)[0] == 0
    status, _, err = run(path, "tick")
    assert (status, err) == (1, "tracepoint: no record that is chosen is of these events\n")
