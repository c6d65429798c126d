"""From the text of a trace header to its declaration model."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.diagnostics import Diagnostic, Severity
from tracepoint.model.declaration import read_args, read_fields, read_part, read_proto
from tracepoint.model.event import (
    BareTracepoint,
    EnumDef,
    Event,
    EventClass,
    Proto,
    TraceHeader,
)
from tracepoint.model.header_form import read_form
from tracepoint.model.legacy import explain_legacy
from tracepoint.model.origin import Code
from tracepoint.model.origins import code_of, origin_of
from tracepoint.model.surroundings import DECLARES, Surroundings, undecided_findings
from tracepoint.model.vocabulary import (
    ANNOTATION_MACROS,
    CLASS_MACROS,
    DECLARING_MACROS,
    INSTANCE_MACROS,
    LEGACY_MACROS,
    PROTECTED,
    TRACEPOINT_MACROS,
)
from tracepoint.source.closure import IncludeClosure
from tracepoint.source.config import Config
from tracepoint.source.environment import Environment
from tracepoint.source.lexer import Kind
from tracepoint.source.macros import spell
from tracepoint.source.preprocess import preprocess
from tracepoint.source.syntax import MacroCall, read_call
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tracepoint.model.origin import Origin
    from tracepoint.source.closure import SharedFiles
    from tracepoint.source.lexer import Token
    from tracepoint.source.macros import Macro
    from tracepoint.source.preprocess import Loader, Preprocessed

#: Included for what they do to the build, never for macros that declarations use.
_MACHINERY = ("trace/define_trace.h", "trace/trace_events.h", "trace/perf.h", "trace/bpf_probe.h")

_EMPTY = Code("")


def is_trace_include(name: str, is_quoted: bool) -> bool:
    """Return whether an include is followed immediately: local ones, and those with trace in their name."""
    if name in _MACHINERY or name.startswith("trace/stages/"):
        return False
    return is_quoted or name.startswith("trace/") or name.endswith("_trace.h")


def is_part(file: SourceFile) -> bool:
    """Return whether an included file belongs to the trace header around it: events without a TRACE_SYSTEM.

    kernel/trace/rv/rv_trace.h keeps the events of each monitor in a file of its own like that.
    """
    return "TRACE_SYSTEM" not in file.text and bool(DECLARES.search(file.text))


class _Reader:
    """Reads the declarations of one expanded token list."""

    def __init__(self, read: Preprocessed) -> None:
        self.tokens = read.tokens
        self.source = read.file
        self._included = read.included_tokens
        self.diagnostics: list[Diagnostic] = [*read.diagnostics, *undecided_findings(read)]
        self.form = read_form(read.directives, read.includes, read.macros)
        self.events: list[Event] = []
        self.classes: dict[str, EventClass] = {}
        self.tracepoints: list[BareTracepoint] = []
        self.enums: list[EnumDef] = []
        self._flags: dict[str, str] = {}
        self._perf_perms: dict[str, str] = {}
        defines = [d for d in read.directives if d.is_active and d.keyword == "define" and len(d.tokens) > 1]
        systems = [d for d in defines if d.tokens[1].text == "TRACE_SYSTEM"]
        self._system_at = [d.n_output for d in systems]
        self._systems = [spell(d.tokens[2:]) for d in systems]

    def run(self, foreign: Iterable[EventClass]) -> None:
        self.foreign = {cls.name: cls for cls in foreign}
        tokens = self.tokens
        at = 0
        n_tokens = len(tokens)
        while at < n_tokens:
            token = tokens[at]
            if token.text not in DECLARING_MACROS or token.kind is not Kind.NAME:
                at += 1
                continue
            found = read_call(tokens, at)
            if found is None:
                if at + 1 < n_tokens and tokens[at + 1].text == "(":
                    self._report(
                        "TP001",
                        "unbalanced-parenthesis",
                        f"the parenthesis of {token.text} never closes",
                        token,
                        _full_name(self.system_at(at), tokens[at + 2 : at + 3]),
                    )
                at += 1
                continue
            call, next_at = found
            self._declare(call, self.system_at(at))
            at = next_at
        self._apply_annotations()

    def header(self, environment: Environment) -> TraceHeader:
        """Return what was read as a header."""
        return TraceHeader(
            system=self.system_at(0),
            events=tuple(self.events),
            classes=tuple(self.classes.values()),
            tracepoints=tuple(self.tracepoints),
            enums=tuple(self.enums),
            form=self.form,
            path=self.source.path,
            source=self.source,
            environment=environment,
            diagnostics=tuple(self.diagnostics),
            included_enums=_included_enums(self._included),
        )

    def system_at(self, index: int) -> str:
        """Return the TRACE_SYSTEM in force at an output token."""
        which = bisect_right(self._system_at, index) - 1
        if which < 0:
            return self._systems[0] if self._systems else ""
        return self._systems[which]

    def _report(self, code: str, name: str, message: str, token: Token, event: str = "") -> None:
        self.diagnostics.append(
            Diagnostic(code, name, message, origin_of(token).span, Severity.ERROR, event=event)
        )

    def _declare(self, call: MacroCall, system: str) -> None:
        macro = call.name.text
        roles = DECLARING_MACROS[macro]
        arguments = call.arguments
        if macro == "TRACE_EVENT_PERF_PERM":
            arguments = call.split(len(roles))
        if len(arguments) > len(roles) and not any(arguments[-1]):
            arguments = arguments[:-1]  # a trailing comma before the closing parenthesis
        if len(arguments) != len(roles):
            self._report(
                "TP002",
                "wrong-number-of-parts",
                f"{macro} takes {len(roles)} arguments ({', '.join(roles)}), {len(arguments)} given",
                call.name,
                _full_name(system, arguments[0] if arguments else ()),
            )
            return
        parts = dict(zip(roles, arguments, strict=True))
        origin = origin_of(call.name, call.close)
        if macro in ANNOTATION_MACROS:
            self._annotate(macro, parts, system, origin)
        elif macro in LEGACY_MACROS or macro in TRACEPOINT_MACROS:
            self._tracepoint(call, parts, origin)
        elif macro in INSTANCE_MACROS:
            self._instance(macro, parts, system, origin)
        else:
            self._class_or_event(macro, parts, system, origin)

    def _annotate(self, macro: str, parts: dict[str, tuple[Token, ...]], system: str, origin: Origin) -> None:
        name = spell(parts["name"])
        if macro in {"TRACE_DEFINE_ENUM", "TRACE_DEFINE_SIZEOF"}:
            self.enums.append(EnumDef(name, macro == "TRACE_DEFINE_SIZEOF", system, origin=origin))
        elif macro == "TRACE_EVENT_FLAGS":
            self._flags[name] = spell(parts["flags"])
        else:
            self._perf_perms[name] = spell(parts["expr"])

    def _apply_annotations(self) -> None:
        """Give events the flags that TRACE_EVENT_FLAGS and _PERF_PERM name, before or after them."""
        for index, event in enumerate(self.events):
            flags = self._flags.get(event.name, "")
            perf_perm = self._perf_perms.get(event.name, "")
            if flags or perf_perm:
                self.events[index] = replace(event, flags=flags, perf_perm=perf_perm)

    def _part(self, parts: dict[str, tuple[Token, ...]], role: str, name: str) -> tuple[Token, ...]:
        tokens, oddity = read_part(parts[role], role)
        if oddity:
            self.diagnostics.append(
                Diagnostic(
                    "TP006",
                    "misplaced-part",
                    f"the {role} part {oddity}",
                    origin_of((parts[role] or parts["name"])[0]).span,
                    Severity.WARNING,
                    event=name,
                )
            )
        return tokens

    def _proto_and_args(
        self, parts: dict[str, tuple[Token, ...]], name: str
    ) -> tuple[Proto, tuple[str, ...]]:
        return read_proto(self._part(parts, "proto", name)), read_args(self._part(parts, "args", name))

    def _code(self, parts: dict[str, tuple[Token, ...]], role: str, name: str) -> Code:
        return code_of(self._part(parts, role, name))

    def _class_or_event(
        self, macro: str, parts: dict[str, tuple[Token, ...]], system: str, origin: Origin
    ) -> None:
        if not parts["name"]:
            return
        name = spell(parts["name"])
        proto, args = self._proto_and_args(parts, name)
        fields, found = read_fields(self._part(parts, "struct", name))
        self.diagnostics.extend(replace(d, event=f"{system}:{name}") for d in found)
        cls = EventClass(
            name,
            proto,
            args,
            fields,
            self._code(parts, "assign", name),
            self._code(parts, "print", name),
            macro,
            origin=origin,
        )
        self.classes.setdefault(name, cls)
        if macro in CLASS_MACROS:
            return
        self.events.append(
            Event(
                name,
                system,
                cls,
                macro,
                condition=self._code(parts, "cond", name) if "cond" in parts else None,
                reg=spell(parts.get("reg", ())),
                unreg=spell(parts.get("unreg", ())),
                writable_size=spell(parts.get("size", ())),
                is_nop=macro.endswith("_NOP"),
                is_syscall=macro.endswith("_SYSCALL"),
                is_custom="CUSTOM" in macro,
                origin=origin,
            )
        )

    def _instance(self, macro: str, parts: dict[str, tuple[Token, ...]], system: str, origin: Origin) -> None:
        if not parts["name"] or not parts["template"]:
            return
        name = spell(parts["name"])
        template = spell(parts["template"])
        proto, args = self._proto_and_args(parts, name)
        cls = self.classes.get(template) or self.foreign.get(template)
        if cls is None:
            self._report(
                "TP007",
                "unknown-event-class",
                f"no class {template} is declared before it",
                parts["template"][0],
                f"{system}:{name}",
            )
            cls = EventClass(template, proto, args, (), _EMPTY, _EMPTY, "", origin=origin)
        self.events.append(
            Event(
                name,
                system,
                cls,
                macro,
                print_override=self._code(parts, "print", name) if "print" in parts else None,
                condition=self._code(parts, "cond", name) if "cond" in parts else None,
                reg=spell(parts.get("reg", ())),
                unreg=spell(parts.get("unreg", ())),
                writable_size=spell(parts.get("size", ())),
                is_nop=macro.endswith("_NOP") or cls.macro.endswith("_NOP"),
                is_syscall=macro.endswith("_SYSCALL") or cls.macro == "DECLARE_EVENT_SYSCALL_CLASS",
                is_custom="CUSTOM" in macro,
                proto_override=proto,
                args_override=args,
                origin=origin,
            )
        )

    def _tracepoint(self, call: MacroCall, parts: dict[str, tuple[Token, ...]], origin: Origin) -> None:
        macro = call.name.text
        if not parts["name"]:
            return
        name = spell(parts["name"])
        proto, args = self._proto_and_args(parts, name) if "proto" in parts else (Proto(()), ())
        tracepoint = BareTracepoint(
            name,
            proto,
            args,
            macro,
            condition=self._code(parts, "cond", name) if "cond" in parts else None,
            writable_size=spell(parts.get("size", ())),
            call_name=name,
            origin=origin,
        )
        self.tracepoints.append(tracepoint)
        if macro in LEGACY_MACROS or (call.arguments[1:2] and _is_old_spelling(call.arguments[1])):
            self.diagnostics.extend(explain_legacy(tracepoint, call))


def _list_finder(
    loader: Loader, path: str, config: Config, shared: SharedFiles | None
) -> Callable[[str, list[tuple[str, bool]]], Macro | None]:
    """Return a function that finds a macro in what has been included so far."""

    def find(name: str, includes: list[tuple[str, bool]]) -> Macro | None:
        closure = IncludeClosure(loader, [(n, quoted, path) for n, quoted in includes], shared)
        return Environment(config=config, closure=closure, protected=PROTECTED, shared=shared).macro(name)

    return find


def _full_name(system: str, tokens: Sequence[Token]) -> str:
    """Return `system:name` of a declaration that could not be read, empty if there is no name."""
    name = spell(tokens) if len(tokens) == 1 and tokens[0].kind is Kind.NAME else ""
    return f"{system}:{name}" if name else ""


def _is_old_spelling(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and tokens[0].text in {"TPPROTO", "TPPTOTO"}


def read_header_text(
    text: str,
    path: str = "<text>",
    *,
    config: Config | None = None,
    loader: Loader | None = None,
    extra_includes: Iterable[tuple[str, bool, str]] = (),
    foreign_classes: Iterable[EventClass] = (),
    preload: Iterable[SourceFile] = (),
    shared: SharedFiles | None = None,
) -> TraceHeader:
    """Read a trace header from its text.

    `path` is shown in findings; `config` decides `#if` (default: every option on); `loader`
    finds included files; `extra_includes` are further files, as `(name, is_quoted, includer)`,
    whose names the environment knows (those of the `.c` that defines CREATE_TRACE_POINTS);
    `foreign_classes` are event classes declared in other headers, `preload` files whose macros are
    known before the first line; `shared` lets headers of one tree and configuration look into
    included files once.  What is wrong in the text is
    in `diagnostics`; SourceError is raised only when reading cannot go on.

    >>> header = read_header_text('''
    ... #undef TRACE_SYSTEM
    ... #define TRACE_SYSTEM demo
    ... TRACE_EVENT(tick, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),
    ...     TP_fast_assign(__entry->n = n;), TP_printk("n=%d", __entry->n));
    ... ''')
    >>> header["tick"].full_name, header["tick"].fields[0].name
    ('demo:tick', 'n')
    """
    config = config or Config()
    file = SourceFile(path, text)
    elsewhere = _list_finder(loader, path, config, shared) if loader is not None else None
    read = preprocess(
        file,
        config=config,
        loader=loader,
        protected=PROTECTED,
        is_include_wanted=is_trace_include,
        preload=preload,
        assumes_features=True,
        find_elsewhere=elsewhere,
        is_part=is_part,
        is_outside=Surroundings(file, loader, config, extra_includes, shared).defines,
    )
    reader = _Reader(read)
    reader.run(foreign_classes)
    closure = None
    if loader is not None:
        own = [(name, quoted, path) for name, quoted in read.includes]
        closure = IncludeClosure(loader, own, shared, more=extra_includes)
    environment = Environment(
        read.macros, config=config, closure=closure, protected=PROTECTED, tokens=read.tokens, shared=shared
    )
    return reader.header(environment)


def _included_enums(tokens: Sequence[Token]) -> tuple[EnumDef, ...]:
    """Return what included files export with TRACE_DEFINE_ENUM and TRACE_DEFINE_SIZEOF."""
    found: list[EnumDef] = []
    for at, token in enumerate(tokens):
        if token.text in {"TRACE_DEFINE_ENUM", "TRACE_DEFINE_SIZEOF"}:
            call = read_call(tokens, at)
            if call is not None:
                name = spell(call[0].inner)
                found.append(EnumDef(name, token.text.endswith("SIZEOF"), origin=origin_of(token)))
    return tuple(found)
