"""The C filter runs the same programs as its twin, on any record."""

import random
import struct
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "filter"))

from filter_formats import FOO

from tracepoint.filter.context import RecordContext
from tracepoint.filter.error import FilterError
from tracepoint.filter.parse import Filter, parse_filter
from tracepoint.filter.profile import KERNEL_6_12
from tracepoint.filter.program import compile_filter
from tracepoint.filter.tree import Comparator, Predicate, Source

PREDICATES = [
    f"{field} {op} {value}"
    for field in ("n", "small", "stamp", "common_pid", "common_type", "CPU", "trio", "list")
    for op in ("==", "!=", "<", "<=", ">", ">=", "&")
    for value in ("0", "1", "3", "255", "0x7fffffff")
] + [
    f"{field} {op} '{value}'"
    for field in ("name", "comm16", "rel", "COMM", "text")
    for op in ("==", "!=", "~")
    for value in ("", "a", "ab", "a*", "*b", "*a*", "a?", "[ab]*", "[!a]b", "!a*", "\\a*b", "**", "a*b")
]
PREDICATES += [
    f"{field} {op} CPUS{{{cpus}}}"
    for field in ("n", "small", "CPU", "mask", "trio")
    for op in ("==", "!=", "&")
    for cpus in ("0", "1", "0-1", "1,3", "0-7:1/2")
]
EXPRESSION = st.recursive(
    st.sampled_from(PREDICATES),
    lambda inner: st.one_of(
        inner.map(lambda e: f"!({e})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}) && ({p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"{p[0]} || {p[1]}"),
    ),
    max_leaves=6,
)


def random_record(number, order="<"):
    choose = random.Random(number)
    record = bytearray(
        choose.choice([0, 1, 3, 44]) if choose.random() < 0.6 else choose.randrange(256) for _ in range(96)
    )
    text = bytes(choose.choice(b"ab\0") for _ in range(choose.randrange(8)))
    for at, base in ((16, 0), (48, 0), (64, 68)):
        start = 96 - base if choose.random() < 0.9 else choose.randrange(200)
        struct.pack_into(f"{order}I", record, at, len(text) << 16 | start)
    record[68:84] = (text * 4)[:16].ljust(16, b"\0")
    return bytes(record + text)[: choose.choice([200, 200, 200, 90, 40, 10, 0])]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    text=EXPRESSION,
    number=st.integers(0, 1 << 20),
    cpu=st.integers(0, 9),
    comm=st.sampled_from([b"a", b"ab", b"b"]),
    machine=st.tuples(st.booleans(), st.sampled_from([4, 8])),
)
def test_the_c_filter_is_its_twin(c_core, text, number, cpu, comm, machine):
    is_big_endian, long_size = machine
    form = replace(FOO, is_big_endian=is_big_endian, long_size=long_size)
    try:
        program = compile_filter(parse_filter(text, form, KERNEL_6_12, n_cpus=8))
    except FilterError:
        # `mask & CPUS{...}` fits, `text.x` or a signed value out of range may not: nothing to compare.
        return
    record = random_record(number, ">" if is_big_endian else "<")
    expected = program.matches(record, RecordContext(cpu, comm))
    assert c_core.Filter(program.pack()).matches(record, cpu, comm) is expected


NUMBERS = st.one_of(st.integers(0, 9), st.integers(0, 2**32 - 1))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.frozensets(NUMBERS, max_size=40), st.sampled_from([1, 2, 4]), st.data())
def test_a_set_of_numbers(c_core, numbers, size, data):
    number = data.draw(st.sampled_from(sorted(numbers)) if numbers else NUMBERS) & ((1 << 8 * size) - 1)
    record = bytes(4) + number.to_bytes(size, "little") + bytes(8)
    for op in (Comparator.EQ, Comparator.NE):
        wanted = Predicate("pid", op, Source.NUMBER_IN_SET, offset=4, size=size, numbers=numbers)
        program = compile_filter(Filter("", wanted, FOO))
        expected = (number in numbers) == (op is Comparator.EQ)
        assert program.matches(record) is expected
        flat = bytearray(program.pack())
        assert c_core.Filter(bytes(flat)).matches(record) is expected
        assert not c_core.Filter(bytes(flat)).matches(record[: 3 + size])
    if numbers:
        # The last number cut in two: of all operands (in the head), and of this instruction.
        flat[12:16] = (4 * len(numbers) - 2).to_bytes(4, "little")
        flat[40:44] = flat[12:16]
        with pytest.raises(ValueError, match="not a filter program"):
            c_core.Filter(bytes(flat[:-2]))


MASK_WORDS = {
    # CPUs 1 and 9 of 12, with one beyond that an array of longs can hold.
    (False, 8): bytes.fromhex("0202000000000080"),
    (True, 8): bytes.fromhex("8000000000000202"),
    (True, 4): bytes.fromhex("00000202 80000000"),
}


@pytest.mark.parametrize("machine", MASK_WORDS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mask == CPUS{1,9}", True),
        ("mask != CPUS{1,9}", False),
        ("mask & CPUS{9}", True),
        ("mask & CPUS{0,8}", False),
        ("mask == CPUS{9}", False),
    ],
)
def test_a_mask_is_longs_of_the_machine(c_core, machine, text, expected):
    is_big_endian, long_size = machine
    mask = MASK_WORDS[machine]
    record = bytearray(96) + mask
    struct.pack_into(">I" if is_big_endian else "<I", record, 48, len(mask) << 16 | 96)
    form = replace(FOO, is_big_endian=is_big_endian, long_size=long_size)
    program = compile_filter(parse_filter(text, form, KERNEL_6_12, n_cpus=12))
    assert program.matches(bytes(record)) is expected
    assert c_core.Filter(program.pack()).matches(bytes(record), 0, b"a") is expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=EXPRESSION, number=st.integers(0, 1 << 20))
def test_damaged_programs_are_refused_or_end(c_core, text, number):
    choose = random.Random(number)
    try:
        flat = bytearray(compile_filter(parse_filter(text, FOO, KERNEL_6_12, n_cpus=8)).pack())
    except FilterError:
        return
    for _ in range(choose.randrange(1, 4)):
        flat[choose.randrange(len(flat))] = choose.randrange(256)
    del flat[len(flat) - choose.choice([0, 0, 0, 1, 40]) :]
    try:
        program = c_core.Filter(bytes(flat))
    except ValueError:
        return
    program.matches(random_record(number), 1, b"ab")


@pytest.mark.parametrize("flat", [b"", b"TPF1", bytes(16), b"TPF1" + bytes(12)])
def test_what_is_no_program_is_refused(c_core, flat):
    with pytest.raises(ValueError, match="not a filter program"):
        c_core.Filter(flat)
