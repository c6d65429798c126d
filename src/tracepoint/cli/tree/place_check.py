"""Findings of `tracepoint check` about the declarations that `tracepoint place` adds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tracepoint.check.engine import check_headers
from tracepoint.diagnostics import Severity
from tracepoint.errors import PlaceError
from tracepoint.model.read import read_header_text
from tracepoint.place.loader import KernelLoader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.diagnostics import Diagnostic
    from tracepoint.place.kernel import KernelTree
    from tracepoint.place.series import Series
    from tracepoint.tree.tracing_macros import TreeFacts

_MAX_SHOWN = 5


def check_series(kernel: KernelTree, series: Series, facts: TreeFacts) -> list[Diagnostic]:
    """Return the findings of the new declarations; raises PlaceError when one is an error."""
    found = [finding for path in series.files for finding in _new_findings(kernel, series, path, facts)]
    errors = [finding for finding in found if finding.severity is Severity.ERROR]
    if errors:
        shown = "\n".join(map(str, errors[:_MAX_SHOWN]))
        raise PlaceError(f"the declarations have errors, so no patch is made (--no-check makes it):\n{shown}")
    return found


def _new_findings(kernel: KernelTree, series: Series, path: str, facts: TreeFacts) -> Iterator[Diagnostic]:
    change = next(change for change in series.changes if change.path == path)
    if not path.endswith(".h"):
        return
    before = Counter(map(_key, _findings(kernel, path, change.old or "", facts)))
    for finding in _findings(kernel, path, series.files[path], facts):
        if before[_key(finding)] > 0:
            before[_key(finding)] -= 1
        else:
            yield finding


def _key(finding: Diagnostic) -> tuple[str, str, str]:
    return finding.code, finding.event, finding.message


def _findings(kernel: KernelTree, path: str, text: str, facts: TreeFacts) -> list[Diagnostic]:
    if not text:
        return []
    return check_headers([read_header_text(text, path, loader=KernelLoader(kernel))], facts=facts)
