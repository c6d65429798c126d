"""Diagnostics of what rules find: one for each fault, with the code and severity of its rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.check.finding import Finding, Located, locate
from tracepoint.diagnostics import Diagnostic, Related, Span

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from tracepoint.check.registry import Rule

#: A fault that repeats names this many of its events.
_MAX_NAMED = 3


def fold(rule: Rule, findings: Iterable[Finding], path: str) -> list[Diagnostic]:
    """Turn the findings of a rule into diagnostics, one for a fault that is seen through many events."""
    groups: dict[Hashable, list[tuple[Finding, Located]]] = {}
    for finding in findings:
        located = locate(finding.place)
        groups.setdefault((located.key, finding.message), []).append((finding, located))
    return [_diagnose(rule, group, path) for group in groups.values()]


def _diagnose(rule: Rule, group: list[tuple[Finding, Located]], path: str) -> Diagnostic:
    finding, located = group[0]
    message = finding.message
    others = list(dict.fromkeys(f.event for f, _ in group[1:] if f.event and f.event != finding.event))
    if others:
        named = ", ".join(others[:_MAX_NAMED]) + (", ..." if len(others) > _MAX_NAMED else "")
        message += f" (and {len(others)} more: {named})"
    span = located.span
    if not span.path or span.start < 0:
        span = _anywhere(path, span)
    related = [Related(locate(place).span, text) for place, text in finding.notes if place is not None]
    help_ = (*finding.help, *(text for place, text in finding.notes if place is None))
    return Diagnostic(
        code=rule.code,
        name=rule.name,
        message=message,
        span=span,
        severity=rule.severity,
        label=finding.label,
        related=(*located.expansions, *related),
        help=help_,
        fix=finding.fix,
        event=finding.event,
    )


def _anywhere(path: str, span: Span) -> Span:
    """Return a span that at least names the file, for declarations that do not come from text."""
    return span if span.path else Span(path, 1, 1, 1, 1)
