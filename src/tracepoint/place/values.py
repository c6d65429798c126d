"""Whether a local has a value at a place, judged by the order of the text."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from tracepoint.place.find import innermost
from tracepoint.place.statements import StatementKind, StatementSpan

if TYPE_CHECKING:
    from tracepoint.place.code import SourceCode
    from tracepoint.place.sites import Site
    from tracepoint.place.variables import Variable

#: More than any function of the kernel has of one name.
_MAX_MENTIONS = 2000
_UNEVALUATED = frozenset({"sizeof", "typeof", "__typeof__", "__typeof", "offsetof"})


class Certainty(enum.IntEnum):
    """How certain it is that a variable has a value."""

    NEVER = 0
    SOMETIMES = 1
    ALWAYS = 2


def has_value(code: SourceCode, body: StatementSpan, variable: Variable, site: Site) -> Certainty:
    """Return whether a local has been assigned a value before a place.

    In a kernel that compiles, a variable that is read has a value, so every mention before the place counts;
    mentions in branches that may not run count as `SOMETIMES`.  A backward `goto` is not followed.
    """
    if variable.has_value:
        return Certainty.ALWAYS
    best = Certainty.NEVER
    first = -1
    for at in code.uses(variable.name, variable.at + 1, site.token, _MAX_MENTIONS):
        if not _is_mention(code, at):
            continue
        found = _certainty(code, body, at, site)
        if found > best:
            best, first = found, at
        if best is Certainty.ALWAYS:
            break
    if best is Certainty.ALWAYS and _is_jumped_over(code, body, site, variable.at, first):
        return Certainty.SOMETIMES
    return best


def _is_mention(code: SourceCode, at: int) -> bool:
    before = code.texts[at - 1]
    if before in {"->", "."} or before in _UNEVALUATED:
        return False
    if before == "(" and code.texts[at - 2] in _UNEVALUATED:
        return False
    return not (code.texts[at + 1] == ":" and before in {";", "{", "}"})


def _certainty(code: SourceCode, body: StatementSpan, at: int, site: Site) -> Certainty:
    """Follow a mention outwards to the block or statement that also contains the place."""
    around = {id(site.block), *(id(s) for s in site.block.ancestors())}
    found = Certainty.ALWAYS
    here: StatementSpan = innermost(body, at)
    if here.header is not None and here.header[0] <= at <= here.header[1]:
        found = Certainty.ALWAYS if _runs_always(code, here, at) else Certainty.SOMETIMES
    inner: StatementSpan | None = None
    while id(here) not in around:
        parent = here.parent
        if parent is None or (parent is site.block and here.is_body and here.last + 1 == site.token):
            return found
        if (
            parent.kind in {StatementKind.IF, StatementKind.LOOP, StatementKind.SWITCH}
            and here in parent.children
        ):
            found = Certainty.SOMETIMES
        inner, here = here, parent
    if here.kind is StatementKind.IF and inner is not None and inner in here.children:  # the other arm
        return Certainty.NEVER
    arm = code.arms[at]
    if arm is not None and not arm.holds(site.arm):
        return min(found, Certainty.SOMETIMES)
    return found


def _runs_always(code: SourceCode, statement: StatementSpan, at: int) -> bool:
    """Return whether a token of a header is evaluated before the body: not the step of a `for`."""
    if code.texts[statement.first] != "for" or statement.header is None:
        return True
    n_semicolons = code.texts[statement.header[0] : at].count(";")
    return n_semicolons < 2


def _is_jumped_over(code: SourceCode, body: StatementSpan, site: Site, declared: int, first: int) -> bool:
    """Return whether a `goto` before the first value leads to a label between it and the place."""
    labels = {
        code.texts[s.first]
        for s in body.walk()
        if s.kind is StatementKind.LABEL
        and first < s.first < site.token
        and code.texts[s.first] not in {"case", "default"}
    }
    if not labels:
        return False
    return any(code.texts[at + 1] in labels for at in code.uses("goto", declared, first, _MAX_MENTIONS))
