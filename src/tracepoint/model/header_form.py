"""The parts of a trace header that are not declarations: guard, TRACE_SYSTEM, define_trace.h."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.model.event import HeaderForm
from tracepoint.model.origin import Origin
from tracepoint.source.macros import spell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.source.macros import Macro
    from tracepoint.source.preprocess import Directive


def read_form(
    directives: Sequence[Directive], includes: Sequence[tuple[str, bool]], macros: Mapping[str, Macro]
) -> HeaderForm:
    """Read the form of a header from its directives and its macros at the end."""
    guard_index, guard, has_multi_read = _find_guard(directives)
    define_trace, is_guarded = _find_define_trace(directives, guard_index)
    values = {
        name: macros[name].text
        for name in ("TRACE_INCLUDE_PATH", "TRACE_INCLUDE_FILE", "TRACE_SYSTEM_VAR", "TRACE_SYSTEM_STRING")
        if name in macros
    }
    return HeaderForm(
        guard=guard,
        has_multi_read=has_multi_read,
        guard_origin=Origin(directives[guard_index].span) if guard_index is not None else None,
        include_path=values.get("TRACE_INCLUDE_PATH", ""),
        include_file=values.get("TRACE_INCLUDE_FILE", ""),
        system_var=values.get("TRACE_SYSTEM_VAR", ""),
        system_string=values.get("TRACE_SYSTEM_STRING", ""),
        is_notrace=any(_defined(d) == "NOTRACE" for d in directives),
        systems=tuple(
            (spell(d.tokens[2:]), Origin(d.span)) for d in directives if _defined(d) == "TRACE_SYSTEM"
        ),
        define_trace=define_trace,
        is_define_trace_guarded=is_guarded,
        includes=tuple(f'"{name}"' if is_quoted else f"<{name}>" for name, is_quoted in includes),
    )


def _defined(directive: Directive) -> str:
    """Return the macro that an active `#define` defines, else an empty string."""
    if directive.is_active and directive.keyword == "define" and len(directive.tokens) > 1:
        return directive.tokens[1].text
    return ""


def _find_guard(directives: Sequence[Directive]) -> tuple[int | None, str, bool]:
    """Find `#if !defined(X) || ...` or `#ifndef X` whose X is defined right inside."""
    for index, directive in enumerate(directives):
        if directive.depth or directive.keyword not in {"if", "ifndef"}:
            continue
        words = [t.text for t in directive.tokens[1:]]
        name = ""
        if directive.keyword == "ifndef" and words:
            name = words[0]
        elif "!" in words[:1] and "defined" in words[:2]:
            name = next((w for w in words[2:] if w != "("), "")
        inside = directives[index + 1 : index + 6]
        if name and any(d.keyword == "define" and d.tokens[1:2] and d.tokens[1].text == name for d in inside):
            return index, name, "TRACE_HEADER_MULTI_READ" in words
    return None, "", False


def _find_define_trace(
    directives: Sequence[Directive], guard_index: int | None
) -> tuple[Origin | None, bool]:
    """Find the include of define_trace.h, and whether it is inside the guard."""
    guard_end = len(directives)
    if guard_index is not None:
        for index in range(guard_index + 1, len(directives)):
            directive = directives[index]
            if directive.keyword == "endif" and directive.depth == 1:
                guard_end = index
                break
    for index, directive in enumerate(directives):
        if directive.keyword == "include" and "define_trace.h" in spell(directive.tokens):
            is_guarded = guard_index is not None and guard_index < index < guard_end
            return Origin(directive.span), is_guarded
    return None, False
