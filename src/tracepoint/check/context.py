"""What a rule sees: the header, its classes and print formats parsed once, and facts about the tree."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tracepoint.check.expressions import free_names
from tracepoint.check.syntax import RECORD_NAMES, array_field, calls_in, helper_field
from tracepoint.diagnostics import Edit, Fix, Safety, Span
from tracepoint.errors import TracepointError
from tracepoint.layout.abi import Abi
from tracepoint.layout.sizes import TypeSizes
from tracepoint.model.field import UnknownField
from tracepoint.model.vocabulary import PRINT_HELPERS
from tracepoint.printk.conversion import Conversion, parse_format
from tracepoint.source.ast import Call, Name, Node, String, walk
from tracepoint.source.constants import constant_value
from tracepoint.source.lexer import Kind
from tracepoint.tree.tracing_macros import TreeFacts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracepoint.check.members import RecordLayout
    from tracepoint.model.event import Event, EventClass, TraceHeader
    from tracepoint.model.field import Field
    from tracepoint.model.origin import Code, Origin
    from tracepoint.source.lexer import Token
    from tracepoint.source.macros import Macro

#: What a statement may store through without naming `__entry->`.
_ENTRY_ALIASES = RECORD_NAMES | {"entry"}


class PrintView:
    """One TP_printk: its expanded tokens and, when they can be parsed, its expressions."""

    def __init__(self, code: Code, view: ClassView, events: tuple[Event, ...]) -> None:
        self.code = code
        self.tokens = [t for t in code.tokens if t.kind is not Kind.END]
        self.view = view
        self.events = events

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Format and arguments; empty when the text cannot be parsed."""
        if not self.tokens:
            return ()
        try:
            return self.code.arguments()
        except TracepointError:
            return ()

    @property
    def format(self) -> String | None:
        """The format string, or None when it is not a literal known in full."""
        if not self.nodes:
            return None
        first = self.nodes[0]
        return first if isinstance(first, String) and not first.pieces else None

    @property
    def arguments(self) -> tuple[Node, ...]:
        """What the conversions of the format print."""
        return self.nodes[1:]

    @cached_property
    def conversions(self) -> tuple[Conversion, ...]:
        """The conversions of the format; empty when it is not known in full."""
        text = self.format
        if text is None:
            return ()
        return tuple(p for p in parse_format(text.value) if isinstance(p, Conversion))

    @property
    def printed(self) -> Iterator[tuple[Conversion, Node]]:
        """Each conversion with the argument that it prints; nothing when their numbers differ."""
        if sum(c.n_arguments for c in self.conversions) != len(self.arguments):
            return
        at = 0
        for conversion in self.conversions:
            at += conversion.n_arguments
            yield conversion, self.arguments[at - 1]

    @cached_property
    def free_names(self) -> tuple[Name, ...]:
        """The names that are values of their own: neither fields nor called functions."""
        return tuple(name for argument in self.arguments for name in free_names(argument))

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Every call of the arguments."""
        return tuple(node for node in self.all_nodes if isinstance(node, Call))

    @cached_property
    def all_nodes(self) -> tuple[Node, ...]:
        """Every node of every argument, outermost first."""
        return tuple(node for argument in self.arguments for node in walk(argument))

    @cached_property
    def names(self) -> frozenset[str]:
        """Every identifier of the print format."""
        return frozenset(t.text for t in self.tokens if t.kind is Kind.NAME)

    @property
    def event_name(self) -> str:
        """`system:event` of the first event that prints this way, or the name of a class without events."""
        return self.events[0].full_name if self.events else self.view.event_name


class ClassView:
    """One event class with the events made from it."""

    def __init__(self, event_class: EventClass, events: tuple[Event, ...]) -> None:
        self.event_class = event_class
        self.events = events
        self.fields: dict[str, Field] = {f.name: f for f in event_class.fields}
        self.assign = [t for t in event_class.assign.tokens if t.kind is not Kind.END]

    @cached_property
    def prints(self) -> tuple[PrintView, ...]:
        """The class's own TP_printk, then those of `DEFINE_EVENT_PRINT`."""
        plain = tuple(e for e in self.events if e.print_override is None)
        views = [PrintView(self.event_class.printk, self, plain or self.events)]
        views += [
            PrintView(e.print_override, self, (e,)) for e in self.events if e.print_override is not None
        ]
        return tuple(views)

    @property
    def event_name(self) -> str:
        """`system:event` of the first event of the class; the class's name when it has none."""
        return self.events[0].full_name if self.events else self.event_class.name

    @property
    def is_recorded(self) -> bool:
        """Whether any event of the class writes records (`_NOP` events do not)."""
        return not self.event_class.macro.endswith("_NOP") and not all(
            e.is_nop for e in self.events or (None,) if e
        )

    @property
    def is_known(self) -> bool:
        """Whether every member of the record could be read."""
        return not any(isinstance(f, UnknownField) for f in self.event_class.fields)

    @cached_property
    def assigned(self) -> frozenset[str]:
        """The fields that the statements mention: `__entry->x`, or `x` as argument of an `__assign_*`."""
        names = set()
        tokens = self.assign
        for index, token in enumerate(tokens):
            if token.text in {"->", "."} and index and index + 1 < len(tokens):
                names.add(tokens[index + 1].text)
        for name, arguments in calls_in(tokens):
            if name.text.startswith(("__assign_", "__get_")) and arguments and arguments[0]:
                names.add(arguments[0][0].text)
        names |= {t.text.removeprefix("__data_loc_") for t in tokens if t.text.startswith("__data_loc_")}
        names |= {t.text.removeprefix("__rel_loc_") for t in tokens if t.text.startswith("__rel_loc_")}
        return frozenset(names)

    @cached_property
    def scratch(self) -> frozenset[str]:
        """The fields that print formats hand to functions of the kernel as a buffer."""
        names = set()
        for view in self.prints:
            for call in view.calls:
                if call.name and call.name not in PRINT_HELPERS:
                    names |= {helper_field(a) or array_field(a, self.fields) for a in call.arguments}
        return frozenset(names - {""})

    @cached_property
    def hands_record_on(self) -> bool:
        """Whether the whole record is passed to something that may store into it."""
        tokens = self.assign
        for index, token in enumerate(tokens):
            if token.text in _ENTRY_ALIASES and token.kind is Kind.NAME:
                following = tokens[index + 1].text if index + 1 < len(tokens) else ""
                before = tokens[index - 1].text if index else ""
                if (
                    following == ")"
                    and before == "("
                    and index + 2 < len(tokens)
                    and tokens[index + 2].text == "->"
                ):
                    continue
                if following != "->" and before not in {"->", "."}:
                    return True
        return False


