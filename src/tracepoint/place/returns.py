"""Calls before every return of a function, and the value that it returns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.place.flow import falls_through
from tracepoint.place.names import all_declared
from tracepoint.place.sites import Site, site_at_end
from tracepoint.place.statements import StatementKind, StatementSpan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.place.code import SourceCode
    from tracepoint.place.functions import Function
    from tracepoint.place.names import NamesOfFile
    from tracepoint.place.variables import Variable

#: In an argument of a call at `Where.RETURNS`: the value that the function is about to return.
RETURN_VALUE = "RETURN_VALUE"

_MENTION = re.compile(rf"\b{RETURN_VALUE}\b")
#: The whole argument of a call in an argument: it needs no parentheses.
_ALONE = re.compile(rf"(?<=\w\(){RETURN_VALUE}(?=\))")
_USUAL = ("ret", "err", "error", "rc", "retval", "rv", "res", "result", "status")
_PURE = frozenset({"ERR_PTR", "PTR_ERR", "ERR_CAST", "IS_ERR", "cpu_to_be32", "BIT"})
_SHORT = 40
#: afs_abort_to_error() has most in mm/, kernel/ and fs/ of 6.1: 77.
_MAX_RETURNS = 500


def mentions_value(args: Sequence[str]) -> bool:
    """Return whether one of the arguments names the returned value."""
    return any(_MENTION.search(arg) for arg in args)


def with_value(args: Sequence[str], value: str) -> tuple[str, ...]:
    """Return the arguments with the returned value's text instead of its name.

    >>> with_value(("RETURN_VALUE", "2 * RETURN_VALUE", "PTR_ERR(RETURN_VALUE)", "x"), "-EIO")
    ('-EIO', '2 * (-EIO)', 'PTR_ERR(-EIO)', 'x')
    """
    is_one = re.fullmatch(r"\w+", value) is not None
    inner = value if is_one else f"({value})"
    alone = (arg if arg == RETURN_VALUE else _ALONE.sub(lambda _: value, arg) for arg in args)
    return tuple(value if arg == RETURN_VALUE else _MENTION.sub(lambda _: inner, arg) for arg in alone)


def find_returns(
    code: SourceCode, body: StatementSpan, function: Function
) -> tuple[list[StatementSpan], Site | None, list[str]]:
    """Return the return statements, the end of the body if control can reach it, and notes.

    Raises PlaceError when some return cannot be seen.
    """
    returns: list[StatementSpan] = []
    notes: list[str] = []
    for statement in body.walk():
        if statement.kind is StatementKind.RETURN:
            returns.append(statement)
        for first, last in statement.opaque:
            if "return" in code.texts[first:last]:
                raise code.error(
                    "a `return` is in the argument of a macro, where no call can be added", first
                )
    if len(returns) > _MAX_RETURNS:
        raise code.error(f"{function.names[0]}() has more than {_MAX_RETURNS} returns", function.name_at)
    _check_unseen(code, body)
    end = None
    if falls_through(code, body):
        if function.returns == "void":
            end = site_at_end(code, body)
        else:
            notes.append(
                f"no call is added at the end of {function.names[0]}(), although control seems to reach it"
            )
    if not returns and end is None:
        raise code.error(f"{function.names[0]}() never returns", function.name_at)
    macros = _returning_macros(code, body)
    notes += [f"the macro {name}() contains a return: no call can be added before it" for name in macros]
    return returns, end, notes


def _check_unseen(code: SourceCode, body: StatementSpan) -> None:
    for start, end, why in code.unseen:
        inside = code.tokens[body.first].start < start < code.tokens[body.last].start
        if inside and "differently" in why and re.search(r"\breturn\b", code.file.text[start:end]):
            at = next(at for at in range(body.first, body.last + 1) if code.tokens[at].start >= start)
            raise code.error(f"a `return` {why}: no call can be added before it", at)


def _returning_macros(code: SourceCode, body: StatementSpan) -> list[str]:
    names = {
        directive.tokens[2].text
        for directive in code.directives
        if directive.keyword == "define" and any(token.text == "return" for token in directive.tokens)
    }
    return sorted(names.intersection(code.texts[body.first : body.last]))


def simple_value(code: SourceCode, statement: StatementSpan, locals_: dict[str, list[Variable]]) -> str:
    """Return the text of a returned value if it may be repeated, empty if it needs a variable.

    It may if it is a constant, a parameter or a local, with a sign or a cheap macro around it: memory
    could change in between, and repeating a longer expression is ugly.
    """
    first, last = statement.first + 1, statement.last - 1
    while code.texts[first] == "(" and code.match[first] == last:
        first, last = first + 1, last - 1
    text = " ".join(code.file.text[code.tokens[first].start : code.tokens[last].end].split())
    if code.texts[first] in _PURE and code.texts[first + 1] == "(" and code.match[first + 1] == last:
        first, last = first + 2, last - 1
    if code.texts[first] in {"-", "~", "!"}:
        first += 1
    is_literal = code.texts[first][:1].isdigit() or code.texts[first][:1] in {"'", '"'}
    if first != last or len(text) > _SHORT or not (is_literal or _is_fixed(code, first, locals_)):
        return ""
    return text


def _is_fixed(code: SourceCode, at: int, locals_: dict[str, list[Variable]]) -> bool:
    """Return whether a name is a constant, or a variable of this function that no other code changes."""
    word = code.texts[at]
    if code.texts[at + 1] == "(":
        return False
    if word in {"NULL", "true", "false"} or (word.isupper() and len(word) > 1):
        return True
    found = locals_.get(word)
    return found is not None and not any(v.is_array or {"static", "volatile"} & v.words for v in found)


def value_variable(
    code: SourceCode,
    body: StatementSpan,
    function: Function,
    names: NamesOfFile,
    returns: Sequence[StatementSpan],
) -> tuple[str, bool]:
    """Return a variable for the returned value, and whether it must be declared first.

    Raises PlaceError when the return type is not known.
    """
    known = all_declared(code, body, function)
    for name in _USUAL:
        variables = known.get(name, [])
        if len(variables) == 1 and _may_keep(code, body, variables[0], function.returns, returns):
            return name, False
    if not function.returns:
        raise code.error(
            f"the type that {function.names[0]}() returns is not understood: no variable can hold its value",
            function.name_at,
        )
    taken = names.declared | set(code.texts[function.head : body.last])
    for name in (*_USUAL, "trace_ret"):
        if name not in taken:
            return name, True
    raise code.error("no usual name is available for the returned value", function.name_at)


def _may_keep(
    code: SourceCode, body: StatementSpan, variable: Variable, kind: str, returns: Sequence[StatementSpan]
) -> bool:
    """Return whether a local can hold the returned value: of its type, visible, its address not taken."""
    if variable.type != kind or variable.is_array or variable.words:
        return False
    owner = next(
        (
            s
            for s in body.children
            if s.kind is StatementKind.DECLARATION and s.first <= variable.at <= s.last
        ),
        None,
    )
    if owner is None or code.arms[variable.at] is not code.arms[body.first]:
        return False
    if any(statement.first < variable.at for statement in returns):
        return False
    return not any(
        code.texts[at] == variable.name
        and code.texts[at - 1] == "&"
        and code.texts[at - 2] in {"(", ",", "="}
        for at in range(body.first + 2, body.last)
    )
