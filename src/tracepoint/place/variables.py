"""Names that a C declaration declares, and their types as far as the text shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.source.ctype import BASIC_WORDS, TAG_WORDS, TYPEOF_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.place.code import SourceCode

STORAGE = frozenset("static extern register auto typedef inline __inline __inline__ __always_inline".split())
_BASE_TYPES = BASIC_WORDS | frozenset(
    "__auto_type __label__ const volatile _Atomic _Thread_local __thread __extension__".split()
)
_TYPEOF = TYPEOF_WORDS | {"typeof_member"}
_ASSERTS = frozenset({"static_assert", "_Static_assert"})
#: Words next to a declared name that are neither type nor name; some take parentheses.
ATTRIBUTES = frozenset(
    "__attribute__ __attribute __aligned __section __printf __scanf __acquires __releases __must_hold "
    "__must_check __cond_acquires __alloc_size __realloc_size __no_sanitize __nocfi __counted_by __cleanup "
    "__free __assume_aligned __maybe_unused __always_unused __unused __user __iomem __percpu __rcu __force "
    "__read_mostly __ro_after_init __initdata __kernel __bitwise __packed __restrict restrict __init __exit "
    "__ref __meminit __cold __hot __pure __malloc __weak __visible __used __deprecated __latent_entropy "
    "____cacheline_aligned ____cacheline_aligned_in_smp __private __nosave __initconst __nonstring "
    "__randomize_layout __no_randomize_layout __diagnose_as __context__ __designated_init _Pragma "
    "noinline noinstr notrace asmlinkage noinline_for_stack".split()
)
_MADE_NAMES = re.compile(
    r"(?!INIT_|\w*_INIT_)(?:_?(?:DEFINE_|DECLARE_)\w+|\w*_(?:DEFINE|DECLARE)_\w+|H?L?LIST_HEAD|PLIST_HEAD"
    r"|(?:XA|MA|VMG|VMG_MMAP|GENRADIX)_STATE(?:_ORDER)?|\w+_ITERATOR|\w+_ON_?STACK|\w+_AUTO_\w*FREE"
    r"|CLASS|guard)"
)
_SECOND = frozenset({"CLASS", "DEFINE_FLEX", "DEFINE_RAW_FLEX", "_DEFINE_FLEX"})
_MADE_TYPES = {
    "DEFINE_WAIT": "struct wait_queue_entry",
    "DEFINE_WAIT_FUNC": "struct wait_queue_entry",
    "DECLARE_WAITQUEUE": "struct wait_queue_entry",
    "DECLARE_COMPLETION_ONSTACK": "struct completion",
    "LIST_HEAD": "struct list_head",
    "HLIST_HEAD": "struct hlist_head",
    "LLIST_HEAD": "struct llist_head",
    "XA_STATE": "struct xa_state",
    "MA_STATE": "struct ma_state",
    "VMA_ITERATOR": "struct vma_iterator",
    "DECLARE_BITMAP": "unsigned long",
}
_VALUELESS = frozenset({"DECLARE_BITMAP"})


@dataclass(frozen=True, slots=True)
class Variable:
    """A parameter or local.

    `type` is C text without the name (empty when unknown), `at` the token of the name, `has_value`
    whether the declaration initializes it, `words` its storage class and attributes.
    """

    name: str
    type: str
    at: int
    has_value: bool = False
    is_array: bool = False
    words: frozenset[str] = frozenset()


def is_declaration(code: SourceCode, first: int, last: int) -> bool:
    r"""Return whether the simple statement from token `first` to its semicolon `last` is a declaration.

    >>> from tracepoint.place.code import read_code
    >>> from tracepoint.source.text import SourceFile
    >>> def asks(text: str) -> bool:
    ...     code = read_code(SourceFile("a.c", text))
    ...     return is_declaration(code, 0, len(code.texts) - 2)
    >>> [asks(text) for text in ("u64 x;", "pte_t *p = f();", "LIST_HEAD(all);", "a = b * c;", "f(x);")]
    [True, True, True, False, False]
    """
    texts = code.texts
    word = texts[first]
    if word in _BASE_TYPES or word in TAG_WORDS or word in STORAGE or word in _TYPEOF or word in _ASSERTS:
        return True
    if not code.is_name(first) or last <= first:
        return False
    at = first + 1
    if texts[at] == "(":
        if word in ATTRIBUTES or _MADE_NAMES.fullmatch(word):
            return True
        return last > code.match[at] + 1 and _follows_type(code, code.match[at] + 1, last)
    if code.is_name(at):
        return True
    return texts[at] == "*" and _follows_type(code, at, last)


def _follows_type(code: SourceCode, at: int, last: int) -> bool:
    """Return whether there is a declarator here: stars, a name, and what may follow a declared name."""
    texts = code.texts
    while texts[at] == "*" or (code.is_name(at) and texts[at] in {"const", "volatile", "__user", "__rcu"}):
        at += 1
    if not code.is_name(at) or at >= last:
        return False
    return texts[at + 1] in {";", "=", ",", "[", ")"} or texts[at + 1] in ATTRIBUTES


def declared(code: SourceCode, first: int, last: int) -> list[Variable]:
    """Return the variables of a declaration from token `first` to `last`, its semicolon or one after it.

    >>> from tracepoint.place.code import read_code
    >>> from tracepoint.source.text import SourceFile
    >>> code = read_code(SourceFile("a.c", "struct page *page = f(a, b), *next, array[3];"))
    >>> [(v.name, v.type, v.has_value) for v in declared(code, 0, len(code.texts) - 2)]
    [('page', 'struct page *', True), ('next', 'struct page *', False), ('array', 'struct page', False)]
    """
    made = declared_by_macro(code, first)
    if made is not None:
        return made
    found: list[Variable] = []
    base = ""
    words: frozenset[str] = frozenset()
    for begin, end in split_commas(code, first, last):
        part = _Declarator(code, begin, end)
        if not found:
            base, words = part.type_words()
            if "__label__" in base:
                return []
        variable = part.variable(base, words)
        if variable is not None:
            found.append(variable)
    return found


def declared_by_macro(code: SourceCode, first: int) -> list[Variable] | None:
    """Return what a macro such as `DEFINE_WAIT(x)` at this token declares, or None."""
    word = code.texts[first]
    if first + 1 >= len(code.texts) or code.texts[first + 1] != "(" or word in ATTRIBUTES or word in _TYPEOF:
        return None
    if first + 1 not in code.match or code.texts[first + 2] in {"*", "^"}:  # a pointer to a function
        return None
    if word in _ASSERTS or word == "guard":
        return []
    arguments = list(split_commas(code, first + 2, code.match[first + 1]))
    index = 1 if word in _SECOND else 0
    if index >= len(arguments):
        return []
    begin, end = arguments[index]
    if end != begin + 1 or not code.is_name(begin):
        return []
    kind = _MADE_TYPES.get(word, "")
    return [Variable(code.texts[begin], kind, begin, word not in _VALUELESS, word in _VALUELESS)]


def split_commas(code: SourceCode, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end (exclusive) of each part between commas outside brackets."""
    begin = at = first
    while at < last:
        if code.texts[at] in "([{":
            at = code.match.get(at, last)
        elif code.texts[at] == ",":
            yield begin, at
            begin = at + 1
        at += 1
    if begin < last:
        yield begin, last


