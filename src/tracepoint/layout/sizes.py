"""C types to size, alignment and signedness; C constant expressions to numbers.

BTF comes first when it was given, then what the language and the kernel fix, then what the
header's environment can see.  What none of them knows is an error that names the field: a
guessed size would put every later field in the wrong place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tracepoint.errors import LayoutError, SourceError
from tracepoint.layout.kernel_structs import kernel_struct
from tracepoint.layout.kernel_types import CONSTANTS
from tracepoint.layout.structs import Placed, StructLayout, lay_out
from tracepoint.model.origin import Code
from tracepoint.model.origins import code_of
from tracepoint.named import NamedTuple
from tracepoint.source import ast
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.constants import constant_value
from tracepoint.source.ctype import CType, parse_ctype
from tracepoint.source.types import BASIC, TYPEDEFS, WORD64_TYPEDEFS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.layout.abi import Abi
    from tracepoint.layout.btf import Btf
    from tracepoint.source.lexer import Token
    from tracepoint.source.structs import StructBody

_MAX_TYPEDEFS = 32
_MAX_NESTING = 64
_MAX_ARRAY = 1 << 20


class TypeSize(NamedTuple):
    """Size and alignment in bytes, and what the kernel's `is_signed_type()` says of the type."""

    size: int
    align: int
    is_signed: bool


class Names(Protocol):
    """What a header's environment provides: see `source.environment.Environment`."""

    def constant(self, name: str) -> int | None:
        """Return the value of a macro or enumerator, or None."""

    def typedef(self, name: str) -> str | None:
        """Return the type of a typedef, or None."""

    def enum_members(self, tag: str) -> dict[str, int | None] | None:
        """Return the enumerators of `enum tag` and their values, or None."""

    def is_packed_enum(self, tag: str) -> bool:
        """Return whether an attribute makes `enum tag` as small as its values allow."""

    def struct(self, name: str) -> StructBody | None:
        """Return the members of `struct tag` or of a typedef, or None; SourceError when they are not C."""

    def expand_value(self, tokens: Sequence[Token]) -> list[Token]:
        """Return the tokens of a constant expression with all macros expanded."""


