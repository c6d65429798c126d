"""`tracepoint generate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracepoint.cli.declare import generate_kernel
from tracepoint.cli.main import main
from tracepoint.errors import LabError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SWAP = str(EXAMPLES / "swap.h")
KINDS = {
    "module": [SWAP],
    "header": [SWAP],
    "probe": [f"{SWAP}:mm_page_swap_in", "--by-name"],
    "lttng": [SWAP],
    "bpf": [f"{SWAP}:mm_page_swap_in"],
    "bpf-counter": [f"{SWAP}:mm_page_swap_in"],
    "bpftrace": [f"{SWAP}:mm_page_swap_in", "--measure", "hist:address"],
    "commands": [SWAP],
    "markdown": [SWAP],
}


@pytest.fixture(autouse=True)
def no_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made does not depend on what this machine has; test_target_kernel.py is about that."""

    def none_here() -> Path:
        raise LabError("none")

    monkeypatch.setattr(generate_kernel, "find_kernel_headers", none_here)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_writes_files_and_prints_them(kind: str, tmp_path: Path, capsys) -> None:
    assert main(["generate", kind, *KINDS[kind], "-o", str(tmp_path / "out")]) == 0
    written = sorted(p for p in (tmp_path / "out").rglob("*") if p.is_file())
    said = capsys.readouterr()
    assert said.out == ""
    assert all(str(path) in said.err for path in written)
    assert written
    assert main(["generate", kind, *KINDS[kind]]) == 0
    printed = capsys.readouterr().out
    assert all(path.read_text().strip() in printed for path in written)


def test_files_are_not_replaced_unless_forced(tmp_path: Path, capsys) -> None:
    words = ["generate", "markdown", SWAP, "-o", str(tmp_path)]
    assert main(words) == 0
    (tmp_path / "swap.md").write_text("mine")
    assert main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "swap.md").read_text() == "mine"
    assert main([*words, "--force"]) == 0
    assert (tmp_path / "swap.md").read_text() != "mine"


def test_one_event_only(capsys) -> None:
    assert main(["generate", "module", f"{SWAP}:mm_page_swap_in", "--name", "m", "--system", "mine"]) == 0
    text = capsys.readouterr().out
    assert "fire_trace_mm_page_swap_in" in text
    assert "mm_page_swap_out" not in text
    assert "#define TRACE_SYSTEM mine" in text


def test_a_probe_for_a_tracepoint_without_an_event(capsys) -> None:
    words = ["generate", "probe", str(EXAMPLES / "legacy_subsys.h"), "--header", '"subsys_trace.h"']
    assert main([*words, "--name", "example_probe"]) == 0
    text = capsys.readouterr().out
    assert "static void probe_hit(void *__data, int firstarg, struct task_struct *p)" in text
    assert "register_trace_subsys_eventname(probe_hit, &probe_private)" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["probe", SWAP], "write HEADER:EVENT (there are mm_page_swap_in, mm_page_swap_out)"),
        (["module", SWAP, str(EXAMPLES / "traps.h")], "2 headers are named"),
        (["bpftrace", SWAP], "2 are named"),
        (["module", SWAP, "--arg", "nobody=1"], "no event has a parameter nobody"),
        (["module", SWAP, "--kernel-headers", "/nowhere"], "no kernel headers here"),
        (["moduel", SWAP], "invalid choice: 'moduel'"),
    ],
)
def test_wrong_words(words: list[str], message: str, capsys) -> None:
    assert main(["generate", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--system", "a b"], "'a b' is not a valid name for a TRACE_SYSTEM"),
        (["--prefix", "1-"], "'1-' is not a valid name for a prefix"),
        (["--with", "foo"], "'foo' cannot be included: write <file.h>"),
        (["--with", '<a.h>\n#error "x"'], "cannot be included"),
    ],
)
@pytest.mark.parametrize("kind", ["module", "header"])
def test_what_would_be_no_c_is_refused(kind: str, words: list[str], said: str, capsys) -> None:
    assert main(["generate", kind, SWAP, *words]) == 2
    assert said in capsys.readouterr().err


def test_a_probe_refuses_what_cannot_be_included(capsys) -> None:
    assert main(["generate", "probe", f"{SWAP}:mm_page_swap_in", "--with", "foo"]) == 2
    assert "'foo' cannot be included" in capsys.readouterr().err


def test_a_system_from_the_command_line_is_enough(tmp_path: Path, capsys) -> None:
    (tmp_path / "s.h").write_text(
        "TRACE_EVENT(tick, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),"
        ' TP_fast_assign(__entry->n = n;), TP_printk("n=%d", __entry->n));\n'
    )
    assert main(["generate", "module", str(tmp_path / "s.h"), "--system", "demo"]) == 0
    assert "#define TRACE_SYSTEM demo" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "made"), [("s w.h", "s_w"), ("1-x.h", "trace_1_x"), (f"{'a' * 60}.h", "a" * 33)]
)
def test_any_file_gives_a_name_that_c_takes(file: str, made: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text((EXAMPLES / "swap.h").read_text())
    assert main(["generate", "module", str(tmp_path / file), "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / f"{made}_events.c").exists()


def test_a_page_is_made_from_declarations(capsys) -> None:
    file = EXAMPLES / "kernel/sched/sched_switch-6.1.format"
    assert main(["generate", "markdown", str(file)]) == 2
    assert "a page is generated from declarations in headers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        ("markdown", ["--export"], "markdown has no use for --export, which is for module\n"),
        ("commands", ["--by", "pid"], "commands has no use for --by, which is for bpftrace\n"),
        (
            "bpf",
            ["--with", "<a.h>"],
            "bpf has no use for --with, which is for module, header, probe, lttng\n",
        ),
        ("stubs", ["--kernel-headers", "/"], "stubs has no use for --kernel-headers, which is for module"),
        ("module", ["--lttng", "2013"], "module has no use for --lttng, which is for lttng\n"),
    ],
)
def test_an_option_of_another_kind_is_refused(kind: str, words: list[str], said: str, capsys) -> None:
    assert main(["generate", kind, SWAP, *words]) == 2
    assert said in capsys.readouterr().err
