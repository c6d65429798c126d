"""Pointers that are known to be invalid at a place: the body of `if (!p)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.place.statements import StatementKind

if TYPE_CHECKING:
    from tracepoint.place.code import SourceCode
    from tracepoint.place.sites import Site
    from tracepoint.place.statements import StatementSpan

_HINTS = frozenset({"unlikely", "likely"})
_TESTS = {"IS_ERR": "an error", "IS_ERR_OR_NULL": "an error or NULL"}


def bad_pointers(code: SourceCode, site: Site) -> dict[str, tuple[str, int]]:
    r"""Return the variables that are invalid pointers at a place: what they are, and the line of the test.

    Only `!p`, `p == NULL`, `IS_ERR(p)` and `IS_ERR_OR_NULL(p)` as a whole condition are understood.

    >>> from tracepoint.place.code import read_code
    >>> from tracepoint.place.functions import find_functions
    >>> from tracepoint.place.sites import site_at
    >>> from tracepoint.place.statements import read_body
    >>> from tracepoint.source.text import SourceFile
    >>> code = read_code(SourceFile("a.c", "void f(struct s *p)\n{\n\tif (unlikely(!p))\n\t\treturn;\n}"))
    >>> statement = read_body(code, find_functions(code)[0]).children[0].children[0]
    >>> bad_pointers(code, site_at(code, statement))
    {'p': ('NULL', 3)}
    """
    found: dict[str, tuple[str, int]] = {}
    inner = site.block
    here: StatementSpan | None = inner
    while here is not None:
        is_body = here.kind is StatementKind.IF and here.header is not None and here.children[:1] == [inner]
        if (is_body or (here is site.block and here.kind is StatementKind.IF)) and _is_first_arm(here, site):
            name, what = _tested(code, here)
            is_same = name and not code.uses(name, here.header[1] if here.header else here.first, site.token)
            if is_same:
                found.setdefault(name, (what, code.line(here.first)))
        inner, here = here, here.parent
    return found


def _is_first_arm(statement: StatementSpan, site: Site) -> bool:
    body = statement.children[0]
    return body.first <= site.token <= body.last + 1


def _tested(code: SourceCode, statement: StatementSpan) -> tuple[str, str]:
    """Return the variable that a condition shows to be an invalid pointer, and what it is then."""
    if statement.header is None or code.texts[statement.first] != "if":
        return "", ""
    first, last = statement.header
    texts = code.texts[first + 1 : last]
    while len(texts) > 3 and texts[0] in _HINTS and texts[1] == "(" and texts[-1] == ")":
        texts = texts[2:-1]
    match texts:
        case ["!", name] if name.isidentifier():
            return name, "NULL"
        case [name, "==", "NULL"] if name.isidentifier():
            return name, "NULL"
        case [test, "(", name, ")"] if test in _TESTS and name.isidentifier():
            return name, _TESTS[test]
    return "", ""
