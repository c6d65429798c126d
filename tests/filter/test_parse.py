"""Texts, errors, errno and carets: the pairs observed on booted kernels."""

import errno

import pytest
from filter_formats import FOO, OPENAT, PROCESS_EXEC, SCHED_SWITCH, SCHED_WAKEUP
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.filter.error import FilterError, FilterFault
from tracepoint.filter.parse import MAX_FILTER, is_clear, parse_filter
from tracepoint.filter.profile import KERNEL_6_1, KERNEL_6_1_187, KERNEL_6_12, FilterType
from tracepoint.filter.tree import And, Not, Or, Predicate, Source

PROFILES = (KERNEL_6_1_187, KERNEL_6_1, KERNEL_6_12)
F = FilterFault

# Column of the caret and message, as read back from events/foo/foo_bar/filter on 6.1 and 6.12.
REFUSED = [
    ("nofield == 1", 8, F.FIELD_NOT_FOUND, errno.EINVAL),
    ("nofield ==", 8, F.FIELD_NOT_FOUND, errno.EINVAL),
    ("n = 3", 3, F.INVALID_OP, errno.EINVAL),
    ("n == ", 4, F.INVALID_VALUE, errno.EINVAL),
    ('n == "x"', 6, F.EXPECT_DIGIT, errno.EINVAL),
    ("name == 3", 9, F.EXPECT_STRING, errno.EINVAL),
    ('name > "x"', 8, F.ILLEGAL_FIELD_OP, errno.EINVAL),
    ("(n == 1", 0, F.TOO_MANY_OPEN, errno.ENOENT),
    ("n == 1)", 6, F.TOO_MANY_CLOSE, errno.EPERM),
    ("n === 1", 5, F.INVALID_VALUE, errno.EINVAL),
    ("n == 99999999999999999999", 6, F.ILLEGAL_INTVAL, errno.EINVAL),
    ("name == hello", 9, F.INVALID_VALUE, errno.EINVAL),
    ('name == "hello', 8, F.MISSING_QUOTE, errno.ESRCH),
    ('n ~ "1"', 5, F.EXPECT_DIGIT, errno.EINVAL),
    ("n == 1 | n == 2", 7, F.TOO_MANY_PREDS, errno.EPERM),
    ("stamp.x == 1", 6, F.INVALID_OP, errno.EINVAL),
    # From reading trace_events_filter.c:
    ("n == 1 && ((small == 2)", 10, F.TOO_MANY_OPEN, errno.ENOENT),
    ("name == ')' && (n == 1", 15, F.TOO_MANY_OPEN, errno.ENOENT),
    ("n == 08", 6, F.ILLEGAL_INTVAL, errno.EINVAL),
    ("n == 0x", 6, F.ILLEGAL_INTVAL, errno.EINVAL),
    ("n == -", 6, F.ILLEGAL_INTVAL, errno.EINVAL),
    ("small == -1", 10, F.ILLEGAL_INTVAL, errno.EINVAL),
    ("n == 9223372036854775808", 6, F.ILLEGAL_INTVAL, errno.EINVAL),
    ("stamp == 18446744073709551616", 10, F.ILLEGAL_INTVAL, errno.EINVAL),
    ("n == 123456789012345678901234", 29, F.OPERAND_TOO_LONG, errno.EINVAL),
    ("name ~ 5", 8, F.EXPECT_STRING, errno.EINVAL),
    ("n ~ 5", 5, F.ILLEGAL_FIELD_OP, errno.EINVAL),
    ("cpu == 'x'", 8, F.EXPECT_DIGIT, errno.EINVAL),
    ("COMM == 1", 9, F.EXPECT_STRING, errno.EINVAL),
]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.name)
@pytest.mark.parametrize(("text", "column", "fault", "number"), REFUSED)
def test_refused(text, column, fault, number, profile):
    with pytest.raises(FilterError) as caught:
        parse_filter(text, FOO, profile)
    error = caught.value
    assert (error.column, error.fault, error.errno) == (column, fault, number)
    lines = error.report.split("\n")
    assert lines[0] == text.rstrip()
    assert lines[1] == " " * column + "^"
    assert lines[2:] == [f"parse_error: {fault}", "", ""]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.name)