class TypeSizes:
    """Sizes types and evaluates lengths for one ABI.

    `is_char_signed` overrides what BTF or the ABI say about plain `char`.

    >>> from tracepoint.layout.abi import Abi
    >>> TypeSizes(Abi.I386).of("u64")
    TypeSize(size=8, align=4, is_signed=False)
    """

    def __init__(
        self,
        abi: Abi,
        *,
        btf: Btf | None = None,
        environment: Names | None = None,
        is_char_signed: bool | None = None,
    ) -> None:
        self.abi = abi
        self.btf = btf
        self.environment = environment
        self._is_char_signed = is_char_signed
        self._known: dict[str, TypeSize] = {}
        self._layouts: dict[str, StructLayout | None] = {}
        self._bodies: dict[str, StructBody] = {}
        self._level = 0

    def of(self, ctype: str | CType, field: str = "") -> TypeSize:
        """Return the size of a type; LayoutError, naming `field`, when it is not known."""
        text = str(ctype)
        known = self._known.get(text)
        if known is None:
            try:
                parsed = parse_ctype(text) if isinstance(ctype, str) else ctype
            except SourceError as error:
                raise LayoutError(f"'{text}' is not a type: {error.message}", field) from None
            known = self._known[text] = self._measure(parsed, field)
        return known

    def _measure(self, ctype: CType, field: str) -> TypeSize:
        if ctype.array:
            count = 1
            for length in ctype.array:
                count *= self.length(length, field)
            inner = self.of(CType(ctype.base, ctype.pointers, (), ctype.qualifiers), field)
            return TypeSize(inner.size * count, inner.align, inner.is_signed)
        if ctype.is_pointer:
            return TypeSize(self.abi.long_size, self.abi.long_size, is_signed=False)
        return self._base(ctype.base, field)

    def _base(self, base: str, field: str) -> TypeSize:
        name = base
        for _ in range(_MAX_TYPEDEFS):
            # A plain typedef is found near the header; only all files can show that no struct has the name.
            is_known = " " in name or name in BASIC or kernel_struct(name, self.abi.long_size) is not None
            target = None if is_known else self._typedef(name)
            found = self._from_btf(name) or self._basic(name)
            found = found or (self._struct(name, field) if target is None else None)
            if found:
                return found
            if name.startswith("enum "):
                return self._enum(name, field)
            if target is None:
                break
            try:
                parsed = parse_ctype(target)
            except SourceError:
                break
            if parsed.array or parsed.is_pointer:
                return self._measure(parsed, field)
            name = parsed.base
        via = f" (from '{base}')" if name != base else ""
        raise LayoutError(f"the size of type '{name}'{via} is not known: give BTF or the headers", field)

    def _basic(self, name: str) -> TypeSize | None:
        basic = BASIC.get(name)
        if basic is None:
            return None
        size, is_signed, _ = basic
        if is_signed is None:
            default = self.abi.is_char_signed
            is_signed = default if self._is_char_signed is None else self._is_char_signed
        if size == 8:
            return TypeSize(8, self.abi.long_long_align, is_signed)
        size = size or self.abi.long_size
        return TypeSize(size, size, is_signed)

    def _from_btf(self, name: str) -> TypeSize | None:
        if self.btf is None or (name == "char" and self._is_char_signed is not None):
            return None
        found = self.btf.find(name)
        if found is None:
            return None
        try:
            size, align, is_signed = self.btf.size_of(found)
        except LayoutError:
            return None
        if size == 8 and align == 8 and not name.startswith(("struct ", "union ")):
            align = self.abi.long_long_align
        return TypeSize(size, align, is_signed)

    def _struct(self, name: str, field: str) -> TypeSize | None:
        found = self.struct(name, field)
        return None if found is None else TypeSize(found.size, found.align, is_signed=False)

    def _typedef(self, name: str) -> str | None:
        known = TYPEDEFS.get(name)
        if known is None and self.abi.long_size == 8:
            known = WORD64_TYPEDEFS.get(name)
        if known is None and self.environment is not None:
            known = self.environment.typedef(name)
        return known

    def _enum(self, name: str, field: str) -> TypeSize:
        """An enum is 4 bytes, and unsigned unless a constant is negative (GCC's rule)."""
        tag = name.removeprefix("enum ")
        members = self.environment.enum_members(tag) if self.environment is not None else None
        if members is None:
            raise LayoutError(
                f"the constants of '{name}' are not to be seen, so its sign is not known: "
                "give BTF or the headers",
                field,
            )
        unknown = next((key for key, value in members.items() if value is None), "")
        values = [v for v in members.values() if v is not None]
        is_signed = any(v < 0 for v in values)
        is_packed = self.environment is not None and self.environment.is_packed_enum(tag)
        if unknown and (is_packed or not is_signed):
            raise LayoutError(
                f"'{name}': the value of {unknown} is not known, so its size or sign is not", field
            )
        least = 1 if is_packed else 4
        bits = max((v.bit_length() if v >= 0 else (~v).bit_length() for v in values), default=0) + is_signed
        size = next((n for n in (1, 2, 4, 8) if n >= least and bits <= 8 * n), 8)
        return TypeSize(size, self.abi.long_long_align if size == 8 else size, is_signed)

    def struct(self, name: str, field: str = "") -> StructLayout | None:
        """Return the layout of `struct tag`, `union tag` or a typedef for one, from its definition.

        None when neither the list of the kernel's structs nor a header has it; LayoutError when the size of a
        member is not known.
        """
        if name not in self._layouts:
            body = self._bodies.get(name) or kernel_struct(name, self.abi.long_size)
            body = body or self._defined(name, field)
            if body is None or self._level >= _MAX_NESTING:
                return None
            self._layouts[name] = None  # one that holds itself
            self._level += 1
            try:
                self._layouts[name] = lay_out(name, body, self)
            except LayoutError as error:
                del self._layouts[name]
                raise LayoutError(error.reason, field) from None
            finally:
                self._level -= 1
        return self._layouts[name]

    def _defined(self, name: str, field: str) -> StructBody | None:
        if self.environment is None or name in BASIC:
            return None
        try:
            return self.environment.struct(name)
        except SourceError as error:
            raise LayoutError(
                f"the definition of '{name}' is not understood: {error.message}", field
            ) from None

    def size_and_align(self, ctype: CType) -> tuple[int, int]:
        """Return size and alignment of a type."""
        return self.of(ctype)[:2]

    def number(self, tokens: Sequence[Token]) -> int:
        """Return the value of a length or width."""
        return self.length(tokens)

    def name_body(self, name: str, body: StructBody) -> CType:
        """Make a struct without a tag known under a name of its own."""
        outer = name.removeprefix("struct ").removeprefix("union ")
        name = f"union {outer}" if body.is_union else f"struct {outer}"
        self._bodies[name] = body
        return CType(name)

    def members_of(self, ctype: CType) -> Mapping[str, Placed]:
        """Return the members of a struct; none when only its size is known."""
        found = None if ctype.pointers or ctype.array else self.struct(ctype.base)
        return found.members if found is not None else {}

    def constant(self, name: str) -> int | None:
        """Return the value of a named constant, or None."""
        found = self.btf.constant(name) if self.btf is not None else None
        if found is None and self.environment is not None:
            found = self.environment.constant(name)
        return CONSTANTS.get(name) if found is None else found

    def evaluate(self, source: Code | str | Sequence[Token]) -> int | None:
        """Evaluate a constant expression; None when some part is not known."""
        code = source if isinstance(source, Code) else _code(source)
        try:
            found = self._value(code.expression())
            if found is None and self.environment is not None:
                expanded = self.environment.expand_value(code.all_tokens())
                found = self._value(parse_expression(expanded))
        except SourceError:
            return None
        return found

    def _value(self, node: ast.Node) -> int | None:
        return constant_value(
            node,
            self.constant,
            sizeof=self.sizeof,
            long_size=self.abi.long_size,
            place=self._place,
        )

    def _place(self, node: ast.Node) -> tuple[int, CType] | None:
        """Return the offset of `((struct a *)0)->b.c[1]` in the struct that it begins at, and its type."""
        match node:
            case ast.TypeName(ctype=ctype):
                return 0, ctype
            case ast.Cast(ctype=ctype) if ctype.pointers == 1:
                return 0, CType(ctype.base)
            case ast.Unary(op="*", operand=operand):
                return self._place(operand)
            case ast.Member(base=base, name=name):
                outer = self._place(base)
                placed = self.members_of(outer[1]).get(name) if outer is not None else None
                return None if outer is None or placed is None else (outer[0] + placed.offset, placed.ctype)
            case ast.Index(base=base, index=index):
                outer = self._place(base)
                at = constant_value(index, self.constant)
                if outer is None or at is None or not outer[1].array:
                    return None
                ctype = CType(outer[1].base, outer[1].pointers, outer[1].array[1:])
                return outer[0] + at * self.of(ctype).size, ctype
        return None

    def sizeof(self, ctype: CType | str) -> int | None:
        """Return the size of a type in bytes, None when it is not known."""
        try:
            return self.of(ctype).size
        except (LayoutError, SourceError):
            return None

    def length(self, source: Code | str | Sequence[Token], field: str = "") -> int:
        """Return the length of an array (0 to 2^20 elements); LayoutError when it is not known."""
        found = self.evaluate(source)
        if found is None:
            code = source if isinstance(source, Code) else _code(source)
            raise LayoutError(f"the array length '{code.text.strip()}' is not known", field)
        if not 0 <= found <= _MAX_ARRAY:
            raise LayoutError(f"the array length {found} is impossible", field)
        return found


def _code(source: str | Sequence[Token]) -> Code:
    return Code(source) if isinstance(source, str) else code_of(source)
