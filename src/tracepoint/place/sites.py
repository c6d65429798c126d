"""The places in a function where a call may be added: its entry, and next to a statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.place.edits import BLANK_LINE
from tracepoint.place.flow import falls_through, is_reached
from tracepoint.place.statements import StatementKind, StatementSpan

if TYPE_CHECKING:
    from tracepoint.place.code import Arm, SourceCode
    from tracepoint.place.edits import Editor


@dataclass(frozen=True, slots=True)
class Site:
    """A place for one call: before child `index` of `block`; `token` is the first one after it.

    `arm` is the branch of a conditional that it is in. `split` is a branch that must end before it
    and begin again after it, since declarations and statements share it.
    """

    block: StatementSpan
    index: int
    token: int
    arm: Arm | None
    split: Arm | None = None


def site_at(code: SourceCode, statement: StatementSpan, *, is_after: bool = False) -> Site:
    """Return the place before or after a statement, without checking that a call is allowed there."""
    parent = statement.parent or statement
    token = statement.last + 1 if is_after else statement.first
    index = parent.children.index(statement) + is_after if parent.kind is StatementKind.BLOCK else 0
    return Site(parent, index, token, code.arms[statement.first])


def site_at_end(code: SourceCode, block: StatementSpan) -> Site:
    """Return the place before the brace that ends a block."""
    return Site(block, len(block.children), block.last, code.arms[block.last])


def count_declarations(code: SourceCode, block: StatementSpan, start: int, names: frozenset[str]) -> int:
    """Return how many statements of a block from child `start` on are declarations.

    A call in capitals counts when a declaration follows, or when its first argument is not in `names`
    but used later: then the macro declares it.
    """
    n_sure = 0
    for n_seen, child in enumerate(block.children[start:], 1):
        if child.kind is StatementKind.DECLARATION or macro_declares(code, block, child, names):
            n_sure = n_seen
        elif child.kind is not StatementKind.EMPTY and not _is_call_in_capitals(code, child):
            break
    return n_sure


def _is_call_in_capitals(code: SourceCode, statement: StatementSpan) -> bool:
    if statement.kind is not StatementKind.EXPRESSION or not code.texts[statement.first].isupper():
        return False
    opener = statement.first + 1
    return code.texts[opener] == "(" and code.match[opener] == statement.last - 1


def macro_declares(
    code: SourceCode, block: StatementSpan, statement: StatementSpan, names: frozenset[str]
) -> bool:
    """Return whether a macro in capitals can only be a declaration of its first argument."""
    if not _is_call_in_capitals(code, statement):
        return False
    first = statement.first + 2
    if not code.is_name(first) or code.texts[first + 1] not in {",", ")"} or code.texts[first] in names:
        return False
    name = code.texts[first]
    return not name.isupper() and bool(code.uses(name, statement.last, block.last))


def check_reached(code: SourceCode, statement: StatementSpan, *, is_after: bool) -> None:
    """Raise PlaceError when a call next to this statement would never run, or is not allowed."""
    parent = statement.parent
    if parent is None:
        return
    before = parent.children[: parent.children.index(statement)] if parent.kind is StatementKind.BLOCK else []
    if is_after:
        if not falls_through(code, statement):
            word = code.texts[statement.first]
            raise code.error(f"a call after this `{word}` is never reached", statement.first)
        _check_value(code, statement)
        return
    if statement.kind is StatementKind.LABEL and _is_in_switch(parent) and not before:
        raise code.error("a call between `switch` and its first `case` never runs", statement.first)
    if not is_reached(code, parent, len(before)):
        what = "label" if statement.kind is StatementKind.LABEL else "statement"
        raise code.error(
            f"a call before this {what} is never reached: control does not fall into it", statement.first
        )
    if before and code.texts[before[-1].first] == "fallthrough":
        raise code.error("`fallthrough` must be directly before the label", statement.first)


def _is_in_switch(block: StatementSpan) -> bool:
    return (
        block.parent is not None
        and block.parent.kind is StatementKind.SWITCH
        and block.kind is StatementKind.BLOCK
    )


def _check_value(code: SourceCode, statement: StatementSpan) -> None:
    parent = statement.parent
    if parent is not None and parent.is_value and parent.children[-1] is statement:
        raise code.error(
            "this is the value of a statement expression: a call after it would replace it", statement.first
        )


def check_whole(code: SourceCode, statement: StatementSpan) -> None:
    """Raise PlaceError when a conditional begins or ends within a statement."""
    first, last = code.arms[statement.first], code.arms[statement.last]
    if first is not last:
        arm = last if last is not None and not last.holds(first) else first
        text = arm.text if arm else ""
        raise code.error(f"this statement crosses the boundary of the branch `{text}`", statement.first)
    parent = statement.parent
    is_in_if = parent is not None and parent.kind is StatementKind.IF and statement.kind is StatementKind.IF
    if is_in_if and code.texts[statement.first - 1] == "else":
        raise code.error("this `if` is directly after `else`: name a statement in its body", statement.first)


def entry_site(code: SourceCode, body: StatementSpan, n_declarations: int) -> Site:
    """Return the place after the declarations that begin a block.

    Raises PlaceError if there is no such place in some configuration.
    """
    arm = code.arms[body.first]
    is_end = n_declarations == len(body.children)
    token = body.last if is_end else body.children[n_declarations].first
    if n_declarations:
        inner = code.arms[body.children[n_declarations - 1].last]
        if inner is not None and inner is not arm and inner.holds(code.arms[token]):
            reason = _unsplittable(code, body, n_declarations, inner)
            if reason:
                raise code.error(
                    f"declarations and statements share the branch `{inner.text}`, and {reason}: name a "
                    "statement instead",
                    token,
                )
            return Site(body, n_declarations, token, arm, inner)
    return Site(body, n_declarations, token, arm)


def _unsplittable(code: SourceCode, block: StatementSpan, n_declarations: int, inner: Arm) -> str:
    """Return why a branch cannot end after its declarations and begin again, empty when it can."""
    if inner.parent is not code.arms[block.first]:
        return "it is inside another one"
    if not inner.text.replace(" ", "").startswith("#if"):
        return "it is not the first of its conditional"
    last = block.children[n_declarations - 1].last
    between = code.file.text[code.tokens[last].end : code.tokens[last + 1].start]
    if "\n" not in between:
        return "they are on one line"
    others = _later_arms(code, inner)
    for child in block.children[n_declarations:]:
        found = code.arms[child.first]
        if found is not None and found in others:
            others.remove(found)
            if child.kind is StatementKind.DECLARATION or macro_declares(code, block, child, frozenset()):
                return f"`{found.text}` begins with declarations too"
    return ""


def _later_arms(code: SourceCode, first: Arm) -> list[Arm]:
    """Return the `#elif` and `#else` branches of the conditional that a branch begins."""
    found: list[Arm] = []
    depth = 0
    for directive in code.directives:
        if directive.start <= first.start:
            continue
        if directive.keyword in {"if", "ifdef", "ifndef"}:
            depth += 1
        elif directive.keyword == "endif":
            depth -= 1
            if depth < 0:
                break
        elif directive.keyword in {"else", "elif"} and depth == 0 and directive.arm is not None:
            found.append(directive.arm)
    return found


def put_entry(editor: Editor, site: Site, lines: list[str]) -> None:
    """Put lines after the declarations that begin a block, with a blank line between."""
    code = editor.code
    block = site.block
    if site.split is not None:
        editor.split(block.children[site.index - 1], site.split.text, lines)
        return
    last = block.children[site.index - 1].last if site.index else block.first
    lower = code.tokens[last].end
    directives = list(code.directives_between(lower, code.tokens[site.token].start))
    if code.arms[last] is not site.arm:  # skip the #endif of the declarations' branch
        while directives:
            directive = directives.pop(0)
            lower = directive.end
            if directive.arm is site.arm:
                break
    if directives:
        text = editor.text
        at = text.rfind("\n", 0, directives[0].start) + 1
    elif site.index < len(block.children):
        at = editor.top_of(block.children[site.index])
        lines = _before_comment(editor, at, code.tokens[site.token].start, lines)
    else:
        at = code.tokens[block.last].start
    lower -= editor.text[lower - 1] == "\n"
    if site.index and last not in editor.blanks and not BLANK_LINE.search(editor.text, lower, at):
        editor.blanks.add(last)
        lines = ["", *lines]
    if directives:
        editor.at_line(at, lines)
    elif site.index < len(block.children):
        editor.before(block.children[site.index], lines)
    else:
        editor.at_end(block, lines)


def _before_comment(editor: Editor, at: int, start: int, lines: list[str]) -> list[str]:
    """Put a blank line between a call and a comment of several lines about what follows."""
    between = editor.text[at:start].strip()
    return [*lines, ""] if between.startswith("/*") and "\n" in between else lines
