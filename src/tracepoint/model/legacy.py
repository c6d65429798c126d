"""The old form of the kernel's first tracepoint documentation, read and explained.

`DEFINE_TRACE(name, TPPROTO(...), TPARGS(...))` of 2008 became `DECLARE_TRACE(name,
TP_PROTO(...), TP_ARGS(...))` in a header and `DEFINE_TRACE(name, proto, args)` in one C file
(Linux commit 7e066fb870fc, "tracepoints: add DECLARE_TRACE() and DEFINE_TRACE()").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.diagnostics import Diagnostic, Severity
from tracepoint.model.origins import origin_of

if TYPE_CHECKING:
    from tracepoint.model.event import Tracepoint
    from tracepoint.source.syntax import MacroCall


def explain_legacy(tracepoint: Tracepoint, call: MacroCall) -> list[Diagnostic]:
    """Say what each word of a declaration in the old form is called today."""
    origin = origin_of(call.name, call.close)
    args = ", ".join(tracepoint.args)
    today = f"DECLARE_TRACE({tracepoint.name}, TP_PROTO({tracepoint.proto}), TP_ARGS({args}))"
    return [
        Diagnostic(
            "TP150",
            "legacy-declaration",
            f"{call.name.text} with TPPROTO/TPARGS is the form of 2008; today it is {today}",
            origin.span,
            Severity.NOTE,
            event=tracepoint.name,
        )
    ]
