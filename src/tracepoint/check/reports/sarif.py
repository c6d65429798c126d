"""Findings as SARIF 2.1.0, the format that code-scanning services read."""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tracepoint.check.registry import RULES
from tracepoint.check.suppress import baseline_key
from tracepoint.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracepoint.check.registry import Rule
    from tracepoint.diagnostics import Diagnostic, Edit, Span
    from tracepoint.source.text import SourceFile

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def write_sarif(
    findings: Iterable[Diagnostic],
    sources: Mapping[str, SourceFile] | None = None,
    *,
    version: str = "",
    docs_url: str = "",
) -> str:
    """Return one SARIF run; `sources` (path to file) makes the regions of fixes exact.

    `docs_url` is the address of the documentation site, for `informationUri` and the `helpUri` of each rule;
    without it rules carry their page as text only.
    """
    listed = list(findings)
    run = {
        "tool": {"driver": _driver(version, docs_url.rstrip("/"))},
        "columnKind": "unicodeCodePoints",
        "results": [_result(d, sources or {}) for d in listed],
        "artifacts": [{"location": _uri(p)} for p in sorted({d.span.path for d in listed})],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _driver(version: str, docs_url: str) -> dict[str, Any]:
    driver: dict[str, Any] = {"name": "tracepoint", "rules": [_rule(r, docs_url) for r in RULES]}
    if docs_url:
        driver["informationUri"] = f"{docs_url}/index.html"
    if version:
        driver["version"] = version
    return driver


def _rule(rule: Rule, docs_url: str) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.section("Why it is bad") or rule.summary},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"enabled": rule.is_default_on, "level": _LEVELS[rule.severity]},
    }
    if docs_url:
        data["helpUri"] = f"{docs_url}/reference/rules/{rule.code}.html"
    return data


def _result(finding: Diagnostic, sources: Mapping[str, SourceFile]) -> dict[str, Any]:
    text = ". ".join([finding.text, *finding.help])
    data: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(finding.span)],
        "partialFingerprints": {"tracepoint/v1": _fingerprint(finding)},
    }
    index = next((i for i, rule in enumerate(RULES) if rule.code == finding.code), None)
    if index is not None:
        data["ruleIndex"] = index
    if finding.event:
        data["locations"][0]["logicalLocations"] = [{"fullyQualifiedName": finding.event, "kind": "event"}]
    if finding.related:
        data["relatedLocations"] = [
            {**_location(r.span), "id": number, "message": {"text": r.message}}
            for number, r in enumerate(finding.related, 1)
        ]
    if finding.fix is not None and finding.fix.edits:
        by_path: dict[str, list[Edit]] = {}
        for edit in finding.fix.edits:
            by_path.setdefault(edit.path, []).append(edit)
        data["fixes"] = [
            {
                "description": {"text": f"{finding.fix.message} ({finding.fix.safety})"},
                "artifactChanges": [
                    {
                        "artifactLocation": _uri(path),
                        "replacements": [_replacement(e, sources.get(path)) for e in edits],
                    }
                    for path, edits in by_path.items()
                ],
            }
        ]
    return data


def _fingerprint(finding: Diagnostic) -> str:
    return hashlib.sha256("\0".join(baseline_key(finding)).encode("utf-8", "surrogateescape")).hexdigest()[
        :32
    ]


def _location(span: Span) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _uri(span.path), "region": _region(span)}}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _uri(path: str) -> dict[str, str]:
    pure = PurePath(path)
    if pure.is_absolute():
        return {"uri": pure.as_uri()}
    return {"uri": quote(pure.as_posix(), errors="surrogateescape")}


def _replacement(edit: Edit, source: SourceFile | None) -> dict[str, Any]:
    if source is not None:
        region = _region(source.span(edit.start, edit.end))
    else:
        region = {"charOffset": edit.start, "charLength": edit.end - edit.start}
    return {"deletedRegion": region, "insertedContent": {"text": edit.replacement}}
