"""What is kept of a checked header: enough to finish its findings together with other headers.

It is plain data: `to_row` and `from_row` of `check.saved` turn it into what JSON holds, and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracepoint.check.across import Share
from tracepoint.check.finding import Finding, Key, Located, Place, locate
from tracepoint.check.registry import rule_of
from tracepoint.check.saved import from_row, know, know_as, to_row
from tracepoint.check.suppress import Suppression
from tracepoint.diagnostics import Diagnostic, Span

if TYPE_CHECKING:
    from tracepoint.check.registry import Rule


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of one header: findings, candidates by rule, comments, and what other headers may need."""

    path: str
    found: list[Diagnostic]
    candidates: Candidates
    suppressions: list[Suppression]
    share: Share


#: What `candidates` of each rule returned, by the rule's code.
Candidates = dict[str, list[object]]


def _pack_key(key: Key) -> Any:
    return to_row(key) if isinstance(key, Span) else key and list(key)


def _unpack_key(row: Any) -> Key:
    match row:
        case None:
            return None
        case [str(path), int(start)]:
            return path, start
    return from_row(Span, row)


def _pack_place(place: Place) -> Any:
    return to_row(locate(place))


def _unpack_place(row: Any) -> Place:
    return from_row(Located, row)


def _pack_candidates(candidates: Candidates) -> dict[str, Any]:
    return {code: [to_row(candidate) for candidate in kept] for code, kept in candidates.items()}


def _unpack_candidates(row: Any) -> Candidates:
    if not isinstance(row, dict):
        raise ValueError("no candidates")  # noqa: TRY004 - damaged data, not a wrong call
    found: Candidates = {}
    for code, rows in row.items():
        rule = rule_of(code)
        if rule is None or not isinstance(rows, list):
            raise ValueError("no candidates")
        cls = _candidate_class(rule)
        found[code] = [from_row(cls, one) for one in rows]
    return found


def _candidate_class(rule: Rule) -> type:
    cls = getattr(rule.module, "Candidate", None)
    if not isinstance(cls, type):
        raise ValueError(f"{rule.code} has no candidates")  # noqa: TRY004 - damaged data, not a wrong call
    return cls


know(Finding, Located, Share, Suppression)
know_as("Key", _pack_key, _unpack_key)
know_as("Place", _pack_place, _unpack_place)
know_as("Candidates", _pack_candidates, _unpack_candidates)
