"""`tracepoint show` and `tracepoint diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracepoint.cli.main import main
from tracepoint.layout.format import read_format
from tracepoint.model.read import read_header_text
from tracepoint.model.schema import read_json
from tracepoint.source.text import decode

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DEMO = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM demo
TRACE_EVENT(page_in, TP_PROTO(unsigned long pfn, bool major), TP_ARGS(pfn, major),
	TP_STRUCT__entry(__field(unsigned long, pfn) __field(unsigned long, address) __field(bool, major)),
	TP_fast_assign(__entry->pfn = pfn; __entry->address = pfn << 12; __entry->major = major;),
	TP_printk("pfn=%lx address=%lx major=%d", __entry->pfn, __entry->address, __entry->major));
TRACE_EVENT(page_out, TP_PROTO(unsigned long pfn, int ret), TP_ARGS(pfn, ret),
	TP_STRUCT__entry(__field(unsigned long, pfn) __field(int, ret)),
	TP_fast_assign(__entry->pfn = pfn; __entry->ret = ret;),
	TP_printk("pfn=%lx ret=%d", __entry->pfn, __entry->ret));
"""


@pytest.fixture
def demo(tmp_path: Path) -> str:
    path = tmp_path / "source" / "demo.h"
    path.parent.mkdir()
    path.write_text(DEMO)
    return str(path)


def show(capsys, *words: str) -> str:
    assert main(["show", *words]) == 0
    return capsys.readouterr().out


def test_format_is_the_default_and_reads_back(demo: str, capsys) -> None:
    form = read_format(show(capsys, f"{demo}:page_in"), "demo")
    assert [f.name for f in form.event_fields] == ["pfn", "address", "major"]
    assert form["major"].offset == 24


def test_abi_changes_the_record(demo: str, capsys) -> None:
    form = read_format(show(capsys, f"{demo}:page_in", "--abi", "i386"), "swap")
    assert form["major"].offset == 16


def test_layout_is_a_table_with_padding(demo: str, capsys) -> None:
    lines = show(capsys, f"{demo}:page_out", "--as", "layout").splitlines()
    assert lines[0] == "demo:page_out: 24 bytes, little-endian, 64-bit long"
    assert "    16     4  yes   int ret" in lines
    assert lines[-1] == "    20     4        (padding)"


def test_layout_shows_holes(tmp_path: Path, capsys) -> None:
    path = tmp_path / "a.h"
    path.write_text(
        "TRACE_EVENT(a, TP_PROTO(int x), TP_ARGS(x), TP_STRUCT__entry(__field(u8, x) __field(u64, y)),"
        ' TP_fast_assign(__entry->x = x;), TP_printk("%d", __entry->x));'
    )
    assert "     9     7        (hole)" in show(capsys, str(path), "--as", "layout").splitlines()


@pytest.mark.parametrize("name", ["swap", "traps", "sched_switch", "block_class", "every_field"])
def test_header_and_json_hold_the_same_model(name: str, capsys) -> None:
    path = EXAMPLES / f"{name}.h"
    model = read_header_text(decode(path.read_bytes()), str(path))
    assert read_header_text(show(capsys, str(path), "--as", "header")).events == model.events
    assert read_json(show(capsys, str(path), "--as", "json")).events == model.events


def test_one_event_as_header(demo: str, capsys) -> None:
    written = read_header_text(show(capsys, f"{demo}:page_in", "--as", "header"))
    assert [event.full_name for event in written.events] == ["demo:page_in"]


def test_unknown_event_is_guessed(demo: str, capsys) -> None:
    assert main(["show", f"{demo}:page_inn"]) == 2
    assert "did you mean page_in?" in capsys.readouterr().err


def test_unknown_abi_names_all(demo: str, capsys) -> None:
    assert main(["show", demo, "--abi", "vax"]) == 2
    assert "no ABI 'vax'; known are x86_64, i386" in capsys.readouterr().err


def test_unknown_type_names_the_field(tmp_path: Path, capsys) -> None:
    path = tmp_path / "a.h"
    path.write_text(
        "TRACE_EVENT(a, TP_PROTO(int x), TP_ARGS(x), TP_STRUCT__entry(__field_struct(struct zork, z)),"
        ' TP_fast_assign(), TP_printk("x"));'
    )
    assert main(["show", str(path)]) == 2
    err = capsys.readouterr().err
    assert "struct zork" in err
    assert "field z" in err


@pytest.fixture
def formats(demo: str, tmp_path: Path, capsys) -> Path:
    for word in (f"{demo}:page_in", f"{demo}:page_out"):
        path = tmp_path / "events/demo" / word.rpartition(":")[2] / "format"
        path.parent.mkdir(parents=True)
        path.write_text(show(capsys, word))
    return tmp_path / "events"


def test_format_files_are_shown(formats: Path, capsys) -> None:
    one = formats / "demo/page_in/format"
    assert show(capsys, str(one)) == one.read_text()
    data = json.loads(show(capsys, str(formats), "--as", "json"))
    assert data["schema"] == "tracepoint.format/1"
    assert [(e["system"], e["name"]) for e in data["events"]] == [
        ("demo", "page_in"),
        ("demo", "page_out"),
    ]


def test_format_file_is_no_declaration(formats: Path, capsys) -> None:
    assert main(["show", str(formats), "--as", "header"]) == 2
    assert "only a header can be shown as header" in capsys.readouterr().err


def test_header_and_its_formats_do_not_differ(demo: str, formats: Path, capsys) -> None:
    assert main(["diff", demo, str(formats)]) == 0
    assert capsys.readouterr() == ("", "2 and 2 events: 0 changes, 0 of them break readers\n")


def test_diff_says_whom_it_breaks(demo: str, tmp_path: Path, capsys) -> None:
    new = tmp_path / "new.h"
    new.write_text(DEMO.replace("unsigned long, address", "u32, address"))
    assert main(["diff", demo, str(new)]) == 0
    assert "demo:page_in address" in capsys.readouterr().out
    assert main(["diff", "--breaking", demo, str(new)]) == 1
    out = capsys.readouterr().out
    assert out
    assert all("[breaks " in line for line in out.splitlines())


def test_diff_json(demo: str, tmp_path: Path, capsys) -> None:
    assert main(["diff", "--json", demo, str(EXAMPLES / "traps.h")]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "tracepoint.diff/1"
    assert {c["kind"] for c in data["changes"]} == {"event added", "event removed"}


def test_diff_compares_two_events_whatever_they_are_called(tmp_path: Path, capsys) -> None:
    request = EXAMPLES / "block_class.h"
    assert main(["diff", f"{request}:request_queued", f"{request}:request_issued"]) == 0
    assert "0 changes" in capsys.readouterr().err


def test_empty_folder(tmp_path: Path, capsys) -> None:
    assert main(["show", str(tmp_path)]) == 2
    assert "no trace headers, format files or objects" in capsys.readouterr().err


def test_nothing_to_show_is_an_error(tmp_path: Path, capsys) -> None:
    (tmp_path / "none.h").write_text("/* nothing */\n")
    assert main(["show", str(tmp_path / "none.h")]) == 2
    assert "no trace events in" in capsys.readouterr().err
    # A tracepoint has no record, and still can be written as a header.
    assert main(["show", str(EXAMPLES / "legacy_subsys.h")]) == 2
    assert main(["show", str(EXAMPLES / "legacy_subsys.h"), "--as", "header"]) == 0
