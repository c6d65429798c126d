"""Runs the rules for Python files: those about where tracepoints are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.check.diagnose import fold
from tracepoint.check.python_source import PythonFile, parse_python
from tracepoint.check.registry import RULES
from tracepoint.check.selection import select_rules
from tracepoint.check.suppress import read_suppressions
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.diagnostics import Diagnostic


def check_python_text(
    text: str, path: str = "<text>", *, select: Iterable[str] = (), ignore: Iterable[str] = ()
) -> list[Diagnostic]:
    r"""Check the text of one Python file; raises SourceError for text that is not valid Python.

    >>> text = "from events import trace_sold\ntrace_sold(queue.pop())\n"
    >>> [d.code for d in check_python_text(text)]
    ['TP401']
    """
    return check_python_files([read_python(text, path)], select=select, ignore=ignore)


def read_python(text: str, path: str = "<text>") -> PythonFile:
    """Read a Python file; raises SourceError for text that is not valid Python."""
    source = SourceFile(path, text)
    return PythonFile(source, parse_python(source))


def check_python_files(
    files: Sequence[PythonFile], *, select: Iterable[str] = (), ignore: Iterable[str] = ()
) -> list[Diagnostic]:
    """Return the findings of several Python files, in the order of their texts."""
    codes = select_rules(RULES, select, ignore)
    found: list[Diagnostic] = []
    for file in files:
        suppressions = read_suppressions(file.source) if "tracepoint:" in file.source.text else []
        for rule in RULES:
            if rule.check_python is None or rule.code not in codes:
                continue
            made = fold(rule, rule.check_python(file), file.source.path)
            found += [d for d in made if not any(s.covers(d) for s in suppressions)]
    return sorted(found, key=lambda d: (d.span.path, d.span.line, d.span.column, d.code))
