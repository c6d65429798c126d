"""Where LTTng reads each field from: straight from the arguments, or from locals that code fills.

LTTng has no record that statements could fill.  A field whose one assignment reads nothing but the
arguments becomes an expression; all other statements go to TP_code_pre and store to `tp_locvar`,
as far as that has room for what they store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.assign.program import read_program
from tracepoint.errors import SourceError
from tracepoint.generate.lttng import statements as st
from tracepoint.generate.lttng.types import LttngKind, is_byte, kind_of
from tracepoint.generate.statements import expression_text
from tracepoint.model.field import (
    ArrayField,
    BitmaskField,
    DynamicArrayField,
    Field,
    SockaddrField,
    StringField,
    UnknownField,
)
from tracepoint.model.write import declare_param
from tracepoint.source import ast
from tracepoint.source.cexpr import write_expression
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.statements import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.model.event import Event
    from tracepoint.model.origin import Code

VSTRING_BYTES = 256
# Far beyond any assignment of a kernel; what each statement needs is looked up among all others.
MAX_STATEMENTS = 1000
_NO_ROOM = "statements compute its bytes, and their number is known only when the event fires"
# include/trace/trace_events.h: trace_event_raw_event_##call()
_KERNELS_OWN = frozenset(("entry", "trace_file", "fbuffer", "__data_offsets", "__data_size"))
_COPIES = frozenset(("memcpy", "__builtin_memcpy", "memmove"))
_GETTERS = frozenset(("__get_dynamic_array", "__get_rel_dynamic_array"))


@dataclass(frozen=True, slots=True)
class FieldSource:
    """What a field is read from: a C expression (a pointer for arrays), and how many elements."""

    text: str
    length: str = ""


@dataclass(slots=True)
class AssignmentPlan:
    """How one event's assignment is done: sources, members of TP_locvar, lines of TP_code_pre.

    `lost` says of every other field why there is no source for it; `remarks` of some that have
    one how it differs from the record.
    """

    sources: dict[str, FieldSource] = field(default_factory=dict)
    members: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)


def plan_assignment(event: Event) -> AssignmentPlan:
    """Find the sources of an event's fields; nothing is raised; what has no source is in `lost`."""
    plan = AssignmentPlan()
    try:
        program = read_program(event)
    except SourceError as error:
        plan.lost = dict.fromkeys((f.name for f in event.fields), f"the assignment: {error.message}")
        return plan
    calls = [call for statement in program.statements.body for call in st.stores(statement)]
    changed = frozenset().union(*(piece.changes for piece in st.cut(program.statements)))
    pieces = st.cut(st.with_lengths(program.statements, _lengths(event, changed)))
    if len(pieces) + len(calls) > MAX_STATEMENTS:
        why = f"its assignment has more than {MAX_STATEMENTS} statements"
        plan.lost = dict.fromkeys((f.name for f in event.fields), why)
        return plan
    _Planner(event, plan, pieces, calls, frozenset(st.declared(program.statements))).run()
    return plan


def _lengths(event: Event, changed: frozenset[str]) -> dict[str, ast.Node]:
    """Return the lengths in bytes of dynamic arrays, unless a statement changes what they read."""
    lengths: dict[str, ast.Node] = {}
    for one in event.fields:
        if not isinstance(one, DynamicArrayField) or changed & _words(one.length):
            continue
        try:
            element = ast.SizeOf(parse_ctype(one.ctype), None)
            lengths[one.name] = ast.Binary("*", one.length.expression(), element)
        except SourceError:
            continue
    return lengths


