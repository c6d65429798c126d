import ctypes
import ctypes.util

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from effort import examples
from printk.making import line
from tracepoint.printk.conversion import ABSENT, STAR, Conversion, format_number, format_text, parse_format

LIBC = ctypes.CDLL(None)
TYPES = {
    ("hh", True): ctypes.c_int8, ("hh", False): ctypes.c_uint8, ("h", True): ctypes.c_int16,
    ("h", False): ctypes.c_uint16, ("", True): ctypes.c_int32, ("", False): ctypes.c_uint32,
    ("l", True): ctypes.c_int64, ("l", False): ctypes.c_uint64, ("ll", True): ctypes.c_int64,
    ("ll", False): ctypes.c_uint64, ("z", True): ctypes.c_int64, ("z", False): ctypes.c_uint64,
}  # fmt: skip


def libc(fmt, *values):
    buffer = ctypes.create_string_buffer(512)
    size = LIBC.snprintf(buffer, ctypes.c_size_t(512), fmt.encode("latin-1"), *values)
    return buffer.raw[:size].decode("latin-1")


@settings(deadline=None, max_examples=examples(400))
@example("", None, 0, "hh", "u", 257)
@given(
    st.text(alphabet="-+ #0", max_size=3),
    st.integers(1, 30) | st.none(),
    st.integers(0, 20) | st.none(),
    st.sampled_from(sorted({length for length, _ in TYPES})),
    st.sampled_from("diuxXo"),
    st.integers(-(1 << 63), (1 << 64) - 1) | st.integers(-20, 20),
)
def test_integers_print_as_c_does_where_the_kernel_agrees(flags, width, precision, length, letter, number):
    is_signed = letter in "di"
    # Where they differ on purpose: a prefix on 0, `0` with a precision, no digit at all, and
    # sign flags on unsigned values (undefined in C).
    assume(not ("0" in flags and precision is not None))
    value = TYPES[length, is_signed](number)
    # What is printed may be 0 though the number is not: 256 as a char.
    assume(not (precision == 0 and value.value == 0))
    assume(is_signed or not set(flags) & {"+", " "})
    assume(not ("#" in flags and (letter in "diuo" or number & 0xFF == 0 or number == 0)))
    width_text = "" if width is None else str(width)
    fmt = f"<%{flags}{width_text}{'' if precision is None else f'.{precision}'}{length}{letter}>"
    promoted = ctypes.c_int(value.value) if length in ("h", "hh") else value
    assert line(f'"{fmt}", REC->n', ("s64", "n", number)) == libc(fmt, promoted)


@settings(deadline=None)
@given(
    st.sampled_from(["", "-"]),
    st.integers(1, 12) | st.none(),
    st.integers(0, 12) | st.none(),
    st.binary(max_size=10).filter(lambda b: 0 not in b),
)
def test_strings_print_as_c_does(flags, width, precision, data):
    fmt = f"<%{flags}{'' if width is None else width}{'' if precision is None else f'.{precision}'}s>"
    text = line(f'"{fmt}", __get_str(s)', ("__data_loc char[]", "s", data + b"\0"))
    assert text.encode("utf-8", "surrogateescape").decode("latin-1") == libc(fmt, ctypes.c_char_p(data))


@given(st.integers(-30, 30), st.integers(-5, 15), st.integers(-999, 999))
def test_stars_print_as_c_does(width, precision, number):
    assume(number or precision)
    fmt = "<%*.*d>"
    got = line(
        f'"{fmt}", REC->w, REC->p, REC->n', ("int", "w", width), ("int", "p", precision), ("int", "n", number)
    )
    assert got == libc(fmt, ctypes.c_int(width), ctypes.c_int(precision), ctypes.c_int(number))


@pytest.mark.parametrize(
    ("fmt", "number", "expected"),
    [
        ("%#x", 0, "0x0"), ("%#X", 255, "0XFF"), ("%#o", 0, "0"), ("%#o", 8, "010"), ("%08.4d", 7, "00000007"),
        ("%.0d", 0, "0"), ("%hhd", 200, "-56"), ("%hu", 65537, "1"), ("%lld", -1, "-1"), ("%c", 65, "A"),
        ("%5c|", 65, "    A|"), ("%-5c|", 65, "A    |"), ("%x", -1, "ffffffff"), ("%jx", -1, "f" * 16), ("%+u", 1, "1"),
        ("%zd", -2, "-2"), ("%td", -2, "-2"), ("%i", -2, "-2"), ("%#010x", 18, "0x00000012"), ("%%%d%%", 1, "%1%"),
    ],
)  # fmt: skip
def test_the_kernels_own_way(fmt, number, expected):
    assert line(f'"{fmt}", REC->n', ("s64", "n", number)) == expected


@pytest.mark.parametrize(
    ("text", "letters"),
    [("%pI6c:", "I6c"), ("%pISpc", "ISpc"), ("%pS+", "S"), ("%pSx", "S"), ("%ps", "s"), ("%pUl", "Ul"), ("%pM", "M"),
     ("%p", ""), ("%p ", ""), ("%pd4", "d4"), ("%pQx,", ""), ("%phx", "h"), ("%*pbl", "bl"), ("%*phN", "hN"), ("%px", "x"), ("%pap", "ap"),
     ("%p4cc", "4cc"), ("%pKx", "K"), ("%pGg", "Gg"), ("%ptRdr", "tRdr"), ("%pOFn", "OFn"), ("%p,", "")],
)  # fmt: skip
def test_letters_of_pointers(text, letters):
    pieces = [p for p in parse_format(text) if isinstance(p, Conversion)]
    assert [p.letters for p in pieces] == [letters]


def test_pieces():
    first, text, second = parse_format("%-*.*s and %%5%lld")[:3]
    assert (first.flags, first.width, first.precision, first.n_arguments) == ("-", STAR, STAR, 3)
    assert text == " and %5"
    assert (second.length, second.width, second.precision, second.n_arguments) == ("ll", ABSENT, ABSENT, 1)
    assert parse_format("100%") == ["100%"]


def test_numbers_and_texts_by_hand():
    assert format_number(5, "x", "#0", 6) == "0x0005"
    assert format_number(5, "d", "-0", 4) == "5   "
    assert format_text("abc", "0", 5) == "  abc"
