"""`tracepoint generate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracepoint.cli.main import main

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
    assert "static void probe_hit(void *data, int firstarg, struct task_struct *p)" in text
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
