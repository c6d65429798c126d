"""Generate a TRACE_EVENT() from a prototype and a list of fields."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError, SourceError
from tracepoint.place.arguments import split_text
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.text import SourceFile
from tracepoint.source.types import conversion_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_STRING = re.compile(r"(?:const\s+)?(?:unsigned\s+)?char\s*(?:const\s*)?\*\Z")
# fs.h, ext4.h and others show a device and an inode this way; the width of ino_t varies.
_FORMATS = {"dev_t": "%d,%d", "ino_t": "%lu"}
# The number that a reader would see is not the meaning of the type.
_ODD = re.compile(r"__(?:[bl]e\d+|sum16|wsum)\Z")
_HEX = re.compile(r"(?:.*_)?(?:addr|address|ip|flags|mask|pfn)\Z")


@dataclass(frozen=True, slots=True)
class _Field:
    ctype: str
    name: str
    value: str

    @property
    def is_string(self) -> bool:
        return bool(_STRING.match(self.ctype))

    @property
    def format(self) -> str:
        """Return the printk conversion; raises PlaceError for a type without one."""
        if self.is_string:
            return "%s"
        if self.ctype.endswith("*"):
            return "%p"
        try:
            name = str(parse_ctype(self.ctype))
            shown = _FORMATS.get(name) or ("" if _ODD.match(name) else conversion_of(name))
        except SourceError:
            shown = ""
        if self.ctype.startswith("enum "):
            shown = "%d"
        if not shown:
            raise PlaceError(
                f"it is not known how to print {self.ctype} {self.name}: use a plain type, such as "
                f"`u64 {self.name} = {self.value}`"
            )
        if shown in ("%lu", "%llu", "%u") and _HEX.match(self.name):
            return shown.replace("%", "0x%").replace("u", "x")
        return shown


def write_event(name: str, proto: str, fields: str = "") -> str:
    """Return a TRACE_EVENT() that records fields of its parameters.

    `proto` are the parameters as in C.  `fields` are `type name = expression`, comma-separated; without
    an expression the field is the parameter of that name. Without fields, every parameter that is a value or
    a string is recorded. Raises PlaceError for anything else.

    >>> fields = "unsigned long pfn = folio_pfn(folio), int ret"
    >>> print(write_event("mm_x", "struct folio *folio, int ret", fields))
    TRACE_EVENT(mm_x,
    TP_PROTO(struct folio *folio, int ret),
    TP_ARGS(folio, ret),
    TP_STRUCT__entry(
    __field(unsigned long, pfn)
    __field(int, ret)
    ),
    TP_fast_assign(
    __entry->pfn = folio_pfn(folio);
    __entry->ret = ret;
    ),
    TP_printk("pfn=0x%lx ret=%d", __entry->pfn, __entry->ret)
    );
    <BLANKLINE>
    """
    if not _NAME.match(name):
        raise PlaceError(f"{name!r} is not a valid event name")
    params = [_param(part) for part in _parts(proto)] if proto.strip() not in ("", "void") else []
    known = [param.name for param in params]
    recorded = [_field(part, known) for part in _parts(fields)] if fields.strip() else _values(params)
    if not recorded:
        raise PlaceError(f"{name}: nothing to record: none of its parameters is a plain value")
    shown = " ".join(f"{field.name}={field.format}" for field in recorded)
    lines = [
        f"TRACE_EVENT({name},",
        f"TP_PROTO({proto.strip() or 'void'}),",
        f"TP_ARGS({', '.join(known)}),",
        "TP_STRUCT__entry(",
        *(_declared(field) for field in recorded),
        "),",
        "TP_fast_assign(",
        *(_assigned(field) for field in recorded),
        "),",
        f'TP_printk("{shown}", {", ".join(_printed(field) for field in recorded)})',
        ");",
    ]
    return "\n".join(lines) + "\n"


def _values(params: Sequence[_Field]) -> list[_Field]:
    return [p for p in params if p.is_string or not p.ctype.endswith("*")]


def _declared(field: _Field) -> str:
    if field.is_string:
        return f"__string({field.name}, {field.value})"
    return f"__field({field.ctype}, {field.name})"


def _assigned(field: _Field) -> str:
    if field.is_string:
        return f"__assign_str({field.name}, {field.value});"
    return f"__entry->{field.name} = {field.value};"


def _printed(field: _Field) -> str:
    if field.ctype == "dev_t":
        return f"MAJOR(__entry->{field.name}), MINOR(__entry->{field.name})"
    if field.ctype == "ino_t":
        return f"(unsigned long)__entry->{field.name}"
    return f"__get_str({field.name})" if field.is_string else f"__entry->{field.name}"


def _parts(text: str) -> tuple[str, ...]:
    parts = split_text(text, frozenset(";{}"))
    if parts is None:
        raise PlaceError(f"{text!r} is not a list of C declarations")
    return parts


def _param(text: str) -> _Field:
    ctype, name = _split(text)
    return _Field(ctype, name, name)


def _field(text: str, params: Sequence[str]) -> _Field:
    declared, equals, value = text.partition("=")
    ctype, name = _split(declared.strip())
    if not equals and name not in params:
        raise PlaceError(f"{text!r}: there is no parameter {name}; write {name} = EXPRESSION")
    return _Field(ctype, name, value.strip() if equals else name)


def _split(text: str) -> tuple[str, str]:
    """Split `type name`; arrays and pointers to functions have no short form."""
    tokens = [token for token in lex(SourceFile("<fields>", text)) if token.kind is not Kind.END]
    is_plain = all(token.kind is Kind.NAME or token.text == "*" for token in tokens)
    if len(tokens) < 2 or not is_plain or tokens[-1].kind is not Kind.NAME:
        raise PlaceError(f"{text!r} is not `type name`; write a TRACE_EVENT() for anything else")
    ctype = " ".join(token.text for token in tokens[:-1]).replace("* *", "**")
    return ctype, tokens[-1].text
