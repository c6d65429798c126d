"""Where dynamic data go, and what the words that lead there say."""

import struct

import pytest

from assign.common import fire
from tracepoint.layout.abi import Abi


def words(fired, name):
    raw = fired.result.record[fired.layout[name].offset :][:4]
    word = int.from_bytes(raw, "big" if fired.layout.is_big_endian else "little")
    return word & 0xFFFF, word >> 16


def test_data_follow_the_last_field_in_order():
    fired = fire(
        "__string(one, s) __field(u8, tail) __string(two, p->name)",
        "__assign_str(one, s); __assign_str(two, p->name); __entry->tail = 7;",
        {"s": "abc", "p->name": "hello"},
    )
    # 8 common, word, u8 and padding, word: data begin at 20, without tail padding.
    assert words(fired, "one") == (20, 4)
    assert words(fired, "two") == (24, 6)
    assert fired.result.record[20:30] == b"abc\0hello\0"
    assert (fired["one"], fired["two"]) == ("abc", "hello")


def test_the_struct_keeps_its_tail_padding_behind_the_data():
    # struct { 8 common; u64; u32 word }: 20 bytes used, 24 with padding (sizeof(*entry)).
    fired = fire("__field(u64, w) __string(t, s)", "__entry->w = w; __assign_str(t, s);", {"w": 1, "s": "x"})
    assert words(fired, "t") == (20, 2)
    assert len(fired.result.record) == 24 + 2


def test_rel_loc_counts_from_the_end_of_its_word():
    fired = fire(
        "__field(int, a) __rel_string(t, s) __field(int, b)",
        "__entry->a = 1; __entry->b = 2; __assign_rel_str(t, s);",
        {"s": "abc"},
    )
    assert words(fired, "t") == (4, 4)
    assert fired["t"] == "abc"


@pytest.mark.parametrize("abi", [Abi.X86_64, Abi.I386, Abi.S390X])
def test_masks_take_whole_longs(abi):
    fired = fire("__bitmask(m, 40)", "__assign_bitmask(m, p->bits, 40);", {"p->bits": [5] + [0] * 7}, abi=abi)
    assert words(fired, "m")[1] == 8
    code = {Abi.X86_64: "<Q", Abi.I386: "<I", Abi.S390X: ">Q"}[abi]
    assert struct.unpack_from(code, fired.raw("m"))[0] == 5


def test_cpumask_has_nr_cpumask_bits():
    fired = fire(
        "__cpumask(m)",
        "__assign_cpumask(m, cpumask_bits(p->mask));",
        {"nr_cpumask_bits": 65, "p->mask": [3, 1]},
    )
    assert fired.raw("m") == struct.pack("<2Q", 3, 1)


def test_one_argument_assign_str_uses_the_source():
    fired = fire("__string(t, p ? s : NULL)", "__assign_str(t);", {"p": 1, "s": "abc"})
    assert fired["t"] == "abc"
    fired = fire("__string(t, p ? s : NULL)", "__assign_str(t);", {"p": 0, "s": "abc"})
    assert fired["t"] == "(null)"
    assert words(fired, "t")[1] == 7


def test_string_len_adds_the_nul():
    fired = fire("__string_len(t, s, n)", "__assign_str_len(t, s, n);", {"s": "abcdef", "n": 3})
    assert words(fired, "t") == (12, 4)
    assert fired.raw("t") == b"abc\0"


def test_a_source_longer_than_its_room_is_told():
    fired = fire("__string(t, s)", "__assign_str(t, p->other);", {"s": "ab", "p->other": "abcdef"})
    assert "would overrun" in fired.result.notes[0]
    assert fired.raw("t") == b"ab\0"


def test_dynamic_arrays_and_their_lengths():
    fired = fire(
        "__dynamic_array(u16, list, n) __field(int, a)",
        "memcpy(__get_dynamic_array(list), p->list, n * sizeof(u16));"
        "((u16 *)__get_dynamic_array(list))[0] = 9; __entry->a = __get_dynamic_array_len(list);",
        {"n": 3, "p->list": [1, 2, 3]},
    )
    assert fired.reasons == []
    assert struct.unpack("<3H", fired.raw("list")) == (9, 2, 3)
    assert fired["a"] == 6


def test_sockaddr():
    fired = fire(
        "__sockaddr(sa, n)", "__assign_sockaddr(sa, p->addr, n);", {"n": 16, "p->addr": b"\x02\x00\x1f\x90"}
    )
    assert fired.raw("sa") == b"\x02\x00\x1f\x90" + bytes(12)


def test_a_length_that_no_word_can_hold_is_named():
    fired = fire("__dynamic_array(u8, list, n)", "", {"n": 70000})
    assert "16 bits" in fired.reasons[0]
    assert fired.result.unknown.keys() == {"list"}


def test_a_length_that_nobody_knows_is_named():
    fired = fire("__dynamic_array(u8, list, n) __field(int, a)", "__entry->a = 4;")
    assert fired.result.unknown.keys() == {"list"}
    assert fired["a"] == 4
