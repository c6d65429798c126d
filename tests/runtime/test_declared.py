"""What is wrong with a declaration is said where it stands; see `tracepoint.runtime.declared`."""

import pytest

from tracepoint.errors import TracepointError
from tracepoint.model.python_types import char_array, u32

WRONG_PRINTS = {
    '"%d", nosuch': "needs the name nosuch",
    "%d": "shows 1 values and is given 0",
    "a=%d": "shows 1 values and is given 0",
    '"%d %d", a': "shows 2 values and is given 1",
    '"%d", a, a': "shows 1 values and is given 2",
    '"%s", a': "%s shows texts, and 'a' is a number",
    '"%*d %s", a, a, a': "%s shows texts",
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
