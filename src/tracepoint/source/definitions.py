"""What a header defines for itself outside of its macros: structs, unions, typedefs, inline functions.

Found in preprocessed text, so what they take from the header's own macros is expanded already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.source.brackets import outside, step
from tracepoint.source.declarations import read_declarations
from tracepoint.source.lexer import Kind
from tracepoint.source.macros import spell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.source.lexer import Token

_TAGGED = frozenset(("struct", "union"))


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition: the name or tag that it defines, its lines of C, and all words in it.

    `enumerators` are those that it defines on the way; `is_function` distinguishes functions from types.
    """

    name: str
    lines: tuple[str, ...]
    words: frozenset[str]
    enumerators: frozenset[str] = frozenset()
    is_function: bool = False


def read_definitions(tokens: Sequence[Token]) -> tuple[Definition, ...]:
    """Return the definitions of structs, unions, typedefs and inline functions, in the order of the text.

    >>> from tracepoint.source.lexer import lex
    >>> from tracepoint.source.text import SourceFile
    >>> text = "struct ring { int n; }; EVENT(x); typedef u32 id_t; struct other;"
    >>> [item.name for item in read_definitions(lex(SourceFile("a.h", text)))]
    ['struct ring', 'id_t']
    """
    found = [_definition(item) for item in _items(tokens)]
    return tuple(item for item in found if item is not None)


def _items(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Split the text where a declaration, a call of a macro or the body of a function ends."""
    item: list[Token] = []
    depth = 0
    for number, token in enumerate(tokens):
        if token.kind is Kind.END:
            break
        item.append(token)
        depth += step(token.text)
        if depth > 0:
            continue
        depth = 0
        follows = tokens[number + 1].text if number + 1 < len(tokens) else ""
        is_call = token.text == ")" and _is_call(item) and follows != ";"
        if token.text == ";" or is_call or (token.text == "}" and _is_function(item)):
            yield item
            item = []


def _is_call(item: Sequence[Token]) -> bool:
    return len(item) > 2 and item[0].kind is Kind.NAME and item[1].text == "("


def _is_function(item: Sequence[Token]) -> bool:
    """Return whether an item that ends with `}` is a function: its first brace follows a parenthesis."""
    texts = [token.text for token in item]
    return "{" in texts and texts[texts.index("{") - 1] == ")" and texts[0] != "typedef"


def _definition(item: Sequence[Token]) -> Definition | None:
    texts = [token.text for token in item]
    name = ""
    is_function = False
    if texts[0] in _TAGGED and len(texts) > 3 and texts[2] == "{":
        name = f"{texts[0]} {texts[1]}"
    elif texts[0] == "typedef":
        name = _typedef_name(item)
    elif texts[0] == "static" and texts[-1] == "}" and _is_function(item):
        is_function = True
        name = texts[texts.index("(") - 1]
    if not name:
        return None
    enumerators = frozenset(read_declarations(item).enumerators)
    words = frozenset(token.text for token in item if token.kind is Kind.NAME)
    return Definition(name, tuple(_lines(item)), words, enumerators, is_function)


def _typedef_name(item: Sequence[Token]) -> str:
    """Return the name that a typedef defines: in `(*name)(...)`, else the last one outside of brackets."""
    words = {token.text for token in item if token.kind is Kind.NAME}
    name = ""
    for at in outside(item, words | {"("}):
        if item[at].text != "(":
            name = item[at].text
        elif item[at + 1].text == "*":
            return next((t.text for t in item[at + 2 :] if t.kind is Kind.NAME), "")
    return name


def _lines(item: Sequence[Token]) -> Iterator[str]:
    """Break tokens after braces and semicolons, one tab a level."""
    line: list[Token] = []
    level = n_round = 0
    for number, token in enumerate(item):
        follows = item[number + 1].text if number + 1 < len(item) else ""
        n_round += (token.text == "(") - (token.text == ")")
        if token.text == "}":
            level = max(level - 1, 0)
        if token.text == "{" and not level and line[-1].text == ")":
            # The body of a function begins on a line of its own.
            yield spell(line)
            line = []
        line.append(token)
        is_end = token.text == "{" or (token.text == ";" and not n_round) or follows == "}"
        if is_end or (token.text == "}" and _ends_block(item, follows)):
            yield "\t" * level + spell(line)
            line = []
        if token.text == "{":
            level += 1
    if line:
        yield "\t" * level + spell(line)


def _ends_block(item: Sequence[Token], follows: str) -> bool:
    return item[0].text == "static" and follows not in (";", ",", ")", "else", "while")
