"""Findings as text: `full` with source lines and carets, `concise` with one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.diagnostics import Safety, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tracepoint.diagnostics import Diagnostic, Fix, Span
    from tracepoint.source.text import SourceFile

    #: Gives a text the named styles, such as `bold` or `red`.
    Style = Callable[..., str]

_TAB = 8
_WIDTH = 100
_GRADES = {
    Safety.SAFE: "fix available (safe)",
    Safety.UNSAFE: "fix available (unsafe: changes the record or what readers see)",
    Safety.SHOWN: "fix shown only",
}


_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def plain(text: str, *_names: str) -> str:
    """Return the text as it is: the style of a report without colour."""
    return text


def write_concise(findings: Iterable[Diagnostic], style: Style = plain) -> str:
    """Return `path:line:column: CODE EVENT: message`, one line per finding, as editors read it."""
    return "".join(f"{_head(d, style)}\n" for d in findings)


def write_full(
    findings: Iterable[Diagnostic], sources: Mapping[str, SourceFile], style: Style = plain
) -> str:
    """Return findings with the source lines they are about.

    `sources` maps paths to files; `style` gives a text the styles named after it (`bold`, `red`, ...).
    """
    return "\n".join(_full(d, sources, style) for d in findings)


def _head(finding: Diagnostic, style: Style) -> str:
    code = style(finding.code, "bold", _COLORS[finding.severity])
    return f"{style(str(finding.span), 'bold')}: {code} {finding.text}"


def _full(finding: Diagnostic, sources: Mapping[str, SourceFile], style: Style) -> str:
    lines = [_head(finding, style)]
    marks = [(finding.span, "^", finding.label)]
    elsewhere = []
    for related in finding.related:
        if related.span.path == finding.span.path and 0 <= finding.span.line - related.span.line <= 12:
            marks.append((related.span, "-", related.message))
        else:
            elsewhere.append(related)
    source = sources.get(finding.span.path)
    if source is not None:
        lines += _snippet(source, marks, style)
    for related in elsewhere:
        lines.append(f"note: {related.span}: {related.message}")
        source = sources.get(related.span.path)
        if source is not None:
            lines += _snippet(source, [(related.span, "-", "")], style, frame=False)
    if finding.event:
        lines.append(f"event: {finding.event}")
    lines += [f"{style('help:', 'bold')} {text}" for text in finding.help]
    lines.append(f"{style(_grade(finding.fix), 'green')}tracepoint explain {finding.code}")
    return "\n".join(lines) + "\n"


def _grade(fix: Fix | None) -> str:
    return "" if fix is None else f"{_GRADES[fix.safety]}: {fix.message}    "


def _snippet(
    source: SourceFile, marks: list[tuple[Span, str, str]], style: Style, *, frame: bool = True
) -> list[str]:
    """Return the marked lines with their numbers; marks of one line are grouped."""
    by_line: dict[int, list[tuple[Span, str, str]]] = {}
    for mark in marks:
        by_line.setdefault(mark[0].line, []).append(mark)
    width = len(str(max(by_line)))
    gutter = " " * width + " |"
    out = [gutter] if frame else []
    before = 0
    for line in sorted(by_line):
        if before and line == before + 2:
            out.append(f"{before + 1:>{width}} | {_clip(_expand(source.line_text(before + 1)))}")
        elif before and line > before + 2:
            out.append("." * width + " |")
        text = source.line_text(line)
        out.append(f"{line:>{width}} | {_clip(_expand(text))}")
        for span, sign, label in sorted(by_line[line], key=lambda m: m[0].column):
            begin = len(_expand(text[: span.column - 1]))
            stop = span.end_column - 1 if span.end_line == span.line else len(text)
            length = max(1, len(_expand(text[:stop])) - begin)
            if begin < _WIDTH:
                line_mark = f"{sign * min(length, _WIDTH - begin)} {label}".rstrip()
                out.append(f"{gutter} {' ' * begin}{style(line_mark, 'red' if sign == '^' else 'blue')}")
        before = line
    if frame:
        out.append(gutter)
    return out


def _expand(text: str) -> str:
    """Expand tabs, and show control characters as `?` so that they cannot affect the terminal."""
    text = text.expandtabs(_TAB)
    return "".join(c if c.isprintable() or "\udc80" <= c <= "\udcff" else "?" for c in text)


def _clip(text: str) -> str:
    return text if len(text) <= _WIDTH + 20 else text[: _WIDTH + 17] + "..."
