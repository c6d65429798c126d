"""C statements as text: in the kernel's layout, with the parentheses that a kernel build asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.generate.writer import CodeWriter
from tracepoint.model.write import declare_param
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.cvalue import COMPARISONS
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
)

if TYPE_CHECKING:
    from collections.abc import Iterable

# GCC's -Wparentheses wants other operators below these in parentheses.
_GROUPING = frozenset(("<<", ">>", "&", "|", "^"))


def expression_text(node: ast.Node) -> str:
    """Return an expression with the parentheses that a kernel build asks for.

    >>> from tracepoint.source.cexpr import parse_expression
    >>> expression_text(parse_expression("(a - 1) << 2 | f((b & c) == d)"))
    '((a - 1) << 2) | f((b & c) == d)'
    """
    return write_expression(ast.transform(node, _grouped))


def _grouped(node: ast.Node) -> ast.Node:
    """Put operands that are easily misread into parentheses: a call of nothing is written like them."""
    if not isinstance(node, ast.Binary):
        return node
    return replace(node, left=_operand(node.op, node.left), right=_operand(node.op, node.right))


def _operand(op: str, node: ast.Node) -> ast.Node:
    if not isinstance(node, ast.Binary) or node.op == op:
        return node
    is_compared = op in COMPARISONS and node.op in COMPARISONS
    is_mixed = op in _GROUPING or is_compared or (op == "||" and node.op == "&&")
    return ast.Call(ast.Name(""), (node,)) if is_mixed else node


class _Layout:
    """Lays statements out; `has_braces` puts braces around both arms of a condition, however short."""

    def __init__(self, *, has_braces: bool = False) -> None:
        self.code = CodeWriter()
        self.has_braces = has_braces

    def write(self, statement: Statement) -> None:
        match statement:
            case Block(is_scope=False):
                self.inside(statement)
            case Block():
                with self.code.block("{", "}"):
                    self.inside(statement)
            case If():
                self.condition(statement)
            case Loop():
                self.loop(statement)
            case Switch(value=value, body=body):
                self.code.line(f"switch ({expression_text(value)}) {{")
                for inner in body.body:
                    # Labels stand where the switch does.
                    gap = "" if isinstance(inner, Case) else "\t"
                    lines = statement_lines((inner,), has_braces=self.has_braces)
                    self.code.lines(gap + line for line in lines)
                self.code.line("}")
            case _:
                self.code.line(_line(statement))

    def inside(self, body: Statement) -> None:
        for inner in body.body if isinstance(body, Block) else (body,):
            self.write(inner)

    def condition(self, statement: If) -> None:
        arms: list[tuple[str, Statement]] = []
        branch: Statement | None = statement
        while isinstance(branch, If) and not (arms and self.has_braces):
            head = "else if" if arms else "if"
            arms.append((f"{head} ({expression_text(branch.condition)})", branch.then))
            branch = branch.otherwise
        if branch is not None:
            arms.append(("else", branch))
        if all(_is_short(body) for _, body in arms) and not (self.has_braces and len(arms) > 1):
            for head, body in arms:
                with self.code.block(head):
                    self.inside(body)
            return
        for at, (head, body) in enumerate(arms):
            with self.code.block(f"}} {head} {{" if at else f"{head} {{"):
                self.inside(body)
        self.code.line("}")

    def loop(self, loop: Loop) -> None:
        condition = expression_text(loop.condition) if loop.condition is not None else ""
        if loop.is_do:
            with self.code.block("do {", f"}} while ({condition or '1'});"):
                self.inside(loop.body)
            return
        head = f"while ({condition or '1'})"
        if loop.start is not None or loop.step is not None:
            start = one_line((loop.start,)).rstrip(";") if loop.start is not None else ""
            head = (
                f"for ({start}; {condition}; {expression_text(loop.step) if loop.step is not None else ''})"
            )
        if _is_short(loop.body):
            with self.code.block(head):
                self.inside(loop.body)
        else:
            with self.code.block(f"{head} {{", "}"):
                self.inside(loop.body)


def _is_short(body: Statement) -> bool:
    """Return whether a body needs no braces."""
    inner = body.body[0] if isinstance(body, Block) and len(body.body) == 1 else body
    return not isinstance(inner, Block | If | Loop | Switch | Declare)


def _line(statement: Statement) -> str:
    """Return a statement that has no other ones inside."""
    match statement:
        case Run(expression=expression):
            return f"{expression_text(expression)};"
        case Declare(name=name, ctype=ctype, initial=initial):
            value = f" = {expression_text(initial)}" if initial is not None else ""
            return f"{declare_param(str(ctype), name)}{value};"
        case Case(value=None):
            return "default:"
        case Case(value=value, high=high) if value is not None:
            to = f" ... {expression_text(high)}" if high is not None else ""
            return f"case {expression_text(value)}{to}:"
        case Jump(kind=kind, value=value):
            return f"{kind} {expression_text(value)};" if value is not None else f"{kind};"
        case Unreadable(text=text):
            return text
    raise TypeError(f"not a statement: {statement!r}")


def statement_lines(statements: Iterable[Statement], *, has_braces: bool = False) -> list[str]:
    """Return lines of C, one tab a level; `has_braces` puts braces around both arms of every `else`."""
    layout = _Layout(has_braces=has_braces)
    for statement in statements:
        layout.write(statement)
    return layout.code.text.splitlines()


def one_line(statements: Iterable[Statement], *, has_braces: bool = False) -> str:
    """Return C in one line.

    >>> from tracepoint.model.origin import Code
    >>> one_line(Code("while (a) { if (b) c=1; }").statements().body)
    'while (a) { if (b) c = 1; }'
    """
    return " ".join(line.strip() for line in statement_lines(statements, has_braces=has_braces))
