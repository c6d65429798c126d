"""The names that a file and a function declare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.place.sites import Site, macro_declares
from tracepoint.place.statements import StatementKind, StatementSpan
from tracepoint.place.variables import Variable, declared, declared_by_macro, is_declaration

if TYPE_CHECKING:
    from tracepoint.place.code import SourceCode
    from tracepoint.place.functions import Function


@dataclass(frozen=True, slots=True)
class NamesOfFile:
    """The names in a file: `declared` outside functions or by `#define`, and `used` anywhere."""

    declared: frozenset[str]
    used: frozenset[str]


def file_names(code: SourceCode) -> NamesOfFile:
    r"""Collect the names of a file.

    >>> from tracepoint.place.code import read_code
    >>> from tracepoint.source.text import SourceFile
    >>> text = "#define LIMIT 3\nenum e { ONE };\nstatic int count;\nvoid f(int a)\n{\n\tg(a);\n}\n"
    >>> found = file_names(read_code(SourceFile("a.c", text)))
    >>> sorted(found.declared - {"int", "static", "void", "enum"}), "g" in found.used
    (['LIMIT', 'ONE', 'count', 'e', 'f'], True)
    """
    names = {d.tokens[2].text for d in code.directives if d.keyword == "define" and len(d.tokens) > 2}
    at = 0
    texts = code.texts
    while at < len(texts):
        if texts[at] in "([{" and at in code.match:
            if texts[at] == "{" and _is_enum(code, at):
                names.update(t for t in texts[at : code.match[at]] if t.isidentifier())
            at = code.match[at]
        elif code.is_name(at):
            names.add(texts[at])
        at += 1
    used = {texts[at] for at in range(len(texts)) if code.is_name(at)}
    return NamesOfFile(frozenset(names), frozenset(used))


def _is_enum(code: SourceCode, brace: int) -> bool:
    return "enum" in code.texts[max(0, brace - 3) : brace]


def visible(code: SourceCode, site: Site, function: Function) -> dict[str, list[Variable]]:
    """Return the parameters and locals that are visible at a place, the innermost of a name first."""
    found: dict[str, list[Variable]] = {}

    made: list[Variable] = []

    def add(variables: list[Variable]) -> None:
        for variable in reversed(variables):
            found.setdefault(variable.name, []).append(variable)

    here: StatementSpan | None = site.block
    index = site.index
    while here is not None:
        if here.kind is StatementKind.BLOCK:
            for child in reversed(here.children[:index]):
                if child.kind is StatementKind.DECLARATION:
                    add(declared(code, child.first, child.last))
                elif macro_declares(code, here, child, frozenset()):
                    made += declared_by_macro(code, child.first) or []
        elif here.kind is StatementKind.LOOP:
            add(_header_variables(code, here))
        parent = here.parent
        is_child = parent is not None and parent.kind is StatementKind.BLOCK and not here.is_value
        index = parent.children.index(here) if parent is not None and is_child else 0
        here = parent
    add(list(function.params))
    for variable in made:  # it may also be a plain call: this counts only if nothing else declares the name
        found.setdefault(variable.name, [Variable(variable.name, "", variable.at, True)])
    return found


def _header_variables(code: SourceCode, loop: StatementSpan) -> list[Variable]:
    if loop.header is None or code.texts[loop.first] != "for":
        return []
    first = loop.header[0] + 1
    for at in range(first, loop.header[1]):
        if code.texts[at] == ";":
            return declared(code, first, at) if at > first and is_declaration(code, first, at) else []
    return []


def all_declared(code: SourceCode, body: StatementSpan, function: Function) -> dict[str, list[Variable]]:
    """Return every parameter and local of a function by name, wherever it is visible."""
    found: dict[str, list[Variable]] = {}
    variables = list(function.params)
    for statement in body.walk():
        if statement.kind is StatementKind.DECLARATION:
            variables += declared(code, statement.first, statement.last)
        elif statement.kind is StatementKind.LOOP:
            variables += _header_variables(code, statement)
    for variable in variables:
        found.setdefault(variable.name, []).append(variable)
    return found
