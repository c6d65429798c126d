"""A declared event to the record that the compiler lays out: model x ABI -> `EventFormat`.

The rules are those of include/trace/stages: stage1 makes the struct, stage4 the list of fields
with the text of their types, stage7 the print format; kernel/trace/trace_events.c:
event_define_fields() then hands out the offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import LayoutError
from tracepoint.layout.abi import Abi
from tracepoint.layout.evals import EvalMap, without_attributes
from tracepoint.layout.format import COMMON_FIELDS, EventFormat, FieldFormat
from tracepoint.layout.kernel_types import TYPE_MACROS
from tracepoint.layout.print_fmt import print_fmt_text
from tracepoint.layout.sizes import TypeSizes
from tracepoint.model.field import (
    ArrayField,
    BitmaskField,
    DynamicArrayField,
    Field,
    ScalarField,
    StructField,
    UnknownField,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracepoint.layout.btf import Btf
    from tracepoint.layout.sizes import Names
    from tracepoint.model.event import EnumDef, Event

_LOC_SIZE = 4


def compute_layout(
    event: Event,
    abi: Abi = Abi.X86_64,
    *,
    btf: Btf | None = None,
    environment: Names | None = None,
    is_char_signed: bool | None = None,
    common: tuple[FieldFormat, ...] = COMMON_FIELDS,
    enums: Iterable[EnumDef] = (),
) -> EventFormat:
    """Lay out the record of an event as a kernel for `abi` would.

    `btf` and `environment` (the header's) answer for types and constants that the kernel does
    not fix; `is_char_signed` is False for kernels built with -funsigned-char (6.2 and later);
    `common` are the common fields, which real-time kernels extend; `enums` are the
    header's TRACE_DEFINE_ENUMs, the values of which replace their names in the print format.
    Raises LayoutError, with the field, for a type or length that nothing knows, and for an event
    without a record.
    """
    if event.is_nop:
        raise LayoutError(
            "an event declared with a _NOP macro has no record in any kernel", event=event.full_name
        )
    sizes = TypeSizes(abi, btf=btf, environment=environment, is_char_signed=is_char_signed)
    fields = list(common)
    end = max((f.offset + f.size for f in common), default=0)
    align = record_align = 4
    end = _round_up(end, align)
    for declared in event.fields:
        try:
            item, align = _field(declared, sizes)
        except LayoutError as error:
            raise LayoutError(error.reason, declared.name, event.full_name) from None
        offset = _round_up(end, align)
        fields.append(FieldFormat(item.name, item.ctype, offset, item.size, item.is_signed))
        end = offset + item.size
        record_align = max(record_align, align)
    evals = _evals(event.system, enums, sizes)
    return EventFormat(
        event.system,
        event.name,
        tuple(fields),
        evals.in_print_fmt(print_fmt_text(event.printk, environment, long_size=abi.long_size)),
        n_common=len(common),
        size_bytes=_round_up(end, record_align),
        is_big_endian=abi.is_big_endian,
        long_size=abi.long_size,
    )


def _evals(system: str, enums: Iterable[EnumDef], sizes: TypeSizes) -> EvalMap:
    """The values of the enums exported for a system; those that cannot be known stay names."""
    values: dict[str, int] = {}
    for enum in enums:
        if enum.system not in ("", system):
            continue
        text = f"sizeof({enum.name})" if enum.is_sizeof else enum.name
        value = sizes.evaluate(text)
        if value is not None:
            values.setdefault(text, value)
    return EvalMap(values)


def _round_up(value: int, align: int) -> int:
    return -(-value // align) * align


def _field(declared: Field, sizes: TypeSizes) -> tuple[FieldFormat, int]:
    """The field at offset 0, and its alignment in bytes."""
    match declared:
        case ArrayField():
            count = sizes.length(declared.length, declared.name)
            size, align, is_signed = sizes.of(declared.ctype, declared.name)
            ctype = f"{without_attributes(declared.ctype)}[{count or ''}]"
            return FieldFormat(declared.name, ctype, 0, size * count, is_signed), align
        case ScalarField():
            size, align, is_signed = sizes.of(declared.ctype, declared.name)
            return FieldFormat(declared.name, _shown_type(declared), 0, size, is_signed), align
        case UnknownField():
            raise LayoutError(f"nothing defines the field macro '{declared.name}'", declared.name)
        case StructField():
            size, align, _ = sizes.of(declared.ctype, declared.name)
            return FieldFormat(
                declared.name, without_attributes(declared.ctype), 0, size, is_signed=False
            ), align
    return FieldFormat(declared.name, *_dynamic(declared, sizes)), _LOC_SIZE


def _shown_type(declared: Field) -> str:
    """The text of a type: __field() hands it on to __field_ext(), so macros in it are expanded."""
    words = declared.ctype.split(" ")
    if not declared.kind.endswith("_ext"):
        words = [word for word in (TYPE_MACROS.get(w, w) for w in words) if word]
    return without_attributes(" ".join(words))


def _dynamic(declared: Field, sizes: TypeSizes) -> tuple[str, int, int, bool]:
    word = "__rel_loc" if declared.is_relative else "__data_loc"
    if declared.kind in ("cpumask", "rel_cpumask"):
        return f"{word} cpumask_t", 0, _LOC_SIZE, False
    if isinstance(declared, DynamicArrayField):
        element = declared.ctype
    elif isinstance(declared, BitmaskField):
        element = "unsigned long"
    elif declared.kind.endswith("sockaddr"):
        element = "u8"
    else:
        element = "char"
    is_signed = sizes.of(element, declared.name).is_signed
    return f"{word} {without_attributes(element)}[]", 0, _LOC_SIZE, is_signed
