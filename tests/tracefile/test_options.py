"""Options of trace.dat and the clocks they describe."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pace import fewer_turns
from tracefile.making import content_of, written
from tracepoint.errors import DecodeError
from tracepoint.tracefile.cursor import Cursor
from tracepoint.tracefile.options import (
    BufferOption,
    ClockSample,
    CpuPlace,
    Option,
    OptionId,
    TscScale,
    buffer_data,
    read_buffer,
    read_offset,
    read_time_shift,
    read_tsc_scale,
    read_u32,
    text_option,
)
from tracepoint.tracefile.timing import fixed_offset, shift_time, time_map
from tracepoint.tracefile.tracedat import read_tracedat

NUMBER = st.integers(0, (1 << 64) - 1)
SMALL = st.integers(0, (1 << 32) - 1)
NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@given(NUMBER, NAME, NAME, SMALL, st.lists(st.tuples(SMALL, NUMBER, NUMBER), max_size=5), st.booleans())
def test_buffers_are_read_as_written(section, name, clock, size, places, big):
    buffer = BufferOption(section, name, clock, size, tuple(CpuPlace(*place) for place in places))
    cursor = Cursor(buffer_data(buffer, is_big_endian=big), big=big)
    assert read_buffer(cursor) == buffer
    assert cursor.left == 0


@pytest.mark.parametrize("read", [read_buffer, read_time_shift, read_tsc_scale])
@given(st.binary(max_size=80), st.booleans())
def test_noise_is_an_error_or_a_value(read, data, big):
    with suppress(DecodeError):
        read(Cursor(data, big=big))


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (struct.pack("<QII", 1, 0, 1 << 31), read_time_shift),
        (struct.pack("<QIII", 1, 0, 1, 1 << 31), read_time_shift),
        (struct.pack("<IIQ", 1, 64, 0), read_tsc_scale),
    ],
)
def test_numbers_that_cannot_be(data, read):
    with pytest.raises(DecodeError):
        read(Cursor(data))


def test_time_shift_with_and_without_fractions():
    columns = (100, 300), (5, -7), (1, 2)
    data = struct.pack("<QII", 42, 1, 1) + struct.pack("<I2Q2q2Q", 2, *columns[0], *columns[1], *columns[2])
    plain = read_time_shift(Cursor(data))
    assert (plain.peer_id, plain.flags) == (42, 1)
    assert plain.cpus == ((ClockSample(100, 5, 1), ClockSample(300, -7, 2)),)
    with_fractions = read_time_shift(Cursor(data + struct.pack("<2Q", 3, 4)))
    assert [sample.fraction for sample in with_fractions.cpus[0]] == [3, 4]


SAMPLES = [ClockSample(1000, 10, 1), ClockSample(2000, 30, 1), ClockSample(4000, 30, 2, 1)]


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [(500, 501), (1000, 1010), (1500, 1520), (2000, 2030), (3000, 3030), (5000, 5030)],
)
def test_interpolation_between_samples(stamp, expected):
    assert shift_time(stamp, SAMPLES, 1) == expected


def test_interpolation_rounds_as_c_does():
    falling = [ClockSample(1000, 10, 1), ClockSample(2000, 7, 1)]
    assert [shift_time(stamp, falling, 1) - stamp for stamp in (1000, 1500, 1900, 2000)] == [10, 9, 8, 8]


def test_a_guest_with_very_many_samples_is_read_in_time():
    samples = struct.pack("<I", 40_000) + b"".join(struct.pack("<40000Q", *range(40_000)) for _ in range(3))
    shift = Option(OptionId.TIME_SHIFT, struct.pack("<QII", 1, 1, 1) + samples)
    convert = time_map([shift], is_big_endian=False)
    with fewer_turns(40):
        assert convert(10, 1) == 10
        for stamp in range(20_000):
            convert(stamp, 0)


def test_steps_without_interpolation():
    assert [shift_time(stamp, SAMPLES, 0) for stamp in (1500, 2500)] == [1510, 2530]
    assert shift_time(5, SAMPLES[:1], 1) == 15
    assert shift_time(5, [], 1) == 5


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("-12\n", -12), ("0x1F", 31), ("010", 8), ("", 0), ("x", 0), ("9" * 30, 0), ("08", 0)],
)
def test_offsets_are_read_as_strtoll_does(text, value):
    assert read_offset(text) == value


def test_date_counts_microseconds_and_offset_nanoseconds():
    options = [text_option(OptionId.DATE, "0x2"), text_option(OptionId.OFFSET, "-5")]
    assert fixed_offset(options) == 1995
    assert time_map([], is_big_endian=False) is None


def test_cycles_become_nanoseconds_before_the_offset():
    scale = Option(OptionId.TSC2NSEC, struct.pack("<IIQ", 3, 1, 77))
    assert read_tsc_scale(Cursor(scale.data)) == TscScale(3, 1, 77)
    convert = time_map([scale, text_option(OptionId.OFFSET, "100")], is_big_endian=False)
    assert convert(10, 0) == 115


def test_times_of_a_file_with_offset():
    content = content_of(options=(text_option(OptionId.OFFSET, "1000000"),))
    trace = read_tracedat(written(content))
    assert next(trace.buffers[0].records()).timestamp == 10**9 + 10**6


def test_damaged_clock_is_damage_and_times_stay_as_they_are():
    trace = read_tracedat(written(content_of(options=(Option(OptionId.TSC2NSEC, b"abc"),))))
    assert next(trace.buffers[0].records()).timestamp == 10**9
    assert "clock options" in trace.damage[0].reason


def test_short_number():
    assert read_u32(Option(8, b"\0\0\0\5"), is_big_endian=True) == 5
    with pytest.raises(DecodeError, match="not 4"):
        read_u32(Option(8, b"\1"), is_big_endian=False)
