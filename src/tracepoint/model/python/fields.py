"""The members of `TP_STRUCT__entry`, made in Python: each function is the macro of its name.

`unknown_field` is a member that a macro unknown to this package makes.
"""

from __future__ import annotations

from tracepoint.model.code_text import given_argument, given_name
from tracepoint.model.declaration import make_field
from tracepoint.model.field import Field, UnknownField

__all__ = [
    "array",
    "bitmask",
    "cpumask",
    "dynamic_array",
    "scalar",
    "sockaddr",
    "string",
    "string_len",
    "struct_field",
    "vstring",
]


def _field(kind: str, *, rel: bool = False, **texts: str | int) -> Field:
    if rel:
        kind = "rel_" + kind
    given_name(texts["name"], f"name of a {kind} field")
    parts = {
        role: given_argument(str(text), f"{role} of field {texts['name']}") for role, text in texts.items()
    }
    return make_field(kind, parts)


def scalar(ctype: str, name: str, filter_type: str = "") -> Field:
    """Declare `__field(ctype, name)`, or `__field_ext` when there is a filter type.

    >>> scalar("pid_t", "pid").macro
    '__field'
    """
    if filter_type:
        return _field("field_ext", type=ctype, name=name, filter_type=filter_type)
    return _field("field", type=ctype, name=name)


def struct_field(ctype: str, name: str, filter_type: str = "") -> Field:
    """Declare `__field_struct(ctype, name)`: a whole struct in the record."""
    if filter_type:
        return _field("field_struct_ext", type=ctype, name=name, filter_type=filter_type)
    return _field("field_struct", type=ctype, name=name)


def array(ctype: str, name: str, length: int | str) -> Field:
    """Declare `__array(ctype, name, length)`: `length` elements, a constant expression."""
    return _field("array", type=ctype, name=name, length=length)


def dynamic_array(ctype: str, name: str, length: int | str, *, rel: bool = False) -> Field:
    """Declare `__dynamic_array(ctype, name, length)`: `length` elements, known when it fires."""
    return _field("dynamic_array", rel=rel, type=ctype, name=name, length=length)


def string(name: str, source: str = "", *, rel: bool = False) -> Field:
    """Declare `__string(name, source)`; without a source it is the parameter of the same name."""
    return _field("string", rel=rel, name=name, source=source or name)


def string_len(name: str, source: str, length: int | str, *, rel: bool = False) -> Field:
    """Declare `__string_len(name, source, length)`: `length` characters without the NUL."""
    return _field("string_len", rel=rel, name=name, source=source, length=length)


def vstring(name: str, source: str, va_list: str) -> Field:
    """Declare `__vstring(name, format, va_list)`."""
    return _field("vstring", name=name, source=source, va_list=va_list)


def bitmask(name: str, n_bits: int | str, *, rel: bool = False) -> Field:
    """Declare `__bitmask(name, n_bits)`."""
    return _field("bitmask", rel=rel, name=name, n_bits=n_bits)


def cpumask(name: str, *, rel: bool = False) -> Field:
    """Declare `__cpumask(name)`."""
    return _field("cpumask", rel=rel, name=name)


def sockaddr(name: str, length: int | str, *, rel: bool = False) -> Field:
    """Declare `__sockaddr(name, length)`: `length` in bytes."""
    return _field("sockaddr", rel=rel, name=name, length=length)


def unknown_field(name: str) -> Field:
    """Stand in for a macro in TP_STRUCT__entry that could not be read."""
    return UnknownField(given_name(name, "name of a macro"), name, "")
