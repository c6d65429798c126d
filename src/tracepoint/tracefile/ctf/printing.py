"""The print format of an event of CTF: `name=value` of each field, with the names of enumerations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.layout.floats import show_floats
from tracepoint.tracefile.ctf.types import CtfArray, CtfEnum, CtfFloat, CtfInteger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.layout.format import FieldFormat
    from tracepoint.tracefile.ctf.types import CtfType

# More are not listed in a text that is shown for every event.
_MAX_NAMES = 256


def print_format(fields: Sequence[tuple[FieldFormat, CtfType | None]]) -> str:
    """Return the text after `print fmt: `."""
    floats = {field.name: field.ctype for field, kind in fields if isinstance(kind, CtfFloat)}
    shown = [(field.name, *_shown(field, kind)) for field, kind in fields]
    text = " ".join(f"{name}={conversion}" for name, conversion, _ in shown)
    return show_floats(", ".join([f'"{text}"', *(argument for _, _, argument in shown)]), floats)


def _shown(field: FieldFormat, kind: CtfType | None) -> tuple[str, str]:
    """Return the conversion of a field and its argument."""
    name = field.name
    if field.element_ctype == "char":
        return "%s", f"__get_str({name})" if field.is_data_loc else f"REC->{name}"
    if isinstance(kind, CtfArray):
        size = int(field.element_ctype[1:]) // 8
        if not field.is_data_loc:
            return "%s", f"__print_array(REC->{name}, {field.size // size}, {size})"
        length = f"__get_dynamic_array_len({name}) / {size}"
        return "%s", f"__print_array(__get_dynamic_array({name}), {length}, {size})"
    if isinstance(kind, CtfFloat):
        return "%f", f"REC->{name}"
    if isinstance(kind, CtfEnum) and (names := _names(kind)):
        return "%s", f"__print_symbolic(REC->{name}, {names})"
    base = kind.base if isinstance(kind, CtfInteger) else 10
    letter = {16: "x", 2: "x", 8: "o"}.get(base, "d" if field.is_signed else "u")
    prefix = "0x" if letter == "x" else ""
    return f"{prefix}%{'ll' if field.size == 8 else ''}{letter}", f"REC->{name}"


def _names(kind: CtfEnum) -> str:
    """Return the names of an enumeration as a list for __print_symbolic; empty when it cannot list them."""
    if sum(high - low + 1 for _, low, high in kind.names) > _MAX_NAMES:
        return ""
    if any(not name.isprintable() or '"' in name or "\\" in name for name, _, _ in kind.names):
        return ""
    pairs = ((number, name) for name, low, high in kind.names for number in range(low, high + 1))
    return ", ".join(f'{{{number}, "{name}"}}' for number, name in pairs)
