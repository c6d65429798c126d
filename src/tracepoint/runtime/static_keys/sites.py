"""Call sites of tracepoints in byte code: statements `trace_x(...)` and `module.trace_x(...)`.

In goes a code object and a way to know tracepoints; out come the places where a jump can stand
for the whole statement.  Nothing is changed here.
"""

from __future__ import annotations

import dis
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MAX_JUMP = 255
LOADS = ("LOAD_ATTR", "LOAD_METHOD")
CALLS = ("CALL", "CALL_KW", "CALL_FUNCTION_EX")
# What gives a variable a value, or looks whether it has one.
_NEEDED = ("STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "LOAD_FAST_CHECK")


@dataclass(frozen=True, slots=True)
class KeySite:
    """One call: its code, the code unit where it begins, the opcodes there, and units to jump over."""

    code: CodeType
    index: int
    oparg: int
    n_skipped: int
    name: str


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those nested in it: functions, lambdas, comprehensions and class bodies."""
    waiting = [code]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += [constant for constant in found.co_consts if isinstance(constant, CodeType)]


def find_places(code: CodeType, resolve: Callable[[str, str], str | None]) -> Iterator[KeySite]:
    """Yield the places in a code object; those nested in it are not looked into.

    `resolve` gets a global name and an attribute, or an empty text, and answers with the
    tracepoint's name, or None.  A call that is used as an expression, that is too long for one
    jump, that jumps lead into or that gives variables a value is none.
    """
    # Read before anything is changed: the interpreter keeps these bytes for copies of the code.
    n_units = len(code.co_code) // 2
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        if step.opname != "LOAD_GLOBAL" or (at and steps[at - 1].opname == "EXTENDED_ARG"):
            continue
        following = steps[at + 1] if at + 1 < len(steps) else step
        attribute = str(following.argval) if following.opname in LOADS else ""
        name = resolve(str(step.argval), attribute)
        end = _end_of_statement(steps, at) if name is not None else None
        if name is None or end is None:
            continue
        start, stop = step.offset // 2, end.offset // 2 + 1
        if stop - start - 1 > MAX_JUMP or stop >= n_units or _is_crossed(steps, start, stop):
            continue
        if not _is_needed(steps[at : steps.index(end, at)]):
            yield KeySite(code, start, step.arg or 0, stop - start - 1, name)


def _end_of_statement(steps: Sequence[dis.Instruction], at: int) -> dis.Instruction | None:
    """The POP_TOP after the call whose text begins where the instruction at `at` begins, or None."""
    begin = _begin(steps[at])
    if begin is None:
        return None
    for call, after in zip(steps[at + 1 :], steps[at + 2 :], strict=False):
        if call.opname in CALLS and _begin(call) == begin:
            return after if after.opname == "POP_TOP" else None
    return None


def _begin(step: dis.Instruction) -> tuple[int, int] | None:
    where = step.positions
    if where is None or where.lineno is None or where.col_offset is None:
        return None
    return where.lineno, where.col_offset


def _is_crossed(steps: Sequence[dis.Instruction], start: int, stop: int) -> bool:
    """Return whether a jump leads into the statement or out of it."""
    for step in steps:
        if step.opcode not in dis.hasjrel and step.opcode not in dis.hasjabs:
            continue
        source, target = step.offset // 2, int(step.argval) // 2
        is_inside = start <= source < stop
        if is_inside != (start <= target < stop) and (is_inside or target != start):
            return True
    return False


def _is_needed(steps: Sequence[dis.Instruction]) -> bool:
    """Return whether variables of the function depend on a statement.

    Since 3.12 the compiler knows which variables have a value: `trace_x(y := 1)` gives one, and in
    `trace_x(y)` it looks, so that it need not look at what follows (fast_scan_unsafe_locals() in
    Python/flowgraph.c).  A variable of a comprehension that was inlined gets its old value back.
    """
    own: set[str] = set()
    for step in steps:
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if step.opname == "LOAD_FAST_AND_CLEAR":
            own.update(map(str, names))
        elif step.opname.startswith("STORE_FAST"):
            if not own.issuperset(_stored(step.opname, names)):
                return True
        elif step.opname in _NEEDED or (isinstance(step.argval, CodeType) and _binds_outside(step.argval)):
            return True
    return False


def _stored(opname: str, names: Sequence[object]) -> set[str]:
    """The variables that an instruction gives a value; some give one and read another."""
    return {str(name) for name in (names[:1] if opname.endswith("LOAD_FAST") else names)}


def _binds_outside(code: CodeType) -> bool:
    """Whether a comprehension, or what is in it, gives a variable of the function around it a value."""
    for inner in nested_codes(code):
        for step in dis.get_instructions(inner):
            if step.opname == "STORE_GLOBAL" or (
                step.opname == "STORE_DEREF" and step.argval in inner.co_freevars
            ):
                return True
    return False
