"""Where a `trace_x()` call may be in a function, and the edits that add it."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError
from tracepoint.place.arguments import Argument, read_argument
from tracepoint.place.code import read_code
from tracepoint.place.edits import Editor, call_lines, check_edits
from tracepoint.place.find import find_by_line, find_by_text
from tracepoint.place.lookup import check_file, check_function, check_instrumentable, pick_function
from tracepoint.place.names import all_declared, file_names
from tracepoint.place.returns import (
    RETURN_VALUE,
    find_returns,
    mentions_value,
    simple_value,
    value_variable,
    with_value,
)
from tracepoint.place.scope import FunctionScope
from tracepoint.place.sites import (
    Site,
    check_reached,
    check_whole,
    count_declarations,
    entry_site,
    put_entry,
    site_at,
)
from tracepoint.place.statements import StatementKind, StatementSpan, read_body
from tracepoint.place.structs import Structs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.diagnostics import Edit, Span
    from tracepoint.source.text import SourceFile

__all__ = ["RETURN_VALUE", "EventCall", "InsertionPoint", "Placement", "Where", "place_call", "place_calls"]

_NAME = re.compile(r"[A-Za-z_]\w*")


class Where(enum.StrEnum):
    """The kinds of places in a function."""

    ENTRY = "entry"
    RETURNS = "returns"
    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class InsertionPoint:
    """A function and a place in it.

    `BEFORE` and `AFTER` need `statement`, its text with any white space, or `line`, a line number
    from 1.  Both together name the statement with that text on that line.  For `ENTRY` and `RETURNS` a
    line chooses one of several functions of the same name.
    """

    function: str
    where: Where
    statement: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class EventCall:
    """A call of `trace_<event>(args)`.

    `args` are C expressions, which may contain RETURN_VALUE at `Where.RETURNS`. `guard` adds `if
    (trace_<event>_enabled())` around it; with None the arguments' cost decides. `params` are the type and
    name of each parameter of the event, empty if they are not known.
    """

    event: str
    args: tuple[str, ...]
    guard: bool | None = None
    params: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """What to change: `edits` of the source, and the `spans` before or after which calls were added.

    `notes` list other additions, and what could not be checked.
    """

    edits: tuple[Edit, ...]
    spans: tuple[Span, ...]
    function_span: Span
    notes: tuple[str, ...] = ()


def place_call(
    source: SourceFile, place: InsertionPoint, call: EventCall, structs: Structs | None = None
) -> Placement:
    r"""Return the edits that add a call to a function of a C file.

    `structs` knows the members of structs, by default those that the file itself defines.

    Raises PlaceError with the reason when the function is missing or not understood, when no call is
    possible at the place, or when an argument is not valid there.

    >>> from tracepoint.source.text import SourceFile, apply_edits
    >>> text = "int f(struct page *page)\n{\n\tif (!page)\n\t\treturn -1;\n\treturn g(page);\n}\n"
    >>> call = EventCall("f_done", ("page", "RETURN_VALUE"))
    >>> found = place_call(SourceFile("a.c", text), InsertionPoint("f", Where.RETURNS), call)
    >>> print(apply_edits(text, found.edits).expandtabs(4), end="")
    int f(struct page *page)
    {
        int ret;
    <BLANKLINE>
        if (!page) {
            trace_f_done(page, -1);
            return -1;
        }
        ret = g(page);
        trace_f_done(page, ret);
        return ret;
    }
    """
    return _Placer(source, place, call, structs or Structs(source)).run()


def place_calls(
    source: SourceFile, requests: Iterable[tuple[InsertionPoint, EventCall]], structs: Structs | None = None
) -> tuple[Edit, ...]:
    r"""Return the edits that add several calls to a C file; see place_call() for each.

    Calls at one place are in the order of the requests; what needs braces gets one pair.  Raises
    PlaceError when two of them change a place in conflicting ways.

    >>> from tracepoint.source.text import SourceFile, apply_edits
    >>> text = "void f(int a)\n{\n\tif (a)\n\t\tg(a);\n}\n"
    >>> places = [InsertionPoint("f", where, "g(a);") for where in (Where.BEFORE, Where.AFTER)]
    >>> calls = [(place, EventCall(place.where, ("a",))) for place in places]
    >>> found = place_calls(SourceFile("a.c", text), calls)
    >>> print(apply_edits(text, found).expandtabs(4), end="")
    void f(int a)
    {
        if (a) {
            trace_before(a);
            g(a);
            trace_after(a);
        }
    }
    """
    editor = Editor(read_code(source))
    for place, call in requests:
        _Placer(source, place, call, structs or Structs(source), editor).fill()
    edits = editor.edits()
    check_edits(source, edits)
    return edits


class _Placer:
    """One placement in progress."""

    def __init__(
        self,
        source: SourceFile,
        place: InsertionPoint,
        call: EventCall,
        structs: Structs,
        editor: Editor | None = None,
    ) -> None:
        _check_request(source, place, call)
        self.place = place
        self.call = call
        self.structs = structs
        self.editor = editor or Editor(read_code(source))
        self.code = self.editor.code
        self.function = pick_function(self.code, place.function, place.line)
        self.body = read_body(self.code, self.function)
        self.names = file_names(self.code)
        self.locals = all_declared(self.code, self.body, self.function)
        types = frozenset(name for name in self.names.used if name.endswith("_t"))
        self.arguments = [read_argument(arg, types) for arg in call.args]
        self.notes = check_function(self.code, self.function, self.body)
        self.guard = self._wants_guard(self.arguments)
        self.spans: list[Span] = []

    def run(self) -> Placement:
        self.fill()
        span = self.code.span(self.function.head, self.function.close)
        edits = self.editor.edits()
        check_edits(self.code.file, edits)
        return Placement(edits, tuple(self.spans), span, tuple(dict.fromkeys(self.notes)))

    def fill(self) -> None:
        """Pass the edits to the editor."""
        self._note_earlier_call()
        match self.place.where:
            case Where.ENTRY:
                self._at_entry()
            case Where.RETURNS:
                self._at_returns()
            case Where.BEFORE | Where.AFTER:
                self._at_statement(is_after=self.place.where is Where.AFTER)
        self._check_braces()
        self.editor.spread(self.body)

    def _wants_guard(self, arguments: list[Argument]) -> bool:
        if self.call.guard is not None:
            return self.call.guard
        costly = next((arg.costly for arg in arguments if arg.costly), "")
        if costly:
            self.notes.append(
                f"trace_{self.call.event}_enabled() is checked first: {costly}() may be expensive"
            )
        return bool(costly)

    def _note_earlier_call(self) -> None:
        name = f"trace_{self.call.event}"
        for at in range(self.body.first, self.body.last):
            if self.code.texts[at] == name:
                self.notes.append(f"{name}() is already called in line {self.code.line(at)}")
                return

    def _lines(self, indent: str, args: tuple[str, ...]) -> list[str]:
        head = f"trace_{self.call.event}("
        if not self.guard:
            return call_lines(indent, head, args)
        return [f"{indent}if (trace_{self.call.event}_enabled())", *call_lines(indent + "\t", head, args)]

    def _args(self) -> tuple[str, ...]:
        return tuple(argument.text for argument in self.arguments)

    def _check(self, site: Site) -> None:
        check_instrumentable(self.code, self.function, site)
        scope = FunctionScope(
            self.code, self.function, self.body, site, names=self.names, structs=self.structs
        )
        self.notes += scope.check(self.arguments, self.call.params)

    def _known_names(self) -> frozenset[str]:
        return self.names.declared | frozenset(self.locals)

    def _at_entry(self) -> None:
        n_declarations = count_declarations(self.code, self.body, 0, self._known_names())
        self._after_declarations(entry_site(self.code, self.body, n_declarations))

    def _after_declarations(self, site: Site) -> None:
        self._check(site)
        if site.split is not None:
            self.notes.append(
                f"the branch `{site.split.text}` ends before the call and begins again after it"
            )
        put_entry(self.editor, site, self._lines(self.editor.inner_indent(site.block), self._args()))
        self.spans.append(self.code.span(site.token, site.token))

    def _at_statement(self, *, is_after: bool) -> None:
        code, place = self.code, self.place
        if place.statement.strip():
            statement = find_by_text(code, self.body, place.statement, place.line)
        else:
            statement = find_by_line(code, self.body, place.line, is_after=is_after)
        check_whole(code, statement)
        check_reached(code, statement, is_after=is_after)
        if statement.kind is StatementKind.DECLARATION and self._beside_declaration(
            statement, is_after=is_after
        ):
            return
        if statement.kind is StatementKind.LABEL:
            self._check_label(statement, is_after=is_after)
        site = site_at(code, statement, is_after=is_after)
        self._check(site)
        indent = self.editor.indent_for(statement)
        lines = self._lines(indent, self._args())
        if is_after:
            self.editor.after(statement, lines, indent)
        else:
            self.editor.before(statement, lines)
        if statement.is_body:
            self.editor.brace(statement)
        self.spans.append(code.span(statement.first, statement.last))

    def _beside_declaration(self, statement: StatementSpan, *, is_after: bool) -> bool:
        """Handle a declaration at the start of a block; False when it is among statements."""
        parent = statement.parent
        if parent is None or parent.kind is not StatementKind.BLOCK:
            return False
        index = parent.children.index(statement)
        n_leading = count_declarations(self.code, parent, 0, self._known_names())
        if index >= n_leading:
            return False
        if not is_after:
            raise self.code.error(
                "a call before this declaration would be a statement before it", statement.first
            )
        if n_leading > index + 1:
            line = self.code.line(parent.children[n_leading - 1].last)
            self.notes.append(f"more declarations follow: the call is added after them, after line {line}")
        self._after_declarations(entry_site(self.code, parent, n_leading))
        return True

    def _check_label(self, label: StatementSpan, *, is_after: bool) -> None:
        """Refuse what a compiler would warn about next to labels."""
        parent = label.parent
        if parent is None:
            return
        index = parent.children.index(label)
        near = parent.children[index + 1 : index + 2] if is_after else parent.children[:index][-1:]
        if not near:
            return
        if is_after and near[0].kind is StatementKind.DECLARATION:
            raise self.code.error(
                "a call after this label would be a statement before a declaration", near[0].first
            )
        words = {self.code.texts[near[0].first], self.code.texts[label.first]}
        if near[0].kind is StatementKind.LABEL and words <= {"case", "default"}:
            reason = "a call between two labels of a switch would fall through: put it after the last of them"
            raise self.code.error(reason, label.first)

    def _at_returns(self) -> None:
        returns, end, notes = find_returns(self.code, self.body, self.function)
        self.notes += notes
        if mentions_value(self.call.args):
            self._check_value_type()
            self._with_values(returns)
        else:
            for statement in returns:
                self._before_return(statement, self._args())
            if any(statement.last > statement.first + 1 for statement in returns):
                self._note_order(returns)
        if end is not None:
            self._check(end)
            self.editor.at_end(self.body, self._lines(self.editor.inner_indent(self.body), self._args()))
            self.spans.append(self.code.span(end.token, end.token))

    def _note_order(self, returns: list[StatementSpan]) -> None:
        for statement in returns:
            if any(
                self.code.texts[at] == "(" and self.code.is_name(at - 1)
                for at in range(statement.first + 2, statement.last)
            ):
                line = self.code.line(statement.first)
                self.notes.append(f"in line {line} the call comes before the returned value is computed")
                return

    def _before_return(self, statement: StatementSpan, args: tuple[str, ...]) -> None:
        check_whole(self.code, statement)
        self._check(site_at(self.code, statement))
        self.editor.before(statement, self._lines(self.editor.indent_for(statement), args))
        if statement.is_body:
            self.editor.brace(statement)
        self.spans.append(self.code.span(statement.first, statement.last))

    def _with_values(self, returns: list[StatementSpan]) -> None:
        """Put calls that name the returned value."""
        code = self.code
        spelled = {id(s): simple_value(code, s, self.locals) for s in returns}
        kept = [s for s in returns if not spelled[id(s)]]
        name = ""
        if kept:
            name, is_new = value_variable(code, self.body, self.function, self.names, kept)
            if is_new:
                self._declare(name)
        for statement in returns:
            if spelled[id(statement)]:
                self._before_return(statement, with_value(self._args(), spelled[id(statement)]))
            else:
                self._keep_value(statement, name)

    def _check_value_type(self) -> None:
        if self.function.returns == "void":
            raise self.code.error(
                f"{self.function.names[0]}() returns nothing: RETURN_VALUE is not valid",
                self.function.name_at,
            )

    def _keep_value(self, statement: StatementSpan, name: str) -> None:
        """Write `return f();` as `ret = f();`, the call, `return ret;`."""
        check_whole(self.code, statement)
        self._check(site_at(self.code, statement))
        lines = self._lines(self.editor.indent_for(statement), with_value(self._args(), name))
        self.editor.keep(statement, name, lines)
        if statement.is_body:
            self.editor.brace(statement)
        self.spans.append(self.code.span(statement.first, statement.last))

    def _declare(self, name: str) -> None:
        """Declare a variable of the function's return type."""
        kind = self.function.returns
        indent = self.editor.inner_indent(self.body)
        line = f"{indent}{kind}{'' if kind.endswith('*') else ' '}{name};"
        self.notes.append(f"the variable `{name}` is added for the returned value")
        if (self.body.first, name) in self.editor.added:
            return
        self.editor.added.add((self.body.first, name))
        n_declarations = count_declarations(self.code, self.body, 0, self._known_names())
        last = self.body.children[n_declarations - 1] if n_declarations else None
        if last is not None and self.code.arms[last.last] is self.code.arms[self.body.first]:
            has_blank = n_declarations == len(self.body.children) or self.editor.has_blank_after(last)
            has_blank = has_blank or last.last in self.editor.blanks
            self.editor.blanks.add(last.last)
            self.editor.after(last, [line] if has_blank else [line, ""], indent)
            return
        put_first(self.editor, self.body, line, has_more=n_declarations > 0)

    def _check_braces(self) -> None:
        for body in self.editor.bodies():
            owner = body.parent
            tokens = [body.first, body.last]
            if owner is not None:
                tokens += [owner.first, owner.else_at] if owner.else_at >= 0 else [owner.first]
            arms = {id(self.code.arms[at]) for at in tokens}
            if len(arms) > 1:
                raise self.code.error(
                    "braces are needed here, but a conditional begins or ends between", body.first
                )
            self.notes.append(f"braces are added in line {self.code.line(body.first)}")


