"""C type names: `struct task_struct *`, `unsigned  int`, `char[16]` to a normal form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.source.brackets import find_close
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.macros import spell
from tracepoint.source.text import SourceFile
from tracepoint.source.types import TYPEDEFS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracepoint.source.lexer import Token


@dataclass(frozen=True, slots=True)
class CType:
    """A C type without a name.

    `base` is the type below all pointers, qualifiers removed and words in canonical order
    (`unsigned long`, `struct page`, `enum zone_type`, `u32`); `pointers` counts `*`;
    `array` holds the text of each array length, outermost first; `qualifiers` are those of the
    base (`const`, `volatile`, `__user`, `__rcu`, `__iomem`).  A pointer to function has the
    function's type as its base (`void (int)`), a pointer to an array the array's (`char[16]`).
    """

    base: str
    pointers: int = 0
    array: tuple[str, ...] = ()
    qualifiers: frozenset[str] = frozenset()

    def __str__(self) -> str:
        stars = "*" * self.pointers
        text = " ".join([*sorted(self.qualifiers), self.base])
        lengths = "".join(f"[{length}]" for length in self.array)
        if stars and self.is_function:
            head, _, parameters = text.partition(" (")
            return f"{head} ({stars})({parameters}{lengths}"
        if stars and self.base.endswith("]"):
            at = text.index("[")
            return f"{text[:at]} ({stars}){text[at:]}{lengths}"
        return f"{text} {stars}{lengths}" if stars else text + lengths

    @property
    def is_pointer(self) -> bool:
        """Whether a value of this type is an address."""
        return self.pointers > 0

    @property
    def is_function(self) -> bool:
        """Whether the base is a function type, as below a function pointer."""
        return self.base.endswith(")") and not self.base.startswith("typeof")


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


BASIC_WORDS = words(
    "void char short int long signed unsigned float double _Bool bool __int128 __signed__ __signed "
    "__builtin_va_list _Complex"
)
QUALIFIERS = words(
    "const volatile restrict __user __rcu __iomem __percpu __force __restrict __const __volatile__ "
    "__kernel __bitwise __nocast __safe __private _Atomic __refdata __must_check static register"
)
_KEPT_QUALIFIERS = words("const volatile __user __rcu __iomem __percpu")
TAG_WORDS = frozenset({"struct", "union", "enum"})
TYPEOF_WORDS = frozenset({"typeof", "__typeof__", "__typeof", "typeof_unqual"})
_ATTRIBUTES = frozenset({"__attribute__", "__attribute"})


def is_typedef_name(name: str) -> bool:
    """Return whether a name is one of the kernel's plain types, or ends in `_t` as types do.

    >>> is_typedef_name("__le32"), is_typedef_name("gfp_t"), is_typedef_name("flags")
    (True, True, False)
    """
    return name in TYPEDEFS or (name.endswith("_t") and len(name) > 2)


def starts_type(name: str) -> bool:
    """Return whether a name can only begin a type: a keyword of C or a qualifier."""
    return name in BASIC_WORDS or name in QUALIFIERS or name in TAG_WORDS or name in TYPEOF_WORDS


def _canonical_words(words: list[str]) -> str | None:
    """Put the words of a basic type in canonical order; None when no such type exists."""
    if len(words) == 1 and words[0] not in ("unsigned", "signed", "__signed__", "__signed", "_Bool"):
        return words[0]
    is_unsigned = "unsigned" in words
    is_signed = any(word.startswith(("signed", "__signed")) for word in words)
    rest = [w for w in words if w != "unsigned" and not w.startswith(("signed", "__signed"))]
    n_long = rest.count("long")
    rest = [w for w in rest if w != "long"]
    if "double" in rest and not is_unsigned:
        return "long double" if n_long else "double"
    if len(rest) > 1 and "int" in rest:
        rest.remove("int")
    is_plain = rest in (["_Bool"], ["bool"], ["void"], ["float"])
    has_sign = is_unsigned or is_signed
    is_wrong_long = n_long > 2 or (n_long > 0 and rest not in ([], ["int"]))
    if len(rest) > 1 or is_wrong_long or (is_unsigned and is_signed) or (is_plain and has_sign):
        return None
    if is_plain:
        return "bool" if rest[0] == "_Bool" else rest[0]
    name = " ".join(["long"] * n_long) or (rest[0] if rest else "int")
    if is_unsigned:
        return f"unsigned {name}"
    return "signed char" if is_signed and name == "char" else name


class _TypeScanner:
    """Reads one type from a token sequence; `at` is the current index."""

    def __init__(self, tokens: Sequence[Token], at: int, stop: int) -> None:
        self.tokens = tokens
        self.at = at
        self.stop = stop

    def text(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index].text if index < self.stop else ""

    def skip_group(self) -> Sequence[Token] | None:
        close = find_close(self.tokens, self.at, self.stop)
        if close < 0:
            return None
        inside = self.tokens[self.at + 1 : close]
        self.at = close + 1
        return inside

    def scan(self) -> CType | None:
        base, qualifiers = self.scan_base()
        if base is None:
            return None
        pointers = self.scan_stars()
        if self.text() == "(" and self.text(1) == "*" and (depth := self.scan_declarator()):
            return self.scan_pointee(CType(base, pointers, (), qualifiers), depth)
        lengths: list[str] = []
        while self.text() == "[":
            inside = self.skip_group()
            if inside is None:
                return None
            lengths.append(spell(inside))
        return CType(base, pointers, tuple(lengths), qualifiers)

    def scan_base(self) -> tuple[str | None, frozenset[str]]:
        found: list[str] = []
        qualifiers: set[str] = set()
        base: str | None = None
        while self.at < self.stop and self.tokens[self.at].kind is Kind.NAME:
            word = self.text()
            if word in QUALIFIERS:
                qualifiers.add("const" if word == "__const" else word)
            elif word in _ATTRIBUTES and self.text(1) == "(":
                self.at += 1
                self.skip_group()
                continue
            elif base is None and word in BASIC_WORDS:
                found.append(word)
            elif base is None and not found:
                base = self.scan_named(word)
                if base is None:
                    break
            else:
                break
            self.at += 1
        if found:
            base = _canonical_words(found)
        return base, frozenset(qualifiers & _KEPT_QUALIFIERS)

    def scan_named(self, word: str) -> str | None:
        if word in TAG_WORDS:
            if self.text(1) == "{":
                return self.scan_body(word)
            if self.at + 1 >= self.stop or self.tokens[self.at + 1].kind is not Kind.NAME:
                return None
            self.at += 1
            return f"{word} {self.text()}"
        if word in TYPEOF_WORDS:
            self.at += 1
            inside = self.skip_group() if self.text() == "(" else None
            if inside is None:
                return None
            self.at -= 1
            return f"typeof({spell(inside)})"
        return word

    def scan_body(self, word: str) -> str | None:
        """Read the body of a struct without a tag."""
        self.at += 1
        body = self.skip_group()
        self.at -= 1
        return None if body is None else f"{word} {{ {spell(body)} }}"

    def scan_stars(self) -> int:
        count = 0
        while self.text() == "*" or self.text() in QUALIFIERS:
            count += self.text() == "*"
            self.at += 1
        return count

    def scan_declarator(self) -> int:
        """Read `(*)` or `(* const)` and return the number of stars, 0 when it is something else."""
        before = self.at
        self.at += 1
        depth = self.scan_stars()
        if self.text() == ")" and self.text(1) in ("(", "["):
            self.at += 1
            return depth
        self.at = before
        return 0

    def scan_pointee(self, result: CType, depth: int) -> CType | None:
        if self.text() == "(":
            inside = self.skip_group()
            if inside is None:
                return None
            stars = " " + "*" * result.pointers if result.pointers else ""
            return CType(f"{result.base}{stars} ({spell(inside)})", depth, (), result.qualifiers)
        base = str(CType(result.base, result.pointers))
        while self.text() == "[":
            inside = self.skip_group()
            if inside is None:
                return None
            base += f"[{spell(inside)}]"
        return CType(base, depth, (), result.qualifiers)


def scan_type(tokens: Sequence[Token], at: int, stop: int) -> tuple[CType, int] | None:
    """Read a type that begins at `tokens[at]`; return it and the index after it, None if there is none.

    Any name is taken as a type's name: whether it can be one is for the caller to decide.
    """
    scanner = _TypeScanner(tokens, at, stop)
    result = scanner.scan()
    return None if result is None else (result, scanner.at)


def is_type(tokens: Sequence[Token], at: int, stop: int, is_known: Callable[[str], bool]) -> bool:
    """Return whether `tokens[at:stop]` is a type and cannot be an expression.

    That is so when it begins with a type keyword or a name for which `is_known` holds, or when
    it is a name followed by `*` only, which no expression can be.
    """
    if at >= stop or tokens[at].kind is not Kind.NAME:
        return False
    scanned = scan_type(tokens, at, stop)
    if scanned is None or scanned[1] != stop:
        return False
    name = tokens[at].text
    return starts_type(name) or is_known(name) or tokens[stop - 1].text == "*"


def parse_ctype(source: str | Sequence[Token]) -> CType:
    """Read a C type name, given as text or as tokens, into its normal form.

    Raises `SourceError` when it is not one type and nothing else.

    >>> str(parse_ctype("long unsigned  int"))
    'unsigned long'
    >>> parse_ctype("struct page * const *")
    CType(base='struct page', pointers=2, array=(), qualifiers=frozenset())
    >>> parse_ctype("char[16]").array
    ('16',)
    >>> str(parse_ctype("void (*)(struct rcu_head *head)"))
    'void (*)(struct rcu_head *head)'
    """
    tokens = lex(SourceFile("<type>", source)) if isinstance(source, str) else list(source)
    stop = len(tokens)
    while stop and tokens[stop - 1].kind is Kind.END:
        stop -= 1
    scanned = scan_type(tokens, 0, stop)
    if scanned is None or scanned[1] != stop:
        wrong = tokens[min(scanned[1] if scanned else 0, len(tokens) - 1)] if tokens else None
        text = spell(tokens[:stop])
        raise SourceError(
            f"not a C type: `{text[:80]}`" if text else "a C type is missing here",
            wrong.root.span if wrong else None,
        )
    return scanned[0]
