"""The text of `trace`: heading, line formats, and the kernel's own text of real records."""

import re
import struct

import pytest

from tracefile.making import GOLDEN, HASHED, KNOWN, TICK_ID, content_of, tgids_in, tick, tick_format, written
from tracepoint.layout.format import read_format
from tracepoint.printk.facts import RenderFacts
from tracepoint.record.raw import RawRecord
from tracepoint.tracefile.recording import read_pairs, read_tgids
from tracepoint.tracefile.text import TextWriter, facts_of, flags_text, microseconds
from tracepoint.tracefile.textoptions import TextOptions
from tracepoint.tracefile.tracedat import open_tracedat, read_tracedat

EVENTS = {TICK_ID: read_format(tick_format(), "demo")}
FACTS = RenderFacts(comms={7: "worker", 8: "a-very-long-name-"})


def writer(**options):
    return TextWriter(EVENTS, FACTS, TextOptions(**options))


def record(time=1_234_567_500, cpu=0, lost=0, **fields):
    return RawRecord(time, cpu, tick(3, "ab", **fields), lost)


@pytest.mark.parametrize(
    ("flags", "count", "text"),
    [
        (0x00, 0x00, "....."),
        (0x01, 0x01, "d..1."),
        (0x80, 0x00, "b...."),
        (0x81, 0x00, "D...."),
        (0x02, 0x00, "X...."),
        (0x03, 0x00, "d...."),
        (0x04, 0x00, ".n..."),
        (0x20, 0x00, ".p..."),
        (0x24, 0x00, ".N..."),
        (0x08, 0x00, "..h.."),
        (0x10, 0x00, "..s.."),
        (0x18, 0x00, "..H.."),
        (0x40, 0x00, "..z.."),
        (0x48, 0x00, "..Z.."),
        (0x58, 0x00, "..Z.."),
        (0x00, 0x2F, "...f2"),
    ],
)
def test_flags(flags, count, text):
    assert flags_text(flags, count) == text


@pytest.mark.parametrize(
    ("flags", "text"),
    [(0x02, ".l."), (0x06, ".b."), (0x22, ".L."), (0x26, ".B."), (0x24, ".N."), (0x83, "Dl.")],
)
def test_flags_of_kernels_that_reschedule_lazily(flags, text):
    assert flags_text(flags, 0, may_be_lazy=True) == f"{text}.."


def test_times_are_rounded_to_nearest():
    assert [microseconds(t) for t in (0, 499, 500, 1499, 1500)] == [0, 0, 1, 1, 2]


def test_plain_line():
    assert writer().line(record()) == "          worker-7       [000] .....     1.234568: tick: n=3 name=ab\n"


def test_names_of_tasks():
    lines = [writer().line(record(pid=pid)) for pid in (0, -5, 99, 8)]
    assert [line[: line.index(" [")] for line in lines] == [
        "          <idle>-0      ",
        "           <XXX>--5     ",
        "           <...>-99     ",
        "a-very-long-name--8      ",
    ]


def test_process_of_a_task():
    with_tgid = TextWriter(EVENTS, FACTS, TextOptions(record_tgid=True), {7: 5})
    assert with_tgid.line(record()).startswith("          worker-7       (      5) [000] ..... ")
    assert with_tgid.line(record(pid=9)).startswith("           <...>-9       (-------) [000] ..... ")


def test_options_that_leave_things_out():
    assert writer(irq_info=False).line(record()).startswith("          worker-7       [000]      1.234568: ")
    assert writer(context_info=False).line(record()) == "tick: n=3 name=ab\n"


@pytest.mark.parametrize("clock", ["counter", "uptime", "x86-tsc"])
def test_clocks_that_do_not_count_nanoseconds(clock):
    line = writer(clock=clock).line(record(time=77))
    assert line == "          worker-7       [000] .....           77: tick: n=3 name=ab\n"


def test_unknown_type_and_record_that_is_too_short():
    data = struct.pack("<HBBi", 999, 0, 0, 7)
    assert writer().line(RawRecord(0, 0, data, 0)).endswith(": Unknown type 999\n")
    assert writer().line(RawRecord(0, 0, b"", 0)).endswith(": Unknown type 0\n")


def test_lost_events():
    some, unknown = writer().line(record(lost=12)), writer().line(record(lost=-1, cpu=3))
    assert some.startswith("CPU:0 [LOST 12 EVENTS]\n          worker-7")
    assert unknown.startswith("CPU:3 [LOST EVENTS]\n          worker-7")


def test_begin_of_buffers_is_shown_when_events_were_overwritten():
    cpus = (1, 3, 0, 1, 3, 0)
    records = [*(record(cpu=cpu) for cpu in cpus), record(cpu=2, lost=4)]
    text = "".join(writer().lines(records, has_overruns=True)).split("\n")
    kinds = [line if line.startswith(("#", "CPU")) else line[25:30] for line in text[:-1]]
    assert kinds == [
        "[001]",
        "[003]",  # the kernel tests for more than one line before, not for one
        "##### CPU 0 buffer started ####",
        "[000]",
        "[001]",
        "[003]",
        "[000]",
        "CPU:2 [LOST 4 EVENTS]",
        "##### CPU 2 buffer started ####",
        "[002]",
    ]
    assert "started" not in "".join(writer().lines(records))
    assert "started" not in "".join(writer(annotate=False).lines(records, has_overruns=True))