class _Planner:
    def __init__(
        self,
        event: Event,
        plan: AssignmentPlan,
        pieces: list[st.Piece],
        calls: list[ast.Call],
        declared: frozenset[str],
    ) -> None:
        self.fields = {f.name: f for f in event.fields}
        self.params = frozenset(event.proto.names)
        self.texts = frozenset(p.name for p in event.proto.params if p.ctype.strip().endswith("char *"))
        self.plan = plan
        self.pieces = pieces
        self.calls = calls
        # A parameter that a statement changes is as good as a local.
        changed = frozenset().union(*(p.changes for p in pieces))
        self.locals = declared | (changed & self.params)

    def run(self) -> None:
        for one in self.fields.values():
            self._bind_declared(one)
        jump = next((at for at, p in enumerate(self.pieces) if p.jumps), len(self.pieces))
        for piece in self.pieces[jump:]:
            self.plan.lost |= dict.fromkeys(piece.fields, "its statement may be jumped over")
        direct = {id(p) for p in self.pieces[:jump] if self._bind_direct(p)}
        kept = self._drop_lost([p for p in self.pieces if id(p) not in direct])
        self._keep(kept)
        for name in self.fields:
            if name not in self.plan.sources:
                self.plan.lost.setdefault(name, "no statement stores to it")

    # Sources

    def _is_plain(self, node: ast.Node) -> bool:
        """Return whether an expression means the same outside the statements, however often evaluated."""
        text = write_expression(node)
        tokens = [token.text for token in st.tokens_of(text)]
        unfit = {"__entry", "{", *_GETTERS} | st.CHANGES
        return not (unfit | self.locals | _KERNELS_OWN) & set(tokens)

    def _bind_declared(self, one: Field) -> None:
        """Bind what the declaration of a field itself names, and what is copied by one `__assign_` call."""
        call = next((c for c in self.calls if _first_name(c) == one.name), None)
        if isinstance(one, UnknownField):
            self.plan.lost[one.name] = f"nothing is known of the macro {one.kind}"
        elif call is None:
            return
        elif isinstance(one, StringField):
            self._bind_string(one)
        elif isinstance(one, BitmaskField):
            bits = one.n_bits.text if one.n_bits is not None else "nr_cpumask_bits"
            self._bind_call(one, call, f"BITS_TO_LONGS({bits})")
        elif isinstance(one, SockaddrField):
            self._bind_call(one, call, one.length.text)

    def _bind_string(self, one: StringField) -> None:
        if one.va_list is None:
            length = one.length.text if one.length is not None else ""
            text = one.source.text if length or self._is_text(one.source) else _as_text(one.source.text)
            self.plan.sources[one.name] = FieldSource(text, length)
            return
        used = self.params | _words(one.va_list) | _words(one.source)
        copy = "copy"
        while copy in used:
            copy += "_arg"
        self.plan.members.append(f"char {one.name}[{VSTRING_BYTES}];")
        self.plan.code += [
            "{",
            f"\tva_list {copy};",
            "",
            f"\tva_copy({copy}, *{_grouped(one.va_list.text)});",
            f"\tvsnprintf(tp_locvar->{one.name}, sizeof(tp_locvar->{one.name}),",
            f"\t\t  {one.source.text}, {copy});",
            f"\tva_end({copy});",
            "}",
        ]
        self.plan.sources[one.name] = FieldSource(f"tp_locvar->{one.name}")
        self.plan.remarks[one.name] = f"text after {VSTRING_BYTES - 1} characters is cut"

    def _is_text(self, code: Code) -> bool:
        """Return whether an expression is known to be a pointer to characters, which LTTng insists on."""
        try:
            node = code.expression()
        except SourceError:
            return False
        todo: list[ast.Node | None] = [node]
        while todo:
            match todo.pop():
                case ast.Ternary(then=then, otherwise=otherwise):
                    todo += [then, otherwise]
                case ast.String() | ast.Name(name="NULL") | ast.Call(function=ast.Name(name="dev_name")):
                    continue
                case ast.Name(name=name) if name in self.texts:
                    continue
                case _:
                    return False
        return True

    def _bind_call(self, one: Field, call: ast.Call, length: str) -> None:
        if len(call.arguments) < 2 or not self._is_plain(call.arguments[1]):
            self.plan.lost[one.name] = "it is copied from what other statements compute"
            return
        self.plan.sources[one.name] = FieldSource(expression_text(call.arguments[1]), length)

    def _bind_direct(self, piece: st.Piece) -> bool:
        """Make a statement the source of a field where it is its only one; return whether it was."""
        if not isinstance(piece.statement, Run) or len(piece.fields) != 1:
            return False
        name = next(iter(piece.fields))
        one = self.fields.get(name)
        if one is None or sum(name in p.fields for p in self.pieces) != 1:
            return False
        source = self._direct_source(one, piece.statement.expression)
        if source is None:
            return False
        self.plan.sources[name] = source
        return True

    def _direct_source(self, one: Field, node: ast.Node) -> FieldSource | None:
        match node:
            case ast.Assign(op="=", target=target, value=value) if _is_member(target, one.name):
                if not self._is_plain(value):
                    return None
                if kind_of(one.ctype) is not LttngKind.BYTES:
                    return FieldSource(expression_text(value))
                is_place = isinstance(value, ast.Member | ast.Index | ast.Name) or (
                    isinstance(value, ast.Unary) and value.op == "*"
                )
                return FieldSource(expression_text(ast.Unary("&", value))) if is_place else None
            case ast.Call(arguments=(target, value, size)) as call if call.name in _COPIES:
                is_whole = self._is_target(target, one) and _is_whole(one, size)
                if not is_whole or not self._is_plain(value):
                    return None
                length = one.length.text if isinstance(one, ArrayField | DynamicArrayField) else ""
                return FieldSource(expression_text(value), length)
        return None

    @staticmethod
    def _is_target(node: ast.Node, one: Field) -> bool:
        if isinstance(one, DynamicArrayField):
            return isinstance(node, ast.Call) and node.name in _GETTERS and _first_name(node) == one.name
        if isinstance(one, ArrayField):
            return _is_member(node, one.name)
        if not isinstance(node, ast.Unary) or node.op != "&":
            return False
        return kind_of(one.ctype) is LttngKind.BYTES and _is_member(node.operand, one.name)

    # Statements that stay

    def _drop_lost(self, pieces: list[st.Piece]) -> list[st.Piece]:
        """Drop what cannot run in a probe, and whatever depends on it."""
        bad: dict[str, str] = {}
        kept = list(pieces)
        while True:
            found = next(((p, why) for p in kept if (why := self._why_not(p, bad))), None)
            if found is None:
                return kept
            piece, why = found
            kept.remove(piece)
            # A field is lost too when the statement reaches it through a pointer.
            for name in piece.fields.union(*(self._behind(local) for local in piece.names)):
                self.plan.lost.setdefault(name, why)
                self.plan.sources.pop(name, None)
            later = pieces[pieces.index(piece) :]
            for name in {piece.declares} | {n for n in piece.changes if _is_read_first(n, later)}:
                bad.setdefault(name, why)
            bad.pop("", None)

    def _behind(self, local: str) -> frozenset[str]:
        """Return the fields that a local may point to."""
        makers = [p for p in self.pieces if local == p.declares or local in p.changes]
        return frozenset().union(*(p.fields for p in makers))

    def _why_not(self, piece: st.Piece, bad: dict[str, str]) -> str:
        if piece.trouble:
            return f"of its statement: {piece.trouble}"
        for name in sorted(_KERNELS_OWN & piece.names - self.locals):
            return f"of its statement: {name} is a variable of the kernel's own probe"
        for name in sorted(piece.names & bad.keys()):
            return bad[name]
        for name in sorted(piece.fields):
            one = self.fields.get(name)
            if name in self.plan.lost:
                return self.plan.lost[name]
            if one is None:
                return f"of {name}, which is not a field"
            if one.is_dynamic and not _constant_length(one):
                return _NO_ROOM
        return ""

    def _keep(self, kept: list[st.Piece]) -> None:
        """Write the statements that stay, and give the fields they store to a place."""
        kept = _without_unused(kept)
        if not kept:
            return
        stored = [one for name, one in self.fields.items() if any(name in p.fields for p in kept)]
        for one in stored:
            self.plan.members.append(_member(one))
            self.plan.sources[one.name] = _local_source(one)
        lines = [line for p in kept if p.declares for line in st.rewrite(p.text).split("\n")]
        lines += [""] * bool(lines)
        n_declared = len(lines)
        for piece in kept:
            if not piece.declares:
                lines += st.rewrite(piece.text).split("\n")
        inner = [f"\t{line}" if line else "" for line in lines]
        braced = ["{", *inner, "}"] if n_declared else lines
        self.plan.code = ["memset(tp_locvar, 0, sizeof(*tp_locvar));", *braced, *self.plan.code]


