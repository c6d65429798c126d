"""The frame of the evaluator: what it means to evaluate, to read, to be true.

The forms of expressions are in `stores`, `objects` and `expressions`, each a layer of one class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tracepoint.assign.state import State
from tracepoint.assign.values import (
    CannotFollowError,
    Int,
    Lost,
    Outside,
    Pointer,
    Slot,
    Value,
    Want,
    is_value,
)
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.cvalue import int_type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.source.lexer import Token

NO_WANT = Want()
CONDITION = Want(role="condition")
MAX_STEPS = 200_000
MAX_DEPTH = 70


class Core(State):
    """A `State` that evaluates; `forms` says how, for each kind of node."""

    forms: ClassVar[Mapping[type[ast.Node], Callable[..., Value]]] = {}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.steps = 0
        self.depth = 0

    def step(self, amount: int = 1) -> None:
        """Count steps of work; raises CannotFollowError beyond the cap."""
        self.steps += amount
        if self.steps > MAX_STEPS:
            raise CannotFollowError(f"the assignment did not end within {MAX_STEPS} steps")

    def mark_length(self, node: ast.Node) -> None:
        """While looking for inputs: remember that an input, or what went into a field, counts bytes."""
        plain = self.canonical(node)
        match plain:
            case ast.Member(base=ast.Name(name="__entry"), name=name):
                self.length_fields.add(name)
            case ast.Member() | ast.Call() | ast.Name():
                if isinstance(self.attempt(plain, Want(role="length")), Int):
                    return

    def run_tokens(self, tokens: tuple[Token, ...]) -> Value:
        """Run a statement expression; `machine` knows how."""
        raise CannotFollowError(f"a statement expression of {len(tokens)} tokens is not followed here")

    def evaluate(self, node: ast.Node, want: Want = NO_WANT) -> Value:
        """Return what an expression stands for: an object, an address, or something outside."""
        self.step()
        form = self.forms.get(type(node))
        if form is None:
            raise CannotFollowError(f"{write_expression(node)[:60]} is not followed")
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                raise CannotFollowError(f"an expression nested more than {MAX_DEPTH} deep")
            return form(self, node, want)
        except RecursionError:
            raise CannotFollowError("an expression nested too deeply") from None
        finally:
            self.depth -= 1

    def value(self, node: ast.Node, want: Want = NO_WANT) -> Value:
        """Evaluate, and read: integers become `Int`, arrays the address of their first element."""
        return self.read(self.evaluate(node, want))

    def read(self, value: Value) -> Value:
        """Read an object: integers become `Int`, arrays decay, structs stay."""
        if not isinstance(value, Slot):
            if isinstance(value, Lost):
                raise CannotFollowError(value.reason)
            return value
        shape = value.shape
        if shape.element is not None:
            return Pointer(value.memory, value.offset, shape.element)
        if shape.kind is None:
            return value
        value.memory.check(value.offset, shape.kind.size)
        if not value.memory.written[value.offset]:
            field = self.field_at(value.memory, value.offset)
            if field:
                self.note(f"{field} is read before anything is stored in it")
        return Int(value.memory.read_int(value.offset, shape.kind), shape.kind)

    def integer(self, node: ast.Node, want: Want = NO_WANT) -> Int:
        """Return the integer an expression has; raises CannotFollowError when it cannot be known."""
        return self.to_int(self.value(node, want), want)

    def is_true(self, node: ast.Node) -> bool:
        """Return whether a condition holds."""
        found = self.value(node, CONDITION)
        match found:
            case Int(value=value):
                return value != 0
            case Pointer():
                return True
            case Outside():
                answer = self.ask(found, CONDITION)
                declared = int_type_of(found.ctype, self.shapes.long_size) if found.ctype else None
                if isinstance(answer, int) and declared is not None:
                    # An int that was given as 1 << 32 is 0.
                    return declared.wrap(answer) != 0
                return self.to_int(answer, CONDITION).value != 0 if is_value(answer) else bool(answer)
        raise CannotFollowError("a condition that is not a number")

    def attempt(self, node: ast.Node, want: Want) -> Value | None:
        """While looking for inputs: evaluate and ask, so that both arms are seen."""
        try:
            found = self.read(self.evaluate(node, want))
            if isinstance(found, Outside):
                self.ask(found, want)
        except CannotFollowError:
            return None
        return found
