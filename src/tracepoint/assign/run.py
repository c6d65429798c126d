"""Runs the statements of an assignment; what cannot be followed is named, the rest goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.assign import expressions, lvalues, stores, variables
from tracepoint.assign.functions import FUNCTIONS
from tracepoint.assign.lost import lose
from tracepoint.assign.machine import MAX_STEPS, Inputs, Local, Machine
from tracepoint.assign.stores import as_bytes, store
from tracepoint.assign.values import CannotFollowError, Int, Lost, Outside, Pointer, Slot, Value, Want
from tracepoint.errors import SourceError
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.functions import QUIET
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
    statements_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LOOPS = 10_000
_EXPLORED_LOOPS = 8


def new_machine(inputs: Inputs, *, is_exploring: bool = False) -> Machine:
    """Return a machine that knows all expressions and functions; `is_exploring` as in `Machine`."""
    return Machine(inputs, _FORMS, FUNCTIONS, is_exploring)


def run(machine: Machine, statement: Statement) -> str:
    """Run one statement; the answer is empty, or `break`, `continue`, `return`."""
    machine.steps += 1
    if machine.is_exploring and machine.steps > MAX_STEPS:
        return "return"
    return _STATEMENTS[type(statement)](machine, statement)


def _run(machine: Machine, statement: Run) -> str:
    try:
        _effect(machine, statement.expression)
    except CannotFollowError as error:
        lose(machine, statement, write_expression(statement.expression)[:200], error.reason, statement)
    return ""


def _declare(machine: Machine, statement: Declare) -> str:
    try:
        variables.declare(machine, statement)
    except CannotFollowError as error:
        value = f" = {write_expression(statement.initial)[:160]}" if statement.initial is not None else ""
        lose(machine, statement, f"{statement.ctype} {statement.name}{value}", error.reason, statement)
    return ""


def _jump(machine: Machine, statement: Jump) -> str:
    return "" if machine.is_exploring else statement.kind


def _label(_machine: Machine, _statement: Case) -> str:
    return ""


def _unreadable(machine: Machine, statement: Unreadable) -> str:
    lose(machine, statement, statement.text, statement.reason, statement)
    return ""


def _block(machine: Machine, block: Block) -> str:
    before = dict(machine.locals) if block.is_scope else None
    signal = ""
    for statement in block.body:
        signal = run(machine, statement)
        if signal:
            break
    if before is not None:
        machine.locals = before
    return signal


def _statement_expression(machine: Machine, node: ast.StatementExpression, _want: Want) -> Value:
    """Run the statements: the value is that of the last expression, read before its scope ends."""
    machine.step(len(node.tokens))
    try:
        body = statements_of(node)
    except SourceError as error:
        raise CannotFollowError(error.message) from None
    before = dict(machine.locals)
    try:
        for statement in body[:-1]:
            run(machine, statement)
        if body and isinstance(body[-1], Run):
            found = machine.evaluate(body[-1].expression)
            is_number = isinstance(found, Slot) and found.shape.kind is not None
            return machine.read(found) if is_number else found
        if body:
            run(machine, body[-1])
        return Lost("a statement expression without a value")
    finally:
        machine.locals = before


# Effects


def _effect(machine: Machine, node: ast.Node) -> None:
    """Run an expression for what it does; an unknown function may fill what it is given."""
    if isinstance(node, ast.Cast) and node.ctype.base == "void":
        node = node.operand
    if isinstance(node, ast.Ternary) and not machine.is_exploring:
        chosen = node.then if machine.is_true(node.condition) else node.otherwise
        if chosen is not None:
            _effect(machine, chosen)
    elif not isinstance(node, ast.Call) or node.name in machine.functions:
        machine.evaluate(node)
    elif node.name not in QUIET:
        for argument in node.arguments:
            _fill(machine, node, argument)


def _fill(machine: Machine, call: ast.Call, argument: ast.Node) -> None:
    try:
        found = machine.value(argument)
    except CannotFollowError:
        return
    if isinstance(found, Pointer) and found.memory is machine.record:
        if found.shape is machine.record_shape:
            _fill_record(machine, call)
        else:
            _fill_bytes(machine, call, argument, found)
    elif isinstance(found, Pointer):
        found.memory.written[:] = bytes(len(found.memory.written))


def _fill_record(machine: Machine, call: ast.Call) -> None:
    base = ast.Name("__entry")
    for field in machine.inputs.layout.event_fields:
        if field.is_data_loc or any(machine.record.written[field.offset : field.offset + field.size]):
            continue
        member = ast.Member(base, field.name, is_arrow=True)
        _fill(machine, call, member if field.is_array else ast.Unary("&", member))


def _fill_bytes(machine: Machine, call: ast.Call, argument: ast.Node, found: Pointer) -> None:
    """Take what a function stores through a pointer as an input of its own."""
    place = next((r for r in reversed(machine.ranges) if r[0] <= found.offset < r[1]), None)
    if place is None:
        # The end of the record, such as an empty array's place.
        return
    start, end, field = place
    if isinstance(argument, ast.Unary) and argument.op == "&":
        argument = argument.operand
    made = Outside(argument, filler=call)
    kind = found.shape.kind
    if start == found.offset and kind is not None and end - start == found.shape.size:
        store(machine, Slot(machine.record, found.offset, found.shape), made, Want(kind, "int", field))
    else:
        size = end - found.offset
        want = Want(None, "bytes", field, size, element=max(found.shape.size, 1) if kind else 1)
        machine.record.write(found.offset, as_bytes(machine, made, size, want))
    machine.note(f"{write_expression(argument)} is what {call.name}() stores there")


# Branches and loops


def _condition(
    machine: Machine, statement: Statement, node: ast.Node, *bodies: Statement | None
) -> bool | None:
    """Decide a condition; None when it cannot be known, with what it guards marked unknown."""
    try:
        return machine.is_true(node)
    except CannotFollowError as error:
        if machine.is_exploring:
            return True
        lose(machine, statement, write_expression(node), error.reason, *bodies)
        return None


def _if(machine: Machine, statement: If) -> str:
    holds = _condition(machine, statement, statement.condition, statement.then, statement.otherwise)
    if machine.is_exploring:
        return _both(machine, statement)
    if holds is None:
        return ""
    chosen = statement.then if holds else statement.otherwise
    return run(machine, chosen) if chosen is not None else ""


def _both(machine: Machine, statement: If) -> str:
    """While looking for inputs: walk both arms from the same start."""
    saved = {name: Local(c.ctype, c.slot, c.value, c.node) for name, c in machine.locals.items()}
    run(machine, statement.then)
    after_then = machine.locals
    if statement.otherwise is not None:
        machine.locals = saved
        run(machine, statement.otherwise)
        for name, cell in after_then.items():
            other = machine.locals.get(name)
            if other is not None and other.value is None:
                other.value = cell.value
    return ""


def _loop(machine: Machine, loop: Loop) -> str:
    before = dict(machine.locals)
    if loop.start is not None:
        run(machine, loop.start)
    signal = ""
    for count in range(_EXPLORED_LOOPS if machine.is_exploring else MAX_LOOPS):
        if loop.condition is not None and not (loop.is_do and count == 0):
            holds = _condition(machine, loop, loop.condition, loop.body)
            if not holds and not (machine.is_exploring and count == 0):
                break
        signal = run(machine, loop.body)
        if signal in ("break", "return"):
            break
        if loop.step is not None:
            run(machine, Run(loop.step, first=loop.first, last=loop.last))
    else:
        if not machine.is_exploring:
            condition = write_expression(loop.condition)[:160] if loop.condition is not None else "1"
            lose(machine, loop, f"while {condition}", f"the loop did not end after {MAX_LOOPS} rounds", loop)
    machine.locals = before
    return "return" if signal == "return" else ""


def _switch(machine: Machine, statement: Switch) -> str:
    body = statement.body.body
    if machine.is_exploring:
        _condition(machine, statement, statement.value)
        for inner in body:
            run(machine, inner)
        return ""
    try:
        start = _case_for(machine, machine.integer(statement.value), body)
    except CannotFollowError as error:
        lose(machine, statement, write_expression(statement.value), error.reason, statement.body)
        return ""
    signal = _block(machine, Block(body[start:], first=statement.first)) if start is not None else ""
    return "" if signal == "break" else signal


def _case_for(machine: Machine, value: Int, body: tuple[Statement, ...]) -> int | None:
    default = None
    for index, inner in enumerate(body):
        if not isinstance(inner, Case):
            continue
        if inner.value is None:
            default = index
            continue
        low = machine.integer(inner.value, Want(value.kind)).value
        high = machine.integer(inner.high, Want(value.kind)).value if inner.high is not None else low
        if low <= value.value <= high:
            return index
    return default


_STATEMENTS: dict[type[Statement], Callable[..., str]] = {
    Run: _run,
    Declare: _declare,
    Block: _block,
    If: _if,
    Loop: _loop,
    Switch: _switch,
    Case: _label,
    Jump: _jump,
    Unreadable: _unreadable,
}
_FORMS: dict[type[ast.Node], Callable[..., Value]] = {
    **lvalues.FORMS,
    **expressions.FORMS,
    **stores.FORMS,
    **variables.FORMS,
    ast.StatementExpression: _statement_expression,
}