@dataclass
class CheckContext:
    """One header being checked; what rules look up in other headers of the run is in `across`."""

    header: TraceHeader
    facts: TreeFacts = field(default_factory=TreeFacts)
    abi: str = "x86_64"
    shared_exports: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)
    layouts: dict[ClassView, RecordLayout | None] = field(default_factory=dict, repr=False)
    _enumerators: dict[str, bool] = field(default_factory=dict, repr=False)

    @cached_property
    def sizes(self) -> TypeSizes:
        """Sizes of types for the ABI of the run, as far as the header's includes define them."""
        return TypeSizes(Abi.named(self.abi), environment=self.header.environment)

    @cached_property
    def narrow_sizes(self) -> TypeSizes:
        """Sizes of types where `long` has 4 bytes: what both agree on is the same for every ABI."""
        return TypeSizes(Abi.I386, environment=self.header.environment)

    @cached_property
    def classes(self) -> tuple[ClassView, ...]:
        """Every class that the header declares, with its events of this header."""
        by_class: dict[int, list[Event]] = {}
        order: dict[int, EventClass] = {id(c): c for c in self.header.classes}
        for event in self.header.events:
            order.setdefault(id(event.event_class), event.event_class)
            by_class.setdefault(id(event.event_class), []).append(event)
        return tuple(ClassView(c, tuple(by_class.get(key, ()))) for key, c in order.items())

    def let_go(self) -> None:
        """Break reference cycles, so that memory is freed immediately, without the garbage collector."""
        for view in self.classes:
            vars(view).pop("prints", None)

    @property
    def prints(self) -> Iterator[PrintView]:
        """Every TP_printk of the header that some event uses."""
        for view in self.classes:
            if view.is_recorded:
                yield from (p for p in view.prints if p.tokens)

    @property
    def declares(self) -> bool:
        """Whether the header declares anything at all."""
        return bool(self.header.events or self.header.classes or self.header.tracepoints)

    @property
    def head(self) -> Span:
        """Where a finding about the whole header is shown: its first directive, or its first line."""
        source = self.header.source
        if source is None:
            return Span(self.header.path, 1, 1, 1, 1)
        match = _FIRST_DIRECTIVE.search(source.text)
        return source.span(*match.span()) if match else source.span(0, 0)

    def macro(self, name: str) -> Macro | None:
        """Return the macro of that name, from the header or from what it includes."""
        environment = self.header.environment
        return environment.macro(name) if environment is not None else None

    def is_enumerator(self, name: str) -> bool:
        """Return whether the name is an enum constant that can be seen from the header."""
        known = self._enumerators.get(name)
        if known is None:
            known = self._enumerators[name] = self._find_enumerator(name)
        return known

    def _find_enumerator(self, name: str) -> bool:
        environment = self.header.environment
        try:
            return environment is not None and environment.is_enumerator(name)
        except TracepointError:
            return False

    def constant(self, node: Node) -> int | None:
        """Return the value of a constant expression, None when some part of it is not known."""
        environment = self.header.environment
        lookup = environment.constant if environment is not None else _unknown
        try:
            return constant_value(node, lookup)
        except TracepointError:
            return None

    def expand(self, tokens: Sequence[Token]) -> list[Token]:
        """Expand tokens with every macro that any included file defines."""
        environment = self.header.environment
        if environment is None:
            return list(tokens)
        try:
            return [t for t in environment.expand(tokens) if t.kind is not Kind.END]
        except TracepointError:
            return list(tokens)

    @cached_property
    def exported(self) -> frozenset[str]:
        """The names that the header itself exports with TRACE_DEFINE_ENUM and _SIZEOF."""
        return frozenset(e.name for e in self.header.enums)

    @cached_property
    def assign_str_arity_here(self) -> int | None:
        """How many arguments the header itself passes to `__assign_str`; None when it is not used."""
        counts = {
            len(arguments)
            for view in self.classes
            for name, arguments in calls_in(view.assign)
            if name.text in {"__assign_str", "__assign_rel_str"}
        }
        return counts.pop() if len(counts) == 1 else None

    def args_place(self, owner: object) -> Span | None:
        """Return where the TP_ARGS of a declaration is, unless a macro wrote it."""
        source = self.header.source
        origin = getattr(owner, "origin", None)
        if source is None or origin is None or origin.chain or origin.span.start < 0:
            return None
        at = source.text.find("TP_ARGS", origin.span.start, origin.span.end)
        return source.span(at, at + len("TP_ARGS")) if at >= 0 else None

    def edit(self, tokens: Sequence[Token], replacement: str) -> Edit | None:
        """Return the edit that replaces a run of tokens, or None when they are not adjacent here."""
        source = self.header.source
        if source is None or not tokens:
            return None
        first, last = tokens[0], tokens[-1]
        if any(t.file is not source for t in tokens) or first.start > last.start:
            return None
        if any(source.text[t.start : t.end] != t.text for t in (first, last)):
            return None
        return Edit(source.path, first.start, last.end, replacement)

    def fix(
        self, message: str, tokens: Sequence[Token], replacement: str, safety: Safety = Safety.UNSAFE
    ) -> Fix | None:
        """Return the fix that replaces a run of tokens, or None when they cannot be edited in place."""
        edit = self.edit(tokens, replacement)
        return Fix(message, (edit,), safety) if edit is not None else None


_FIRST_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)


def _unknown(_name: str) -> None:
    return None


def origin_of(*things: object) -> Origin | None:
    """Return the first origin that one of the things has."""
    for thing in things:
        origin = getattr(thing, "origin", None)
        if origin is not None:
            return origin  # type: ignore[no-any-return]
    return None
