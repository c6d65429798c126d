"""An event's assignment as a Python function, made once when its header is loaded.

The machine of `assign` decides what an assignment means and takes 200 microseconds for it.  What is
plain - numbers computed from what the arguments hold, and strings - is written here as Python source
instead and takes a few.  Everything else, and every value that is not what it seems (no int where a
number is wanted, one that does not fit its type, whatever raises), is left to the machine, which is
also what the tests compare with.  An argument's functions are then called again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracepoint.assign.expressions import kind_of
from tracepoint.assign.functions import FUNCTIONS
from tracepoint.assign.machine import Inputs, Machine
from tracepoint.assign.program import MAX_DYNAMIC, Program
from tracepoint.assign.values import Input
from tracepoint.errors import TracepointError
from tracepoint.model.field import StringField
from tracepoint.record.field import location_origin
from tracepoint.runtime.declare.objects import as_input_value
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.cvalue import (
    COMPARISONS,
    binary_value,
    conversions,
    int_type_of,
    number_type,
    promote,
)
from tracepoint.source.functions import QUIET, TRANSPARENT
from tracepoint.source.statements import Run
from tracepoint.source.types import INT, LLONG, IntType

_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}
# What any number of C can be; the machine says what is wrong with others.
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


class _NotPlainError(Exception):
    """Something that is left to the machine."""


@dataclass(frozen=True, slots=True)
class _Term:
    """Python source for an integer and its C type."""

    text: str
    kind: IntType


# ---- what the generated source calls ----


def _member(base: Any, name: str) -> Any:
    if not isinstance(base, Mapping):
        return getattr(base, name)
    if name in base:
        return base[name]
    raise _NotPlainError


def _any(value: Any, input_: Input) -> int:
    """Return an input whose type is not known, for a store."""
    if type(value) is int and _LEAST <= value <= _MOST:
        return value
    found = as_input_value(value, input_)
    if isinstance(found, int):
        return found
    raise _NotPlainError


def _fitting(value: Any, low: int, high: int) -> int:
    if type(value) is int and low <= value <= high:
        return value
    # True and False are what Python programs give for a bool.
    if type(value) is bool:
        return int(value)
    raise _NotPlainError


def _true(value: Any) -> bool:
    if type(value) is bool:
        return bool(value)
    if type(value) is int and _LEAST <= value <= _MOST:
        return value != 0
    raise _NotPlainError


def _text(value: Any) -> bytes:
    if type(value) is str:
        raw = value.encode("utf-8", "surrogateescape") + b"\0"
        if raw.find(0) == len(raw) - 1 and len(raw) <= MAX_DYNAMIC:
            return raw
    raise _NotPlainError


_HELPERS = {"member": _member, "any_": _any, "fitting": _fitting, "true": _true, "text": _text}


@dataclass(slots=True)
class _Writer:
    """Writes Python source for C expressions, keeping the objects that it names."""

    machine: Machine
    names: tuple[str, ...]
    functions: Mapping[str, Any]
    space: dict[str, Any] = field(default_factory=lambda: dict(_HELPERS))

    def keep(self, value: object) -> str:
        """Return the name under which the source finds an object."""
        name = f"k{len(self.space)}"
        self.space[name] = value
        return name

    # Leaves

    def input(self, node: ast.Node) -> str:
        """Return source for the value of an input: `objects.ObjectReader.read` written out."""
        match node:
            case ast.Name(name=name):
                return self._input_name(name)
            case ast.Member(base=base, name=name):
                return f"member({self.input(base)}, {name!r})"
            case ast.Call(arguments=(inner,)) if node.name in TRANSPARENT:
                return self.input(inner)
            case ast.Call() if self._is_given(node):
                arguments = ", ".join(self._argument(argument) for argument in node.arguments)
                return f"{self.keep(self.functions[node.name])}({arguments})"
        raise _NotPlainError

    def _is_given(self, node: ast.Call) -> bool:
        name = node.name
        is_known = name in FUNCTIONS or name in TRANSPARENT or name in QUIET
        return not is_known and callable(self.functions.get(name))

    def _argument(self, node: ast.Node) -> str:
        return str(node.value) if isinstance(node, ast.Number) else self.input(node)

    def _input_name(self, name: str) -> str:
        if name in self.names:
            return f"p{self.names.index(name)}"
        if name in ("__entry", "entry", "true", "false", "NULL") or name not in self.functions:
            raise _NotPlainError
        found = self.functions[name]
        if isinstance(found, int):
            raise _NotPlainError
        return f"{self.keep(found)}()" if callable(found) and name == "current" else self.keep(found)

    def _input_term(self, node: ast.Node, wanted: IntType | None) -> _Term:
        """Return an input as an integer that fits its type: the declared one, or the one that is wanted."""
        read = self.input(node)
        ctype = self.machine.inputs.params.get(node.name) if isinstance(node, ast.Name) else None
        if ctype is not None and ctype.pointers:
            raise _NotPlainError
        kind = int_type_of(ctype, self.machine.shapes.long_size) if ctype is not None else None
        kind = kind or wanted or LLONG
        return _Term(f"fitting({read}, {_low(kind)}, {_high(kind)})", kind)

    # Integers

    def term(self, node: ast.Node, wanted: IntType | None) -> _Term:
        """Return source for the integer that an expression has where `wanted` is wanted."""
        match node:
            case ast.Number():
                kind = self._number_type(node)
                return _Term(f"({kind.wrap(node.value)})", kind)
            case ast.Char(value=value):
                return _Term(f"({value})", INT)
            case ast.Name(name=name) if name not in self.names and not self._is_input(node):
                return self._constant(name)
            case ast.Unary(op="-" | "~" | "+" | "!"):
                return self._unary(node, wanted)
            case ast.Binary():
                return self._binary(node, wanted)
            case ast.Ternary(then=ast.Node()):
                return self._ternary(node, wanted)
            case ast.Cast(ctype=ctype) if not ctype.pointers and ctype.base not in ("void", "bool"):
                return self._cast(node)
            case ast.Call(arguments=(inner_node,)) if node.name in TRANSPARENT:
                return self.term(inner_node, wanted)
        return self._input_term(node, wanted)

    def _unary(self, node: ast.Unary, wanted: IntType | None) -> _Term:
        if node.op == "!":
            return _Term(f"int(not {self.truth(node.operand)})", INT)
        inner = self.term(node.operand, wanted)
        return self._wrapped(f"({node.op}{inner.text})", promote(inner.kind))

    def _cast(self, node: ast.Cast) -> _Term:
        kind = self.machine.shapes.of_element(node.ctype).kind
        if kind is None:
            raise _NotPlainError
        return self._wrapped(self.term(node.operand, kind).text, kind)

    def _is_input(self, node: ast.Name) -> bool:
        given = self.functions.get(node.name)
        return given is not None and not isinstance(given, int)

    def _constant(self, name: str) -> _Term:
        value = {"true": 1, "false": 0}.get(name)
        if value is not None:
            return _Term(f"({value})", INT)
        known = self.machine.inputs.constant(name)
        if known is None or name in ("NULL", "__entry", "entry"):
            raise _NotPlainError
        return _Term(f"({known})", number_type(abs(known), long_size=self.machine.shapes.long_size))

    def _number_type(self, node: ast.Number) -> IntType:
        long_size = self.machine.shapes.long_size
        return number_type(node.value, node.suffix, is_decimal=node.is_decimal, long_size=long_size)

    def _wrapped(self, text: str, kind: IntType) -> _Term:
        return _Term(f"{self.keep(kind.wrap)}({text})", kind)

    def _binary(self, node: ast.Binary, wanted: IntType | None) -> _Term:
        op = node.op
        if op in ("&&", "||"):
            word = "and" if op == "&&" else "or"
            return _Term(f"int({self.truth(node.left)} {word} {self.truth(node.right)})", INT)
        inner = None if op in COMPARISONS else wanted
        left_want, right_want = self._wants(node, inner)
        left, right = self.term(node.left, left_want), self.term(node.right, right_want)
        operands = f"{left.text}, {self.keep(left.kind)}, {right.text}, {self.keep(right.kind)}"
        text = f"{self.keep(binary_value)}({op!r}, {operands})"
        return _Term(text, conversions(op, left.kind, right.kind).result)

    def _wants(self, node: ast.Binary, inner: IntType | None) -> tuple[IntType | None, IntType | None]:
        """Let each operand want the other one's type when its own is not known: `expressions._wants`."""
        if node.op in ("<<", ">>"):
            return inner, None
        is_outside = [self.is_outside(part) for part in (node.left, node.right)]
        if inner is None and is_outside[0] != is_outside[1]:
            known = self.term(node.right if is_outside[0] else node.left, inner).kind
            return (known, inner) if is_outside[0] else (inner, known)
        return inner, inner

    def is_outside(self, node: ast.Node) -> bool:
        try:
            self.input(node)
        except _NotPlainError:
            return False
        return True

    def _ternary(self, node: ast.Ternary, wanted: IntType | None) -> _Term:
        if node.then is None:
            raise _NotPlainError
        condition = self.truth(node.condition)
        then, otherwise = self.term(node.then, wanted), self.term(node.otherwise, wanted)
        both = kind_of(self.machine, node)
        text = f"({then.text} if {condition} else {otherwise.text})"
        if both is not None:
            return self._wrapped(text, both)
        if then.kind != otherwise.kind:
            raise _NotPlainError
        return _Term(text, then.kind)

    def truth(self, node: ast.Node) -> str:
        """Return source for whether a condition holds."""
        if self.is_outside(node):
            if isinstance(node, ast.Name) and node.name in self.machine.inputs.params:
                return f"({self._input_term(node, None).text} != 0)"
            return f"true({self.input(node)})"
        return f"({self.term(node, None).text} != 0)"