class _Declarator:
    """One declarator: `const struct page *p[3] __aligned(8) = x`, or a later one without its type."""

    def __init__(self, code: SourceCode, begin: int, end: int) -> None:
        self.code = code
        self.begin = begin
        self.end = end
        self.name = -1
        self.init = -1
        self.is_array = False
        self.is_function = False
        self._read()

    def _read(self) -> None:
        texts = self.code.texts
        at = self.begin
        while at < self.end:
            text = texts[at]
            if text == "=" or (text == ":" and self.name >= 0):
                self.init = at if text == "=" else self.init
                return
            at = self._step(at, text)

    def _step(self, at: int, text: str) -> int:
        code = self.code
        if code.is_name(at):
            has_group = at + 1 < self.end and code.texts[at + 1] == "("
            if text in ATTRIBUTES or text in _TYPEOF:
                return code.match[at + 1] + 1 if has_group else at + 1
            if text in TAG_WORDS:
                return at + 2 if at + 1 < self.end and code.is_name(at + 1) else at + 1
            if text not in _BASE_TYPES and text not in STORAGE:
                self.name = at
        elif text == "[":
            self.is_array = True
            return code.match.get(at, self.end) + 1
        elif text == "{":
            return code.match.get(at, self.end) + 1
        elif text == "(":
            self._group(at)
            return code.match.get(at, self.end) + 1
        return at + 1

    def _group(self, at: int) -> None:
        """`(*name)(...)`, `(*name)[n]`, or the parameters of a function."""
        close = self.code.match.get(at, self.end)
        if self.code.texts[at + 1] in {"*", "^"}:
            inner = at + 1
            while inner < close and self.code.texts[inner] not in "([":
                if self.code.is_name(inner) and self.code.texts[inner] not in ATTRIBUTES | _BASE_TYPES:
                    self.name = inner
                inner += 1
        self.is_function = True

    def type_words(self) -> tuple[str, frozenset[str]]:
        """Return the type before stars and name, and the other words of the declaration."""
        code = self.code
        types: list[str] = []
        words: set[str] = set()
        at = self.begin
        stop = self.init if self.init >= 0 else self.end
        while at < stop:
            text = code.texts[at]
            if text in STORAGE or text in ATTRIBUTES:
                words.add(text)
                if at + 1 < stop and code.texts[at + 1] == "(":
                    at = code.match[at + 1]
            elif text in _TYPEOF and at + 1 < stop and at + 1 in code.match:
                close = code.match[at + 1]
                types.append(code.file.text[code.tokens[at].start : code.tokens[close].end])
                at = close
            elif text == "{":
                at = code.match.get(at, stop)
            elif (at < self.name or self.name < 0) and code.is_name(at):
                types.append(text)
            at += 1
        return " ".join(types), frozenset(words)

    def variable(self, base: str, words: frozenset[str]) -> Variable | None:
        code = self.code
        if self.name < 0:
            return None
        stars = self._count_stars()
        kind = "" if self.is_function else f"{base} {'*' * stars}".strip()
        return Variable(
            code.texts[self.name],
            kind,
            self.name,
            self.init >= 0 or "static" in words or "extern" in words,
            self.is_array,
            words,
        )

    def _count_stars(self) -> int:
        """Count the stars before the name, but not those in the braces of a struct."""
        count = 0
        at = self.begin
        while at < self.name:
            count += self.code.texts[at] == "*"
            at = self.code.match.get(at, at) + 1 if self.code.texts[at] == "{" else at + 1
        return count
