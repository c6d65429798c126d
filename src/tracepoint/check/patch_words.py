"""What a patch for a finding says: its subject, what was wrong, and what a reader of the trace saw."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.check.registry import rule_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.diagnostics import Diagnostic

_COLUMNS = 75


@dataclass(frozen=True, slots=True)
class _Words:
    """The subject for several findings of a rule, and the effect of the fault."""

    subject: str
    outcome: str


_WORDS = {
    "TP010": _Words(
        "fix the include guard of the trace header",
        "The guard tests another macro than the one that the header defines, so it guards nothing: a "
        "second plain include in one file declares all events again and does not compile. If the macro "
        "belongs to another header, a file that includes both loses the events of one.",
    ),
    "TP201": _Words(
        "assign all strings of trace events",
        "__string() only makes room in the record. The ring buffer is not cleared, so the trace shows the "
        "bytes of an older record there, up to the next zero byte.",
    ),
    "TP202": _Words(
        "assign all fields of trace events",
        "The ring buffer is not cleared, so a reader sees the bytes of an older record in such a field. "
        "They are wrong in every trace, and can look plausible.",
    ),
    "TP207": _Words(
        "copy whole arrays into the records of trace events",
        "The length of memcpy() is in bytes, but the number of elements is passed. The rest of the array "
        "keeps the bytes of an older record, and the trace shows them as a part of the value.",
    ),
    "TP305": _Words(
        "drop the trailing newline from print formats of trace events",
        "The kernel ends each line of the trace itself. With a newline in the format, each event is followed "
        "by an empty line, and the print format in the event's format file takes two lines, which programs "
        "that read the file line by line do not expect.",
    ),
    "TP307": _Words(
        "export the enum constants of print formats",
        "The format file of an event keeps the names of enum constants. perf, trace-cmd and other readers "
        "of raw records do not know their values without TRACE_DEFINE_ENUM(): they print a number, or "
        "nothing, where the kernel prints the name.",
    ),
    "TP319": _Words(
        "print the fields of trace events",
        "TP_printk() becomes part of a function that has variables of its own, called ret and flags among "
        "others. The trace shows such a variable, which is the same for every event, and not the value "
        "that was recorded.",
    ),
}


def patch_subject(findings: Sequence[Diagnostic]) -> str:
    """Return what the patch for findings of one rule in one header does, without the prefix.

    >>> from tracepoint.diagnostics import Diagnostic, Fix, Span
    >>> one = Diagnostic("TP202", "field-never-assigned", "", Span("a.h", 1, 1, 1, 1), event="s:a",
    ...     fix=Fix("assign ret", ()))
    >>> patch_subject([one]), patch_subject([one, one])
    ('assign ret in trace event a', 'assign all fields of trace events')
    """
    words = _WORDS.get(findings[0].code)
    fix, event = findings[0].fix, findings[0].event.rpartition(":")[2]
    if fix is None or ((len(findings) > 1 or not event) and words is not None):
        return words.subject if words is not None else findings[0].message
    return f"{fix.message} in trace event {event}" if event else fix.message


def patch_body(findings: Sequence[Diagnostic]) -> str:
    """Return what was wrong, line by line, and what a reader saw."""
    first = findings[0]
    rule = rule_of(first.code)
    words = _WORDS.get(first.code)
    outcome = words.outcome if words is not None else _why(rule.page if rule is not None else "")
    listed = [line for finding in findings for line in _listed(finding)]
    found = f"Found by `tracepoint check` ({first.code}, {first.name})."
    return "\n\n".join(part for part in ("\n".join(listed), outcome, found) if part)


def _listed(finding: Diagnostic) -> list[str]:
    event = finding.event.rpartition(":")[2]
    text = f"{event}: {finding.message}" if event else finding.message[:1].upper() + finding.message[1:]
    return textwrap.wrap(
        text, _COLUMNS, initial_indent=" - ", subsequent_indent="   ", break_on_hyphens=False
    )


def _why(page: str) -> str:
    """Return the section of a rule's page that says why the fault is bad, without marks."""
    section = page.partition("## Why it is bad")[2].partition("\n## ")[0]
    return " ".join(section.replace("`", "").split())
