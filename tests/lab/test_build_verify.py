"""The parts of a verification that need no guest: script, answers, pages, comparison, the module's probes."""

from __future__ import annotations

import io
import struct
import subprocess
import tarfile
from dataclasses import replace

import pytest

from tracepoint.errors import LabError
from tracepoint.generate.inputs.variables import plan_inputs
from tracepoint.lab.build.module import BuildError, CompilerMessage
from tracepoint.lab.simulate.event import simulate_event
from tracepoint.lab.verify.compare import expected_record, find_differences
from tracepoint.lab.verify.event import choose_filter
from tracepoint.lab.verify.module import at_the_header, make_module, replaced_parts
from tracepoint.lab.verify.script import EventToFire, read_answers, read_lines, read_records, write_script
from tracepoint.layout.format import write_format
from tracepoint.model.read import read_header_text
from tracepoint.tree.tracing_macros import TreeFacts

TEXT = """\
#define TRACE_SYSTEM demo
#include <linux/tracepoint.h>
TRACE_EVENT(one,
	TP_PROTO(struct thing *p, int n),
	TP_ARGS(p, n),
	TP_STRUCT__entry(
		__field(u8, small)
		__field(int, n)
		__array(char, name, 8)
	),
	TP_fast_assign(
		__entry->small = p->small;
		__entry->n = n;
		strscpy(__entry->name, "ab", 8);
	),
	TP_printk("small=%u n=%d", __entry->small, __entry->n)
);
"""
LINE = "             cat-165     [000] .....     2.772260: one: small=3 n=-5"


@pytest.fixture
def header():
    return read_header_text(TEXT, "demo.h")


def test_what_is_replaced_and_left_out_is_listed():
    text = TEXT.replace("__entry->n = n;", "WARN_ON_ONCE(!p); __entry->n = READ_ONCE(p->n) + lookup(p, n);")
    header = read_header_text(text, "demo.h")
    uses = simulate_event(header["one"]).uses
    found = replaced_parts(header, plan_inputs(header.events, {"demo:one": uses}))
    assert found["demo:one"] == (
        "variables stand for: p->small, p->n, lookup(p, n)",
        "left out to fire it: WARN_ON_ONCE(!p)",
    )
    plain = read_header_text(TEXT.replace("p->small", "n"), "demo.h")
    uses = simulate_event(plain["one"]).uses
    assert replaced_parts(plain, plan_inputs(plain.events, {"demo:one": uses}))["demo:one"] == ()


@pytest.fixture
def simulation(header):
    made = simulate_event(header["one"], set_values={"n": "-5", "p->small": "3"})
    return replace(made, layout=replace(made.layout, id=1392))


def page(*records: bytes) -> bytes:
    body = b""
    for record in records:
        padded = record + b"\xee" * (-len(record) % 4)
        body += (
            struct.pack("<I", len(padded) // 4) + padded
            if len(padded) <= 112
            else struct.pack("<II", 0, len(padded) + 4) + padded
        )
    return (struct.pack("<QQ", 77, len(body)) + body).ljust(4096, b"\0")


def archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def kernel_record(simulation, n=-5) -> bytes:
    """What a kernel makes of it: its id and pid, and old bytes where nothing is stored."""
    record = bytearray(simulation.shots[0].record)
    record[:8] = struct.pack("<HBBi", 1392, 4, 1, 165)
    record[9:12] = b"old"
    record[12:16] = struct.pack("<i", n)
    record[19:24] = b"stale"
    return bytes(record)


def answers(simulation, **changed):
    files = {
        "0/listed": b"1\n", "0/id": b"1392\n", "0/enable": b"1\n", "0/disabled": b"0\n",
        "0/format": write_format(simulation.layout).encode(), "0/filter": b"small == 3\n",
        "0/filter_text": b"small == 3\n", "counts": b"1\n", "lost": b"0\n0\n",
        "trace": f"# tracer: nop\n{LINE}\n".encode(), "raw": page(kernel_record(simulation)),
    }  # fmt: skip
    return read_answers(archive(files | changed), [EventToFire("demo", "one", "/x", ("-",), "small == 3")])


def test_what_a_kernel_says_as_simulated_is_no_difference(simulation):
    (answer,) = answers(simulation)
    assert (answer.id, answer.count, answer.texts) == (1392, 1, ("small=3 n=-5",))
    assert answer.lines == (LINE,)
    assert find_differences(simulation, answer, "small == 3") == ()
    assert choose_filter(simulation) == "small == 3"


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"0/listed": b"0\n"}, "listed"),
        ({"0/enable": b"1*\n"}, "enable"),
        ({"0/disabled": b"1\n"}, "enable"),
        ({"0/filter": b"", "0/filter_text": b"small == 3\n^\nparse_error: Field not found\n"}, "filter"),
        ({"counts": b"2\n"}, "probe"),
        ({"trace": f"{LINE}0\n".encode()}, "text"),
        ({"raw": b"", "trace": b""}, "firing"),
    ],
)
def test_every_difference_is_told(simulation, changed, what):
    (answer,) = answers(simulation, **changed)
    assert [d.what for d in find_differences(simulation, answer, "small == 3")] == [what]


