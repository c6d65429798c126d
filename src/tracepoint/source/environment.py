"""What a header's names stand for: macros, constants, typedefs and enums around it.

The header's own macros come first.  When a loader was given, the files that it includes,
directly or not, are searched on demand: nothing is read before it is needed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.closure import IncludeClosure, SharedFiles
from tracepoint.source.config import EMPTY_MACROS, Config
from tracepoint.source.constants import constant_value
from tracepoint.source.declarations import Declarations, read_declarations
from tracepoint.source.definitions import read_definitions
from tracepoint.source.expand import Expander
from tracepoint.source.lexer import Kind
from tracepoint.source.macros import Macro, define
from tracepoint.source.preprocess import macros_of, preprocess
from tracepoint.source.structs import KEPT_WORDS, StructBody, StructText, find_definition, read_struct

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from tracepoint.source.definitions import Definition
    from tracepoint.source.lexer import Token
    from tracepoint.source.preprocess import Preprocessed
    from tracepoint.source.text import SourceFile

#: An attribute between `struct` and its tag, or after that.
_MARK = r"__\w+(?:\s*\([^;{}]{0,100}\))?"
#: What kernel/bounds.c writes to include/generated/bounds.h, which an unbuilt tree does not have.
_BOUNDS = {"NR_PAGEFLAGS": "__NR_PAGEFLAGS", "MAX_NR_ZONES": "__MAX_NR_ZONES"}


class Environment:
    """Answers for names: `macro`, `constant`, `typedef`, `expand`.

    `macros` are those of the header when it had been read, `tokens` its expanded text; `closure`
    the files around it, or None; `protected` names are never expanded; `shared` is what other
    headers of the same configuration have found already.
    """

    def __init__(
        self,
        macros: dict[str, Macro] | None = None,
        *,
        config: Config | None = None,
        closure: IncludeClosure | None = None,
        protected: Container[str] = (),
        tokens: Sequence[Token] = (),
        shared: SharedFiles | None = None,
    ) -> None:
        self.macros = macros or {}
        self._empty = {name: Macro(name, None, [], None) for name in EMPTY_MACROS}
        self.config = replace(config or Config(), is_for_includes=True)
        self.closure = closure
        self.protected = protected
        self._tokens = tokens
        self._own: Declarations | None = None
        self._constants: dict[str, int | None] = {}
        self._shared = shared or SharedFiles()
        self._meanings: dict[str, Macro | Declarations | None] = {}
        self._structs: dict[str, StructBody | None] = {}
        self._within: dict[str, Mapping[str, Macro]] = {}

    @property
    def own(self) -> Declarations:
        """The enums and typedefs of the header itself."""
        if self._own is None:
            self._own = read_declarations(self._tokens)
        return self._own

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The structs, unions, typedefs and inline functions that the header itself defines."""
        return read_definitions(self._tokens)

    @property
    def has_creator(self) -> bool:
        """Whether a C file that creates the header's tracepoints is among the files around it."""
        return self.closure is not None and any(file.path.endswith(".c") for file in self.closure.files)

    def macro(self, name: str) -> Macro | None:
        """Return the macro of that name, from the header or from what it includes."""
        own = self.macros.get(name)
        if own is not None or self.closure is None:
            return own
        found = self._meaning(name)
        return found if isinstance(found, Macro) else None

    def _macros_of(self, file: SourceFile) -> dict[str, Macro]:
        """Return the macros of one file by itself: its conditionals hold under our configuration."""
        known = self._shared.macros.get(file.path)
        if known is None:
            known = macros_of(file, config=self.config, protected=self.protected)
            self._shared.macros[file.path] = known
        return known

    def _macros_within(self, file: SourceFile) -> Mapping[str, Macro]:
        """Return the macros of a trace header whose conditions ask for macros around it."""
        if "TRACE_SYSTEM" not in file.text:
            return {}
        if file.path not in self._within:
            self._within[file.path] = {}  # one that is asked for while it is read
            names = {undecided.name for undecided in self._preprocess(file).undecided}
            found = {name: "1" for name in sorted(names) if self.macro(name) is not None}
            if found:
                config = replace(self.config, defines={**self.config.defines, **found})
                self._within[file.path] = macros_of(file, config=config, protected=self.protected)
        return self._within[file.path]

    def _preprocess(self, file: SourceFile) -> Preprocessed:
        return self._shared.preprocessed(file.path, lambda: self._read_alone(file))

    def _read_alone(self, file: SourceFile) -> Preprocessed:
        return preprocess(
            file, config=self.config, protected=self.protected, is_include_wanted=lambda _n, _q: False
        )

    def expand(self, tokens: Sequence[Token]) -> list[Token]:
        """Expand tokens with every macro that can be found, included files too."""
        return Expander(self._lookup_all).expand(tokens)

    def _lookup_all(self, name: str) -> Macro | None:
        """Find a macro for text: a CONFIG option that is on has the value that autoconf.h gives it."""
        if name.startswith("CONFIG_") and name not in self.macros:
            value = self.config.value(name)
            return define(name, value, "autoconf.h") if value is not None else None
        return self._lookup_unprotected(name)

    def _lookup_unprotected(self, name: str) -> Macro | None:
        if name in self.protected:
            return None
        return self._empty.get(name) or self.macro(name)

    def constant(self, name: str) -> int | None:
        """Return the value of an enumerator or of a macro that is an integer, None if unknown.

        >>> from tracepoint.source.macros import define
        >>> Environment({"TASK_COMM_LEN": define("TASK_COMM_LEN", "(8 * 2)")}).constant("TASK_COMM_LEN")
        16
        """
        if name in self._constants:
            return self._constants[name]
        self._constants[name] = None  # a name that is defined by itself has no value
        try:
            value = self._find_constant(name)
        except SourceError:
            value = None
        self._constants[name] = value
        return value

    def _find_constant(self, name: str) -> int | None:
        if name.startswith("CONFIG_"):
            return self.config.number(name)
        found = self._meaning(name)
        if isinstance(found, Macro):
            return self.evaluate(found.body) if found.params is None and found.body else None
        if found is None:
            return self.constant(_BOUNDS[name]) if name in _BOUNDS else None
        return found.enumerator(name, self.evaluate) if name in found.enumerators else None

    def _meaning(self, name: str) -> Macro | Declarations | None:
        """Return what a name refers to: a macro, or the declarations that hold the enumerator or typedef.

        The nearest file decides: what is after it is not read.
        """
        macro = self.macros.get(name)
        # `#define IPPROTO_TCP IPPROTO_TCP` only says that the enumerator exists.
        if macro is not None and macro.text != name:
            return macro
        if name in self.own.enumerators:
            return self.own
        if self.closure is None:
            return None
        if name not in self._meanings:
            self._meanings[name] = self._find_meaning(name, self.closure)
        return self._meanings[name]

    def _find_meaning(self, name: str, closure: IncludeClosure) -> Macro | Declarations | None:
        for file in closure.holding(name):
            # `__builtin_bswap16` is the compiler's, whatever a header for another one makes of it.
            if closure.defines(file, name) and not name.startswith("__builtin_"):
                macro = self._macros_of(file).get(name) or self._macros_within(file).get(name)
                if macro is not None and macro.text != name:
                    return macro
            if closure.declares(file, name):
                declared = self._declarations(file)
                if name in declared.enumerators or name in declared.typedefs:
                    return declared
        return None

    def evaluate(self, tokens: Sequence[Token]) -> int | None:
        """Evaluate tokens as an integer constant expression; None when some part is unknown."""
        # An option without a number must not count as 1 here.
        expanded = [t for t in Expander(self._lookup_unprotected).expand(tokens) if t.kind is not Kind.END]
        if not expanded:
            return None
        return constant_value(parse_expression(expanded), self.constant)

    def is_enumerator(self, name: str) -> bool:
        """Return whether the name is declared in an `enum` that can be seen from the header."""
        found = self._meaning(name)
        return isinstance(found, Declarations) and name in found.enumerators

    def _declarations(self, file: SourceFile) -> Declarations:
        if file.path not in self._shared.declared:
            self._shared.declared[file.path] = read_declarations(self._preprocess(file).tokens)
        return self._shared.declared[file.path]

    def typedef(self, name: str) -> str | None:
        """Return the type that a typedef names, as text; None when it is not to be seen."""
        if name in self.own.typedefs:
            return self.own.typedefs[name]
        if self.closure is None:
            return None
        for file in self.closure.declaring(name):
            found = self._declarations(file).typedefs.get(name)
            if found is not None:
                return found
        return None

    def enum_members(self, tag: str) -> dict[str, int | None] | None:
        """Return the enumerators of `enum tag` with their values, None when it is not to be seen."""
        for declared in self._with_enum(tag):
            return {name: declared.enumerator(name, self.evaluate) for name in declared.enums[tag]}
        return None

    def is_packed_enum(self, tag: str) -> bool:
        """Return whether `enum tag` has an attribute that makes it as small as its values allow."""
        return any(tag in declared.packed_enums for declared in self._with_enum(tag))

    def _with_enum(self, tag: str) -> Iterable[Declarations]:
        if tag in self.own.enums:
            yield self.own
        if self.closure is not None:
            for file in self.closure.declaring(tag):
                declared = self._declarations(file)
                if tag in declared.enums:
                    yield declared

    def expand_value(self, tokens: Sequence[Token]) -> list[Token]:
        """Expand tokens of a constant expression: an option without a number stays a name."""
        return [t for t in Expander(self._lookup_unprotected).expand(tokens) if t.kind is not Kind.END]

    def struct(self, name: str) -> StructBody | None:
        """Return the members of `struct tag`, `union tag` or a typedef; None when it is not to be seen.

        Raises SourceError when the definition is not understood.
        """
        if name not in self._structs:
            self._structs[name] = None  # a tag that is a macro for itself
            self._structs[name] = self._find_struct(name)
        return self._structs[name]

    def _find_struct(self, name: str) -> StructBody | None:
        keyword, _, tag = name.rpartition(" ")
        text = next((text for text in self._definitions(keyword, tag) if text is not None), None)
        if text is not None:
            kept = Expander(self._lookup_in_struct).expand(text.tokens)
            return read_struct(text._replace(tokens=tuple(kept)))
        renamed = self.macro(tag)  # #define sockaddr_storage __kernel_sockaddr_storage
        if renamed is None or renamed.params is not None or len(renamed.body) != 1 or renamed.text == tag:
            return None
        return self.struct(f"{keyword} {renamed.text}".strip())

    def _definitions(self, keyword: str, tag: str) -> Iterable[StructText | None]:
        yield find_definition(self._tokens, keyword, tag)
        if self.closure is None:
            return
        begin = rf"\b{keyword}\s+(?:{_MARK}\s+)?{tag}\s*(?:{_MARK}\s*)?\{{"
        wanted = begin if keyword else rf"\}}[^;{{}}]{{0,200}}\b{tag}\s*;"
        for file in self.closure.matching(tag, re.compile(wanted)):
            key = file.path, keyword, tag
            if key not in self._shared.structs:
                self._shared.structs[key] = find_definition(self._preprocess(file).tokens, keyword, tag)
            yield self._shared.structs[key]

    def _lookup_in_struct(self, name: str) -> Macro | None:
        """Find a macro for the text of a struct, in which attributes must stay."""
        return None if name in KEPT_WORDS else self._lookup_unprotected(name)