def _low(kind: IntType) -> int:
    return -(1 << (8 * kind.size - 1)) if kind.is_signed else 0


def _high(kind: IntType) -> int:
    return (1 << (8 * kind.size - kind.is_signed)) - 1


# ---- the whole assignment ----


@dataclass(slots=True)
class _Assignment:
    """The source of one event's assignment while it is written."""

    writer: _Writer
    numbers: dict[str, str] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def add(self, statement: object) -> None:
        match statement:
            case Run(expression=ast.Assign(op="=", target=target, value=value)):
                self._store(target, value)
            case Run(expression=ast.Call(arguments=(ast.Name(name=name), *source)) as call) if call.name in (
                "__assign_str",
                "__assign_rel_str",
            ):
                self._assign_string(name, source)
            case _:
                raise _NotPlainError

    def _store(self, target: ast.Node, value: ast.Node) -> None:
        match target:
            case ast.Member(base=ast.Name(name="__entry"), name=name, is_arrow=True):
                pass
            case _:
                raise _NotPlainError
        machine = self.writer.machine
        member = (machine.record_shape.members or {}).get(name)
        if member is None or member[1].kind is None or member[1].element is not None or name in self.numbers:
            raise _NotPlainError
        shape = member[1]
        kind = shape.kind
        base = shape.name.replace("const", "").replace(" ", "")
        if kind is None or kind.size not in _FORMATS or base == "char*":
            raise _NotPlainError
        mask = (1 << 8 * kind.size) - 1
        text = self._stored(value, kind, is_pointer=shape.is_pointer)
        self.numbers[name] = f"n{len(self.numbers)}"
        stored = f"int({text} != 0)" if shape.name in ("bool", "_Bool") else f"{text} & {mask}"
        self.lines.append(f"{self.numbers[name]} = {stored}")

    def _stored(self, value: ast.Node, kind: IntType, *, is_pointer: bool) -> str:
        writer = self.writer
        ctype = writer.machine.inputs.params.get(value.name) if isinstance(value, ast.Name) else None
        is_declared = ctype is not None and not ctype.pointers
        if is_declared or not writer.is_outside(value):
            if is_pointer:
                raise _NotPlainError
            return writer.term(value, kind).text
        role = "pointer" if is_pointer or ctype is not None else "int"
        input_ = Input(write_expression(value), value, str(ctype) if ctype is not None else "", role)
        return f"any_({writer.input(value)}, {writer.keep(input_)})"

    def _assign_string(self, name: str, source: list[ast.Node]) -> None:
        fields = {f.name: f for f in self.writer.machine.inputs.fields}
        declared = fields.get(name)
        if not isinstance(declared, StringField) or name in self.strings:
            raise _NotPlainError
        if declared.length is not None or declared.va_list is not None or not declared.source:
            raise _NotPlainError
        node = declared.source.expression()
        if len(source) > 1 or (source and write_expression(source[0]) != write_expression(node)):
            raise _NotPlainError
        self.strings[name] = f"s{len(self.strings)}"
        self.texts[name] = f"{self.strings[name]} = text({self.writer.input(node)})"

    def finish(self) -> list[str]:
        """Return the lines with those that put the record together."""
        inputs = self.writer.machine.inputs
        layout = inputs.layout
        start = at = max((f.offset + f.size for f in layout.fields), default=0)
        order = [f.name for f in inputs.fields if f.is_dynamic and f.name in layout]
        if sorted(order) != sorted(self.strings):
            raise _NotPlainError
        words: dict[str, str] = {}
        place = str(at)
        for name in order:
            word = layout[name]
            origin = location_origin(word)
            size = f"len({self.strings[name]})"
            words[name] = f"{size} << 16 | {place} - {origin} & 65535"
            place = f"{place} + {size}"
        form, values = self._packed(words, start)
        pack = self.writer.keep(struct.Struct(form).pack)
        tail = max(layout.size_bytes - start, 0)
        parts = [f"{pack}({', '.join(values)})", *(self.strings[name] for name in order)]
        if tail:
            parts.append(repr(bytes(tail)))
        # The machine, too, reads strings first: their lengths decide where everything is.
        texts = [self.texts[name] for name in order]
        return [*texts, *self.lines, f"return {' + '.join(parts)}"]

    def _packed(self, words: Mapping[str, str], end: int) -> tuple[str, list[str]]:
        """Return the format of the fixed part and its values in order; what nothing stores to is zero."""
        layout = self.writer.machine.inputs.layout
        stored = {**self.numbers, **words}
        form, at = "<", 0
        values = []
        for item in sorted(layout.fields, key=lambda f: f.offset):
            if item.name not in stored:
                continue
            if item.offset < at or item.size not in _FORMATS:
                raise _NotPlainError
            form += f"{item.offset - at}x{_FORMATS[item.size]}"
            values.append(stored[item.name])
            at = item.offset + item.size
        return form + f"{end - at}x", values


