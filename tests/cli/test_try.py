"""`tracepoint try`: what its options refuse, and how they say it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracepoint.cli.main import main

SWAP = str(Path(__file__).resolve().parents[2] / "examples" / "swap.h")


@pytest.mark.parametrize("text", ["abc", '"abc"', "ENOSUCHNAME"])
def test_a_text_is_no_number(text: str, capsys) -> None:
    assert main(["try", f"{SWAP}:mm_page_swap_out", "--set", f"ret={text}"]) == 2
    wanted = text.strip('"')
    assert f"ret is of type int, and '{wanted}' is neither a number nor a constant" in capsys.readouterr().err


def test_a_constant_is_a_number(capsys) -> None:
    assert main(["try", f"{SWAP}:mm_page_swap_out", "--set", "ret=-ENOMEM"]) == 0
    assert "ret = -12\n" in capsys.readouterr().out


def test_an_input_of_one_event_is_none_of_the_others(capsys) -> None:
    assert main(["try", SWAP, "--set", "address=0x7f00"]) == 0
    # The second event has no address, which is not what is wrong here.
    assert main(["try", SWAP, "--set", "retx=1", "--set", "address=0x7f00"]) == 2
    error = capsys.readouterr().err
    assert error == (
        "tracepoint: error: kmem:mm_page_swap_in: retx is not an input of this event; did you mean ret?\n"
    )


@pytest.mark.parametrize("count", ["0", "x", "10001", "1.5", ""])
def test_a_wrong_count_names_the_bounds(count: str, capsys) -> None:
    assert main(["try", SWAP, "--count", count]) == 2
    assert f"--count: {count!r} is not a whole number from 1 to 10000" in capsys.readouterr().err


def test_an_example_comes_with_the_package(monkeypatch, tmp_path: Path, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["try", "--example", "swap:mm_page_swap_in"]) == 0
    out = capsys.readouterr().out
    assert "format\n  name: mm_page_swap_in\n" in out
    assert "mm_page_swap_out" not in out


def test_an_unknown_example_names_those_that_there_are(capsys) -> None:
    assert main(["try", "--example", "swop"]) == 2
    assert "no example 'swop'; there are block_class, every_field, " in capsys.readouterr().err


def test_no_header_names_the_example_to_try(capsys) -> None:
    assert main(["try"]) == 2
    assert "tracepoint try --example swap" in capsys.readouterr().err


def test_sections_can_be_chosen(capsys) -> None:
    assert main(["try", f"{SWAP}:mm_page_swap_in", "--only", "trace,inputs"]) == 0
    out = capsys.readouterr().out
    assert "\ninputs\n" in out
    assert "\ntrace\n" in out
    assert "\nrecord " not in out
    assert "\nformat\n" not in out
    assert main(["try", SWAP, "--only", "trace,lines"]) == 2
    assert "no section 'lines'; there are format, inputs, record, trace" in capsys.readouterr().err


def test_a_summary_is_one_line_and_v_lists_the_rest(tmp_path: Path, capsys) -> None:
    header = tmp_path / "odd.h"
    header.write_text(
        Path(SWAP).read_text().replace("__entry->ret\t\t= ret;", "__entry->ret\t\t= nobody_knows(ret);", 1)
    )
    main(["try", "--summary", str(header)])
    short = capsys.readouterr().out
    main(["try", "--summary", str(header), "-v"])
    long = capsys.readouterr().out
    assert short.count("\n") == 1
    assert long.splitlines()[0] == short.rstrip("\n").removesuffix("; -v lists the rest")


def test_a_relative_path_reads_what_an_absolute_one_does(monkeypatch, tmp_path: Path, capsys) -> None:
    # Headers beside the one tried are searched for what it does not include itself.
    events = tmp_path / "include/trace/events"
    events.mkdir(parents=True)
    (tmp_path / "include/linux").mkdir()
    (tmp_path / "include/linux/tracepoint.h").touch()
    (events / "limits.h").write_text("#define MANY 4\n")
    text = Path(SWAP).read_text()
    text = re.sub(r"__field\(\s*bool,\s*major\s*\)", "__array(u8, major, MANY)", text, count=1)
    assert "MANY" in text
    (events / "many.h").write_text(text)
    monkeypatch.chdir(events)
    assert (
        main(["show", "many.h:mm_page_swap_in"])
        == main(["show", str(events / "many.h:mm_page_swap_in")])
        == 0
    )
    relative, absolute = capsys.readouterr().out.split("name: ")[1:]
    assert relative == absolute


def test_a_constant_that_no_header_defines_is_an_input(tmp_path: Path, capsys) -> None:
    # As in a kernel's headers package, which has no private enums.
    header = tmp_path / "odd.h"
    header.write_text(
        Path(SWAP)
        .read_text()
        .replace('"pfn=%#lx', '"%s pfn=%#lx')
        .replace("__entry->pfn,", '__entry->ret == PRIVATE ? "p" : "q", __entry->pfn,')
    )
    main(["try", f"{header}:mm_page_swap_in"])
    out = capsys.readouterr().out
    assert "note: PRIVATE is a constant that no available header defines" in out
    assert "mm_page_swap_in: p pfn=" in out
    assert "not complete" not in out
