"""Random C functions: what a placement may change, and what it must not."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import examples
from place.corpus import only_added, strip_calls, tokens_of, undo_values
from place.helpers import AFTER, BEFORE, ENTRY, RETURNS
from tracepoint.errors import PlaceError
from tracepoint.place.code import read_code
from tracepoint.place.functions import find_functions
from tracepoint.place.insert import EventCall, InsertionPoint, place_call
from tracepoint.place.statements import StatementKind, read_body
from tracepoint.source.text import SourceFile, apply_edits

SIMPLE = (
    "g(a);",
    "a = b * 2;",
    "b = ({ int n = a; n; });",
    "x->y = a;",
    "*p = a;",
    ";",
    "MACRO(a, b);",
    "a++; b--;",
)
ENDS = ("return a;", "return g(a);", "return -EINVAL;", "goto out;", "return a + b;")
HEADS = (
    "if (a)",
    "while (a)",
    "for (a = 0; a < 3; a++)",
    "list_for_each_entry(x, &list, node)",
    "switch (a)",
)
SPACES = ("\n\t", "\n\n\t", " ", "\n\t/* why */\n\t", " /* c */ ", "\n#ifdef X\n#endif\n\t", "\t// c\n\t")


@st.composite
def statements(draw: st.DrawFn, depth: int = 0) -> str:
    space = draw(st.sampled_from(SPACES))
    kind = draw(st.integers(0, 9 if depth < 3 else 3))
    if kind <= 3:
        return space + draw(st.sampled_from(SIMPLE if kind < 3 else ENDS))
    inner = draw(statements(depth + 1))
    if kind == 4:
        return f"{space}{{{inner}{draw(statements(depth + 1))}{space}}}"
    head = draw(st.sampled_from(HEADS))
    if head == "switch (a)":
        return (
            f"{space}{head} {{\n\tcase 1:{inner}{space}break;\n\tdefault:{draw(statements(depth + 1))}\n\t}}"
        )
    if head == "if (a)" and kind > 6:
        return f"{space}{head} {{{inner}\n\t}} else{draw(statements(depth + 1))}"
    if kind == 5:
        return f"{space}do {{{inner}\n\t}} while (a);"
    return space + head + (f" {{{inner}\n\t}}" if kind % 2 else inner)


@st.composite
def functions(draw: st.DrawFn) -> str:
    declarations = draw(
        st.sampled_from(["", "\n\tint b = 1;\n", "\n\tint b = 1, *p = &a;\n\tLIST_HEAD(list);\n"])
    )
    inside = "".join(draw(st.lists(statements(), min_size=1, max_size=5)))
    return f"int f(int a)\n{{{declarations}{inside}\nout:\n\treturn a;\n}}\n"


def take_back(old: str, new: str, n_calls: int) -> list[str]:
    """What was added beside the calls."""
    left, found = strip_calls(tokens_of(new), "x")
    assert found == n_calls
    tokens = tokens_of(old)
    return only_added(tokens, undo_values(left, tokens))


@settings(max_examples=examples(150))
@example("int f(int a)\n{\n\t{\n\treturn g(a); return a;\n\t}\nout:\n\treturn a;\n}\n", RETURNS, True)
@example("int f(int a)\n{\n\tif (a)\n\treturn a; return a;\nout:\n\treturn a;\n}\n", RETURNS, False)
@given(functions(), st.sampled_from([ENTRY, RETURNS]), st.booleans())
def test_only_calls_braces_and_a_variable_are_added(text: str, where: object, has_value: bool) -> None:
    args = ("RETURN_VALUE",) if has_value and where is RETURNS else ("a",)
    source = SourceFile("a.c", text)
    try:
        found = place_call(source, InsertionPoint("f", where), EventCall("x", args))  # type: ignore[arg-type]
    except PlaceError as error:
        assert "a conditional begins or ends" in error.reason or "crosses the border" in error.reason  # noqa: PT017
        return
    new = apply_edits(text, found.edits)
    added = take_back(text, new, len(found.spans))
    assert added.count("{") == added.count("}") == sum("braces are added" in note for note in found.notes)
    others = [token for token in added if token not in "{}"]
    assert others in ([], ["int", others[1] if others else "", ";"])
    _same_shape(text, new)


def _same_shape(old: str, new: str) -> None:
    """Every return of the new text has a call before it exactly if it should; statements keep their order."""
    kinds = []
    for text in (old, new):
        code = read_code(SourceFile("a.c", text))
        body = read_body(code, find_functions(code)[0])
        kinds.append(
            [
                s.kind
                for s in body.walk()
                if s.kind
                in (
                    StatementKind.RETURN,
                    StatementKind.JUMP,
                    StatementKind.LOOP,
                    StatementKind.SWITCH,
                    StatementKind.IF,
                )
            ]
        )
    assert kinds[0] == kinds[1]


@settings(max_examples=examples(150))
@given(functions(), st.sampled_from([BEFORE, AFTER]), st.data())
def test_beside_any_statement(text: str, where: object, data: st.DataObject) -> None:
    code = read_code(SourceFile("a.c", text))
    body = read_body(code, find_functions(code)[0])
    chosen = data.draw(
        st.sampled_from([s for s in body.walk() if s is not body and s.kind is not StatementKind.BLOCK])
    )
    spelled = text[code.tokens[chosen.first].start : code.tokens[chosen.last].end]
    place = InsertionPoint("f", where, spelled, code.line(chosen.first))  # type: ignore[arg-type]
    try:
        found = place_call(SourceFile("a.c", text), place, EventCall("x", ("a",)))
    except PlaceError as error:
        assert str(error)  # noqa: PT017
        return
    new = apply_edits(text, found.edits)
    assert [token for token in take_back(text, new, 1) if token not in "{}"] == []
    again = read_code(SourceFile("a.c", new))
    call = next(at for at, token in enumerate(again.texts) if token == "trace_x")
    beside = again.texts[call - 1] if where is AFTER else again.texts[call + 5]
    expected = code.texts[chosen.last] if where is AFTER else code.texts[chosen.first]
    if chosen.kind is not StatementKind.DECLARATION:
        assert beside == expected
    _same_shape(text, new)


PIECES = [
    *"abf(){};=*,\n\t\"'#:?<>-+/\\ 1",
    "if",
    "for",
    "return ",
    "int ",
    "else ",
    "do",
    "#if X\n",
    "#endif\n",
]


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_any_text_is_placed_or_refused(text: str) -> None:
    whole = "int f(int a)\n{\n" + text + "\n}\n"
    for where in (ENTRY, RETURNS):
        try:
            found = place_call(SourceFile("a.c", whole), InsertionPoint("f", where), EventCall("x", ("a",)))
        except PlaceError as error:
            assert str(error)  # noqa: PT017
        else:
            assert apply_edits(whole, found.edits).count("trace_x(a);") == len(found.spans)


@settings(max_examples=examples(100))
@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_any_request_is_answered(statement: str, arg: str, event: str) -> None:
    whole = "int f(int a)\n{\n\tg(a);\n\treturn 0;\n}\n"
    for request in (
        InsertionPoint("f", AFTER, statement),
        InsertionPoint(statement, ENTRY),
        InsertionPoint("f", AFTER, "g(a);"),
    ):
        with pytest.raises(PlaceError):
            place_call(SourceFile("a.c", whole), request, EventCall(event or "1", (arg, "1 +")))
