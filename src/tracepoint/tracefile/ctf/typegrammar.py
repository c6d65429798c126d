"""The types of TSDL: `integer { … }`, `struct { … }`, `typealias … := …`, and the scopes of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.source.lexer import Kind
from tracepoint.tracefile.ctf.types import (
    CtfArray,
    CtfEnum,
    CtfFloat,
    CtfInteger,
    CtfString,
    CtfStruct,
    CtfVariant,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.tracefile.ctf.tokens import TsdlTokens
    from tracepoint.tracefile.ctf.types import CtfType

    Attributes = dict[str, int | str | tuple[str, ...]]

_BYTE_ORDERS = {"le": False, "be": True, "network": True, "native": None}
_TRUE, _FALSE = ("true", "TRUE"), ("false", "FALSE")
_BASES = {
    **dict.fromkeys(("decimal", "dec", "d", "i", "u"), 10),
    **dict.fromkeys(("hexadecimal", "hex", "x", "X", "p"), 16),
    **dict.fromkeys(("octal", "oct", "o"), 8),
    **dict.fromkeys(("binary", "b"), 2),
}
_MAX_NESTING = 32
_MAX_ALIGN = 1 << 16
_FLOAT_SIZES = {(8, 24): 32, (11, 53): 64}


class TypeReader:
    """Reads types at a place of tokens; names are those of the scopes around it, the innermost first."""

    def __init__(self, tokens: TsdlTokens) -> None:
        self.tokens = tokens
        self._scopes: list[dict[str, CtfType]] = [{}]
        self._readers: dict[str, Callable[[], CtfType]] = {
            "integer": self._integer,
            "floating_point": self._float,
            "string": self._string,
            "enum": self._enum,
            "struct": self._struct,
            "variant": self._variant,
        }

    def enter(self) -> None:
        """Open a scope of names."""
        if len(self._scopes) > _MAX_NESTING:
            raise self.tokens.wrong(f"nested more than {_MAX_NESTING} deep")
        self._scopes.append({})

    def leave(self) -> None:
        """Close the innermost scope."""
        self._scopes.pop()

    def _find(self, name: str) -> CtfType | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def declaration(self) -> bool:
        """Read a `typealias`, a `typedef` or a named type at this place; say whether there was one."""
        tokens = self.tokens
        if tokens.skip("typealias"):
            kind = self.type()
            tokens.expect(":", "=")
            self._scopes[-1][self._alias_name()] = kind
        elif tokens.skip("typedef"):
            kind = self.type(is_named=True)
            for name, made in self._declarators(kind):
                self._scopes[-1][name] = made
        elif tokens.text in ("struct", "enum", "variant"):
            # A struct that a field has in its place begins so too: see members().
            self.type()
        else:
            return False
        tokens.expect(";")
        return True

    def _alias_name(self) -> str:
        words = []
        while self.tokens.text != ";":
            words.append(self.tokens.take())
        return " ".join(words)

    def type(self, *, is_named: bool = False) -> CtfType:
        """Read a type; `is_named` says that the name of a field follows it."""
        tokens = self.tokens
        while tokens.skip("const"):
            pass
        if tokens.text not in self._readers:
            return self._known(is_named=is_named)
        try:
            return self._readers[tokens.take()]()
        except ValueError as error:
            raise tokens.wrong(str(error)) from None

    def _known(self, *, is_named: bool) -> CtfType:
        """Return the type that the next words name; of a field the last word is its own name."""
        tokens, words = self.tokens, list[str]()
        while (token := tokens.ahead(len(words))).kind is Kind.NAME and len(words) < 8:
            words.append(token.text)
        if is_named:
            words = words[:-1]
        kind = self._find(" ".join(words))
        if kind is None or not words:
            raise tokens.wrong(f"an unknown type: `{' '.join(words)[:80] or tokens.text[:40]}`")
        tokens.skip_tokens(len(words))
        return kind

    # Attributes in braces.

    def attributes(self) -> Attributes:
        """Read `{ name = value; … }`; what is not known is passed over."""
        tokens, found = self.tokens, dict[str, "int | str | tuple[str, ...]"]()
        tokens.expect("{")
        while not tokens.skip("}"):
            words = [tokens.take()]
            while not tokens.skip("="):
                words.append(tokens.take())
            found["".join(words)] = self.value()
            tokens.expect(";")
        return found

    def value(self) -> int | str | tuple[str, ...]:
        """Read a number, a string, or words with dots between them: `clock.monotonic.value`."""
        tokens = self.tokens
        if tokens.kind is Kind.STRING:
            return tokens.string()
        if tokens.kind is Kind.NUMBER or tokens.text in ("-", "+"):
            return tokens.number()
        words = [tokens.take()]
        while tokens.skip("."):
            words.append(tokens.take())
        return words[0] if len(words) == 1 else tuple(words)

    def _count(self, found: Attributes, name: str, default: int = 0) -> int:
        number = found.get(name, default)
        if not isinstance(number, int) or number < 0:
            raise self.tokens.wrong(f"`{name}` is not a number")
        return number

    def _flag(self, found: Attributes, name: str) -> bool:
        value = found.get(name, 0)
        if value in (*_TRUE, *_FALSE):
            return value in _TRUE
        return bool(self._count(found, name))

    def _checked_align(self, align: int) -> int:
        if align & (align - 1) or not 0 < align <= _MAX_ALIGN:
            raise self.tokens.wrong(f"an alignment of {align} bits")
        return align

    def _align(self, found: Attributes, size: int) -> int:
        align = self._count(found, "align")
        return self._checked_align(align) if align else (1 if size % 8 else 8)

    def _byte_order(self, found: Attributes) -> bool | None:
        order = found.get("byte_order", "native")
        if order not in _BYTE_ORDERS:
            raise self.tokens.wrong(f"an unknown byte order: {order}")
        return _BYTE_ORDERS[str(order)]

    # The kinds of types.

    def _integer(self) -> CtfInteger:
        found = self.attributes()
        size = self._count(found, "size")
        base, clock = found.get("base", 10), found.get("map", ())
        return CtfInteger(
            size,
            self._align(found, size),
            self._flag(found, "signed"),
            self._byte_order(found),
            base if isinstance(base, int) else _BASES.get(str(base), 10),
            found.get("encoding", "none") in ("UTF8", "ASCII", "utf8", "ascii", "UTF-8"),
            clock[1] if isinstance(clock, tuple) and len(clock) == 3 and clock[0] == "clock" else "",
        )

    def _float(self) -> CtfFloat:
        found = self.attributes()
        digits = self._count(found, "exp_dig"), self._count(found, "mant_dig")
        size = _FLOAT_SIZES.get(digits)
        if size is None:
            raise self.tokens.wrong(f"floating point of {digits[0]} and {digits[1]} bits")
        align = self._align(found, size)
        if align % 8:
            raise self.tokens.wrong(f"floating point aligned to {align} bits")
        return CtfFloat(size, align, self._byte_order(found))

    def _string(self) -> CtfString:
        if self.tokens.text == "{":
            self.attributes()
        return CtfString()

    def _tag(self, keyword: str) -> str:
        return f"{keyword} {self.tokens.take()}" if self.tokens.kind is Kind.NAME else ""

    def _named(self, name: str) -> CtfType:
        found = self._find(name)
        if found is None:
            raise self.tokens.wrong(f"an unknown type: `{name[:80]}`")
        return found

    def _enum(self) -> CtfType:
        tokens = self.tokens
        name = self._tag("enum")
        container: CtfType | None = None
        if tokens.skip(":"):
            container = self.type()
        if tokens.text != "{" and name:
            return self._named(name)
        container = container or self._find("int")
        if isinstance(container, CtfEnum):
            container = container.container
        if not isinstance(container, CtfInteger):
            raise tokens.wrong("an enumeration that is not an integer")
        made = CtfEnum(container, self._enum_names())
        if name:
            self._scopes[-1][name] = made
        return made

    def _enum_names(self) -> tuple[tuple[str, int, int], ...]:
        tokens, found, following = self.tokens, list[tuple[str, int, int]](), 0
        tokens.expect("{")
        while not tokens.skip("}"):
            name = tokens.string() if tokens.kind is Kind.STRING else tokens.name()
            low = high = following
            if tokens.skip("="):
                low, high = tokens.range()
            found.append((name, low, high))
            following = high + 1
            if not tokens.skip(",") and tokens.text != "}":
                tokens.expect("}")
        return tuple(found)

    def _struct(self) -> CtfType:
        tokens = self.tokens
        name = self._tag("struct") if tokens.text != "align" else ""
        if tokens.text != "{":
            return self._named(name)
        fields = self._members()
        align = 1
        if tokens.skip("align"):
            tokens.expect("(")
            align = self._checked_align(tokens.number())
            tokens.expect(")")
        made = CtfStruct(fields, align)
        if name:
            self._scopes[-1][name] = made
        return made

    def _variant(self) -> CtfType:
        tokens, tag = self.tokens, tuple[str, ...]()
        name = self._tag("variant")
        if tokens.skip("<"):
            tag = self.path(">")
        if tokens.text == "{":
            made = CtfVariant(tag, self._members())
            if name:
                self._scopes[-1][name] = made
            return made
        found = self._named(name)
        if not isinstance(found, CtfVariant):
            raise tokens.wrong(f"not a variant: `{name[:80]}`")
        return CtfVariant(tag or found.tag, found.options)

    def path(self, end: str) -> tuple[str, ...]:
        """Read the words of a path up to a bracket."""
        words = []
        while not self.tokens.skip(end):
            word = self.tokens.take()
            if word not in (".", "->"):
                words.append(word)
        if not words:
            raise self.tokens.wrong("a path of a field expected")
        return tuple(words)

    def _members(self) -> tuple[tuple[str, CtfType], ...]:
        """Read the fields of a struct or the options of a variant, in a scope of their own."""
        tokens, found = self.tokens, list[tuple[str, "CtfType"]]()
        tokens.expect("{")
        self.enter()
        while not tokens.skip("}"):
            if tokens.text in ("typealias", "typedef"):
                self.declaration()
                continue
            kind = self.type(is_named=True)
            if not tokens.skip(";"):
                found += self._declarators(kind)
                tokens.expect(";")
        self.leave()
        return tuple(found)

    def _declarators(self, kind: CtfType) -> list[tuple[str, CtfType]]:
        """Read the names of fields with the lengths of arrays."""
        found = []
        while True:
            name = self.tokens.name()
            lengths = list[int | tuple[str, ...]]()
            while self.tokens.skip("["):
                if self.tokens.kind is Kind.NUMBER:
                    lengths.append(self.tokens.number())
                    self.tokens.expect("]")
                else:
                    lengths.append(self.path("]"))
            made = kind
            for length in reversed(lengths):
                made = CtfArray(made, length)
                if made.depth > _MAX_NESTING:
                    raise self.tokens.wrong(f"arrays nested more than {_MAX_NESTING} deep")
            found.append((name, made))
            if not self.tokens.skip(","):
                return found
