"""Fragments of a kernel's configuration, and what became of their options."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.errors import LabError
from tracepoint.lab.build.config import (
    dropped_options,
    lab_fragment,
    read_fragment,
    read_option,
    why_dropped,
    write_fragment,
)

NAMES = st.from_regex(r"[A-Z0-9_]{1,12}", fullmatch=True)
VALUES = st.sampled_from(["y", "n", "m", "17", "-1", "0x1f", '"text"', '"a \\"b\\""', '""'])


@given(st.dictionaries(NAMES, VALUES))
def test_a_fragment_is_read_as_it_was_written(options: dict[str, str]):
    text = write_fragment(options)
    assert read_fragment(text, "f") == options
    # What a .config says in its own words counts as there.
    assert dropped_options(options, text) == {}


@given(st.dictionaries(NAMES, VALUES, min_size=1), st.data())
def test_every_dropped_option_is_found(options: dict[str, str], data: st.DataObject):
    lost = data.draw(st.sampled_from(sorted(options)))
    config = write_fragment({name: value for name, value in options.items() if name != lost})
    assert dropped_options(options, config) == ({} if options[lost] == "n" else {lost: "n"})


def test_our_fragments_are_read_and_do_not_overlap():
    lab, optional = (read_fragment(lab_fragment(name), name) for name in ("lab", "optional"))
    assert {"ACPI", "VIRTIO_CONSOLE", "HIST_TRIGGERS", "JUMP_LABEL", "ZRAM", "MODULES"} <= lab.keys()
    assert "USER_EVENTS" in optional
    assert not lab.keys() & optional.keys()


def test_every_group_of_our_fragments_says_why():
    for name in ("lab", "optional"):
        for group in lab_fragment(name).strip().split("\n\n"):
            assert group.startswith("# "), group


@pytest.mark.parametrize(
    "line", ["SMP=y", "CONFIG_SMP", "CONFIG_SMP=yes", "CONFIG_SMP=", 'CONFIG_S="a', "rm -rf /"]
)
def test_a_line_that_is_no_option_is_named(line: str):
    with pytest.raises(LabError, match="mine:2"):
        read_fragment(f"# mine\n{line}\n", "mine")


def test_words_of_the_command_line():
    assert read_option("KASAN=y") == ("KASAN", "y")
    assert read_option("CONFIG_HZ=100") == ("HZ", "100")
    for word in ("KASAN", "=y", "KASAN=", "KASAN=maybe", "A B=y", "A=y\nCONFIG_B=y", 'A="x"; rm'):
        with pytest.raises(LabError, match="--config"):
            read_option(word)


def test_the_reason_for_a_dropped_option():
    kconfig = """\
config SMP
\tbool "Symmetric"
\tdepends on X86 && \\
\t\t!UP
\tdepends on MMU

menuconfig NET
\tbool "Networking"

config NETX
\tbool "depends on nothing"
"""
    assert why_dropped(["SMP", "NET", "NOSUCH"], ["", kconfig]) == {
        "SMP": "it depends on X86 && !UP && MMU",
        "NET": "other options decide it",
        "NOSUCH": "this kernel has no such option",
    }
