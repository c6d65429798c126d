"""`tracepoint index`, `tracepoint find`, and `tracepoint diff` of trees."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tracepoint.cli.main import main

SMALL = Path(__file__).parent / "small"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SMALL, tmp_path / "old")
    return str(tmp_path / "old")


def out_of(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(list(words)) == status
    return capsys.readouterr().out


def test_index_counts(tree: str, capsys) -> None:
    text = out_of(capsys, "index", tree)
    assert "4 events\n" in text
    assert "1 events without a caller\n" in text
    data = json.loads(out_of(capsys, "index", tree, "--json"))
    assert (data["schema"], data["calls"], data["calls_hidden_in_macros"]) == ("tracepoint.index/1", 3, 2)


def test_index_says_what_it_read_once(tree: str, capsys) -> None:
    main(["index", tree, "-v"])
    assert "5 files: 5 searched" in capsys.readouterr().err
    main(["index", tree, "-v"])
    assert capsys.readouterr().err == ""
    main(["index", tree, "-v", "--fresh"])
    assert "5 searched" in capsys.readouterr().err


def test_damaged_index_is_warned_of(tree: str, capsys) -> None:
    main(["index", tree])
    (index,) = Path("cache/tracepoint/trees").glob("*.index")
    index.write_bytes(b"nonsense")
    capsys.readouterr()
    assert main(["find", "swap_in", "--tree", tree]) == 0
    assert "rebuilt" in capsys.readouterr().err


def test_find_by_pattern(tree: str, capsys) -> None:
    assert out_of(capsys, "find", "swap:*leave", "--tree", tree).split()[0] == "swap:swap_leave"
    assert out_of(capsys, "find", "--system", "--tree", tree) == "swap 4\nsyscalls 2\n"
    assert out_of(capsys, "find", "--unused", "--tree", tree).startswith("swap:swap_never ")
    assert out_of(capsys, "find", "--duplicates", "--tree", tree, status=1) == ""
    assert out_of(capsys, "find", "--misnamed", "--tree", tree, status=1) == ""


def test_find_callers(tree: str, capsys) -> None:
    text = out_of(capsys, "find", "swap_in", "--callers", "--tree", tree)
    assert text.splitlines()[1:] == [
        "    [register] kernel/probe.c:7:9 start: register_trace_swap_in(probe, 0)",
        "    mm/swap.c:13:2 read_back: trace_swap_in(address, 1)",
        "    [exported to GPL modules] mm/swap.c:6",
        "    [created] mm/swap.c",
    ]
    data = json.loads(out_of(capsys, "find", "swap_in", "--callers", "--json", "--tree", tree))
    assert [s["function"] for s in data["events"][0]["sites"]] == ["start", "read_back"]
    assert data["events"][0]["proto"] == "unsigned long address, int major"


def test_find_nothing_guesses(tree: str, capsys) -> None:
    assert main(["find", "swap_inn", "--tree", tree]) == 1
    assert "did you mean swap_in?" in capsys.readouterr().err
    assert main(["find", "swpa:*", "--tree", tree]) == 1
    assert "did you mean swap:*?" in capsys.readouterr().err
    assert main(["find", "swap:in", "--tree", tree]) == 1
    assert "; did you mean" not in capsys.readouterr().err
    assert main(["find", "swap:swap_inn", "--tree", tree]) == 1
    assert "did you mean swap:swap_in?" in capsys.readouterr().err


def test_find_without_a_tree_takes_the_last_one(tree: str, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["find", "swap_in"]) == 2
    assert "--tree DIR" in capsys.readouterr().err
    main(["index", tree])
    capsys.readouterr()
    assert out_of(capsys, "find", "swap_in").startswith("swap:swap_in ")
    monkeypatch.chdir(Path(tree) / "mm")
    assert out_of(capsys, "find", "swap_in").startswith("swap:swap_in ")


def test_index_of_what_is_no_tree(tmp_path: Path, capsys) -> None:
    assert main(["index", str(tmp_path)]) == 2
    assert "tracepoint.h is missing" in capsys.readouterr().err
    assert main(["index", str(tmp_path / "none")]) == 2


def newer(tree: str) -> str:
    new = Path(tree).parent / "new"
    shutil.copytree(tree, new)
    header = new / "include/trace/events/swap.h"
    text = header.read_text()
    text = text.replace(
        "TP_PROTO(unsigned long address, int major)", "TP_PROTO(unsigned long address, long major)"
    )
    text = text.replace("__field(	int,		major		)", "__field(	long,		major		)")
    header.write_text(text.replace("DEFINE_PATH_EVENT(never);", "DEFINE_PATH_EVENT(late);"))
    return str(new)


def test_diff_of_trees(tree: str, capsys) -> None:
    lines = out_of(capsys, "diff", tree, newer(tree)).splitlines()
    before = "unsigned long address"
    assert [line.partition(" [")[0] for line in lines] == [
        "swap:swap_in major: 4 bytes before, 8 now (int -> long)",
        f"swap:swap_in: trace_swap_in({before}, int major) is now trace_swap_in({before}, long major)",
        "swap:swap_never: gone, but swap:swap_late is new and has the same fields: perhaps renamed",
    ]


@pytest.mark.parametrize(
    ("script", "status", "n_lines"),
    [
        ("tracepoint:swap:swap_in { @[args->major] = count(); }", 0, 0),
        ('SEC("tp/swap/swap_in") int f(struct trace_event_raw_swap_in *c) { return c->major; }', 1, 1),
        ('SEC("tp/swap/swap_in") int f(struct trace_event_raw_swap_in *c) { return c->address; }', 0, 0),
        ('SEC("raw_tp/swap_in") int f(void *c) { return 0; }', 1, 1),
        ("trace-cmd record -e swap:swap_never", 1, 1),
    ],
)
def test_diff_says_what_a_script_loses(tree: str, capsys, script: str, status: int, n_lines: int) -> None:
    Path("script").write_text(script)
    text = out_of(capsys, "diff", tree, newer(tree), "--uses", "script", "--breaking", status=status)
    assert len(text.splitlines()) == n_lines
    data = json.loads(out_of(capsys, "diff", tree, newer_again(tree), "--uses", "script", "--json"))
    assert list(data["uses"]) in (["swap:swap_in"], ["swap:swap_never"])


def newer_again(tree: str) -> str:
    return str(Path(tree).parent / "new")


def test_diff_warns_of_unknown_events(tree: str, capsys) -> None:
    Path("script").write_text("trace-cmd record -e swap:swap_ni")
    assert main(["diff", tree, newer(tree), "--uses", "script"]) == 0
    said = capsys.readouterr().err
    assert "swap:swap_ni is in neither" in said
    assert "no event of either" in said


def test_systems_as_json(tree: str, capsys) -> None:
    assert main(["find", "--system", "--tree", tree]) == 0
    lines = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert main(["find", "--system", "--json", "--tree", tree]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {name: str(number) for name, number in data["systems"].items()} == lines
    assert "events" not in data
