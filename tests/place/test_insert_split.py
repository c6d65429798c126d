"""The entry of functions whose declarations and statements share a branch of `#if`."""

from __future__ import annotations

import pytest

import oracles
from place.corpus import files_of
from place.helpers import AFTER, ENTRY, place, put, refusal
from tracepoint.errors import PlaceError
from tracepoint.place.code import read_code
from tracepoint.place.functions import find_functions
from tracepoint.place.insert import EventCall, InsertionPoint, place_call, place_calls
from tracepoint.place.lookup import check_function
from tracepoint.place.sites import count_declarations, entry_site
from tracepoint.place.statements import read_body
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile, apply_edits, decode

TEXT = """\
void f(int a)
{
#ifdef X
	int c;

	/* why */
	h(c);
#else
	i();
#endif
	g();
}
"""
SPLIT = """\
void f(int a)
{
#ifdef X
	int c;
#endif

	trace_x(a);
#ifdef X
	/* why */
	h(c);
#else
	i();
#endif
	g();
}
"""


def test_the_branch_ends_before_the_call_and_begins_again() -> None:
    assert put(TEXT, ENTRY, "", "a") == SPLIT
    notes = place(TEXT, ENTRY, "", "a").notes
    assert "the branch `#ifdef X` ends before the call and begins again after it" in notes


def test_after_the_declaration_is_the_same_place() -> None:
    assert put(TEXT, AFTER, "int c;", "a") == SPLIT


def test_a_blank_line_is_added_where_there_is_none() -> None:
    assert put(TEXT.replace("\n\n", "\n"), ENTRY, "", "a") == SPLIT


def test_a_condition_of_two_lines_is_written_on_one() -> None:
    condition = "#if defined(X) && \\\n\tdefined(Y)"
    found = put(TEXT.replace("#ifdef X", condition), ENTRY, "", "a")
    assert "\ttrace_x(a);\n#if defined(X) && defined(Y)\n\t/* why */" in found


def test_two_calls_at_the_entry_split_once() -> None:
    requests = [(InsertionPoint("f", ENTRY), EventCall(event, ("a",))) for event in "xy"]
    edits = place_calls(SourceFile("mm/a.c", TEXT), requests)
    assert apply_edits(TEXT, edits) == SPLIT.replace("x(a);\n", "x(a);\n\ttrace_y(a);\n")


def test_what_is_declared_in_the_branch_is_no_argument() -> None:
    assert "`c` is declared only under `#ifdef X`" in refusal(TEXT, ENTRY, "", "c")


REFUSED = {
    "in another branch": (
        TEXT.replace("#ifdef X", "#ifdef Y\n#ifdef X").replace("\tg();", "#endif\n\tg();"),
        "it is inside another one",
    ),
    "the second branch": (
        TEXT.replace("#ifdef X", "#ifdef Y\n\tint b;\n#elif X"),
        "it is not the first of its conditional",
    ),
    "one line": (TEXT.replace(";\n\n\t/* why */\n", "; "), "they are on one line"),
    "both branches": (TEXT.replace("i();", "int d;\n\n\ti();"), "`#else` begins with declarations too"),
    "a macro in the other": (TEXT.replace("i();", "LIST_HEAD(d);\n\n\ti(&d);"), "`#else` begins with"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_split_is_refused(name: str) -> None:
    text, reason = REFUSED[name]
    found = refusal(text, ENTRY, "", "a")
    assert "declarations and statements share the branch" in found
    assert reason in found


def test_a_later_conditional_does_not_matter() -> None:
    later = "#ifdef Z\n\tj();\n#else\n\tint k;\n#endif\n}"
    assert "trace_x(a);\n#ifdef X" in put(TEXT.replace("}", later), ENTRY, "", "a")


def configured(text: str, condition: str, *, is_on: bool) -> list[str]:
    """The tokens of a function under one value of a condition; branches of others are all kept."""
    kept: list[str] = []
    stack: list[bool | None] = []
    for line in text.replace("\\\n", " ").split("\n"):
        word = "".join(line.split())
        if word.startswith("#if"):
            stack.append(is_on if word.startswith(condition) else None)
        elif word.startswith(("#el", "#endif")):
            last = stack.pop()
            stack += [] if word.startswith("#endif") else [None if last is None else not last]
        elif False not in stack:
            kept.append(line)
    return [t.text for t in lex(SourceFile("a.c", "\n".join(kept)))]


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["linux-source-6.1", "linux-source-6.12"])
def test_split_branches_mean_the_same_in_both_configurations(name: str) -> None:
    tree = oracles.kernel_source(name)
    n_split = n_refused = 0
    for path in files_of(tree, ("mm", "kernel", "fs")):
        source = SourceFile(path, decode((tree / path).read_bytes()))
        if "\n#if" not in source.text:
            continue
        code = read_code(source)
        for function in find_functions(code):
            span = slice(code.tokens[function.open].start, code.tokens[function.close].end)
            if function.trouble or function.close < 0 or "\n#if" not in source.text[span]:
                continue
            try:
                body = read_body(code, function)
                check_function(code, function, body)
                n_declarations = count_declarations(code, body, 0, frozenset())
                split = entry_site(code, body, n_declarations).split
            except PlaceError as error:
                n_refused += "share the branch" in error.reason
                continue
            if split is None:
                continue
            n_split += 1
            where = InsertionPoint(function.names[0], ENTRY, line=code.line(function.name_at))
            found = place_call(source, where, EventCall("x", ()))
            condition = "".join(split.text.split())
            new = apply_edits(source.text, found.edits)
            new = new[span.start : len(new) - len(source.text) + span.stop]
            for is_on in (True, False):
                tokens = configured(new, condition, is_on=is_on)
                at = tokens.index("trace_x")
                assert tokens[:at] + tokens[at + 4 :] == configured(source.text[span], condition, is_on=is_on)
            last = code.tokens[body.children[n_declarations - 1].last].end
            before = configured(source.text[span.start : last] + "\n#endif", condition, is_on=True)
            on = configured(new, condition, is_on=True)
            assert on[: on.index("trace_x")] == before[:-1]
    assert n_split > 100
    assert n_refused < 5
