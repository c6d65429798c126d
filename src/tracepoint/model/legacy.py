"""The old form of the kernel's first tracepoint documentation, explained word by word.

`DEFINE_TRACE(name, TPPROTO(...), TPARGS(...))` of 2008 became `DECLARE_TRACE(name,
TP_PROTO(...), TP_ARGS(...))` in a header and `DEFINE_TRACE(name, proto, args)` in one C file
(Linux commit 7e066fb870fc, "tracepoints: add DECLARE_TRACE() and DEFINE_TRACE()").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.diagnostics import Diagnostic, Edit, Fix, Safety, Severity
from tracepoint.model.origins import origin_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.model.event import BareTracepoint
    from tracepoint.source.lexer import Token
    from tracepoint.source.syntax import MacroCall

#: What each word of the old form is called today, and why it changed.
TODAY = {
    "DEFINE_TRACE": (
        "DECLARE_TRACE",
        (
            "in a header; DEFINE_TRACE now makes the tracepoint itself, in the one C file that "
            "defines CREATE_TRACE_POINTS"
        ),
    ),
    "TPPROTO": ("TP_PROTO", "the parameters of trace_<name>()"),
    "TPPTOTO": ("TP_PROTO", "a misspelling in the documentation of 2008"),
    "TPARGS": ("TP_ARGS", "the names of the parameters"),
}


def explain_legacy(tracepoint: BareTracepoint, call: MacroCall) -> list[Diagnostic]:
    """Say what each word of a declaration in the old form is called today, and how to change it."""
    origin = origin_of(call.name, call.close)
    args = ", ".join(tracepoint.args)
    today = f"DECLARE_TRACE({tracepoint.name}, TP_PROTO({tracepoint.proto}), TP_ARGS({args}))"
    words = list(_old_words(call))
    return [
        Diagnostic(
            "TP150",
            "legacy-declaration",
            f"{call.name.text} with TPPROTO/TPARGS is the form of 2008; today it is {today}",
            origin.span,
            Severity.NOTE,
            help=tuple(f"{w.text} became {TODAY[w.text][0]}: {TODAY[w.text][1]}" for w in words),
            fix=_fix(words),
            event=tracepoint.name,
        )
    ]


def _old_words(call: MacroCall) -> Iterator[Token]:
    """Yield the words of a declaration that have another name today."""
    for token in (call.name, *(argument[0] for argument in call.arguments if argument)):
        if token.text in TODAY:
            yield token


def _fix(words: list[Token]) -> Fix | None:
    """Return the edits that spell the words as today; None when a macro wrote one of them."""
    if any(word.expansion is not None for word in words):
        return None
    edits = tuple(Edit(w.file.path, w.start, w.end, TODAY[w.text][0]) for w in words)
    return Fix("spell it as kernels do since 2.6.28", edits, Safety.SAFE)
