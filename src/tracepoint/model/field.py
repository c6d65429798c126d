"""The members of `TP_STRUCT__entry`, one class a kind of storage.

`kind` is the macro without its leading underscores (`field`, `array`, `rel_string`, ...).
Lengths and sources are C text; `Code.tokens` leads back to where they were written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracepoint.model.origin import Code, Origin


@dataclass(frozen=True, slots=True)
class Field:
    """Base: the macro's kind, the field's name, and its C type as the header spells it.

    `ctype` is the element type for arrays; for strings it is `char`, for bitmasks
    `unsigned long`, for sockaddr `u8` (see stage1 of include/trace/stages).
    """

    kind: str
    name: str
    ctype: str
    origin: Origin | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def is_relative(self) -> bool:
        """Whether it is one of the `__rel_` forms (`__rel_loc` in the record)."""
        return self.kind.startswith("rel_")

    @property
    def is_dynamic(self) -> bool:
        """Whether the record holds a `__data_loc` or `__rel_loc` word for it."""
        return isinstance(self, (DynamicArrayField, StringField, BitmaskField, SockaddrField))

    @property
    def macro(self) -> str:
        """The macro that declares it, such as `__rel_string`."""
        return "__" + self.kind


@dataclass(frozen=True, slots=True)
class ScalarField(Field):
    """`__field`, `__field_ext`: one value; `filter_type` is the third argument of `_ext`."""

    filter_type: str = ""


@dataclass(frozen=True, slots=True)
class StructField(Field):
    """`__field_struct`, `__field_struct_ext`: a whole struct."""

    filter_type: str = ""


@dataclass(frozen=True, slots=True)
class ArrayField(Field):
    """`__array(type, name, length)`: `length` is a constant expression."""

    length: Code


@dataclass(frozen=True, slots=True)
class DynamicArrayField(Field):
    """`__dynamic_array(type, name, length)`: `length` elements, known when the event fires."""

    length: Code


@dataclass(frozen=True, slots=True)
class StringField(Field):
    """`__string(name, source)`, `__string_len(name, source, length)`, `__vstring(name, fmt, va)`.

    `length` is set for `__string_len` only; for `__vstring`, `source` is the format and
    `va_list` the third argument.
    """

    source: Code
    length: Code | None = None
    va_list: Code | None = None


@dataclass(frozen=True, slots=True)
class BitmaskField(Field):
    """`__bitmask(name, n_bits)` and `__cpumask(name)` (then `n_bits` is None)."""

    n_bits: Code | None = None


@dataclass(frozen=True, slots=True)
class SockaddrField(Field):
    """`__sockaddr(name, length)`: `length` in bytes."""

    length: Code


@dataclass(frozen=True, slots=True)
class UnknownField(Field):
    """A macro in `TP_STRUCT__entry` that nothing defines: the record cannot be laid out."""
