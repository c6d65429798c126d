"""Whether control can reach what follows a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.place.statements import StatementKind, StatementSpan
from tracepoint.source.brackets import split_arguments

if TYPE_CHECKING:
    from tracepoint.place.code import SourceCode

#: Functions and macros that do not return.
_NO_RETURN = frozenset(
    "BUG panic do_exit do_group_exit make_task_dead unreachable __builtin_unreachable BUILD_BUG "
    "kthread_exit kthread_complete_and_exit module_put_and_kthread_exit __module_put_and_kthread_exit "
    "complete_and_exit do_task_dead usercopy_abort fortify_panic nmi_panic_self_stop stop_this_cpu "
    "cpu_startup_entry cpu_die_early rewind_stack_and_make_dead".split()
)
_ALWAYS = frozenset({"1", "true"})


def falls_through(code: SourceCode, statement: StatementSpan) -> bool:
    r"""Return whether running a statement can reach the place after it; doubtful cases count as yes.

    >>> from tracepoint.place.code import read_code
    >>> from tracepoint.place.functions import find_functions
    >>> from tracepoint.place.statements import read_body
    >>> from tracepoint.source.text import SourceFile
    >>> code = read_code(SourceFile("a.c", "void f(void)\n{\n\tif (a)\n\t\treturn;\n\telse\n\t\tBUG();\n}"))
    >>> falls_through(code, read_body(code, find_functions(code)[0]))
    False
    """
    match statement.kind:
        case StatementKind.RETURN | StatementKind.JUMP:
            return False
        case StatementKind.BLOCK:
            return _reaches(code, statement, len(statement.children))
        case StatementKind.IF:
            children = statement.children
            return len(children) < 2 or any(falls_through(code, child) for child in children)
        case StatementKind.LOOP | StatementKind.DO:
            return not _is_endless(code, statement) or _is_left(code, statement)
        case StatementKind.SWITCH:
            return _leaves_switch(code, statement)
        case StatementKind.EXPRESSION:
            return not (code.texts[statement.first] in _NO_RETURN and code.texts[statement.first + 1] == "(")
    return True


def is_reached(code: SourceCode, block: StatementSpan, index: int) -> bool:
    """Return whether control can reach the place before child `index` of a block."""
    if block.kind is not StatementKind.BLOCK:
        return True
    return _reaches(code, block, index)


def _reaches(code: SourceCode, block: StatementSpan, index: int) -> bool:
    children = block.children
    at = index - 1
    while at >= 0:
        if children[at].kind is StatementKind.LABEL:
            return True
        if not falls_through(code, children[at]):
            return False
        at -= 1
    owner = block.parent
    return not (owner is not None and owner.kind is StatementKind.SWITCH and not block.is_value)


def _is_endless(code: SourceCode, loop: StatementSpan) -> bool:
    if loop.header is None:
        return False
    first, last = loop.header
    inner = code.tokens[first + 1 : last]
    word = code.texts[loop.first]
    if word == "for":
        parts = split_arguments(inner, ";")
        return len(parts) == 3 and not parts[1]
    if word in {"while", "do"}:
        return len(inner) == 1 and inner[0].text in _ALWAYS
    return False


def _is_left(code: SourceCode, loop: StatementSpan) -> bool:
    """Return whether a `break` belongs to this loop or switch."""
    stack = list(loop.children)
    while stack:
        statement = stack.pop()
        if statement.kind is StatementKind.JUMP and code.texts[statement.first] == "break":
            return True
        if statement.kind not in {StatementKind.LOOP, StatementKind.DO, StatementKind.SWITCH}:
            stack.extend(statement.children)
            stack.extend(statement.values)
    return False


def _leaves_switch(code: SourceCode, switch: StatementSpan) -> bool:
    body = switch.children[0]
    if body.kind is not StatementKind.BLOCK or _is_left(code, switch):
        return True
    has_default = any(
        child.kind is StatementKind.LABEL and code.texts[child.first] == "default" for child in body.children
    )
    return not has_default or falls_through(code, body)
