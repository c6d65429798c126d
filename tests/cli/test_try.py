"""`tracepoint try`: what its options refuse, and how they say it."""

from __future__ import annotations

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
        "tracepoint: error: kmem:mm_page_swap_in: retx is no input of this event; did you mean ret?\n"
    )


@pytest.mark.parametrize("count", ["0", "x", "10001", "1.5", ""])
def test_a_wrong_count_names_the_bounds(count: str, capsys) -> None:
    assert main(["try", SWAP, "--count", count]) == 2
    assert f"--count: {count!r} is no whole number from 1 to 10000" in capsys.readouterr().err
