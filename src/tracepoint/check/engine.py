"""Runs the rules over headers: it sorts findings, counts the same fault once and applies suppressions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.check.across import Across, Share
from tracepoint.check.checked import Checked
from tracepoint.check.context import CheckContext
from tracepoint.check.diagnose import fold
from tracepoint.check.registry import RULES, rule_of
from tracepoint.check.selection import select_rules
from tracepoint.check.suppress import Suppression, read_suppressions
from tracepoint.diagnostics import Diagnostic, Safety, Severity, Span
from tracepoint.model.event import TraceHeader
from tracepoint.model.read import read_header_text
from tracepoint.source.text import apply_edits
from tracepoint.tree.facts import read_facts_around
from tracepoint.tree.headers import read_header
from tracepoint.tree.tracing_macros import TreeFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import PurePath

    from tracepoint.diagnostics import Edit

#: Applying fixes may uncover others; real headers settle in two rounds.
_MAX_ROUNDS = 8
_UNUSED_SUPPRESSION = "TP090"
_NOT_C = "TP020"


def check_header(
    header: TraceHeader | PurePath | str,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    abi: str = "x86_64",
    facts: TreeFacts | None = None,
) -> list[Diagnostic]:
    """Return the findings of one header, or of the one at a path, in the order of its text.

    `select` and `ignore` are rule codes, beginnings of codes or names (see `select_rules`, which
    raises TracepointError for one that matches nothing); `abi` names the ABI that record layouts
    are computed for; `facts` is what is known about the kernel tree (by default read
    from the tree that contains the path).
    """
    if not isinstance(header, TraceHeader):
        facts = facts or read_facts_around(header)
        header = read_header(header)
    return check_headers([header], select=select, ignore=ignore, abi=abi, facts=facts)


def check_headers(
    headers: Iterable[TraceHeader],
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    abi: str = "x86_64",
    facts: TreeFacts | None = None,
) -> list[Diagnostic]:
    """Return the findings of several headers of one kernel, including those that only show across headers.

    Arguments are those of `check_header`.
    """
    checker = Checker(select=select, ignore=ignore, abi=abi, facts=facts)
    for header in headers:
        checker.add(header)
    return checker.findings()


class Checker:
    """Checks the headers of one kernel in turn and keeps none of them.

    Arguments are those of `check_header`.
    """

    def __init__(
        self,
        *,
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
        abi: str = "x86_64",
        facts: TreeFacts | None = None,
    ) -> None:
        self._codes = select_rules(RULES, select, ignore)
        self._rules = [rule for rule in RULES if rule.code in self._codes]
        self._abi = abi
        self._facts = facts or TreeFacts()
        self._across = Across(self._facts.are_alternatives)
        self._checked: list[Checked] = []

    def add(self, header: TraceHeader, string_callers: Mapping[str, bool] | None = None) -> Checked:
        """Check one header; `string_callers` is what the tree's index knows about its events.

        The result is all that `findings` needs.
        """
        facts = self._facts if string_callers is None else replace(self._facts, string_callers=string_callers)
        context = CheckContext(header, facts, self._abi)
        found = [d for d in map(_in_house, header.diagnostics) if d.code in self._codes]
        candidates: dict[str, list[object]] = {}
        for rule in self._rules:
            if rule.check is not None:
                found += fold(rule, rule.check(context), header.path)
            if rule.candidates is not None and (kept := list(rule.candidates(context))):
                candidates[rule.code] = kept
        context.let_go()
        source = header.source
        has_comment = source is not None and "tracepoint:" in source.text
        suppressions = read_suppressions(source) if source is not None and has_comment else []
        checked = Checked(header.path, found, candidates, suppressions, Share.of(header))
        self.add_checked(checked)
        return checked

    def add_checked(self, checked: Checked) -> None:
        """Take a header that another checker with the same arguments has checked."""
        self._across.add(checked.share)
        self._checked.append(checked)

    def findings(self) -> list[Diagnostic]:
        """Return the findings of all headers, including those that only show across headers."""
        found: list[Diagnostic] = []
        for checked in self._checked:
            diagnostics = list(checked.found)
            for rule in self._rules:
                if candidates := checked.candidates.get(rule.code):
                    diagnostics += fold(rule, rule.decide(candidates, self._across), checked.path)
            found += _without_suppressed(checked, _distrusted(diagnostics), self._codes)
        return sorted(found, key=_order)


def check_text(
    text: str,
    path: str = "<text>",
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    facts: TreeFacts | None = None,
) -> list[Diagnostic]:
    """Read a header's text and check it; a lone declaration is not checked for the form of a header.

    >>> [d.code for d in check_text('TRACE_EVENT(a, TP_PROTO(int x), TP_ARGS(y), '
    ...     'TP_STRUCT__entry(__field(int, x)), TP_fast_assign(__entry->x = x;), '
    ...     'TP_printk("%d", __entry->x));')]
    ['TP101']
    """
    return check_header(read_header_text(text, path=path), select=select, ignore=ignore, facts=facts)


def apply_fixes(findings: Iterable[Diagnostic], text: str, *, unsafe: bool = False) -> str:
    """Return a file's text with the fixes of its findings applied.

    Only safe fixes unless `unsafe`; of fixes that overlap only the first is applied, and a fix
    of several edits is applied whole or not at all.
    """
    taken: list[Edit] = []
    for finding in findings:
        fix = finding.fix
        if fix is None or fix.safety is Safety.SHOWN or (fix.safety is Safety.UNSAFE and not unsafe):
            continue
        fresh = [e for e in fix.edits if e not in taken]
        if not any(_overlap(e, other) for e in fresh for other in taken):
            taken += fresh
    return apply_edits(text, taken)


def fix_text(text: str, path: str = "<text>", *, unsafe: bool = False, select: Iterable[str] = ()) -> str:
    """Check and fix a text until there is nothing left to fix: fixing the result changes nothing.

    Raises what reading raises.
    """
    for _ in range(_MAX_ROUNDS):
        mended = apply_fixes(check_text(text, path, select=select), text, unsafe=unsafe)
        if mended == text:
            break
        text = mended
    return text


def _overlap(one: Edit, other: Edit) -> bool:
    if one.path != other.path:
        return False
    if one.start == one.end or other.start == other.end:
        return one.start <= other.end and other.start <= one.end
    return one.start < other.end and other.start < one.end


def _order(d: Diagnostic) -> tuple[str, int, int, str, str]:
    return (d.span.path, d.span.line, d.span.column, d.code, d.message)


def _in_house(diagnostic: Diagnostic) -> Diagnostic:
    """Give a finding of the reader the severity that the list of rules has for it."""
    rule = rule_of(diagnostic.code)
    return diagnostic if rule is None else replace(diagnostic, name=rule.name)


def _distrusted(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Near characters that are not C, count no fix as safe but the one that replaces them."""
    if not any(d.code == _NOT_C for d in diagnostics):
        return diagnostics
    return [
        replace(d, fix=replace(d.fix, safety=Safety.UNSAFE))
        if d.code != _NOT_C and d.fix is not None and d.fix.is_safe
        else d
        for d in diagnostics
    ]


def _without_suppressed(
    checked: Checked, diagnostics: list[Diagnostic], codes: frozenset[str]
) -> list[Diagnostic]:
    suppressions = [replace(suppression) for suppression in checked.suppressions]
    kept = []
    for diagnostic in diagnostics:
        covering = [s for s in suppressions if s.covers(diagnostic)]
        for suppression in covering:
            suppression.is_used = True
        if not covering:
            kept.append(diagnostic)
    if _UNUSED_SUPPRESSION in codes:
        kept += [_unused(checked.path, s) for s in suppressions if not s.is_used]
    return kept


def _unused(path: str, suppression: Suppression) -> Diagnostic:
    span = Span(path, suppression.line, suppression.column, suppression.line, suppression.column + 1)
    what = ", ".join(sorted(suppression.codes)) or "anything"
    return Diagnostic(
        _UNUSED_SUPPRESSION,
        "suppression-without-effect",
        f"this comment silences {what}, but there is nothing to silence",
        span,
        Severity.NOTE,
        help=("remove the comment, or correct its codes",),
    )
