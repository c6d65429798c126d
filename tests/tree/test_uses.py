"""What a script uses: bpftrace, BCC, BPF C, perf, trace-cmd, tracefs and Python; and what a change means to it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace import fewer_turns
from tracepoint.cli.main import main
from tracepoint.layout.compare import Change, ChangeKind, Reader, event_added, event_removed
from tracepoint.tracefile.tracedat import open_tracedat
from tracepoint.tree.uses import find_uses

KNOWN = {"sched:sched_switch": ["prev_comm", "next_comm", "next_pid"], "kmem:kfree": ["ptr"]}


@pytest.mark.parametrize(
    ("text", "fields", "readers"),
    [
        (
            "tracepoint:sched:sched_switch { @[args.next_comm] = count() }",
            {"next_comm"},
            {"the format file by name"},
        ),
        (
            "trace-cmd record -e sched:sched_switch -f 'next_pid == 1'",
            {"next_pid"},
            {"the format file by name"},
        ),
        (
            "hist:keys=next_pid,next_comm:vals=hitcount > events/sched/sched_switch/trigger",
            {"next_pid", "next_comm"},
            {"the format file by name"},
        ),
        (
            'for r in trace["sched:sched_switch"]: print(r["prev_comm"])',
            {"prev_comm"},
            {"the format file by name"},
        ),
        (
            'SEC("tp/sched/sched_switch") int f(struct trace_event_raw_sched_switch *c) { return c->next_pid; }',
            {"next_pid"},
            {"hard-coded offsets"},
        ),
        (
            '#include "vmlinux.h"\nSEC("tp/sched/sched_switch") int f(void *c) { return BPF_CORE_READ(c, next_pid); }',
            {"next_pid"},
            {"eBPF with CO-RE"},
        ),
        ('SEC("tp_btf/sched_switch") int BPF_PROG(f, bool p) {}', set(), {"probes and raw tracepoints"}),
    ],
)
def test_uses_of_a_script(text: str, fields: set[str], readers: set[str]) -> None:
    uses = find_uses(text, KNOWN)
    assert uses.fields == {"sched:sched_switch": frozenset(fields)}
    assert uses.readers == readers


def test_uses_name_what_no_kernel_has() -> None:
    assert find_uses("-e sched:sched_swich -e nonsense:foo_bar", KNOWN).unknown == ("sched:sched_swich",)


MORE = {
    **KNOWN,
    "sched:sched_wakeup": ["comm", "pid", "prio"],
    "block:block_rq_issue": ["dev", "sector", "comm"],
    "block:block_rq_complete": ["dev", "sector", "error"],
    "ext4:ext4_da_write": ["dev", "ino"],
    "syscalls:sys_enter_openat": ["filename"],
    "syscalls:sys_exit_openat": ["ret"],
    "bpf_trace:bpf_trace_printk": ["bpf_string"],
}
BLOCK = {"block:block_rq_issue", "block:block_rq_complete"}


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("perf record -e 'block:*' -a", BLOCK),
        ("perf record -e block:block_rq_{issue,complete}", BLOCK),
        ("perf record -e sched:sched_w*", {"sched:sched_wakeup"}),
        ("trace-cmd record -e block sleep 1", BLOCK),
        ("trace-cmd record \\\n  -e block", BLOCK),
        ("echo 1 > /sys/kernel/tracing/events/block/enable", BLOCK),
        ("grep -e block log; sed -e block", set()),
        ("# block/*.c is not an event, nor is http://block:8080/", set()),
        ("perf trace -e openat,close", {"syscalls:sys_enter_openat", "syscalls:sys_exit_openat"}),
        ("strace -e openat", set()),
        ("TRACEPOINT_PROBE(kmem, kfree) { return 0; }", {"kmem:kfree"}),
        ('RAW_TRACEPOINT_PROBE(sched_switch) { bpf_trace_printk("x"); }', {"sched:sched_switch"}),
        ("def kmem__kfree(event_name, context, ptr): pass", {"kmem:kfree"}),
        ("tracepoint:block:block_rq_* { @ = count() }", BLOCK),
        ("t:kmem:kfree, t:sched:sched_switch { @ = count() }", {"kmem:kfree", "sched:sched_switch"}),
        (
            "rawtracepoint:sched_switch { } rt:vmlinux:sched_wakeup { }",
            {"sched:sched_switch", "sched:sched_wakeup"},
        ),
        ("// tracepoint:kmem:kfree { }\nBEGIN { }", set()),
    ],
)
def test_events_that_a_text_means(text: str, events: set[str]) -> None:
    uses = find_uses(text, MORE)
    assert set(uses.fields) == events
    assert uses.unknown == ()


def test_each_probe_of_bpftrace_asks_for_its_own_fields() -> None:
    text = """
        tracepoint:block:block_rq_issue /args->comm != ""/ { @s[args->dev, args.sector] = nsecs; /* args->error */ }
        tracepoint:block:block_rq_complete { if (@s[args->dev]) { printf("}"); } @ = args->sectr; }
        rawtracepoint:sched_switch { @ = arg0; }
        tracepoint:ext4:ext4_da_write { @ = args->ino }
        tracepoint:ext4:ext4_nosuch { }
    """
    uses = find_uses(text, MORE)
    assert uses.fields == {
        "block:block_rq_complete": {"dev"},
        "block:block_rq_issue": {"comm", "dev", "sector"},
        "ext4:ext4_da_write": {"ino"},
        "sched:sched_switch": frozenset(),
    }
    assert uses.missing == ("block:block_rq_complete sectr",)
    assert uses.unknown == ("ext4:ext4_nosuch",)
    assert uses.ways["sched:sched_switch"] == {Reader.PROBE}
    assert uses.ways["ext4:ext4_da_write"] == {Reader.BY_NAME}


def test_a_shell_may_use_several_tools() -> None:
    text = """#!/bin/sh
        bpftrace -e 'tracepoint:kmem:kfree { printf("%p {", args->ptr); }' &
        perf record -e sched:sched_switch --filter 'next_pid > 1' -a sleep 1
        perf script | awk '/next_comm/ { print $4 }'
    """
    uses = find_uses(text, MORE)
    assert uses.fields == {"kmem:kfree": {"ptr"}, "sched:sched_switch": {"next_pid"}}
    assert uses.ways == {"kmem:kfree": {Reader.BY_NAME}, "sched:sched_switch": {Reader.TEXT}}


def test_sections_say_how_an_ebpf_program_reads() -> None:
    text = """#include "vmlinux.h"
        SEC("tp/block/block_rq_issue") int a(struct trace_event_raw_block_rq *c) { return c->sector; }
        SEC("raw_tp/sched_switch") int BPF_PROG(b, bool preempt) { return 0; }
        SEC("tp_btf/sched_wakeup") int BPF_PROG(c, struct task_struct *p) { return 0; }
    """
    assert find_uses(text, MORE).ways == {
        "block:block_rq_issue": {Reader.BPF_CORE},
        "sched:sched_switch": {Reader.PROBE},
        "sched:sched_wakeup": {Reader.PROBE},
    }


def proto(before: str, after: str) -> Change:
    kind = ChangeKind.PROTO_CHANGED
    return Change(kind, "sched:sched_switch", "", before, after, frozenset({Reader.PROBE}), "")


def test_const_matters_to_modules_alone() -> None:
    raw = find_uses("rawtracepoint:sched_switch { }", MORE)
    module = find_uses("register_trace_sched_switch(probe, NULL);", MORE)
    const = proto("char *msg", "const char *msg")
    assert (raw.broken_by(const), module.broken_by(const)) == (frozenset(), {Reader.PROBE})
    other = proto("char *msg", "int n, const char *msg")
    assert raw.broken_by(other) == module.broken_by(other) == {Reader.PROBE}


def test_what_is_worth_telling() -> None:
    uses = find_uses("tracepoint:kmem:kfree { @ = args->ptr }", MORE)
    moved = Change(ChangeKind.FIELD_MOVED, "kmem:kfree", "ptr", "8", "16", frozenset({Reader.OFFSETS}), "")
    assert uses.concerns(moved)
    assert not uses.is_worth_telling(moved)
    assert uses.is_worth_telling(event_removed("kmem:kfree"))
    assert not uses.is_worth_telling(event_removed("sched:sched_switch"))
    assert uses.is_worth_telling(event_added("kmem:kfree"))


PIECES = [
    "tracepoint:",
    "t:",
    "block:",
    "*",
    "{",
    "}",
    "/",
    '"',
    "'",
    "args->dev",
    "(",
    ",",
    "-e ",
    "trace-cmd ",
    "SEC(",
]


@given(
    st.lists(
        st.sampled_from([*PIECES, "perf trace ", "sched_switch", "\n", " ", "[", "def a__b("]), max_size=40
    )
)
def test_any_text_is_read(pieces: list[str]) -> None:
    uses = find_uses("".join(pieces), MORE)
    assert uses.fields.keys() <= MORE.keys()
    assert all(fields <= set(MORE[name]) for name, fields in uses.fields.items())


@pytest.mark.parametrize(
    "piece",
    [
        "tracepoint:a:b {",
        "{",
        "}",
        "t:a:b ",
        "a:b{c,",
        '("',
        "/*",
        "perf trace -e ",
        "-e ",
        "a:[",
        ", a",
        "SEC(",
    ],
)
def test_a_long_text_is_read_soon(piece: str) -> None:
    with fewer_turns(100):
        find_uses(piece * 20_000, MORE)


# The command.

SMALL = Path(__file__).parent / "small"
GOLDEN = Path(__file__).parents[1] / "tracefile/golden/cut.v6.dat"


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A tree, and one in which a field of swap_in came before another one, and has a printed line of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("old", "new"):
        shutil.copytree(SMALL, tmp_path / name)
    header = tmp_path / "new/include/trace/events/swap.h"
    text = header.read_text()
    assert text.count("TP_STRUCT__entry(") >= 1
    header.write_text(text.replace("TP_STRUCT__entry(", "TP_STRUCT__entry(__field(u64, first) ", 1))
    return str(tmp_path / "old"), str(tmp_path / "new")


def test_the_command_tells_what_a_script_loses(
    trees: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "my.bt"
    script.write_text(
        "tracepoint:swap:swap_in { @[args->address, args->nosuch, args->majr] = count(); } tracepoint:swap:swap_out {}"
    )
    assert main(["diff", *trees, "--uses", str(script), "--breaking"]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{script}: swap:swap_in nosuch: no such field in either of them\n" in told.err
    assert "swap_in majr: no such field in either of them; did you mean major?" in told.err
    assert f"{script}: swap:swap_out is in neither of them" in told.err
    assert "without effect on this reader (-v)" not in told.err
    assert main(["diff", *trees, "--uses", str(script)]) == 0
    told = capsys.readouterr()
    assert "moved" not in told.out
    assert "2 changes without effect on this reader (-v)" in told.err
    assert main(["diff", *trees, "--uses", str(script), "-v"]) == 0
    assert "address: moved from offset 8 to 16" in capsys.readouterr().out
    script.write_text(
        'SEC("tp/swap/swap_in") int f(struct trace_event_raw_swap_in *c) { return c->address; }'
    )
    assert main(["diff", *trees, "--uses", str(script), "--breaking"]) == 1
    assert "[breaks hard-coded offsets]" in capsys.readouterr().out


def test_the_sign_of_text_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'name: a_b\nID: 1\nformat:\n\tfield:char x[4];\toffset:8;\tsize:4;\tsigned:{};\n\nprint fmt: "x"\n'
    for sign in (0, 1):
        (tmp_path / f"{sign}.format").write_text(text.format(sign))
    words = ["diff", str(tmp_path / "1.format"), str(tmp_path / "0.format")]
    assert main(words) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "the sign of char changed in 1 field with text, without effect (-v)" in told.err
    assert "1 change, 0 of them break readers" in told.err
    assert main([*words, "-v"]) == 0
    assert "x: now unsigned; text reads the same" in capsys.readouterr().out


def test_a_recording_uses_what_it_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    formats = tmp_path / "new"
    with open_tracedat(GOLDEN) as trace:
        for system, text in trace.formats:
            name = text.partition("\n")[0].removeprefix("name: ")
            (formats / system / name).mkdir(parents=True)
            shown = text.replace(" vruntime;", " virtual;") if name == "sched_stat_runtime" else text
            (formats / system / name / "format").write_text(shown)
    extra = 'name: extra\nID: 1\nformat:\n\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: "x"\n'
    (formats / "sched/extra").mkdir()
    (formats / "sched/extra/format").write_text(extra)
    assert main(["diff", str(GOLDEN), str(formats), "--breaking"]) == 1
    told = capsys.readouterr()
    assert told.out.startswith("sched:sched_stat_runtime vruntime: the field (u64) is gone")
    assert main(["diff", str(GOLDEN), str(formats)]) == 0
    assert (
        "extra" not in capsys.readouterr().out
    )  # it may have been there: a recording has only what was enabled
    assert main(["diff", str(formats), str(formats), "--uses", str(GOLDEN)]) == 0
    assert f"{GOLDEN} uses " in capsys.readouterr().err


def test_a_compiled_program_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "prog.o").write_bytes(b"\x7fELF" + b"sched_switch" * 9)
    words = [str(SMALL / "include/trace/events/swap.h")] * 2
    assert main(["diff", *words, "--uses", str(tmp_path / "prog.o")]) == 2
    assert "a compiled program; give its C source" in capsys.readouterr().err


@pytest.mark.parametrize(
    "part",
    [
        "a.",
        "a-",
        "a__",
        "perf script ",
        "/* ",
        "tracepoint:a:",
        "a:b{c,",
        "t:a:b ",
        "-e a,",
        'SEC("tp/',
        "a:*",
    ],
)
def test_endless_words_take_no_time(part: str) -> None:
    with fewer_turns(200):
        find_uses("def " + part * 30_000, KNOWN)