def test_latency_lines_count_from_the_begin_and_mark_delays():
    times = [5000, 9000, 29_000, 229_000, 3_229_000, 33_229_000, 333_229_000, 3_333_229_000]
    options = writer(latency_format=True, time_start_ns=1000)
    lines = list(options.lines([record(time=t, flags=1, count=1) for t in times]))
    assert lines[0] == "  worker-7         0d..1.    4us : tick: n=3 name=ab\n"
    assert [re.search(r"us(.):", line)[1] for line in lines] == list(" +!#*@$ ")


def test_verbose_latency_lines():
    options = writer(latency_format=True, verbose=True)
    lines = list(options.lines([record(time=2_345_000), record(time=3_456_000)]))
    assert lines[0] == (
        "          worker       7   0 0 00000000 00000000 [00000929] 2.345ms (+1.111ms): tick: n=3 name=ab\n"
    )
    ticks = writer(latency_format=True, verbose=True, clock="counter")
    assert "[000000000000004d] 77 (+0): " in next(ticks.lines([record(time=77)]))
    assert "   77: " in writer(latency_format=True, clock="counter").line(record(time=77))


def test_headings():
    assert writer(irq_info=False).header(1, 2, 3) == (
        "# tracer: nop\n#\n# entries-in-buffer/entries-written: 1/2   #P:3\n#\n"
        "#           TASK-PID     CPU#     TIMESTAMP  FUNCTION\n"
        "#              | |         |         |         |\n"
    )
    assert writer(context_info=False).header(1, 2, 3) == "# tracer: nop\n#\n"
    assert writer(verbose=True).header(1, 2, 3) == "# tracer: nop\n#\n"
    latency = writer(latency_format=True, release="6.1.0").header(5, 7, 2)
    assert "# nop latency trace v1.1.5 on 6.1.0\n" in latency
    assert "# latency: 0 us, #5/7, CPU#0 | (M:? VP:0, KP:0, SP:0 HP:0 #P:2)\n" in latency
    assert "#    | task: -0 (uid:0 nice:0 policy:0 rt_prio:0)\n" in latency
    assert latency.endswith("#     \\   /        ||||||  \\    |    /       \n")
    assert writer(latency_format=True).header(0, 0, 2) == "# tracer: nop\n#\n"


@pytest.mark.parametrize(
    "tracer", ["irqsoff", "preemptoff", "preemptirqsoff", "wakeup", "wakeup_rt", "wakeup_dl"]
)
def test_headings_of_latency_tracers_name_nothing_that_is_not_recorded(tracer):
    """As Documentation/trace/ftrace.rst shows them, with a `?` for what only the kernel knew."""
    options = {"release": "6.1.0", "preemption": "preempt", "tracer": tracer, "latency_format": True}
    section = "#  => started at: ?\n#  => ended at:   ?\n#\n" if tracer.endswith("off") else ""
    assert (
        writer(**options)
        .header(4, 4, 4)
        .startswith(
            f"# tracer: {tracer}\n#\n# {tracer} latency trace v1.1.5 on 6.1.0\n# {68 * '-'}\n"
            "# latency: ? us, #4/4, CPU#? | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:4)\n"
            "#    -----------------\n#    | task: ?-? (uid:? nice:? policy:? rt_prio:?)\n#    -----------------\n"
            f"{section}#\n#                    _------=> CPU#"
        )
    )


def test_saved_names():
    assert read_pairs("1 init\nx y\n\n7 a b\n99999999999 z\n") == {1: "init", 7: "a b"}
    assert read_tgids("7 6\n8 x\n") == {7: 6}


@pytest.mark.parametrize(("is_big_endian", "long_size"), [(False, 4), (True, 4), (True, 8)])
def test_other_byte_orders(is_big_endian, long_size):
    trace = read_tracedat(written(content_of(is_big_endian, long_size, n_records=3)))
    text = TextWriter(trace.events, facts_of(trace), is_big_endian=is_big_endian)
    assert list(text.lines(trace.buffers[0].records())) == [
        f"          worker-7       [00{n % 2}] .....     1.00000{n}: tick: n={n} name=a\n" for n in range(3)
    ]


def test_records_of_a_real_kernel_read_as_its_own_text():
    expected = (GOLDEN / "cut.trace.txt").read_text()
    trace = open_tracedat(GOLDEN / "cut.v6.dat")
    options = TextOptions(clock=trace.clock, record_tgid=True)
    made = TextWriter(trace.events, facts_of(trace, KNOWN), options, tgids_in(expected))
    text = made.header(30791, 30791, 2) + "".join(made.lines(trace.buffers[0].records()))
    assert HASHED.sub("P", text) == HASHED.sub("P", expected)
    assert made.notes == {}
