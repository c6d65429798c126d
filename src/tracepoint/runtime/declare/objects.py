"""The inputs of a C assignment read from Python objects: `page->pfn` is an attribute or an item.

In goes an input of the assignment and what its names stand for; out comes a value that
`assign.program` takes.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tracepoint.errors import SourceError, TracepointError
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.types import int_type_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.assign.machine import InputValue
    from tracepoint.assign.values import Input

_LONG_BITS = 64
_NUMBERS = ("int", "length", "index")
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SIGNS: dict[str, Callable[[int], int]] = {"-": operator.neg, "~": operator.invert, "+": operator.pos}


class AssignError(TracepointError):
    """An input that the Python objects do not have, or a statement that cannot be followed."""


@dataclass(frozen=True, slots=True)
class ObjectReader:
    """Reads inputs: `names` are the arguments by the prototype's names, `functions` the user's.

    `constant` gives the value of an enumerator or a macro of the headers, or None.
    """

    names: Mapping[str, Any]
    functions: Mapping[str, Any]
    constant: Callable[[str], int | None] = lambda _: None

    def resolve(self, input_: Input) -> InputValue:
        """Return the value of an input; raises AssignError when there is none."""
        found = self._filled(input_.filler) if input_.filler is not None else self.read(input_.node)
        return as_input_value(found, input_)

    def _filled(self, call: ast.Call) -> Any:
        """What a function stores into the record: what the user's gives for its other arguments."""
        given = tuple(argument for argument in call.arguments if not _is_of_record(argument))
        if self.functions.get(call.name) is None:
            raise AssignError(
                f"{call.name}() stores into the record; give it with functions={{{call.name!r}: ...}}: "
                "it gets the other arguments and returns what is stored"
            )
        return self._call(ast.Call(call.function, given))

    def read(self, node: ast.Node) -> Any:
        """Return the object that an expression denotes."""
        match node:
            case ast.Number(value=value) | ast.Char(value=value) | ast.String(value=value):
                return value
            case ast.Name(name=name):
                return self._name(name)
            case ast.Member(base=base, name=name):
                return member_of(self.read(base), name, write_expression(base))
            case ast.Index(base=base, index=index):
                return self.read(base)[self.read(index)]
            case ast.Cast(operand=operand) | ast.Unary(op="&", operand=operand):
                return self.read(operand)
            case ast.Unary(op="*", operand=operand):
                return self._target(self.read(operand))
            case ast.Call():
                return self._call(node)
            case _:
                return self._computed(node)

    def _computed(self, node: ast.Node) -> Any:
        """Return what an operator gives."""
        match node:
            case ast.Binary(op=op) if op in _ARITHMETIC:
                return _calculate(op, self.read(node.left), self.read(node.right))
            case ast.Binary(op=op) if op in _COMPARISONS:
                return _COMPARISONS[op](self.read(node.left), self.read(node.right))
            case ast.Binary(op="&&", left=left, right=right):
                return bool(self.read(left) and self.read(right))
            case ast.Binary(op="||", left=left, right=right):
                return bool(self.read(left) or self.read(right))
            case ast.Ternary(condition=condition, then=ast.Node() as then, otherwise=otherwise):
                return self.read(then if self.read(condition) else otherwise)
            case ast.Unary(op="!", operand=operand):
                return not self.read(operand)
            case ast.Unary(op=op, operand=operand) if op in _SIGNS:
                return _SIGNS[op](operator.index(self.read(operand)))
        raise AssignError(f"{write_expression(node)}: this kind of expression has no meaning in Python")

    def _name(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        if name in self.functions:
            found = self.functions[name]
            # `current` is a macro that gives a pointer; in Python a function without arguments is one.
            return found() if callable(found) and name == "current" else found
        if name == "__entry":
            raise AssignError("a function of Python cannot be given what is in the record (__entry)")
        known = None if name == "NULL" else self.constant(name)
        if known is not None or name == "NULL":
            return known
        raise AssignError(f"nothing says what {name!r} is; give it with functions={{{name!r}: ...}}")

    def _call(self, node: ast.Call) -> Any:
        if not node.name:
            # `ops->name(x)`: the object has the function.
            return self.read(node.function)(*(self.read(argument) for argument in node.arguments))
        function = self.functions.get(node.name, self.names.get(node.name))
        if function is None:
            raise AssignError(f"{node.name}() is the kernel's; give it with functions={{{node.name!r}: ...}}")
        return function(*(self.read(argument) for argument in node.arguments))

    @staticmethod
    def _target(value: Any) -> Any:
        """What a pointer points to: the first of a sequence, else the object itself."""
        return value[0] if isinstance(value, (list, tuple, bytes, bytearray)) else value


def _is_of_record(node: ast.Node) -> bool:
    """Return whether an argument is the record, a field of it, or the address of one."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Unary(operand=inner) | ast.Cast(operand=inner):
                node = inner
            case ast.Member(base=inner) | ast.Index(base=inner):
                node = inner
            case ast.Call(name=name):
                return name.startswith(("__get_dynamic_array", "__get_str", "__get_bitmask"))
            case _:
                return False
    return node.name == "__entry"


def _calculate(op: str, left: Any, right: Any) -> int:
    """Return what an operator gives, of integers only: texts and lists would be repeated or joined."""
    # Numbers of C have 64 bits at most; those of Python could fill the memory.
    one, other = operator.index(left), operator.index(right)
    if op in ("<<", ">>") and not 0 <= other < _LONG_BITS:
        raise AssignError(f"a shift by {other} bits has no meaning in C")
    if max(one.bit_length(), other.bit_length()) > 2 * _LONG_BITS:
        raise AssignError(f"an operand of {op} has more bits than a number of C")
    return _ARITHMETIC[op](one, other)


def member_of(base: Any, name: str, text: str) -> Any:
    """Return `base.name`, or `base["name"]`; raises AssignError."""
    if base is None:
        raise AssignError(f"{text} is None and has no {name!r}")
    if isinstance(base, Mapping):
        if name in base:
            return base[name]
    else:
        try:
            # Asked once: a property of the program's may do something.
            return getattr(base, name)
        except AttributeError:
            pass
    raise AssignError(f"{text}, a {type(base).__name__}, has no {name!r}")


@cache
def _bits(ctype: str) -> int:
    """Return the bits of an integer type; the widest for other types, and for bool, which takes all."""
    try:
        parsed = parse_ctype(ctype)
    except SourceError:
        return _LONG_BITS
    kind = None if parsed.pointers or parsed.base == "bool" else int_type_named(parsed.base)
    return 8 * kind.size if kind is not None else _LONG_BITS


def _as_number(value: int, input_: Input) -> int:
    """Return a number that its C type has room for, be it meant with a sign or without."""
    n_bits = _bits(input_.ctype)
    if not -(1 << (n_bits - 1)) <= value < 1 << n_bits:
        raise AssignError(
            f"{input_.text} has more than the {n_bits} bits of {input_.ctype or 'a number of C'}"
        )
    return value


def as_input_value(value: Any, input_: Input) -> InputValue:
    """Bring a Python value into one of the forms that assignments take.

    An object that is stored as a pointer gives its id().  Raises AssignError for a value that is
    no number where one is wanted.
    """
    if value is None:
        return None if input_.role in ("string", "bytes") else 0
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        if input_.role in _NUMBERS and not input_.ctype.endswith("*"):
            raise AssignError(f"{input_.text} is a {type(value).__name__}, not a number")
        return value if isinstance(value, str) else bytes(value)
    if isinstance(value, (list, tuple)):
        if input_.role in _NUMBERS and not input_.ctype.endswith("*"):
            raise AssignError(f"{input_.text} is a {type(value).__name__}, not a number")
        return [operator.index(item) for item in value]
    if hasattr(type(value), "__index__"):
        return _as_number(operator.index(value), input_)
    if input_.role == "condition":
        return int(bool(value))
    if input_.role == "pointer" or input_.ctype.endswith("*"):
        return id(value)
    if input_.role == "bytes" and hasattr(type(value), "__bytes__"):
        return bytes(value)
    raise AssignError(f"{input_.text} is a {type(value).__name__}, not a number, text or bytes")