def put_first(editor: Editor, body: StatementSpan, line: str, *, has_more: bool) -> None:
    """Put a declaration at the start of a function."""
    tokens = editor.code.tokens
    end = tokens[body.first].end
    after = editor.text[end : tokens[body.first + 1].start]
    blank = "" if has_more else editor.newline
    is_spread = editor.code.line(body.first) == editor.code.line(body.last)
    tail = "" if is_spread or "\n" in after else editor.newline
    editor.edit(end, end, f"{editor.newline}{line}{blank}{tail}", rank=(-1, 0))


def _check_request(source: SourceFile, place: InsertionPoint, call: EventCall) -> None:
    check_file(source)
    if not _NAME.fullmatch(call.event):
        raise PlaceError(f"`{call.event[:60]}` is not a valid event name")
    if not _NAME.fullmatch(place.function):
        raise PlaceError(f"`{place.function[:60]}` is not a valid function name")
    is_beside = place.where in {Where.BEFORE, Where.AFTER}
    if is_beside and not place.statement.strip() and place.line < 1:
        raise PlaceError(f"{place.where} what? Give the text of a statement or a line")
    if place.where is not Where.RETURNS and mentions_value(call.args):
        raise PlaceError(f"{RETURN_VALUE} is valid only in calls at the returns of a function")
