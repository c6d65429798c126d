"""Put the variables of a `InputPlan` in place of an assignment's inputs.

In: the statements of TP_fast_assign, the sources and lengths of dynamic members, the condition.
Out: C text that reads nothing from the kernel but the variables, and otherwise does what it did.

A local pointer that only leads to inputs (`struct request_queue *q = rq->q`) vanishes: `q->id` is the
input `rq->q->id`.  What cannot be replaced raises GenerateError with the expression.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tracepoint.assign.functions import FUNCTIONS
from tracepoint.errors import GenerateError, SourceError
from tracepoint.generate.inputs.variables import drops_cast, pattern_of
from tracepoint.generate.statements import expression_text
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.ctype import CType
from tracepoint.source.functions import TRANSPARENT
from tracepoint.source.statements import Run, statements_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tracepoint.generate.inputs.variables import InputVariable

# Their first argument is the name of a member of the record.
_OF_MEMBERS = ("__assign_", "__get_")
# What a format without directives is given.
NO_ARGUMENTS = "&tracepoint_no_arguments"
_KNOWN = frozenset({"__entry", "entry", "NULL", "true", "false", NO_ARGUMENTS})


class Rewriter:
    """Rewrites expressions of one event class.

    `variables` are those of the class; `is_constant` recognises names that the compiler knows as numbers;
    `write_block` writes the statements of a statement expression.
    """

    def __init__(
        self,
        event: str,
        variables: Iterable[InputVariable],
        is_constant: Callable[[str], bool],
        write_block: Callable[..., str],
    ) -> None:
        self.event = event
        self.write_block = write_block
        self.variables = {variable.text: variable for variable in variables}
        self.is_constant = is_constant
        # Local pointers that lead to inputs, and locals that C still has.
        self.aliases: dict[str, ast.Node] = {}
        self.kept: set[str] = set()
        self.pointers: set[str] = set()
        # Locals to which C stores nothing, because what they lead to is replaced as a whole.
        self.hollow: set[str] = set()

    def rewrite(self, node: ast.Node) -> ast.Node:
        """Return an expression that reads variables instead of inputs."""
        found = self.variable_for(node)
        if found is not None:
            return found
        form = self._forms.get(type(node))
        return form(self, node) if form is not None else self.descend(node)

    def known(self, node: ast.Node) -> ast.Node:
        """Return a rewritten expression; raises GenerateError when an input is left in it."""
        made = self.rewrite(node)
        rest = self.first_input(made)
        if rest is not None:
            shown = write_expression(rest)[:80]
            raise GenerateError(self.event, f"{shown} is not a known input, so it cannot be set from outside")
        return made

    def text(self, node: ast.Node) -> str:
        """Return the C text of a rewritten expression; raises GenerateError as `known` does."""
        return expression_text(self.known(node))

    # What replaces a variable

    def variable_for(self, node: ast.Node) -> ast.Node | None:
        """Return the variable that an expression is, or None."""
        if isinstance(node, ast.Name) and node.name in self.kept - (self.pointers & self.aliases.keys()):
            return None
        for looks_through in (True, False):
            plain = self.canonical(node, looks_through=looks_through)
            variable = self.variables.get(write_expression(plain))
            if variable is not None and not variable.count:
                return ast.Name(variable.name)
        if isinstance(node, (ast.Index, ast.Member)):
            return self._element_for(node)
        return None

    def _element_for(self, node: ast.Index | ast.Member) -> ast.Node | None:
        """Return the element of an array variable: `dev->counters[i]` is one whatever `i` is."""
        inner: ast.Node = self.canonical(node, looks_through=True)
        index = _index_of(node)
        if index is None:
            return None
        variable = self.variables.get(pattern_of(_with_index(inner, ast.Number(0))))
        if variable is None:
            return None
        return ast.Index(ast.Name(variable.name), self.rewrite(index))

    def canonical(self, node: ast.Node, *, looks_through: bool) -> ast.Node:
        """Return an expression as the finder of inputs names it: locals and transparent calls replaced."""
        match node:
            case ast.Name(name=name) if name in self.aliases:
                return self.aliases[name]
            case ast.Call(arguments=(first, *_)) if node.name in TRANSPARENT:
                return self.canonical(first, looks_through=looks_through)
            case ast.Cast(ctype=ctype, operand=operand) if looks_through and drops_cast(ctype):
                return self.canonical(operand, looks_through=True)
        return ast.map_operands(node, lambda part: self.canonical(part, looks_through=looks_through))

    # What is not one variable

    def descend(self, node: ast.Node) -> ast.Node:
        """Rewrite the parts of an expression."""
        return ast.map_operands(node, self.rewrite)

    def _call(self, node: ast.Call) -> ast.Node:
        if node.name == "cpumask_bits" and len(node.arguments) == 1:
            # The variable is the mask's bits already.
            return self.rewrite(node.arguments[0])
        if node.name == "__assign_vstr" and len(node.arguments) == 3:
            member, template, _ = node.arguments
            return replace(node, arguments=(member, self.rewrite(template), ast.Name(NO_ARGUMENTS)))
        if node.name.startswith(_OF_MEMBERS) and node.arguments:
            rest = tuple(self.rewrite(item) for item in node.arguments[1:])
            return replace(node, arguments=(node.arguments[0], *rest))
        return self.descend(node)

    def _unary(self, node: ast.Unary) -> ast.Node:
        inner = self.rewrite(node.operand)
        if node.op == "&" and isinstance(inner, ast.Name) and self._is_buffer(inner.name):
            return inner
        return replace(node, operand=inner)

    def _member(self, node: ast.Member | ast.Index) -> ast.Node:
        base = self.canonical(node.base, looks_through=True)
        if isinstance(base, ast.Ternary):
            # A pointer chosen by a condition: the member is chosen by it instead.
            arms = (base.then if base.then is not None else base.condition, base.otherwise)
            then, otherwise = (ast.Number(0) if _is_null(arm) else replace(node, base=arm) for arm in arms)
            return self.rewrite(ast.Ternary(base.condition, then, otherwise))
        return self.descend(node)

    def _binary(self, node: ast.Binary) -> ast.Node:
        made = ast.map_operands(node, self.rewrite)
        if node.op not in ("==", "!=") or not isinstance(made, ast.Binary):
            return made
        # What an address is compared with is one, too, even if nothing in the text says so.
        kinds = [self._is_address(side) for side in (made.left, made.right)]
        if sorted(map(str, kinds)) != ["False", "True"]:
            return made
        left, right = (
            ast.Cast(CType("unsigned long"), side) if kind else side
            for side, kind in zip((made.left, made.right), kinds, strict=True)
        )
        return replace(made, left=left, right=right)

    def _is_address(self, node: ast.Node) -> bool | None:
        """Return whether a variable holds an address; None for what is not a variable."""
        if not isinstance(node, ast.Name) or all(v.name != node.name for v in self.variables.values()):
            return None
        return "*" in self._named(node.name).ctype

    def _assign(self, node: ast.Assign) -> ast.Node:
        made = self.descend(node)
        value = made.value if isinstance(made, ast.Assign) else None
        if isinstance(value, ast.Name) and self._is_buffer(value.name) and isinstance(made, ast.Assign):
            target = write_expression(made.target)
            return replace(made, value=self.object_of(value, f"typeof({target})"))
        if isinstance(made, ast.Assign) and made.op == "=" and self._is_wide(made.value):
            # An input without a type may go to a pointer hidden by a typedef.
            ctype = CType(f"typeof({write_expression(made.target)})")
            return replace(made, value=ast.Cast(ctype, made.value))
        return made

    def _is_wide(self, node: ast.Node) -> bool:
        if isinstance(node, ast.Ternary) and node.then is not None:
            return self._is_wide(node.then) or self._is_wide(node.otherwise)
        return isinstance(node, ast.Name) and any(
            v.name == node.name and v.ctype in ("u64", "s64") for v in self.variables.values()
        )

    def _ternary(self, node: ast.Ternary) -> ast.Node:
        made = ast.map_operands(node, self.rewrite)
        if isinstance(made, ast.Ternary) and made.then is not None:
            if made.otherwise == ast.Name("NULL") and self._is_address(made.then) is False:
                return replace(made, otherwise=ast.Number(0))
            if made.then == ast.Name("NULL") and self._is_address(made.otherwise) is False:
                return replace(made, then=ast.Number(0))
        return made

    def object_of(self, variable: ast.Name, ctype: str) -> ast.Node:
        """Return how a variable is read as a whole object; a string's stays a pointer."""
        if not self._is_buffer(variable.name) or self._named(variable.name).ctype == "char *":
            return variable
        return ast.Unary("*", ast.Cast(CType(ctype, 1), variable))

    def address(self, variable: ast.Name) -> ast.Node:
        """Return where the bytes of a variable are."""
        return variable if self._is_buffer(variable.name) else ast.Unary("&", variable)

    def _named(self, name: str) -> InputVariable:
        return next(v for v in self.variables.values() if v.name == name)

    def _is_buffer(self, name: str) -> bool:
        return any(v.is_buffer and v.name == name for v in self.variables.values())

    def _statements(self, node: ast.StatementExpression) -> ast.Node:
        try:
            body = statements_of(node)
        except SourceError as error:
            raise GenerateError(self.event, f"({{ {node.text[:60]} }}): {error.message}") from None
        last = body[-1] if body else None
        if not isinstance(last, Run):
            return ast.StatementExpression((), self.write_block(body, self))
        return ast.StatementExpression((), self.write_block(body[:-1], self, last.expression))

    _forms: ClassVar[Mapping[type[ast.Node], Callable[..., ast.Node]]] = {
        ast.Call: _call,
        ast.Unary: _unary,
        ast.Binary: _binary,
        ast.Ternary: _ternary,
        ast.Member: _member,
        ast.Index: _member,
        ast.Assign: _assign,
        ast.StatementExpression: _statements,
    }

    # What is left

    def first_input(self, node: ast.Node) -> ast.Node | None:
        """Return the first part that still reads from the kernel, None when there is none."""
        match node:
            case ast.Name(name=name):
                return None if self._is_known(name) else node
            case ast.Member(base=base):
                return self.first_input(base) and node
            case ast.Call(arguments=arguments):
                if not self.is_function(node.name):
                    return node
                skipped = node.name.startswith(_OF_MEMBERS)
                return self._first(arguments[1:] if skipped else arguments)
            case ast.String():
                return None
            case ast.Assign(target=ast.Name(name=""), value=value):
                return self.first_input(value)
        return self._first(ast.operands(node))

    def _first(self, nodes: Iterable[ast.Node]) -> ast.Node | None:
        return next((found for item in nodes if (found := self.first_input(item)) is not None), None)

    def _is_known(self, name: str) -> bool:
        is_own = name in self.kept - self.hollow or name in _KNOWN
        return is_own or any(v.name == name for v in self.variables.values()) or self.is_constant(name)

    def merge(self, condition: ast.Node, after_then: Mapping[str, ast.Node]) -> None:
        """Join what local pointers lead to after the two arms of a condition."""
        asked = self.canonical(condition, looks_through=True)
        for name, then in after_then.items():
            otherwise = self.aliases.get(name)
            if otherwise is None or then == otherwise:
                self.aliases[name] = then
            else:
                self.aliases[name] = ast.Ternary(asked, then, otherwise)

    @staticmethod
    def is_function(name: str) -> bool:
        """Return whether a function's meaning is known, so that it may stay in the text."""
        return name in FUNCTIONS or name in TRANSPARENT or name.startswith(_OF_MEMBERS)


def _is_null(node: ast.Node) -> bool:
    return node in (ast.Name("NULL"), ast.Number(0))


def _index_of(node: ast.Node) -> ast.Node | None:
    """Return the innermost index of `a[i].b`, None when there is none."""
    match node:
        case ast.Index(base=base, index=index):
            return _index_of(base) or index
        case ast.Member(base=base):
            return _index_of(base)
    return None


def _with_index(node: ast.Node, index: ast.Node) -> ast.Node:
    match node:
        case ast.Index(base=base):
            return replace(node, base=_with_index(base, index), index=index)
        case ast.Member(base=base):
            return replace(node, base=_with_index(base, index))
    return node
