"""Programs judge records as the filter's text reads."""

import fnmatch
import struct

import pytest
from filter_formats import COMMON, FOO, OPENAT, SCHED_SWITCH
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.filter.context import RecordContext
from tracepoint.filter.match import match_glob
from tracepoint.filter.parse import parse_filter
from tracepoint.filter.profile import KERNEL_6_12
from tracepoint.filter.program import compile_filter
from tracepoint.layout.format import EventFormat, FieldFormat


def passes(text, record, event=FOO, **context):
    program = compile_filter(parse_filter(text, event, KERNEL_6_12, n_cpus=8))
    return program.matches(record, RecordContext(**context))


def foo_record(*, n=0, small=0, name=b"", stamp=0, mask=0, addr=0, rel=b"", comm=b"", text=0):
    at_name = 96
    at_rel = at_name + len(name)
    at_mask = at_rel + len(rel)
    head = struct.pack("<HBBi", 7, 1, 0, 42)
    body = struct.pack(
        "<iBxxxIIIHHHxxxxxxQIxxxxQI16s4xQ",
        n,
        small,
        len(name) << 16 | at_name,
        0,
        0,
        1,
        2,
        3,
        stamp,
        8 << 16 | at_mask,
        addr,
        len(rel) << 16 | (at_rel - 68),
        comm,
        text,
    )
    return head + body + name + rel + struct.pack("<Q", mask)


NUMBERS = [
    ("n == -1", True),
    ("n == 4294967295", True),
    ("n < 0", True),
    ("n >= 0", False),
    ("n & 0x80", True),
    ("small == 300", True),
    ("small == 44", True),
    ("small > 200", False),
    ("stamp == 0xffffffffffffffff", True),
    ("stamp > 9223372036854775807", True),
    ("stamp <= 5", False),
    ("common_pid == 42 && common_type == 7 && common_flags & 1", True),
    ("trio == 1", False),
    ("!(trio == 1)", True),
    ("CPU == 3", True),
    ("CPU != 3", False),
    ("CPU > 2 && cpu <= 3", True),
    ("cpu & 3", False),
    ("CPU & CPUS{3}", True),
    ("CPU & CPUS{1,3}", True),
    ("CPU == CPUS{1,3}", False),
    ("CPU != CPUS{1,3}", True),
    ("mask & CPUS{1}", True),
    ("mask & CPUS{3-7}", False),
    ("mask == CPUS{0-1}", True),
    ("mask != CPUS{0-1}", False),
    ("mask == CPUS{1}", False),
    ("mask != CPUS{1}", True),
    ("small & CPUS{1,4}", False),
]


@pytest.mark.parametrize(("text", "expected"), NUMBERS)
def test_numbers(text, expected):
    record = foo_record(n=-1, small=44, stamp=(1 << 64) - 1, mask=3)
    assert passes(text, record, cpu=3) is expected


def test_small_numbers_as_cpus():
    assert passes("small & CPUS{1,4}", foo_record(small=4))
    assert passes("small != CPUS{1,4}", foo_record(small=4))
    assert not passes("small == CPUS{1,4}", foo_record(small=4))
    assert not passes("small != CPUS{1,4}", foo_record(small=44)), "no such CPU: never true"


STRINGS = [
    ("name == 'bash'", True),
    ("name == 'bas'", False),
    ("name != 'bash'", False),
    ("name ~ 'ba*'", True),
    ("name ~ '*sh'", True),
    ("name ~ '*as*'", True),
    ("name ~ 'b?sh'", True),
    ("name ~ 'b[a-c]s*h'", True),
    ("name ~ '!b*'", False),
    ("name ~ '*'", True),
    ("name ~ '**'", True),
    ("name ~ ''", False),
    ("comm16 == 'bash'", True),
    ("comm16 ~ 'ba*'", True),
    # The end is that of the array: kernel/trace/trace_events_filter.c: regex_match_end().
    ("comm16 ~ '*sh'", False),
    ("comm16 ~ '*a?h'", True),
    ("comm16 ~ '*stale*'", True),
    ("rel == 'xyz'", True),
    ("rel ~ '*z'", True),
    ("COMM == 'python3'", True),
    ("comm ~ 'py*'", True),
    ("comm != 'python3'", False),
    ("text == 'pointed'", True),
    ("text.ustring == 'pointed'", False),
    ("text.ustring != 'pointed'", False),
]


@pytest.mark.parametrize(("text", "expected"), STRINGS)
def test_strings(text, expected):
    record = foo_record(name=b"bash\0", comm=b"bash\0stale", rel=b"xyz\0", text=0x1000)
    memory = {(0x1000, False): b"pointed"}
    got = passes(text, record, comm=b"python3", read_string=lambda at, is_user: memory.get((at, is_user)))
    assert got is expected


