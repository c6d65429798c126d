"""Find a function of a file, and check that a tracepoint may be called in it."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError
from tracepoint.place.functions import Function, find_functions
from tracepoint.place.statements import StatementKind, StatementSpan

if TYPE_CHECKING:
    from tracepoint.place.code import SourceCode
    from tracepoint.place.sites import Site
    from tracepoint.source.text import SourceFile

#: Built with the kernel, but linked into other programs, which have no tracepoints.
_OTHER_PROGRAMS = re.compile(
    r"(?:scripts|tools|usr|samples/bpf|arch/[^/]+/(?:boot|purgatory|tools)|"
    r"arch/[^/]+/(?:entry|kernel)/vdso\w*|drivers/firmware/efi/libstub|arch/x86/realmode)/"
)
#: Code that runs while a record is written, and other parts of the tracer.
_RECORDING = re.compile(r"kernel/trace/(?:ring_buffer|trace|trace_clock|pid_list)\.c")
_TRACER = re.compile(r"kernel/trace/(?:trace_events\w*|trace_output|ftrace)\.c|kernel/tracepoint\.c")
_MAX_COMPARED = 5000
_NO_TRACING = frozenset({"noinstr", "__noinstr_section", "__entry_text", "__naked"})
_EARLY = frozenset({"__head"})
_INITIAL = frozenset({"__init", "__meminit", "__net_init", "__init_memblock"})


def check_file(file: SourceFile) -> None:
    """Raise PlaceError for a file in which no tracepoint can be called."""
    path = file.path
    if path.endswith((".h", ".inc")):
        raise PlaceError(
            f"{path} is a header, and a trace header included by it may include it again: declare the "
            "event with DECLARE_TRACEPOINT() of <linux/tracepoint-defs.h> there, test "
            "`tracepoint_enabled(event)`, and call trace_event() in a function of a .c file"
        )
    if not path.endswith((".c", ".cc")):
        raise PlaceError(f"{path} is not a C source file")
    if _OTHER_PROGRAMS.match(path):
        raise PlaceError(f"{path} is not linked into the kernel: it has no tracepoints")


def pick_function(code: SourceCode, name: str, line: int) -> Function:
    """Return the function of this name; a line chooses one of several.

    Raises PlaceError when there is none, when several match, or when its head is not understood.
    """
    functions = find_functions(code)
    found = [f for f in functions if name in f.names]
    if not found:
        raise _no_function(code, name, functions)
    if len(found) > 1 and line:
        found = [f for f in found if code.line(f.head) <= line <= _last_line(code, f)] or found
    if len(found) > 1:
        lines = " and ".join(str(code.line(f.name_at)) for f in found)
        raise code.error(
            f"{name}() is defined {len(found)} times, in lines {lines}: give a line of one of them",
            found[1].name_at,
        )
    function = found[0]
    if function.close < 0:
        raise code.error(
            f"{name}() has no closing brace: the braces of this file do not match", function.open
        )
    if function.trouble:
        raise code.error(f"{name}() {function.trouble}", function.name_at)
    return function


def _last_line(code: SourceCode, function: Function) -> int:
    return code.line(function.close) if function.close >= 0 else code.file.n_lines


def _no_function(code: SourceCode, name: str, functions: list[Function]) -> PlaceError:
    for directive in code.directives:
        if directive.keyword == "define" and len(directive.tokens) > 2 and directive.tokens[2].text == name:
            return PlaceError(
                f"{name} is a macro: add the call to the functions that use it", directive.tokens[2].span
            )
    called = re.compile(rf"\b{re.escape(name)}\s*\(")
    for start, end, why in code.unseen:
        found = called.search(code.file.text, start, end)
        if found:
            return PlaceError(f"{name}() {why}", code.file.span(found.start(), found.end()))
    maker = _maker(code, name)
    if maker >= 0:
        return code.error(
            f"{name}() is defined by the macro {code.texts[maker]}(), and and its code is not here", maker
        )
    known = [known for function in functions for known in function.names][:_MAX_COMPARED]
    close = difflib.get_close_matches(name, known, n=1)
    advice = f": did you mean {close[0]}()?" if close else ""
    if name in code.texts:
        return code.error(
            f"{name}() is used here but defined in another file{advice}", code.texts.index(name)
        )
    for directive in code.directives:
        if directive.keyword == "define" and any(token.text == name for token in directive.tokens):
            macro = directive.tokens[2].text
            reason = f"{name} is only in the macro {macro}, where no call can be added"
            return PlaceError(reason, directive.tokens[0].span)
    return PlaceError(f"{code.file.path} defines no function {name}(){advice}")


def _maker(code: SourceCode, name: str) -> int:
    """Return the token of a macro outside functions with a name among its arguments, or -1."""
    at = 0
    while at < len(code.texts):
        close = code.match.get(at, at) if code.texts[at] in "({" else at
        if code.texts[at] == "(" and code.texts[at - 1].isupper() and name in code.texts[at:close]:
            return at - 1
        at = close + 1
    return -1


def check_function(code: SourceCode, function: Function, body: StatementSpan) -> list[str]:
    """Return notes about tracepoints in a function; raise PlaceError when none are allowed in it."""
    name = function.names[0]
    notes = list(function.remarks)
    if "__naked" in function.words:
        raise code.error(f"{name}() is naked: its body is only assembler", function.name_at)
    if function.words & _EARLY:
        raise code.error(
            f"{name}() is marked __head: it runs before the kernel's addresses are valid",
            function.name_at,
        )
    _check_recording(code, function)
    initial = sorted(function.words & _INITIAL)
    if initial:
        notes.append(
            f"{name}() is {initial[0]}: its events are seen only when enabled early (trace_event= at boot)"
        )
    if "__exit" in function.words:
        notes.append(
            f"{name}() is __exit: it runs when its module is removed, and is not part of a kernel image"
        )
    if "__always_inline" in function.words:
        notes.append(f"{name}() is __always_inline: make sure that no noinstr function contains it")
    if "__cpuidle" in function.words:
        notes.append(f"{name}() is __cpuidle: RCU may not be watching there")
    if _TRACER.fullmatch(code.file.path):
        notes.append(
            f"{code.file.path} is part of the tracer: make sure that recording does not run {name}()"
        )
    code_statements = [
        s for s in body.children if s.kind not in {StatementKind.DECLARATION, StatementKind.EMPTY}
    ]
    if code_statements and all(
        code.texts[s.first] in {"asm", "__asm__", "asm_inline"} for s in code_statements
    ):
        notes.append(
            f"{name}() is only inline assembler: make sure that it does not rely on registers of its caller"
        )
    return notes


def _check_recording(code: SourceCode, function: Function) -> None:
    """Raise PlaceError for code that runs while a record is written: the event would recurse."""
    is_notrace = "notrace" in function.words
    if is_notrace or _RECORDING.fullmatch(code.file.path):
        what = "notrace" if is_notrace else f"part of {code.file.path}"
        raise code.error(
            f"{function.names[0]}() is {what}: recording the event may run it, and so the event again; "
            "call it in a function that is not part of recording",
            function.name_at,
        )


def check_instrumentable(code: SourceCode, function: Function, site: Site) -> None:
    """Raise PlaceError for a place in noinstr code outside the marks that allow instrumentation."""
    is_marked = bool(code.uses("instrumentation_begin", function.open, function.close))
    if not is_marked and not function.words & _NO_TRACING:
        return
    chain = {id(site.block), *(id(s) for s in site.block.ancestors())}
    *_, body = [site.block, *site.block.ancestors()]
    is_open = False
    for statement in body.walk():
        if (
            statement.kind is StatementKind.EXPRESSION
            and statement.first < site.token
            and id(statement.parent) in chain
        ):
            word = code.texts[statement.first]
            if word in {"instrumentation_begin", "instrumentation_end"}:
                is_open = word == "instrumentation_begin"
    if not is_open:
        part = " except for a part" if is_marked else ""
        raise code.error(
            f"{function.names[0]}() is noinstr{part}: a tracepoint here would run before the kernel is ready "
            "for it; put the call between instrumentation_begin() and instrumentation_end(), or in a "
            "function called there",
            site.token,
        )
