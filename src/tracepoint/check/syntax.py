"""Small queries about tokens and expressions that many rules need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.model.field import ArrayField, DynamicArrayField
from tracepoint.source.ast import Call, Cast, Member, Name, Node, Unary
from tracepoint.source.brackets import CLOSERS, find_close, find_parenthesis, split_arguments
from tracepoint.source.lexer import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tracepoint.model.event import Param
    from tracepoint.model.field import Field
    from tracepoint.source.lexer import Token

#: The names of the record: in headers, in `print fmt`, and inside the kernel's macros.
RECORD_NAMES = frozenset({"__entry", "REC"})


def strip_casts(node: Node) -> Node:
    """Return the expression below casts and a unary plus."""
    while True:
        match node:
            case Cast(operand=inner) | Unary(op="+", operand=inner):
                node = inner
            case _:
                return node


def is_record(node: Node) -> bool:
    """Return whether an expression is the record itself: `__entry`, `REC`, with or without casts."""
    inner = strip_casts(node)
    return isinstance(inner, Name) and inner.name in RECORD_NAMES


def entry_field(node: Node) -> str:
    """Return the field that `__entry->x` names, or an empty string for any other expression."""
    match node:
        case Member(base=base, name=name, is_arrow=True) if is_record(base):
            return name
        case _:
            return ""


def helper_field(node: Node) -> str:
    """Return `x` of `__get_str(x)` and of the other `__get_*(x)` helpers, or an empty string."""
    if isinstance(node, Call) and node.name.startswith("__get_") and node.arguments:
        argument = node.arguments[0]
        if isinstance(argument, Name):
            return argument.name
    return ""


def array_field(node: Node, fields: Mapping[str, Field]) -> str:
    """Return `x` of `__entry->x` when it is an array of the record, or an empty string."""
    name = entry_field(strip_casts(node))
    return name if isinstance(fields.get(name), ArrayField) else ""


def closing(tokens: Sequence[Token], at: int) -> int:
    """Return the index of the bracket that closes the one at index `at`, or the number of tokens."""
    found = find_close(tokens, at)
    return len(tokens) if found < 0 else found


def calls_in(tokens: Sequence[Token]) -> Iterator[tuple[Token, list[Sequence[Token]]]]:
    """Yield every `name(...)` in a token list, with its arguments; nested calls are yielded too."""
    for index, token in enumerate(tokens[:-1]):
        if token.kind is Kind.NAME and tokens[index + 1].text == "(":
            end = closing(tokens, index + 1)
            yield token, split_arguments(tokens[index + 2 : end])


def meaning(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return token texts for comparing two pieces of C regardless of white space and outer parentheses."""
    return tuple(token.text for token in without_parentheses(tokens))


def without_parentheses(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens of an expression without the parentheses around all of it."""
    tokens = [t for t in tokens if t.kind is not Kind.END]
    while len(tokens) > 2 and tokens[0].text == "(" and find_close(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tokens


def stores(tokens: Sequence[Token]) -> Iterator[tuple[Token, Sequence[Token]]]:
    """Yield the field and the value of every plain `__entry->field = value;` in a token list."""
    for index in range(len(tokens) - 4):
        record, arrow, field, equals = tokens[index : index + 4]
        if record.text not in RECORD_NAMES or arrow.text != "->" or equals.text != "=":
            continue
        if index and tokens[index - 1].text not in {";", "{", "}", ")", "else", "=", ":"}:
            continue
        end = statement_end(tokens, index + 4)
        yield field, tokens[index + 4 : end]


def statement_end(tokens: Sequence[Token], at: int) -> int:
    """Return the index of the `;`, or the closing bracket, that ends the statement around index `at`."""
    while at < len(tokens) and tokens[at].text not in {";", ")", "]", "}"}:
        at = closing(tokens, at) + 1 if tokens[at].text in CLOSERS else at + 1
    return min(at, len(tokens))


def pointer_parameters(params: Iterable[Param]) -> dict[str, str]:
    """Return the parameters that are pointers, arrays included, with the type that each points to."""
    found = {}
    for param in params:
        ctype = param.ctype.strip()
        if ctype.endswith("*"):
            found[param.name] = ctype[:-1].strip()
        elif ctype.endswith("]"):
            found[param.name] = ctype.partition("[")[0].strip()
    return found


def sizeof_operand(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return `x` of `sizeof(x)` when that is all of the tokens; nothing for anything else."""
    tokens = without_parentheses(tokens)
    if len(tokens) < 2 or tokens[0].text != "sizeof":
        return ()
    if tokens[1].text == "(" and find_parenthesis(tokens, 1) != len(tokens) - 1:
        return ()
    return tuple(t.text for t in (tokens[2:-1] if tokens[1].text == "(" else tokens[1:]))


def copied_array(
    fields: Mapping[str, Field], target: Sequence[Token]
) -> ArrayField | DynamicArrayField | None:
    """Return the array of the record that a copy fills, when its target is the whole of it."""
    texts = [t.text for t in target]
    is_array = len(texts) == 3 and texts[0] in RECORD_NAMES and texts[1] == "->"
    is_dynamic = len(texts) == 4 and texts[0] in {"__get_dynamic_array", "__get_rel_dynamic_array"}
    field = fields.get(texts[2]) if is_array or is_dynamic else None
    return field if isinstance(field, (ArrayField, DynamicArrayField)) else None