def test_a_digit_in_front_makes_stars_literal():
    assert passes("name ~ '1*'", foo_record(name=b"1*\0"))
    assert not passes("name ~ '1*'", foo_record(name=b"12\0"))


def test_pointers_that_cannot_be_read_never_match():
    record = bytes(64)
    assert not passes("filename == '/x'", record, OPENAT)
    assert not passes("filename != '/x'", record, OPENAT)


def test_functions():
    parsed = parse_filter("addr.function == f", FOO, KERNEL_6_12, find_function=lambda _: (100, 8))
    program = compile_filter(parsed)
    assert [program.matches(foo_record(addr=a)) for a in (99, 100, 107, 108)] == [False, True, True, False]


def test_precedence():
    text = "prev_pid == 1 || prev_pid == 2 && next_pid == 3"
    for prev in range(4):
        for following in range(4):
            record = bytearray(64)
            struct.pack_into("<i", record, 24, prev)
            struct.pack_into("<i", record, 56, following)
            expected = prev == 1 or (prev == 2 and following == 3)
            assert passes(text, bytes(record), SCHED_SWITCH) is expected


@pytest.mark.parametrize("text", ["n == 0", "name ~ '*'", "comm16 == ''", "mask & CPUS{0}", "rel != 'x'"])
@pytest.mark.parametrize("size", [0, 8, 10, 18, 50, 70])
def test_short_records_do_not_match(text, size):
    record = foo_record(name=b"x\0", rel=b"y\0", mask=1)[:size]
    inside = text == "n == 0" and size >= 12
    assert passes(text, record) is inside


LETTERS = "abcd"
ABCD = EventFormat(
    "s", "e", (*COMMON, *(FieldFormat(c, "u8", 8 + i, 1, False) for i, c in enumerate(LETTERS))), ""
)
LEAF = st.sampled_from(LETTERS).map(lambda c: (f"{c} == 1", f"{c}"))
TREE = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        inner.map(lambda e: (f"!({e[0]})", f"(not {e[1]})")),
        inner.map(lambda e: (f"( {e[0]} )", e[1])),
        st.tuples(inner, inner).map(lambda p: (f"({p[0][0]})&&({p[1][0]})", f"({p[0][1]} and {p[1][1]})")),
        st.tuples(inner, inner).map(lambda p: (f"{p[0][0]} || {p[1][0]}", f"({p[0][1]} or {p[1][1]})")),
    ),
    max_leaves=20,
)


@given(TREE.filter(lambda e: len(e[0]) < 4000))
def test_any_expression_means_what_it_says(pair):
    """Judge all 16 records, against Python's own and/or/not."""
    text, python = pair
    program = compile_filter(parse_filter(text, ABCD))
    code = compile(python, "<filter>", "eval")
    for bits in range(16):
        values = [bits >> i & 1 for i in range(4)]
        expected = bool(eval(code, dict(zip(LETTERS, values, strict=True))))
        assert program.matches(bytes(8) + bytes(values)) is expected


@given(TREE.filter(lambda e: len(e[0]) < 4000))
def test_programs_only_move_forward(pair):
    program = compile_filter(parse_filter(pair[0], ABCD))
    for at, step in enumerate(program.instructions):
        assert at < step.if_true <= len(program.instructions) + 1
        assert at < step.if_false <= len(program.instructions) + 1


def test_deep_nesting_is_no_matter_of_stack():
    text = "a&1&&(" * 580 + "b&1" + ")" * 580
    assert compile_filter(parse_filter(text, ABCD)).matches(bytes(8) + b"\x01\x01\x00\x00")
    assert not compile_filter(parse_filter(text, ABCD)).matches(bytes(8) + b"\x01\x00\x00\x00")


@given(st.text("ab*?[]!-\\", max_size=8).map(str.encode), st.text("ab!-", max_size=8).map(str.encode))
def test_globs_agree_with_fnmatch_where_the_languages_agree(pattern, text):
    if b"[" in pattern or b"\\" in pattern:
        match_glob(pattern, text)
        return
    assert match_glob(pattern, text) is fnmatch.fnmatchcase(text.decode(), pattern.decode())


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (b"[]a]x", b"]x", True),
        (b"[!a-c]x", b"dx", True),
        (b"[!a-c]x", b"bx", False),
        (b"[a-]x", b"-x", True),
        (b"[a", b"[a", True),
        (b"\\*", b"*", True),
        (b"\\*", b"a", False),
        (b"a\\", b"a", True),
        (b"*[ab]c*d", b"xxacyyd", True),
    ],
)
def test_globs(pattern, text, expected):
    assert match_glob(pattern, text) is expected


def test_big_endian_records():
    event = EventFormat("s", "e", (FieldFormat("n", "u16", 0, 2, False),), "", n_common=0, is_big_endian=True)
    program = compile_filter(parse_filter("n == 258", event))
    assert program.matches(b"\x01\x02")
    assert not program.matches(b"\x02\x01")