@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", errno.EINVAL),
        ("   ", errno.EINVAL),
        ("()", errno.EINVAL),
        (" ( ) ", errno.EINVAL),
        ("== 1", errno.EPERM),
        ("&&", errno.EPERM),
        ("n == 1 && ()", errno.EPERM),
        ("!= 1", errno.EPERM),
        ("x" * (MAX_FILTER + 1), errno.EINVAL),
    ],
)
def test_refused_without_a_reason(text, number, profile):
    with pytest.raises(FilterError) as caught:
        parse_filter(text, FOO, profile)
    error = caught.value
    assert (error.fault, error.errno) == (F.ERRNO, number)
    assert error.report == f"{text.rstrip()}\nError: (0)\n\n"
    assert error.log_entry.endswith("\n           ^\n")


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.name)
@pytest.mark.parametrize(
    "text",
    [
        "small == 300",
        "list == 1",
        "cpus == 1",
        "trio == 1",
        "COMM == 'x'",
        "comm ~ '*x'",
        "CPU == 0",
        "cpu & 1",
        "common_cpu != 1",
        "common_pid == 7",
        "n == 0x10",
        "n == -1",
        "n==-9223372036854775808",
        "stamp == 18446744073709551615",
        "!(n == 1)",
        "! ! n == 1",
        "!n == 1",
        "name ~ 'a*b?[c]'",
        "name.ustring == 'x'",
        "text.ustring == 'x'",
        "n.ustring == 1",
        "((n==1)&&(small<2||name!='x'))",
        " n  ==  1 ",
        "name == '" + "a" * 255 + "'",
        "n == 1||n==2&&n==3",
    ],
)
def test_accepted(text, profile):
    assert parse_filter(text, FOO, profile).text == text.rstrip()


@pytest.mark.parametrize("text", ["n == 1 &&", "n == 1 ||", "n == 1 && !", "n == 1 && n == 2 || !!"])
def test_an_unfinished_expression_is_refused_by_later_kernels_only(text):
    assert parse_filter(text, FOO, KERNEL_6_1_187).expression
    for profile in (KERNEL_6_1, KERNEL_6_12):
        with pytest.raises(FilterError, match="Meaningless filter expression") as caught:
            parse_filter(text, FOO, profile)
        assert caught.value.column == len(text)
        assert caught.value.errno == errno.EINVAL


def test_an_unfinished_expression_without_a_target_is_refused_by_all():
    with pytest.raises(FilterError):
        parse_filter("n == 1 || n == 2 &&", FOO, KERNEL_6_1_187)


def test_a_lone_not_says_no_filter():
    with pytest.raises(FilterError, match="No filter found") as caught:
        parse_filter("!", FOO)
    assert caught.value.report == "!\n ^\nparse_error: No filter found\n\n"


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_string_ends_at_its_own_quote(quote):
    other = "'" if quote == '"' else '"'
    parsed = parse_filter(f"name == {quote}a{other}b{quote}", FOO)
    assert parsed.expression.pattern.text == f"a{other}b".encode()


def test_a_string_of_256_bytes_is_too_long():
    text = "name == '" + "a" * 256 + "'"
    with pytest.raises(FilterError, match="Operand too long") as caught:
        parse_filter(text, FOO)
    assert caught.value.column == len(text)
    assert caught.value.position == len(text)


def test_and_binds_tighter_and_not_binds_to_one_term():
    tree = parse_filter("!n == 1 || n == 2 && !(n == 3 || n == 4)", FOO).expression
    match tree:
        case Or((Not(Predicate(value=1)), And((Predicate(value=2), Not(Or((Predicate(), Predicate()))))))):
            pass
        case _:
            pytest.fail(repr(tree))


def test_an_event_field_hides_a_generic_one():
    wakeup = parse_filter("comm == 'x'", FOO).expression
    assert wakeup.source is Source.COMM
    assert parse_filter("comm == 'x'", SCHED_WAKEUP).expression.source is Source.STATIC_STRING


def test_field_types():
    assert parse_filter("filename ~ 'x'", PROCESS_EXEC).expression.source is Source.DATA_LOC
    assert parse_filter("filename ~ 'x'", OPENAT).expression.source is Source.POINTER
    assert parse_filter("filename.ustring ~ 'x'", OPENAT).expression.source is Source.USER_POINTER
    assert parse_filter("rel ~ 'x'", FOO).expression.source is Source.REL_LOC
    assert parse_filter("trio == 1", FOO).expression.source is Source.NOTHING
    assert parse_filter("n == 1", FOO, filter_types={"n": FilterType.CPU}).expression.source is Source.CPU


CPU_LISTS = [
    ("CPU & CPUS{0}", Source.CPU, 0),
    ("CPU & CPUS{0-1}", Source.CPU_IN_CPUS, 3),
    ("n == CPUS{2}", Source.SCALAR, 2),
    ("n != CPUS{1,3}", Source.SCALAR_IN_CPUS, 0b1010),
    ("mask & CPUS{0-7:1/2}", Source.CPUMASK, 0x55),
    ("mask == CPUS{N}", Source.CPUMASK_HAS_CPU, 7),
    ("mask == CPUS{all}", Source.CPUMASK, 0xFF),
    ("cpus & CPUS{0}", Source.SCALAR, 0),
    ("trio & CPUS{0,1}", Source.NOTHING, 3),
]


@pytest.mark.parametrize(("text", "source", "value"), CPU_LISTS)
def test_cpu_lists(text, source, value):
    predicate = parse_filter(text, FOO, KERNEL_6_12, n_cpus=8).expression
    assert (predicate.source, predicate.value) == (source, value)
    with pytest.raises(FilterError, match="Invalid value"):
        parse_filter(text, FOO, KERNEL_6_1)


