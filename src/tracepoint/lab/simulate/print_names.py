"""What a simulation adds to the record for its line: samples for undefined names, layouts of structs.

A package of headers has no private enums (`BTRFS_ORDERED_REGULAR`), and no header has the value
of `jiffies` when a line is printed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.assign.values import Input
from tracepoint.errors import LayoutError, SourceError
from tracepoint.printk.printformat import split_print_format
from tracepoint.source import ast
from tracepoint.source.constants import constant_value
from tracepoint.source.ctype import CType
from tracepoint.source.cvalue import int_type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tracepoint.layout.sizes import TypeSizes
    from tracepoint.layout.structs import StructLayout
    from tracepoint.printk.program import PrintProgram

_NEED = "the name "


def names_of(printer: PrintProgram, known: Mapping[str, int]) -> list[str]:
    """Return the names that rendering needs and that are not `known` variables."""
    names = (need.removeprefix(_NEED) for need in printer.needs if need.startswith(_NEED))
    return [name for name in dict.fromkeys(names) if name not in known]


def inputs_of(names: Iterable[str]) -> list[Input]:
    """Return the inputs that stand for names."""
    return [
        Input(name, ast.Name(name), "unsigned long" if name == "jiffies" else "int", size=4) for name in names
    ]


def sample_names(
    names: Iterable[str], print_fmt: str, constant: Callable[[str], int | None]
) -> dict[str, int]:
    """Return a sample for each name: bits for flags, else numbers, none that the format has already.

    >>> sample_names(["A", "F"], '"x", __print_symbolic(REC->a, {0, "z"}, {A, "a"}), REC->f & F',
    ...     lambda name: None)
    {'A': 1, 'F': 1}
    """
    try:
        nodes = [node for argument in split_print_format(print_fmt)[1] for node in ast.walk(argument)]
    except SourceError:
        nodes = []
    flags = {name for node in nodes for name in _flag_names(node)}
    items = [node.items[0] for node in nodes if isinstance(node, ast.InitList) and node.items]
    taken = {value for item in items if (value := constant_value(item, constant)) is not None}
    found: dict[str, int] = {}
    for name in names:
        used = taken.union(found[other] for other in found if (other in flags) == (name in flags))
        choices = (1 << bit for bit in range(31)) if name in flags else iter(range(1 << 16))
        found[name] = next((value for value in choices if value not in used), 0)
    return found


def _flag_names(node: ast.Node) -> list[str]:
    """Return the names that an expression uses as masks: entries of __print_flags(), operands of `&`."""
    match node:
        case ast.Call(arguments=arguments) if node.name.startswith("__print_flags"):
            parts = [item.items[0] for item in arguments if isinstance(item, ast.InitList) and item.items]
        case ast.Binary(op="&" | "|", left=left, right=right):
            parts = [left, right]
        case _:
            return []
    return [part.name for part in parts if isinstance(part, ast.Name)]


def shown_layout(sizes: TypeSizes, name: str) -> StructLayout | None:
    """Return the offsets of a struct's members from its definition; None without one."""
    try:
        found = sizes.struct(name)
    except LayoutError:
        return None
    if found is None:
        return None
    members = {key: m._replace(ctype=_plain(sizes, m.ctype)) for key, m in found.members.items()}
    return replace(found, members=members)


def _plain(sizes: TypeSizes, ctype: CType) -> CType:
    """Return an integer type by size and sign, so that rendering needs no typedefs."""
    base = ctype.base
    is_known = int_type_of(CType(base)) is not None and not base.startswith("enum ")
    if ctype.pointers or is_known or base.startswith(("struct ", "union ")):
        return ctype
    try:
        size, _, is_signed = sizes.of(CType(base))
        is_struct = sizes.struct(base) is not None
    except LayoutError:
        return ctype
    if is_struct or size not in (1, 2, 4, 8):
        return ctype
    return CType(f"{'s' if is_signed else 'u'}{8 * size}", 0, ctype.array)