def test_a_difference_in_format_and_bytes_is_told(simulation):
    changed = {
        "0/format": write_format(simulation.layout).replace("signed:1", "signed:0", 1).encode(),
        "raw": page(kernel_record(simulation, n=7)),
    }
    (answer,) = answers(simulation, **changed)
    first, second = find_differences(simulation, answer, "small == 3")
    assert (first.what, second.what, second.places) == ("format", "record", (12, 13, 14, 15))


def test_only_bytes_that_nothing_stores_are_taken_from_the_kernel(simulation):
    shot = simulation.shots[0]
    expected = expected_record(shot, b"\xff" * len(shot.record), simulation.layout)
    kept = [offset for offset in range(8, len(expected)) if expected[offset] != 0xFF]
    # small, n (all ones but its lowest byte, as -5 is), and "ab" with its end.
    assert kept == [8, 12, 16, 17, 18]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"lost": b"3\n"}, "records were lost"),
        ({"trace": b""}, "0 lines for 1 records"),
        ({"raw": b"\xff" * 4096}, "cannot be read"),
    ],
)
def test_answers_that_do_not_fit_together(simulation, changed, said):
    with pytest.raises(LabError, match=said):
        answers(simulation, **changed)


def test_damaged_archive():
    with pytest.raises(LabError, match="cannot be read"):
        read_answers(b"\x01" * 700, [])


@pytest.mark.parametrize("size", [1, 8, 112, 113, 1000])
def test_records_of_all_lengths(size):
    record = bytes(i % 251 for i in range(size))
    first, second = (read.data for read in read_records(page(record, record)))
    assert first[:size] == second[:size] == record
    assert len(first) - size < 4


def test_lines_that_go_on_are_joined():
    assert read_lines(f"# x\n{LINE}\n00000000: 01\n{LINE}\n") == [f"{LINE}\n00000000: 01", LINE]


def test_the_script_is_one_that_a_shell_reads():
    target = EventToFire("demo", "one", "/sys/kernel/debug/x/one", ("=01", "-"), 'name == "it\'s"')
    script = write_script([target], ["/sys/module/x/parameters/probes"], 256)
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "look 0 demo/one demo:one 'name == \"it'\"'\"'s\"'\n" in script
    assert "<<'END-OF-LINES'\n=01\n-\nEND-OF-LINES\n" in script


def test_the_module_counts_with_a_probe_for_each_event(header, simulation):
    files, plan = make_module(header, "demo", {"demo:one": simulation.uses}, TreeFacts(2), "other")
    assert "static void demo_count_0(void *tracepoint_count, struct thing *p, int n)" in files["demo.c"]
    assert "register_trace_one(demo_count_0, &demo_counts[0])" in files["demo.c"]
    assert "#define TRACE_SYSTEM other" in files["demo_trace.h"]
    assert plan.line("one", simulation.shots[0].inputs) == "=03 =fbffffff"


def test_errors_lead_to_the_lines_that_somebody_wrote(header, simulation):
    files, _ = make_module(header, "demo", {"demo:one": simulation.uses}, TreeFacts(2), "")
    lines = files["demo_trace.h"].splitlines()
    number = 1 + next(i for i, line in enumerate(lines) if "TP_printk(" in line)
    messages = (
        CompilerMessage("demo_trace.h", number, 5, "wrong here"),
        CompilerMessage("include/trace/stages/stage3.h", 9, 1, "deep", (("demo_trace.h", number),)),
        CompilerMessage("demo.c", 3, 1, "elsewhere"),
    )
    error = at_the_header(BuildError("x", "make", 2, "tail", messages), header, files)
    own = 1 + next(i for i, line in enumerate(TEXT.splitlines()) if "TP_printk" in line)
    assert [(m.path, m.line) for m in error.messages] == [("demo.h", own), ("demo.h", own), ("demo.c", 3)]
    assert str(error).startswith(
        f"demo.h: its events do not compile for this kernel\ndemo.h:{own}: wrong here\n"
    )
