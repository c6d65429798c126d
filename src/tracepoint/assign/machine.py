"""Runs the statements of an assignment; what cannot be followed is named, the rest goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tracepoint.assign.copies import COPIES
from tracepoint.assign.core import MAX_STEPS
from tracepoint.assign.expressions import Evaluator
from tracepoint.assign.pure import PURE
from tracepoint.assign.state import Cell
from tracepoint.assign.values import (
    CannotFollowError,
    Int,
    Items,
    Lost,
    Memory,
    Outside,
    Pointer,
    Slot,
    Value,
    Want,
)
from tracepoint.errors import SourceError
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_expression, write_expression
from tracepoint.source.ctype import CType, parse_ctype, tokens_text
from tracepoint.source.cvalue import INT
from tracepoint.source.statements import (
    Block,
    Case,
    Declare,
    If,
    Jump,
    Loop,
    Run,
    Statement,
    Switch,
    Unreadable,
    parse_statements,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tracepoint.assign.expressions import Handler
    from tracepoint.diagnostics import Span
    from tracepoint.source.lexer import Token

MAX_LOOPS = 10_000
QUIET = frozenset(
    {
        "rcu_read_lock",
        "rcu_read_unlock",
        "might_sleep",
        "WARN_ON",
        "WARN_ON_ONCE",
        "BUILD_BUG_ON",
        "BUG_ON",
        "barrier",
        "smp_mb",
        "preempt_disable_notrace",
        "preempt_enable_notrace",
    }
)


@dataclass(frozen=True, slots=True)
class Unfollowed:
    """A piece of an assignment that could not be followed: where, its text, and why.

    `fields` are the members of the record that it may have stored to.
    """

    span: Span | None
    text: str
    reason: str
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.text}: {self.reason}"


class Machine(Evaluator):
    """An evaluator that runs statements."""

    handlers: ClassVar[Mapping[str, Handler]] = {**PURE, **COPIES}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.unfollowed: list[Unfollowed] = []

    def run(self, statement: Statement) -> str:
        """Run one statement; the answer is empty, or `break`, `continue`, `return`."""
        self.steps += 1
        if self.is_exploring and self.steps > MAX_STEPS:
            return "return"
        match statement:
            case Run(expression=expression):
                self._guarded(statement, lambda: self._effect(expression))
            case Declare():
                self._guarded(statement, lambda: self._declare(statement))
            case Block():
                return self._block(statement)
            case If():
                return self._if(statement)
            case Loop():
                return self._loop(statement)
            case Switch():
                return self._switch(statement)
            case Jump(kind=kind):
                return "" if self.is_exploring else kind
            case Unreadable(text=text, reason=reason, names=names):
                self.lose(statement, text, reason, names)
        return ""

    def _guarded(self, statement: Run | Declare, act: Callable[[], None]) -> None:
        try:
            act()
        except CannotFollowError as error:
            names = frozenset(_names(statement))
            self.lose(statement, _text(statement), error.reason, names, _targets(statement))

    def lose(
        self,
        statement: Statement,
        text: str,
        reason: str,
        names: frozenset[str],
        targets: frozenset[str] | None = None,
    ) -> None:
        """Name what is not followed, and mark what it may have stored as unknown."""
        known = {f.name for f in self.inputs.layout.event_fields}
        if "goto" in names:
            reason = "goto is not followed, so the fields from here on are not known"
            lost = tuple(sorted(known))
        else:
            lost = tuple(sorted(known & (names if targets is None else targets)))
        for name in (names if targets is None else targets) & self.locals.keys():
            self.locals[name] = Cell(self.locals[name].ctype, value=Lost(reason))
        for name in lost:
            self.unknown.setdefault(name, reason)
        item = Unfollowed(statement.span, text, reason, lost)
        if item not in self.unfollowed:
            self.unfollowed.append(item)

    def _block(self, block: Block) -> str:
        before = dict(self.locals) if block.is_scope else None
        signal = ""
        for statement in block.body:
            signal = self.run(statement)
            if signal:
                break
        if before is not None:
            self._leave(before)
        return signal

    def _leave(self, before: dict[str, Cell]) -> None:
        self.locals = before

    def run_tokens(self, tokens: tuple[Token, ...]) -> Value:
        """Run a statement expression: its value is that of its last expression."""
        self.step(len(tokens))
        try:
            body = parse_statements(tokens).body
        except SourceError as error:
            raise CannotFollowError(error.message) from None
        before = dict(self.locals)
        try:
            for statement in body[:-1]:
                self.run(statement)
            last = body[-1] if body else None
            if not isinstance(last, Run):
                if last is not None:
                    self.run(last)
                return Lost("a statement expression without a value")
            return self._kept(self.evaluate(last.expression))
        finally:
            self._leave(before)

    def _kept(self, value: Value) -> Value:
        """Read a value before the scope it lives in ends."""
        return self.read(value) if isinstance(value, Slot) and value.shape.kind is not None else value

    # Declarations

    def _declare(self, statement: Declare) -> None:
        ctype = statement.ctype
        if ctype.base.startswith("typeof("):
            ctype = self._type_of(ctype)
        initial = statement.initial
        items = initial if isinstance(initial, ast.InitList) else None
        cell = Cell(ctype)
        cell.slot = self._slot_for(statement.name, ctype, items)
        previous = self.locals.get(statement.name)
        self.locals[statement.name] = cell
        if items is not None:
            self._initialise_list(cell, items)
        elif initial is not None:
            if previous is not None:
                self.locals[statement.name] = previous
            self._initialise(cell, initial)
            self.locals[statement.name] = cell

    def _type_of(self, ctype: CType) -> CType:
        text = ctype.base.removeprefix("typeof(").removesuffix(")")
        try:
            return parse_ctype(text) if text.startswith(("struct ", "unsigned ")) else self._value_type(text)
        except SourceError:
            return CType("long")

    def _value_type(self, text: str) -> CType:
        found = self.evaluate(parse_expression(text))
        match found:
            case Slot(shape=shape) if shape.kind is not None:
                kind = shape.kind
            case Int(kind=kind):
                pass
            case Outside(ctype=ctype) if ctype is not None:
                return ctype
            case _:
                return CType("long")
        return CType(f"{'s' if kind.is_signed else 'u'}{8 * kind.size}")

    def _slot_for(self, name: str, ctype: CType, items: ast.InitList | None) -> Slot | None:
        """Return memory for integers, arrays of them and known structs; pointers are kept as values."""
        if ctype.pointers:
            return None
        shape = self.shape_of(ctype, items)
        is_plain = shape.kind is not None or shape.element is not None or shape.members
        if not is_plain or not shape.size or (shape.element is not None and not shape.element.size):
            return None
        memory = Memory(
            bytes(shape.size), is_big_endian=self.inputs.layout.is_big_endian, label=f"the local {name}"
        )
        return Slot(memory, 0, shape)

    def _initialise_list(self, cell: Cell, items: ast.InitList) -> None:
        if cell.slot is not None:
            made = self.initialised(cell.slot.shape, items, cell.slot.memory.label)
            cell.slot = made
            return
        if cell.ctype.array and cell.ctype.pointers:
            cell.value = Items(tuple(self.value(item) for item in items.items))
            return
        for item in items.items:
            # `struct foo x = { .a = b }`: its members are remembered by name.
            if isinstance(item, ast.Assign) and isinstance(item.target, ast.Name):
                name = next(n for n, c in self.locals.items() if c is cell)
                text = f"{name}.{item.target.name}"
                self.overrides[text] = self.value(item.value)

    def _initialise(self, cell: Cell, initial: ast.Node) -> None:
        slot = cell.slot
        if slot is None:
            role = "pointer" if cell.ctype.pointers else "int"
            kind = self.shapes.ulong if cell.ctype.pointers else None
            cell.value = self.as_declared(cell, self.value(initial, Want(kind, role)))
            return
        if slot.shape.element is not None:
            found = self.value(initial)
            if not isinstance(found, Pointer):
                raise CannotFollowError("an array set from something else than a list or a string")
            data = found.memory.string_at(found.offset) + b"\0"
            slot.memory.write(0, data[: slot.shape.size].ljust(slot.shape.size, b"\0"))
            return
        want = self.want_of(slot)
        found = self.value(initial, want)
        cell.node = found.node if isinstance(found, Outside) else None
        self.store(slot, found, want)

    # Effects

    def _effect(self, node: ast.Node) -> None:
        """Run an expression for what it does; an unknown function may fill what it is given."""
        if isinstance(node, ast.Cast) and node.ctype.base == "void":
            node = node.operand
        if isinstance(node, ast.Ternary) and not self.is_exploring:
            chosen = node.then if self.is_true(node.condition) else node.otherwise
            if chosen is not None:
                self._effect(chosen)
            return
        if not isinstance(node, ast.Call) or node.name in self.handlers:
            self.evaluate(node)
            return
        if node.name in QUIET:
            return
        for argument in node.arguments:
            self._fill(node, argument)

    def _fill(self, call: ast.Call, argument: ast.Node) -> None:
        try:
            found = self.value(argument)
        except CannotFollowError:
            return
        if isinstance(found, Pointer) and found.memory is self.record:
            if found.shape is self.record_shape:
                self._fill_record(call)
            else:
                self._fill_bytes(call, argument, found)
        elif isinstance(found, Pointer):
            found.memory.written[:] = bytes(len(found.memory.written))

    def _fill_record(self, call: ast.Call) -> None:
        base = ast.Name("__entry")
        for field in self.inputs.layout.event_fields:
            if field.is_data_loc or any(self.record.written[field.offset : field.offset + field.size]):
                continue
            member = ast.Member(base, field.name, is_arrow=True)
            self._fill(call, member if field.is_array else ast.Unary("&", member))

    def _fill_bytes(self, call: ast.Call, argument: ast.Node, found: Pointer) -> None:
        """Take what a function stores through a pointer as an input of its own."""
        field = self.field_at(self.record, found.offset)
        start, end, _ = next(r for r in reversed(self.ranges) if r[0] <= found.offset < r[1])
        if isinstance(argument, ast.Unary) and argument.op == "&":
            argument = argument.operand
        slot = Slot(self.record, found.offset, found.shape)
        if start == found.offset and found.shape.kind is not None and end - start == found.shape.size:
            self.store(slot, Outside(argument, filler=call), Want(found.shape.kind, "int", field))
        else:
            size = end - found.offset
            want = Want(
                None, "bytes", field, size, element=max(found.shape.size, 1) if found.shape.kind else 1
            )
            self.record.write(found.offset, self.as_bytes(Outside(argument, filler=call), size, want))
        self.note(f"{write_expression(argument)} is what {call.name}() stores there")

    # Branches and loops

    def _condition(self, statement: Statement, node: ast.Node, *bodies: Statement | None) -> bool | None:
        """Decide a condition; None when it cannot be known, with what it guards marked unknown."""
        try:
            return self.is_true(node)
        except CannotFollowError as error:
            if self.is_exploring:
                return True
            names = {n for body in bodies if body is not None for n in _names(body)}
            targets = {t for body in bodies if body is not None for t in _targets(body)}
            self.lose(statement, write_expression(node), error.reason, frozenset(names), frozenset(targets))
            return None

    def _if(self, statement: If) -> str:
        holds = self._condition(statement, statement.condition, statement.then, statement.otherwise)
        if self.is_exploring:
            return self._both(statement)
        if holds is None:
            return ""
        chosen = statement.then if holds else statement.otherwise
        return self.run(chosen) if chosen is not None else ""

    def _both(self, statement: If) -> str:
        """While looking for inputs: walk both arms from the same start."""
        saved = {name: Cell(c.ctype, c.slot, c.value, c.node) for name, c in self.locals.items()}
        self.run(statement.then)
        after_then = self.locals
        if statement.otherwise is not None:
            self.locals = saved
            self.run(statement.otherwise)
            for name, cell in after_then.items():
                other = self.locals.get(name)
                if other is not None and other.value is None:
                    other.value = cell.value
        return ""

    def _loop(self, loop: Loop) -> str:
        before = dict(self.locals)
        if loop.start is not None:
            self.run(loop.start)
        signal = ""
        for count in range(MAX_LOOPS + 1):
            if count == MAX_LOOPS:
                names, targets = frozenset(_names(loop)), frozenset(_targets(loop))
                self.lose(loop, _text(loop), f"the loop did not end after {MAX_LOOPS} rounds", names, targets)
                break
            if loop.condition is not None and not (loop.is_do and count == 0):
                holds = self._condition(loop, loop.condition, loop.body)
                if not holds and not (self.is_exploring and count == 0):
                    break
            signal = self.run(loop.body)
            if signal in ("break", "return"):
                break
            if loop.step is not None:
                step = Run(loop.step, first=loop.first, last=loop.last)
                self.run(step)
            if self.is_exploring and count >= 7:
                break
        self._leave(before)
        return "return" if signal == "return" else ""

    def _switch(self, statement: Switch) -> str:
        body = statement.body.body
        if self.is_exploring:
            self._condition(statement, statement.value)
            for inner in body:
                self.run(inner)
            return ""
        try:
            start = self._case_for(self.integer(statement.value), body)
        except CannotFollowError as error:
            names, targets = frozenset(_names(statement.body)), frozenset(_targets(statement.body))
            self.lose(statement, write_expression(statement.value), error.reason, names, targets)
            return ""
        signal = self._block(Block(body[start:], first=statement.first)) if start is not None else ""
        return "" if signal == "break" else signal

    def _case_for(self, value: Int, body: tuple[Statement, ...]) -> int | None:
        default = None
        for index, inner in enumerate(body):
            if not isinstance(inner, Case):
                continue
            if inner.value is None:
                default = index
                continue
            low = self.integer(inner.value, Want(value.kind)).value
            high = self.integer(inner.high, Want(value.kind)).value if inner.high is not None else low
            if low <= value.value <= high:
                return index
        return default

    def length_of(self, node: ast.Node) -> int:
        """Return a length in elements; raises CannotFollowError."""
        return self.integer(node, Want(INT, "length")).value


def _names(node: ast.Node) -> Iterator[str]:
    """Yield the names and members that a statement mentions."""
    for item in ast.walk(node):
        match item:
            case ast.Name(name=name) | ast.Member(name=name) | Declare(name=name):
                yield name
            case Unreadable(names=names):
                yield from names


def _targets(node: ast.Node) -> frozenset[str]:
    """Return the fields and locals that a statement may store to."""
    found: set[str] = set()
    for item in ast.walk(node):
        match item:
            case ast.Assign(target=target):
                found.update(_bases(target))
            case ast.Unary(op="++" | "--" | "p++" | "p--", operand=operand):
                found.update(_bases(operand))
            case ast.Call(arguments=(target, *_)):
                found.update(_bases(target))
            case Declare(name=name):
                found.add(name)
            case Unreadable(names=names):
                found.update(names)
    return frozenset(found)


def _bases(node: ast.Node) -> Iterator[str]:
    """Yield what is stored to: `__entry->a.b[i]` gives a, `__get_str(x)` gives x."""
    for item in ast.walk(node):
        match item:
            case ast.Member(base=ast.Name(name="__entry" | "entry"), name=name):
                yield name
                return
            case ast.Call(arguments=(ast.Name(name=name), *_)):
                yield name
                return
    for item in ast.walk(node):
        if isinstance(item, ast.Name):
            yield item.name


def _text(statement: Statement) -> str:
    match statement:
        case Run(expression=expression):
            return write_expression(expression)[:200]
        case Declare(name=name, ctype=ctype, initial=initial):
            return f"{ctype} {name}" + (
                f" = {write_expression(initial)[:160]}" if initial is not None else ""
            )
        case Loop(condition=condition) if condition is not None:
            return f"while {write_expression(condition)[:160]}"
    return tokens_text([t for t in (statement.first, statement.last) if t is not None])


__all__ = ["Machine", "Unfollowed"]
