"""Findings that are accepted: suppression comments and baseline files.

`/* tracepoint: ignore[TP301] */` silences a line: its own or, when it is alone on a line,
the next line that is not such a comment.  `/* tracepoint: ignore-file[TP301] */` silences a file.
Without brackets it applies to all rules. In Python files the comment begins with `#`. A baseline is a JSON
text that lists known findings by file, rule, event and message, so that it stays valid when lines move.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.diagnostics import Diagnostic
    from tracepoint.source.text import SourceFile

BASELINE_SCHEMA = "tracepoint.baseline/1"

_COMMENT = re.compile(
    r"(?:/\*|//|#)\s*tracepoint:\s*(?P<what>ignore-file|ignore)\s*(?:\[(?P<codes>[^\]\n]*)\])?[^\n]*"
)
_MORE = re.compile(r" \(and \d+ more [^)]*\)$")


@dataclass(slots=True)
class Suppression:
    """One comment: the line it is on, the lines it covers (none: the whole file), its codes."""

    line: int
    column: int
    lines: frozenset[int]
    codes: frozenset[str]
    is_used: bool = field(default=False)

    def covers(self, diagnostic: Diagnostic) -> bool:
        """Return whether the comment silences a finding, by its line or by the macro body it came from."""
        if self.codes and not any(diagnostic.code.startswith(c) or diagnostic.name == c for c in self.codes):
            return False
        if not self.lines:
            return True
        spans = (
            diagnostic.span,
            *(r.span for r in diagnostic.related if r.message.startswith("in the body of")),
        )
        return any(s.line in self.lines and s.path == diagnostic.span.path for s in spans)


def read_suppressions(source: SourceFile) -> list[Suppression]:
    """Return the suppression comments of a file, in order."""
    found = []
    for match in _COMMENT.finditer(source.text):
        line, column = source.position(match.start())
        codes = frozenset(c.strip() for c in (match["codes"] or "").split(",") if c.strip())
        lines = frozenset() if match["what"] == "ignore-file" else frozenset({line, _covered(source, line)})
        found.append(Suppression(line, column, lines, codes))
    return found


def _covered(source: SourceFile, line: int) -> int:
    """Return the line that a comment on `line` covers: the next line of code when it is alone."""
    while line < source.n_lines:
        text = source.line_text(line).strip().rstrip("\\").strip()
        if text and not _COMMENT.match(text):
            return line
        line += 1
    return line


def baseline_key(diagnostic: Diagnostic) -> tuple[str, str, str, str]:
    """Return what identifies a finding across edits: path, code, event, message."""
    return (diagnostic.span.path, diagnostic.code, diagnostic.event, _MORE.sub("", diagnostic.message))


def write_baseline(findings: Iterable[Diagnostic]) -> str:
    """Return the text of a baseline file that holds these findings."""
    counts = Counter(baseline_key(d) for d in findings)
    entries = [
        {"path": path, "code": code, "event": event, "message": message, "count": count}
        for (path, code, event, message), count in sorted(counts.items())
    ]
    return json.dumps({"schema": BASELINE_SCHEMA, "findings": entries}, indent=1, ensure_ascii=False) + "\n"


def read_baseline(text: str) -> Counter[tuple[str, str, str, str]]:
    """Read a baseline file; raises TracepointError when it is not one."""
    try:
        data = json.loads(text)
        if data["schema"] != BASELINE_SCHEMA:
            raise TracepointError(f"baseline has schema {data['schema']!r}, expected {BASELINE_SCHEMA!r}")
        known: Counter[tuple[str, str, str, str]] = Counter()
        for entry in data["findings"]:
            key = (str(entry["path"]), str(entry["code"]), str(entry["event"]), str(entry["message"]))
            known[key] += int(entry.get("count", 1))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TracepointError(
            f"not a baseline file ({type(error).__name__}: {error}); write one with --write-baseline"
        ) from error
    return known


def apply_baseline(
    findings: Iterable[Diagnostic], known: Counter[tuple[str, str, str, str]]
) -> tuple[list[Diagnostic], int]:
    """Return the findings that are not in a baseline, and how many are."""
    left = Counter(known)
    fresh = []
    n_known = 0
    for diagnostic in findings:
        key = baseline_key(diagnostic)
        if left[key] > 0:
            left[key] -= 1
            n_known += 1
        else:
            fresh.append(diagnostic)
    return fresh, n_known
