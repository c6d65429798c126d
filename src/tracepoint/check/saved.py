"""Findings, and what may become one, as plain data that JSON can hold, and back.

Such data is not trusted when it is read: anything that does not match the fields of these classes
raises `ValueError`.
"""

from __future__ import annotations

import ast
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tracepoint.diagnostics import Diagnostic, Edit, Fix, Related, Safety, Severity, Span

if TYPE_CHECKING:
    from collections.abc import Callable

    Pack: TypeAlias = Callable[[Any], Any]

_T = TypeVar("_T")
_PLAIN = {"str": str, "int": int, "bool": bool}
_CLASSES: dict[str, type] = {
    cls.__name__: cls for cls in (Diagnostic, Edit, Fix, Related, Safety, Severity, Span)
}
_ENUMS = (Safety, Severity)
_NAMED: dict[str, tuple[Pack, Pack]] = {}


def to_row(value: object) -> Any:
    """Return a dataclass whose fields are findings, places or texts as lists of plain data.

    >>> to_row(Span("a.h", 1, 2, 1, 3))
    ['a.h', 1, 2, 1, 3, -1, -1]
    """
    cls: Any = type(value)
    return _of_class(cls)[0](value)


def from_row(cls: type[_T], row: object) -> _T:
    """Return what was passed to `to_row`; raises ValueError for anything else."""
    of: Any = cls
    made: _T = _of_class(of)[1](row)
    return made


def know(*classes: type) -> None:
    """Allow fields of further dataclasses."""
    _CLASSES.update((cls.__name__, cls) for cls in classes)


def know_as(name: str, pack: Pack, unpack: Pack) -> None:
    """Allow fields annotated with a name, whose values are packed and unpacked this way."""
    _NAMED[name] = pack, unpack


@cache
def _of_class(cls: Any) -> tuple[Pack, Pack]:
    """Return the functions that pack and unpack the instances of a class."""
    if issubclass(cls, _ENUMS):
        return str, cls
    names = [field.name for field in fields(cls)]
    codecs = [_of(ast.parse(str(field.type), mode="eval").body) for field in fields(cls)]
    packs, unpacks = [codec[0] for codec in codecs], [codec[1] for codec in codecs]

    def pack(value: Any) -> list[Any]:
        return [pack(getattr(value, name)) for name, pack in zip(names, packs, strict=True)]

    def unpack(row: Any) -> Any:
        if type(row) is not list:
            raise ValueError(f"no {cls.__name__}")
        return cls(*[unpack(item) for unpack, item in zip(unpacks, row, strict=True)])

    return pack, unpack


def _of(annotation: ast.expr) -> tuple[Pack, Pack]:
    """Return the functions that pack and unpack a field with this annotation."""
    match annotation:
        case ast.Name(id=name) if name in _PLAIN:
            return _same, _only(_PLAIN[name])
        case ast.Name(id=name) if name in _NAMED:
            return _NAMED[name]
        case ast.Name(id=name) if name in _CLASSES:
            return _of_class(_CLASSES[name])
        case ast.BinOp(left=left, right=ast.Constant(value=None)):
            return _maybe(_of(left))
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[ast.Name(id="str"), value])):
            return _by_name(_of(value))
        case ast.Subscript(value=ast.Name(id="list" | "frozenset" as kind), slice=item):
            return _many(_of(item), list if kind == "list" else frozenset)
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[item, ast.Constant()])):
            return _many(_of(item), tuple)
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=items)):
            return _in_turn([_of(item) for item in items])
    raise TypeError(f"no data is kept of {ast.unparse(annotation)}")


def _same(value: Any) -> Any:
    return value


def _only(cls: type) -> Pack:
    def unpack(row: Any) -> Any:
        if type(row) is not cls:
            raise ValueError(f"no {cls.__name__}")
        return row

    return unpack


def _maybe(codec: tuple[Pack, Pack]) -> tuple[Pack, Pack]:
    pack, unpack = codec
    return (
        lambda value: None if value is None else pack(value),
        lambda row: None if row is None else unpack(row),
    )


def _by_name(codec: tuple[Pack, Pack]) -> tuple[Pack, Pack]:
    pack, unpack = codec
    is_table = _only(dict)
    return (
        lambda value: {name: pack(item) for name, item in value.items()},
        lambda row: {name: unpack(item) for name, item in is_table(row).items()},
    )


def _many(codec: tuple[Pack, Pack], kind: type) -> tuple[Pack, Pack]:
    pack, unpack = codec
    is_list = _only(list)
    return (
        lambda value: [pack(item) for item in (sorted(value) if kind is frozenset else value)],
        lambda row: kind(unpack(item) for item in is_list(row)),
    )


def _in_turn(codecs: list[tuple[Pack, Pack]]) -> tuple[Pack, Pack]:
    is_list = _only(list)
    return (
        lambda value: [pack(item) for (pack, _), item in zip(codecs, value, strict=True)],
        lambda row: tuple(unpack(item) for (_, unpack), item in zip(codecs, is_list(row), strict=True)),
    )
