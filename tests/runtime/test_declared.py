"""What is wrong with a declaration is said where it stands; see `tracepoint.runtime.declare.unsuitable`."""

import enum
import errno

import pytest

from tracepoint.errors import TracepointError
from tracepoint.model.python.types import char_array, u32

WRONG_PRINTS = {
    '"%d", nosuch': "needs the name nosuch",
    '"%d"': "shows 1 values and is given 0",
    "%d": "the format in double quotes",
    "a=%d, a": "the format in double quotes",
    "a": "the format in double quotes",
    '"a=%d\n", a': "a line break inside quotes",
    None: "is a NoneType, not text",
    '"%d %d", a': "shows 2 values and is given 1",
    '"%d", a, a': "shows 1 values and is given 2",
    '"%s", a': "%s needs a string, and 'a' is a number",
    '"%*d %s", a, a, a': "%s needs a string",
    '"%d", s': "needs a pointer used as a number",
    '"%q", a': "needs the conversion %q",
    '"%d", a +': "an expression is missing here",
    '"%d", foo(a)': r"needs the function foo\(\)",
}


@pytest.mark.parametrize(("text", "message"), WRONG_PRINTS.items())
def test_print_formats_that_cannot_be_shown_are_refused_at_the_declaration(runtime, text, message):
    with pytest.raises(TracepointError, match=message):

        @runtime.trace_event(system="wrong", printk=text)
        def printed(a: u32, s: str) -> None: ...

    assert runtime.tracing.events == ()


@pytest.mark.parametrize(
    ("parameters", "options", "message"),
    [
        ("common_pid: u32", {}, "two fields 'common_pid'"),
        ("a: u32 = 'x'", {}, "the default of 'a': 'str' object"),
        ("a: u32 = -1", {}, "the default of 'a': -1 does not fit u32"),
        ("a: u32", {"condition": 3}, "condition is called; 3 cannot be"),
        ("a: u32", {"reg": "x"}, "reg is called"),
        (", ".join(f"a{i}: u32" for i in range(65)), {}, "65 parameters are more than 64"),
        ("a: char_array[5000]", {}, "a record of 5008 bytes is longer than 4072"),
    ],
)
def test_what_is_wrong_from_the_beginning_is_said_there(runtime, parameters, options, message):
    space = {"u32": u32, "char_array": char_array}
    exec(f"def wrong({parameters}): ...", space)
    with pytest.raises(TracepointError, match=message):
        runtime.trace_event(system="wrong", printk='"x"', **options)(space["wrong"])
    assert runtime.tracing.events == ()


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("bytes", "use str: bytes may be given too"),
        ("list[int]", r"dynamic_array\(\), see make_tracepoint"),
        ("tuple", r"dynamic_array\(\)"),
        ("IntEnum", "use int, or u8"),
        ("char_array", r"char_array\[16\]"),
        ("int | None", "use u8 to u64"),
    ],
)
def test_types_that_cannot_be_recorded_name_one_that_can(runtime, annotation, message):
    space = {"IntEnum": enum.IntEnum, "char_array": char_array}
    exec(f"def wrong(a: {annotation}): ...", space)
    with pytest.raises(TracepointError, match=message):
        runtime.trace_event(system="wrong", printk='"x"')(space["wrong"])


@pytest.mark.parametrize("thing", [5, int, len, None])
def test_what_is_no_function_declares_nothing(runtime, thing):
    with pytest.raises(TracepointError):
        runtime.trace_event(system="wrong", printk='"x"')(thing)


SYSTEMS = {
    ".": "means another folder",
    "..": "means another folder",
    "a\0b": "has a",
    "x" * 256: "255 is the most",
    "*": "set_event takes for any",
    "!a": "switches off in set_event",
    "enable": "a file in events/",
    "header_page": "a file in events/",
    "\ud800": "UTF-8",
}


@pytest.mark.parametrize(("system", "message"), SYSTEMS.items(), ids=range(len(SYSTEMS)))
def test_systems_that_can_be_no_folder(runtime, system, message):
    def wrong(a: u32): ...

    with pytest.raises(TracepointError, match=message):
        runtime.trace_event(system=system, printk='"x"')(wrong)
    assert runtime.tracing.events == ()


@pytest.mark.parametrize("name", ["enable", "filter", "x" * 256])
def test_events_that_can_be_no_folder(runtime, name):
    def wrong(a: u32): ...

    with pytest.raises(TracepointError, match=r"the name of event .* (is that of a file|has 256 bytes)"):
        runtime.trace_event(system="wrong", name=name, printk='"x"')(wrong)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0", "x" * 256, None, 5])
def test_instances_that_can_be_no_folder(runtime, name):
    with pytest.raises(TracepointError, match="the name of instance") as caught:
        runtime.tracing.make_instance(name)
    assert caught.value.errno == errno.EINVAL
    assert not runtime.tracing.instances


def test_an_assign_that_forgets_a_field_is_told(runtime):
    class Forgetful(runtime.TraceEvent, system="wrong"):
        a: u32
        printk = '"%u", a'

        def assign(self, thing): ...

    Forgetful.enable()
    Forgetful(1)
    assert "assign has stored nothing in 'a'" in runtime.tracing.faults[1][0][2]


def test_an_assign_without_self(runtime):
    with pytest.raises(TracepointError, match="its first parameter is self"):
        type(runtime.TraceEvent)(
            "Wrong",
            (runtime.TraceEvent,),
            {"__annotations__": {"a": u32}, "printk": '"%u", a', "assign": lambda: 0},
            system="wrong",
        )


@pytest.mark.parametrize("prio", ["x", None, 1.5])
def test_a_priority_is_a_number(runtime, prio):
    @runtime.trace_event(system="right", printk='"%u", a')
    def right(a: u32): ...

    with pytest.raises(TracepointError, match="prio is") as caught:
        right.register(lambda a: None, prio=prio)
    assert caught.value.errno == errno.EINVAL