@pytest.mark.parametrize(
    ("text", "fault", "column"),
    [
        ("n == CPUS 1", F.MISSING_BRACE_OPEN, 11),
        ("n == CPUS{1", F.MISSING_BRACE_CLOSE, 11),
        ("n == CPUS{}", F.INVALID_CPULIST, 11),
        ("n == CPUS{8}", F.INVALID_CPULIST, 12),
        ("n == CPUS{3-1}", F.INVALID_CPULIST, 14),
        ("n == CPUS{0-3:1/0}", F.INVALID_CPULIST, 18),
        ("n == CPUS{1x}", F.INVALID_CPULIST, 13),
        ("n == CPUS{n}", F.INVALID_CPULIST, 12),
        ("n > CPUS{1}", F.ILLEGAL_FIELD_OP, 5),
        ("name == CPUS{1}", F.ILLEGAL_FIELD_OP, 9),
        ("STACKTRACE == CPUS{1}", F.ILLEGAL_FIELD_OP, 15),
    ],
)
def test_bad_cpu_lists(text, fault, column):
    with pytest.raises(FilterError) as caught:
        parse_filter(text, FOO, KERNEL_6_12, n_cpus=8)
    assert (caught.value.fault, caught.value.column) == (fault, column)


def find_function(wanted):
    table = {b"tcp_init": (0x1000, 0x80), b"odd)": (0x2000, 1)}
    if isinstance(wanted, bytes):
        return table.get(wanted)
    return next((f for f in table.values() if f[0] <= wanted < f[0] + f[1]), None)


def test_functions():
    for value in ("tcp_init", "0x1010"):
        predicate = parse_filter(
            f"addr.function == {value}", FOO, KERNEL_6_12, find_function=find_function
        ).expression
        assert (predicate.source, predicate.value, predicate.value_end) == (Source.FUNCTION, 0x1000, 0x1080)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("addr.function == nosuch", F.NO_FUNCTION),
        ("addr.function == 0x9000", F.NO_FUNCTION),
        ("addr.function == 0xg", F.INVALID_VALUE),
        ("addr.function == 0x" + "1" * 30, F.OPERAND_TOO_LONG),
        ("addr.function > tcp_init", F.INVALID_OP),
        ("n.function == tcp_init", F.ILLEGAL_FIELD_OP),
        ("CPU.function == tcp_init", F.ILLEGAL_FIELD_OP),
        # The name runs on to the next white space, over the parenthesis.
        ("(addr.function == odd)", F.TOO_MANY_OPEN),
        ("(addr.function == odd) ' && n == 1 '", F.TOO_MANY_PREDS),
    ],
)
def test_bad_functions(text, fault):
    with pytest.raises(FilterError) as caught:
        parse_filter(text, FOO, KERNEL_6_12, find_function=find_function)
    assert caught.value.fault is fault


def test_a_system_filter_shows_the_same_text_with_one_reason():
    with pytest.raises(FilterError) as caught:
        parse_filter("nosuch == 3", SCHED_SWITCH)
    error = caught.value.for_system()
    assert error.report == (
        "nosuch == 3\n^\nparse_error: Couldn't find or set field in one of a subsystem's events\n\n"
    )


@pytest.mark.parametrize(("text", "expected"), [("0", True), (" 0\n", True), ("00", False), ("", False)])
def test_clearing(text, expected):
    assert is_clear(text) is expected


def test_text_ends_at_nul():
    assert parse_filter(b"n == 1\0garbage", FOO).text == "n == 1"


WORDS = [
    "n",
    "name",
    "small",
    "cpu",
    "comm",
    "nosuch",
    "==",
    "!=",
    "~",
    "&",
    "&&",
    "||",
    "!",
    "(",
    ")",
    "'x'",
    '"',
    "'",
    "1",
    "-1",
    "0x",
    "CPUS{",
    "}",
    "0-1",
    ".ustring",
    ".function",
]


def answer_to(text, profile):
    """Return (column, errno) of the refusal, or None for a filter that is accepted."""
    try:
        parse_filter(text, FOO, profile, n_cpus=4)
    except FilterError as error:
        return error.column, error.errno
    return None


@given(
    st.lists(st.sampled_from([*WORDS, " ", "\xa0", "\xe9"]), max_size=30).map("".join),
    st.sampled_from(PROFILES),
)
def test_any_text_parses_or_gives_a_filter_error(text, profile):
    column, number = answer_to(text, profile) or (0, errno.EINVAL)
    assert 0 <= column <= len(text.encode())
    assert number in (errno.EINVAL, errno.EPERM, errno.ENOENT, errno.ESRCH)


@given(st.binary(max_size=200), st.sampled_from(PROFILES))
def test_any_bytes_parse_or_give_a_filter_error(text, profile):
    column, _ = answer_to(text, profile) or (0, 0)
    assert 0 <= column <= len(text)
