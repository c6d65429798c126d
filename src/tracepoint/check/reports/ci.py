"""Findings for the systems that build and test: GitHub, GitLab, and anything that reads JUnit."""

from __future__ import annotations

import hashlib
import json
from html import escape
from typing import TYPE_CHECKING

from tracepoint.check.suppress import baseline_key
from tracepoint.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.diagnostics import Diagnostic

_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_GITLAB = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def write_github(findings: Iterable[Diagnostic]) -> str:
    """Return GitHub workflow commands, one line per finding; they become notes beside the change."""
    lines = []
    for d in findings:
        place = ",".join(
            f"{name}={_property(str(value))}"
            for name, value in (
                ("file", d.span.path),
                ("line", d.span.line),
                ("endLine", d.span.end_line),
                ("col", d.span.column),
                ("endColumn", d.span.end_column),
                ("title", f"{d.code} {d.name}"),
            )
        )
        text = _message("\n".join([d.text, *d.help]))
        lines.append(f"::{_GITHUB[d.severity]} {place}::{text}\n")
    return "".join(lines)


def write_gitlab(findings: Iterable[Diagnostic]) -> str:
    """Return a GitLab code-quality report; fingerprints stay the same when lines move."""
    seen: dict[str, int] = {}
    report = []
    for d in findings:
        key = "\0".join(baseline_key(d))
        seen[key] = seen.get(key, 0) + 1
        digest = hashlib.sha256(f"{key}\0{seen[key]}".encode("utf-8", "surrogateescape")).hexdigest()
        report.append(
            {
                "description": d.text,
                "check_name": d.code,
                "fingerprint": digest[:40],
                "severity": _GITLAB[d.severity],
                "location": {"path": d.span.path, "lines": {"begin": d.span.line, "end": d.span.end_line}},
            }
        )
    return json.dumps(report, indent=1) + "\n"


def write_junit(findings: Iterable[Diagnostic], paths: Iterable[str] = ()) -> str:
    """Return a JUnit report: one test case per file of `paths`, failed where there are findings."""
    by_path: dict[str, list[Diagnostic]] = {path: [] for path in paths}
    for d in findings:
        by_path.setdefault(d.span.path, []).append(d)
    n_failed = sum(bool(found) for found in by_path.values())
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuite name="tracepoint check" tests="{len(by_path)}" failures="{n_failed}">',
    ]
    for path, found in by_path.items():
        lines.append(f'  <testcase classname="tracepoint" name={_attribute(path)}>')
        for d in found:
            text = "\n".join([f"{d.span}: {d.text}", *d.help])
            lines.append(
                f"    <failure type={_attribute(d.code)} message={_attribute(d.text)}>"
                f"{escape(_clean(text))}</failure>"
            )
        lines.append("  </testcase>")
    lines.append("</testsuite>")
    return "\n".join(lines) + "\n"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _clean(text: str) -> str:
    """Replace what XML cannot hold: control characters and bytes that were not UTF-8."""
    return "".join(
        c if c in "\t\n" or (c.isprintable() and not "\ud800" <= c <= "\udfff") else "?" for c in text
    )


def _attribute(text: str) -> str:
    return f'"{escape(_clean(text))}"'
