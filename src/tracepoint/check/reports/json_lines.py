"""Findings as JSON: one document, or one object per line.

The schema is `tracepoint.check/1`; members may be added, but none changes its meaning.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.diagnostics import Diagnostic, Span

SCHEMA = "tracepoint.check/1"


def write_json(findings: Iterable[Diagnostic]) -> str:
    """Return one JSON document with all findings."""
    document = {"schema": SCHEMA, "findings": [finding_as_data(d) for d in findings]}
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def write_jsonl(findings: Iterable[Diagnostic]) -> str:
    """Return one JSON object per line; each names its schema."""
    return "".join(
        json.dumps({"schema": SCHEMA, **finding_as_data(d)}, ensure_ascii=True) + "\n" for d in findings
    )


def finding_as_data(finding: Diagnostic) -> dict[str, Any]:
    """Return a finding as plain lists and dictionaries."""
    data: dict[str, Any] = {
        "code": finding.code,
        "name": finding.name,
        "severity": str(finding.severity),
        "message": finding.message,
        "event": finding.event,
        **_span(finding.span),
        "label": finding.label,
        "related": [{**_span(r.span), "message": r.message} for r in finding.related],
        "help": list(finding.help),
        "fix": None,
    }
    if finding.fix is not None:
        data["fix"] = {
            "message": finding.fix.message,
            "safety": str(finding.fix.safety),
            "edits": [
                {"path": e.path, "start": e.start, "end": e.end, "replacement": e.replacement}
                for e in finding.fix.edits
            ],
        }
    return data


def _span(span: Span) -> dict[str, Any]:
    return {
        "path": span.path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }
