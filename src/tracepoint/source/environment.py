"""What a header's names stand for: macros, constants, typedefs and enums around it.

The header's own macros come first.  When a loader was given, the files that it includes,
directly or not, are searched on demand: nothing is read before somebody asks.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.config import EMPTY_MACROS, Config
from tracepoint.source.cvalue import constant_value
from tracepoint.source.declarations import Declarations, read_declarations
from tracepoint.source.definitions import read_definitions
from tracepoint.source.expand import Expander
from tracepoint.source.lexer import Kind
from tracepoint.source.macros import Macro, define
from tracepoint.source.preprocess import preprocess

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from tracepoint.source.definitions import Definition
    from tracepoint.source.lexer import Token
    from tracepoint.source.preprocess import Loader, Preprocessed
    from tracepoint.source.text import SourceFile

MAX_CLOSURE_FILES = 6000
MAX_CLOSURE_CHARS = 200_000_000

#: What kernel/bounds.c writes to include/generated/bounds.h, which an unbuilt tree does not have.
_BOUNDS = {"NR_PAGEFLAGS": "__NR_PAGEFLAGS", "MAX_NR_ZONES": "__MAX_NR_ZONES"}

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*")
_ENUM = re.compile(r"\benum\b\s*(\w*)[^;{}()]*\{([^{}]*)\}")
_TYPEDEF = re.compile(r"\btypedef\b[^;{}]*?\b(\w+)\s*;")
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.MULTILINE)


@dataclass(slots=True)
class SharedFiles:
    """What was found in included files, by path; headers read under one configuration share it."""

    preprocessed: dict[str, Preprocessed] = field(default_factory=dict)
    declared: dict[str, Declarations] = field(default_factory=dict)
    includes: dict[str, list[tuple[str, bool]]] = field(default_factory=dict)
    defines: dict[str, list[str]] = field(default_factory=dict)
    declares: dict[str, set[str]] = field(default_factory=dict)


class IncludeClosure:
    """All files that some roots include, directly or not, found on first use.

    `roots` are `(name, is_quoted, includer path)`, asked for on first use; files that cannot be
    had are passed over.
    """

    def __init__(
        self, loader: Loader, roots: Iterable[tuple[str, bool, str]], shared: SharedFiles | None = None
    ) -> None:
        self._loader = loader
        self._shared = shared or SharedFiles()
        self._roots = roots
        self._files: list[SourceFile] | None = None
        self._defining: dict[str, list[int]] = {}
        self._declaring: dict[str, list[int]] = {}

    @property
    def files(self) -> list[SourceFile]:
        """The files, nearest first."""
        if self._files is None:
            self._files = self._collect()
            for index, file in enumerate(self._files):
                for name in self._defines(file):
                    self._defining.setdefault(name, []).append(index)
        return self._files

    def _collect(self) -> list[SourceFile]:
        queue = deque(self._roots)
        asked: set[tuple[str, str]] = set()
        seen: set[str] = set()
        files: list[SourceFile] = []
        n_chars = 0
        while queue and len(files) < MAX_CLOSURE_FILES and n_chars < MAX_CLOSURE_CHARS:
            name, is_quoted, includer = queue.popleft()
            key = (name, includer if is_quoted else "")
            if key in asked:
                continue
            asked.add(key)
            file = self._loader.load(name, is_quoted=is_quoted, includer=includer)
            if file is None or file.path in seen:
                continue
            seen.add(file.path)
            files.append(file)
            n_chars += len(file.text)
            queue.extend((path, is_quoted, file.path) for path, is_quoted in self._includes(file))
        return files

    def _includes(self, file: SourceFile) -> list[tuple[str, bool]]:
        known = self._shared.includes.get(file.path)
        if known is None:
            known = [(path, quote == '"') for quote, path in _INCLUDE.findall(file.text)]
            self._shared.includes[file.path] = known
        return known

    def _defines(self, file: SourceFile) -> list[str]:
        known = self._shared.defines.get(file.path)
        if known is None:
            known = self._shared.defines[file.path] = _DEFINE.findall(file.text)
        return known

    def defining(self, name: str) -> list[SourceFile]:
        """Return the files that have a `#define name`."""
        files = self.files
        return [files[index] for index in self._defining.get(name, ())]

    def declaring(self, name: str) -> list[SourceFile]:
        """Return the files that may declare the name as enumerator, enum tag or typedef, nearest first."""
        files = self.files
        if not self._declaring:
            for index, file in enumerate(files):
                for known in self._declares(file):
                    self._declaring.setdefault(known, []).append(index)
        return [files[index] for index in self._declaring.get(name, ())]

    def _declares(self, file: SourceFile) -> set[str]:
        known = self._shared.declares.get(file.path)
        if known is None:
            known = self._shared.declares[file.path] = _declared_names(file.text)
        return known


def _declared_names(text: str) -> set[str]:
    """Return every name that stands in an enum's braces, after `enum`, or at the end of a typedef.

    A quick look by patterns, so that only files that can hold a name are read in earnest.
    """
    if "enum" not in text and "typedef" not in text:
        return set()
    names: set[str] = set()
    bare = _COMMENT.sub(" ", text)
    for tag, body in _ENUM.findall(bare):
        names.update(_WORD.findall(body))
        names.add(tag)
    names.update(_TYPEDEF.findall(bare))
    return names


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
        self._found_macros: dict[str, Macro | None] = {}

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

    def macro(self, name: str) -> Macro | None:
        """Return the macro of that name, from the header or from what it includes."""
        own = self.macros.get(name)
        if own is not None or self.closure is None:
            return own
        if name not in self._found_macros:
            self._found_macros[name] = self._find_macro(name)
        return self._found_macros[name]

    def _find_macro(self, name: str) -> Macro | None:
        if self.closure is None:
            return None
        for file in self.closure.defining(name):
            macro = self._read(file).macros.get(name)
            if macro is not None:
                return macro
        return None

    def _read(self, file: SourceFile) -> Preprocessed:
        """Preprocess one file by itself: its conditionals hold under our configuration."""
        if file.path not in self._shared.preprocessed:
            self._shared.preprocessed[file.path] = preprocess(
                file, config=self.config, protected=self.protected, is_include_wanted=lambda _n, _q: False
            )
        return self._shared.preprocessed[file.path]

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
        macro = self.macro(name)
        # `#define IPPROTO_TCP IPPROTO_TCP` only tells that the enumerator is there.
        if macro is not None and macro.text != name:
            if macro.params is not None or not macro.body:
                return None
            return self.evaluate(macro.body)
        declared = self._declaring(name)
        if declared is None:
            return self.constant(_BOUNDS[name]) if name in _BOUNDS else None
        return declared.enumerator(name, self.evaluate)

    def evaluate(self, tokens: Sequence[Token]) -> int | None:
        """Evaluate tokens as an integer constant expression; None when some part is unknown."""
        # An option that nobody gave a number must not count as 1 here.
        expanded = [t for t in Expander(self._lookup_unprotected).expand(tokens) if t.kind is not Kind.END]
        if not expanded:
            return None
        return constant_value(parse_expression(expanded), self.constant)

    def is_enumerator(self, name: str) -> bool:
        """Whether the name is declared in an `enum` that can be seen from the header."""
        return self._declaring(name) is not None

    def _declaring(self, name: str) -> Declarations | None:
        """Return the declarations of the file whose enums hold `name`."""
        if name in self.own.enumerators:
            return self.own
        if self.closure is None:
            return None
        for file in self.closure.declaring(name):
            declared = self._declarations(file)
            if name in declared.enumerators:
                return declared
        return None

    def _declarations(self, file: SourceFile) -> Declarations:
        if file.path not in self._shared.declared:
            self._shared.declared[file.path] = read_declarations(self._read(file).tokens)
        return self._shared.declared[file.path]

    def typedef(self, name: str) -> str | None:
        """Return the type that a typedef stands for, as text; None when it is not to be seen."""
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
