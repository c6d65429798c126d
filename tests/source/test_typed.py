import pytest

from tracepoint.layout.abi import Abi
from tracepoint.layout.sizes import TypeSizes
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.typed import Typed, Typer
from tracepoint.source.types import BASIC, TYPEDEFS, conversion_of, int_type_named

NAMES = {
    "c": "char",
    "s": "u16",
    "i": "int",
    "u": "unsigned int",
    "l": "long",
    "p": "char *",
    "v": "struct page *",
}


def leaf(typer: Typer, node: ast.Node) -> Typed | None:
    known = NAMES.get(node.name) if isinstance(node, ast.Name) else None
    return typer.of_ctype(parse_ctype(known)) if known else None


@pytest.mark.parametrize(
    ("text", "size", "is_signed", "value"),
    [
        ("c + s", 4, True, None),
        ("i + u", 4, False, None),
        ("u + l", 8, True, None),
        ("s << l", 4, True, None),
        ("l < x", 4, True, None),
        ("~c", 4, True, None),
        ("i ? c : u", 4, False, None),
        ("0 && x", 4, True, 0),
        ("x || 1", 4, True, None),
        ("1 ? 2u : x", 4, False, 2),
        ("(u8)300", 1, False, 44),
        ("(bool)4", 1, False, 1),
        ("!(void *)0", 4, True, 1),
        ("(typeof(s))-1", 2, False, 0xFFFF),
        ("1 / 0", 4, True, None),
        ("sizeof(x)", 8, False, None),
        ("(i, 7ull)", 8, False, 7),
    ],
)
def test_types_and_values_of_expressions(text: str, size: int, is_signed: bool, value: int | None) -> None:
    found = Typer(leaf).of(parse_expression(text))
    assert found is not None
    assert found.kind is not None
    assert (found.kind.size, found.kind.is_signed, found.value) == (size, is_signed, value)


@pytest.mark.parametrize(
    ("text", "ctype"),
    [("p + 1", "char *"), ("1 + v", "struct page *"), ("i ? p : p", "char *"), ('"a"', "char *")],
)
def test_types_of_addresses(text: str, ctype: str) -> None:
    found = Typer(leaf).of(parse_expression(text))
    assert found is not None
    assert found.is_pointer
    assert str(found.ctype) == ctype


@pytest.mark.parametrize("text", ["x", "x + 1", "i ? p : v", "p - p", "i ? x : 1", "-p", "f(i)"])
def test_what_is_not_known(text: str) -> None:
    assert Typer(leaf).of(parse_expression(text)) is None


@pytest.mark.parametrize("abi", [Abi.X86_64, Abi.I386])
def test_sizes_and_integer_types_come_from_one_table(abi: Abi) -> None:
    sizes = TypeSizes(abi)
    for name in [*BASIC, *TYPEDEFS]:
        kind = int_type_named(name, abi.long_size)
        if kind is None:
            assert TYPEDEFS[name] == "void *"
            continue
        assert (sizes.of(name).size, sizes.of(name).is_signed) == (kind.size, kind.is_signed)
        assert bool(conversion_of(name)) == (kind.size <= 8)
