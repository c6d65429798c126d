"""Values from the user for inputs: `prev->pid=7`, `prev->comm="bash"`, `lst=[1,2,3]`."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, TypeAlias

from tracepoint.errors import SourceError, TracepointError
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_expression, write_expression
from tracepoint.source.constants import constant_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

_PLAIN_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|[1-9][0-9]*|0)")

_INTEGER = re.compile(
    r"(?:const |volatile )*(?:(?:un)?signed |long |short )*(?:int|long|short|char|bool|unsigned|_Bool)"
    r"|(?:const )?(?:__)?[us](?:8|16|32|64)|u?int(?:8|16|32|64)_t|s?size_t|pid_t|dev_t|gfp_t|ktime_t"
)

Given: TypeAlias = "int | bytes | str | list[int]"


class GivenValueError(TracepointError):
    """A given value that cannot be read, or that names no input of the event.

    `input` is the name as written if there is no such input, else empty.
    """

    def __init__(self, message: str, input_: str = "") -> None:
        super().__init__(message)
        self.input = input_


def parse_given(text: str, constant: Callable[[str], int | None] = lambda _name: None) -> Given:
    r"""Read one value: C integers and character constants, "text", [1, 2], hex:00ff, NULL, true.

    Names that `constant` knows are replaced by their value, and expressions of them computed;
    any other text is itself.  Raises GivenValueError when brackets, quotes or digits are wrong.

    >>> parse_given("0x10"), parse_given("-3"), parse_given('"a b"'), parse_given("[1, 2]")
    (16, -3, 'a b', [1, 2])
    >>> parse_given("hex:00ff"), parse_given("'A'"), parse_given("NULL"), parse_given("bash")
    (b'\x00\xff', 65, 0, 'bash')
    """
    text = text.strip()
    if text.startswith("hex:"):
        try:
            return bytes.fromhex(text[4:])
        except ValueError:
            raise GivenValueError(f"{text}: an even number of hexadecimal digits must follow hex:") from None
    if text.startswith(("[", "{")):
        return _parse_list(text, constant)
    if text.startswith('"'):
        return _parse_string(text)
    if text in ("NULL", "false"):
        return 0
    if text == "true":
        return 1
    # A plain number is itself: C has no literal for -2^63.
    if _PLAIN_NUMBER.fullmatch(text):
        return int(text, 0)
    try:
        value = constant_value(parse_expression(text), constant)
    except SourceError:
        value = None
    return text if value is None else value


def _parse_string(text: str) -> str:
    try:
        node = parse_expression(text)
    except SourceError as error:
        raise GivenValueError(f"{text}: {error.message}") from None
    if not isinstance(node, ast.String) or node.pieces:
        raise GivenValueError(f"{text}: a quoted text must end where its quote closes")
    return node.value


def _parse_list(text: str, constant: Callable[[str], int | None]) -> list[int]:
    if text[-1] not in "]}" or len(text) < 2:
        raise GivenValueError(f"{text}: the list is never closed")
    values = []
    for item in text[1:-1].split(","):
        if not item.strip():
            continue
        value = parse_given(item, constant)
        if not isinstance(value, int):
            raise GivenValueError(f"{text}: {item.strip()} is not a number")
        values.append(value)
    return values


def split_assignment(text: str) -> tuple[str, str]:
    """Split `input=value` at the first `=` that is not a comparison; raises GivenValueError.

    >>> split_assignment("a == b=1")
    ('a == b', '1')
    """
    for at, char in enumerate(text):
        if char != "=":
            continue
        if text[at + 1 : at + 2] == "=" or text[at - 1 : at] in ("=", "!", "<", ">"):
            continue
        if at and text[at + 1 :].strip():
            return text[:at].strip(), text[at + 1 :].strip()
        break
    raise GivenValueError(f"{text}: write INPUT=VALUE, for example 'prev->pid=7'")


def match_given(
    given: Mapping[str, str | Given], inputs: Collection[str], constant: Callable[[str], int | None]
) -> dict[str, Given]:
    """Return the given values by the canonical text of their input.

    `inputs` are the texts of the event's inputs.  Raises GivenValueError, with the nearest names,
    for a value that names none of them.
    """
    matched: dict[str, Given] = {}
    for name, value in given.items():
        text = canonical_input(name)
        if text not in inputs and not any(input_.startswith(f"{text}[") for input_ in inputs):
            raise GivenValueError(_unknown(name, text, inputs), name)
        matched[text] = parse_given(value, constant) if isinstance(value, str) else value
    return matched


def check_given(input_: str, ctype: str, value: Given) -> Given:
    """Return the value given for an input of this C type; raises GivenValueError for a text as number.

    A name that is not a constant is a text, and its address would be stored.

    >>> check_given("ret", "int", -12)
    -12
    """
    if isinstance(value, str) and _INTEGER.fullmatch(ctype):
        raise GivenValueError(
            f"{input_} is of type {ctype}, and {value[:40]!r} is neither a number nor a constant"
        )
    return value


def canonical_input(name: str) -> str:
    """Return the canonical text of an input as written by a user.

    >>> canonical_input("prev -> pid")
    'prev->pid'
    """
    try:
        return write_expression(parse_expression(name))
    except SourceError:
        return name.strip()


def _unknown(name: str, text: str, inputs: Collection[str]) -> str:
    near = difflib.get_close_matches(text, inputs, n=3, cutoff=0.5)
    if near:
        return f"{name} is not an input of this event; did you mean {' or '.join(near)}?"
    some = ", ".join(list(inputs)[:8])
    return f"{name} is not an input of this event; its inputs are: {some or '(none)'}"