def _is_read_first(name: str, pieces: Sequence[st.Piece]) -> bool:
    """Return whether the value that the first piece leaves in a variable is read by one after it."""
    for piece in pieces[1:]:
        if name in piece.names:
            return name not in piece.resets
    return False


def _without_unused(pieces: list[st.Piece]) -> list[st.Piece]:
    """Leave out declarations that nothing else mentions."""
    while True:
        used = [p for p in pieces if not p.declares or _is_used(p, pieces)]
        if len(used) == len(pieces):
            return used
        pieces = used


def _is_used(piece: st.Piece, pieces: Iterable[st.Piece]) -> bool:
    return any(piece.declares in other.names for other in pieces if other is not piece)


def _words(code: Code) -> frozenset[str]:
    return frozenset(token.text for token in code.all_tokens())


def _is_member(node: ast.Node, name: str) -> bool:
    match node:
        case ast.Member(base=ast.Name(name="__entry"), name=member, is_arrow=True):
            return member == name
    return False


def _first_name(call: ast.Call) -> str:
    first = call.arguments[0] if call.arguments else None
    return first.name if isinstance(first, ast.Name) else ""


def _as_text(text: str) -> str:
    """Cast a source as `__string` does: names of files, for one, are unsigned characters."""
    return f"(const char *){_grouped(text)}"