def compile_assignment(
    program: Program, inputs: Inputs, names: tuple[str, ...], functions: Mapping[str, Any]
) -> Callable[..., bytes] | None:
    """Return a function from the arguments to the record, or None when the assignment is not plain.

    Called, it raises any exception where the machine must decide.
    """
    if inputs.layout.is_big_endian:
        return None
    made = _Assignment(_Writer(Machine(inputs), names, functions))
    try:
        for statement in program.statements.body:
            made.add(statement)
        return _function(made.writer, made.finish())
    except (_NotPlainError, TracepointError, RecursionError):
        return None


def compile_condition(
    program: Program, inputs: Inputs, names: tuple[str, ...], functions: Mapping[str, Any]
) -> Callable[..., bool] | None:
    """Return a function from the arguments to whether TP_CONDITION holds, or None when it is not plain."""
    if program.condition is None:
        return None
    writer = _Writer(Machine(inputs), names, functions)
    try:
        return _function(writer, [f"return {writer.truth(program.condition)}"])
    except (_NotPlainError, TracepointError, RecursionError):
        return None


def _function(writer: _Writer, lines: list[str]) -> Callable[..., Any]:
    parameters = ", ".join(f"p{i}" for i in range(len(writer.names)))
    text = f"def run({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    # Nothing of the header's text is in it but numbers and quoted names.
    exec(compile(text, "<assignment>", "exec"), writer.space)  # noqa: S102
    found: Callable[..., Any] = writer.space["run"]
    return found


__all__ = ["compile_assignment", "compile_condition"]
