"""Read declarations in the form of 2008 from text as people find it: a patch, a mail, a web page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.model.read import read_header_text

if TYPE_CHECKING:
    from tracepoint.model.event import TraceHeader


def read_legacy_text(text: str, path: str = "<text>") -> TraceHeader:
    r"""Read tracepoints out of the documentation of 2008, or a patch that adds it.

    Takes what `read_header_text` takes; `+` at the beginning of a patch's lines and the hard blanks
    of web pages count as white space.  Places in findings are those in `text`.

    >>> header = read_legacy_text("+DEFINE_TRACE(tick,\n+\tTPPTOTO(int n),\n+\tTPARGS(n));")
    >>> str(header.tracepoints[0].proto), header.diagnostics[0].code
    ('int n', 'TP150')
    """
    return read_header_text(_cleaned(text), path)


def _cleaned(text: str) -> str:
    """Blank out what pasting leaves, character for character."""
    lines = text.replace("\u00a0", " ").split("\n")
    n_added = sum(line.startswith("+") for line in lines)
    if 2 * n_added > sum(bool(line.strip()) for line in lines):
        lines = [" " + line[1:] if line.startswith("+") else line for line in lines]
    return "\n".join(lines)
