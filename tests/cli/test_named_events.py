"""An event's name in the place of a file: found in an index, in installed headers, in a running kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from control.fake import FakeTracefs, default_formats
from tracepoint.cli.main import main
from tracepoint.cli.output import Output
from tracepoint.cli.tree import named_events
from tracepoint.cli.tree.named_events import find_declaring
from tracepoint.control.session import open_tracefs
from tracepoint.layout.format import read_format

SMALL = Path(__file__).resolve().parents[1] / "tree" / "small"
SWAP = "examples/swap.h"


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No index, no installed headers, no tracefs: each test brings what it needs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(named_events, "_PLACES", ())
    monkeypatch.setattr(named_events, "read_running", lambda word: [])
    monkeypatch.setattr("tracepoint.cli.inputs.read_running", lambda word: [])


def test_the_tree_here_tells_where_an_event_is_declared(monkeypatch, capsys) -> None:
    monkeypatch.chdir(SMALL)
    assert main(["show", "swap_in"]) == 0
    assert capsys.readouterr().out.startswith("name: swap_in\n")
    assert main(["try", "--summary", "swap_*"]) in (0, 1)
    assert " events simulated" in capsys.readouterr().out


def test_the_tree_indexed_last_tells_elsewhere(monkeypatch, tmp_path: Path, capsys) -> None:
    assert main(["index", str(SMALL)]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["show", "--as", "layout", "swap_in"]) == 0
    assert "swap_in: " in capsys.readouterr().out


def test_installed_headers_are_searched_without_an_index(monkeypatch, tmp_path: Path) -> None:
    events = tmp_path / "linux-headers-6.1/include/trace/events"
    events.mkdir(parents=True)
    swap = Path(SWAP).resolve()
    (events / "kmem.h").write_text(swap.read_text())
    monkeypatch.setattr(named_events, "_PLACES", (f"{tmp_path}/linux-headers-*",))
    monkeypatch.chdir(tmp_path)
    assert find_declaring("mm_page_swap_in", Output()) == [events / "kmem.h"]
    assert find_declaring("kmem:mm_page_swap_*", Output()) == [events / "kmem.h"]
    assert find_declaring("mm_page_swap", Output()) == []


def test_a_running_kernel_tells_of_what_no_header_declares(monkeypatch, tmp_path: Path, capsys) -> None:
    text = 'name: other\nID: 7\nformat:\n\tfield:int n;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: "%d", REC->n\n'
    monkeypatch.setattr("tracepoint.cli.inputs.read_running", lambda word: [read_format(text, "mine")])
    monkeypatch.chdir(tmp_path)
    assert main(["show", "mine:other"]) == 0
    assert capsys.readouterr().out.startswith("name: other\nID: 7\n")


def test_the_running_kernel_is_asked_for_formats(monkeypatch) -> None:
    monkeypatch.undo()
    fake = FakeTracefs()
    monkeypatch.setattr(named_events, "open_tracefs", lambda **more: open_tracefs(fake, **more))
    assert [f"{f.system}:{f.name}" for f in named_events.read_running("sched:*")] == sorted(
        name for name in default_formats() if name.startswith("sched:")
    )
    assert named_events.read_running("no_such_event") == []


def test_nothing_found_says_where_it_was_looked_for(monkeypatch, tmp_path: Path, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["try", "no_such_event"]) == 2
    told = capsys.readouterr().err
    assert "no file and no event 'no_such_event'" in told
    assert "tracepoint index TREE" in told


def test_a_header_names_what_it_declares(capsys) -> None:
    assert main(["show", f"{SWAP}:foo"]) == 2
    assert "no event 'foo'; it declares mm_page_swap_in, mm_page_swap_out" in capsys.readouterr().err


def test_a_pattern_after_the_header_chooses_events(capsys) -> None:
    assert main(["show", f"{SWAP}:*_in"]) == 0
    assert capsys.readouterr().out.count("name: ") == 1
    assert main(["show", f"{SWAP}:kmem:mm_*"]) == 0
    assert capsys.readouterr().out.count("name: ") == 2