def _grouped(text: str) -> str:
    """Put an expression into parentheses unless it is a name or a member."""
    return text if re.fullmatch(r"[\w.>\[\]-]+", text) else f"({text})"


def _is_whole(one: Field, size: ast.Node) -> bool:
    """Return whether a size in bytes is that of the whole field, as far as its text shows."""
    text = write_expression(size)
    if isinstance(one, ArrayField | DynamicArrayField):
        length = _canonical(one.length)
        kind = str(parse_ctype(one.ctype))
        accepted = {f"{length} * sizeof({kind})", f"sizeof({kind}) * {length}"}
        accepted |= {f"({length}) * sizeof({kind})", f"sizeof({kind}) * ({length})"}
        if is_byte(one.ctype):
            accepted.add(length)
        if isinstance(one, DynamicArrayField):
            accepted |= {f"{getter}_len({one.name})" for getter in _GETTERS}
        else:
            accepted.add(f"sizeof(__entry->{one.name})")
        return text in accepted
    return text in (f"sizeof(__entry->{one.name})", f"sizeof({parse_ctype(one.ctype)})")


def _canonical(code: Code) -> str:
    try:
        return write_expression(code.expression())
    except SourceError:
        return code.text


def _constant_length(one: Field) -> bool:
    """Return whether a dynamic array's length is a constant, judged by its spelling."""
    if not isinstance(one, DynamicArrayField):
        return False
    return all(word.isupper() for word in _words(one.length) if word.isidentifier())


def _member(one: Field) -> str:
    """Return the declaration of a field's place in TP_locvar."""
    if isinstance(one, ArrayField | DynamicArrayField):
        return f"{declare_param(one.ctype, one.name)}[{one.length.text}];"
    return f"{declare_param(one.ctype, one.name)};"


def _local_source(one: Field) -> FieldSource:
    place = f"tp_locvar->{one.name}"
    if isinstance(one, ArrayField | DynamicArrayField):
        return FieldSource(place, one.length.text)
    return FieldSource(f"&{place}" if kind_of(one.ctype) is LttngKind.BYTES else place)
