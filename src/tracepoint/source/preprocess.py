"""Directives: which text is read, with which macros, and what `#include` brings in.

The text of the file itself is expanded; of included files only the macros are taken, for what
they declare belongs to them, unless the caller says that one is a part of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tracepoint.diagnostics import Diagnostic, Severity
from tracepoint.errors import SourceError
from tracepoint.source.conditions import evaluate_condition
from tracepoint.source.config import KERNEL_DEFINES, Config
from tracepoint.source.directives import directives_of
from tracepoint.source.expand import Expander
from tracepoint.source.lexer import Kind, Token, lex
from tracepoint.source.macros import Macro, define, parse_define, spell

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from tracepoint.diagnostics import Span
    from tracepoint.source.text import SourceFile

MAX_INCLUDE_DEPTH = 40
MAX_INCLUDES = 5000
MAX_CONDITION_DEPTH = 200


class Loader(Protocol):
    """Finds included files; the caller decides where they come from."""

    def load(self, name: str, *, is_quoted: bool, includer: str) -> SourceFile | None:
        """Return the file that `#include` names, or None when it cannot be had."""
        ...


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive of the file itself: its keyword, its tokens, where it stood in the output.

    `n_output` counts the expanded tokens before it; `depth` the open conditionals; `is_active`
    whether the branch it is in was read.
    """

    keyword: str
    hash: Token
    tokens: tuple[Token, ...]
    n_output: int
    depth: int
    is_active: bool

    @property
    def span(self) -> Span:
        """From the `#` to the end of the directive."""
        last = self.tokens[-1] if self.tokens else self.hash
        return self.hash.file.span(self.hash.start, last.end)


@dataclass(frozen=True, slots=True)
class Undecided:
    """Text that was left out because nothing at hand defines `name`; `end` is where it ends in the file."""

    name: str
    condition: Token
    end: int


@dataclass(slots=True)
class Preprocessed:
    """What preprocessing a file gave: expanded tokens, directives, the macro table, findings.

    `included_tokens` are those of included files that export enums; `undecided` the parts that a
    macro from elsewhere would bring in.
    """

    file: SourceFile
    tokens: list[Token]
    directives: list[Directive]
    macros: dict[str, Macro]
    includes: list[tuple[str, bool]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    included_tokens: list[Token] = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)


@dataclass(slots=True)
class _Branch:
    """One open conditional: was a branch taken, is the current one, and was the outer one."""

    taken: bool
    active: bool
    outer: bool
    opened: Token
    undecided: str = ""


class Preprocessor:
    """Runs the directives of one file; see `preprocess`."""

    def __init__(
        self,
        config: Config,
        loader: Loader | None,
        protected: Container[str],
        is_include_wanted: Callable[[str, bool], bool],
        *,
        assumes_features: bool = False,
    ) -> None:
        self.config = config
        self.loader = loader
        self.macros: dict[str, Macro] = {}
        self.undefined: set[str] = set()
        self.defined_here: set[str] = set()
        self.protected = protected
        self.is_include_wanted = is_include_wanted
        self.assumes_features = assumes_features
        self.out: list[Token] = []
        self.included_out: list[Token] = []
        self.pending: list[Token] = []
        self._sink = self.out
        self.directives: list[Directive] = []
        self.includes: list[tuple[str, bool]] = []
        self.diagnostics: list[Diagnostic] = []
        self._include_stack: list[str] = []
        self._n_included = 0
        for name, value in {**KERNEL_DEFINES, **config.defines}.items():
            macro = define(name, value)
            self.macros[macro.name] = macro
        self._expander = Expander(self._lookup)
        self.find_elsewhere: Callable[[str], Macro | None] = lambda _name: None
        self.is_outside: Callable[[str], bool | None] = lambda _name: None
        self._undecided_name = ""
        self.undecided: list[Undecided] = []
        self.is_part: Callable[[SourceFile], bool] = lambda _file: False
        self._n_parts = 0

    def _lookup(self, name: str) -> Macro | None:
        if name in self.protected and name not in self.defined_here:
            return None
        return self.macros.get(name)

    def run(self, file: SourceFile) -> Preprocessed:
        """Preprocess the file itself, keeping its text."""
        self._read(lex(file), is_main=True, has_text=True)
        self._flush()
        return Preprocessed(
            file,
            self.out,
            self.directives,
            self.macros,
            self.includes,
            self.diagnostics,
            self.included_out,
            self.undecided,
        )

    def let_go(self) -> None:
        """Drop what refers back here, so that all of this is freed at once, without the garbage collector."""
        del self._expander, self.find_elsewhere

    def take_macros(self, file: SourceFile, *, of: SourceFile) -> None:
        """Keep the macros of another file, which may itself include the file to be read."""
        self._include_stack = [of.path, file.path]
        self._read_directives(file)
        self._include_stack = []

    def _flush(self) -> None:
        if not self.pending:
            return
        pending, self.pending = self.pending, []
        self._expander.uncalled.clear()
        expanded = self._expander.expand(pending)
        lists = _list_macros(pending, self._expander.uncalled) if self._expander.uncalled else set()
        if lists:
            # `DEFINE_REASONS(FN, FNe)`: a list that another header defines calls our macros.
            wanted = (name for name in lists if name not in self.protected)
            found = {name: macro for name in wanted if (macro := self.find_elsewhere(name)) is not None}
            if found:
                expanded = Expander(lambda name: self._lookup(name) or found.get(name)).expand(pending)
        self._sink.extend(expanded)

    def _report(self, code: str, name: str, message: str, token: Token, severity: Severity) -> None:
        self.diagnostics.append(Diagnostic(code, name, message, token.root.span, severity))

    def _read(self, tokens: list[Token], *, is_main: bool, has_text: bool = False) -> None:
        branches: list[_Branch] = []
        active = True
        pending = self.pending
        at = 0
        n_tokens = len(tokens)
        while at < n_tokens:
            token = tokens[at]
            if token.first and token.text == "#" and token.kind is Kind.PUNCT:
                end = at + 1
                while end < n_tokens and not tokens[end].first and tokens[end].kind is not Kind.END:
                    end += 1
                if active and has_text and _changes_macros(tokens, at):
                    self._flush()
                active = self._directive(tokens, at, end, branches, active, is_main=is_main)
                pending = self.pending
                at = end
                continue
            if active and has_text:
                pending.append(token)
            at += 1
        for branch in branches:
            if is_main:
                self._report(
                    "TP003", "unterminated-conditional", "#if without #endif", branch.opened, Severity.ERROR
                )

    def _directive(
        self,
        tokens: list[Token],
        at: int,
        end: int,
        branches: list[_Branch],
        active: bool,
        *,
        is_main: bool,
    ) -> bool:
        """Carry out one directive; returns whether the text after it is read."""
        keyword = tokens[at + 1].text if at + 1 < end else ""
        rest = tokens[at + 2 : end]
        if is_main:
            depth = len(branches)
            n_output = len(self.out) + len(self.pending)
            self.directives.append(
                Directive(keyword, tokens[at], tuple(tokens[at + 1 : end]), n_output, depth, active)
            )
        if keyword in {"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"}:
            return self._conditional(keyword, tokens[at], rest, branches, active)
        if active:
            self._act(keyword, tokens[at], rest, is_main=is_main)
        return active

    def _act(self, keyword: str, where: Token, rest: list[Token], *, is_main: bool) -> None:
        if keyword == "define":
            try:
                macro = parse_define(rest)
            except SourceError as error:
                self._report("TP004", "bad-directive", error.message, where, Severity.ERROR)
                return
            self._define(macro)
            if is_main:
                self.defined_here.add(macro.name)
        elif keyword == "undef" and rest:
            self.macros.pop(rest[0].text, None)
            self.undefined.add(rest[0].text)
            self.defined_here.discard(rest[0].text)
        elif keyword == "include":
            self._include(where, rest, is_main=is_main)

    def _define(self, macro: Macro) -> None:
        self.macros[macro.name] = macro
        self.undefined.discard(macro.name)

    def _read_directives(self, file: SourceFile) -> None:
        """Carry out the directives of a file whose text does not count."""
        branches: list[_Branch] = []
        active = True
        for directive in directives_of(file):
            if isinstance(directive, Macro):
                if active:
                    self._define(directive)
            else:
                active = self._directive(directive, 0, len(directive), branches, active, is_main=False)

    def _conditional(
        self, keyword: str, where: Token, rest: list[Token], branches: list[_Branch], active: bool
    ) -> bool:
        if keyword in {"if", "ifdef", "ifndef"}:
            if len(branches) >= MAX_CONDITION_DEPTH:
                raise SourceError(f"more than {MAX_CONDITION_DEPTH} nested conditionals", where.span)
            self._undecided_name = ""
            taken = active and self._test(keyword, where, rest)
            left_out = self._undecided_name if active and not taken else ""
            branches.append(_Branch(taken, taken, active, where, undecided=left_out))
            return taken
        if not branches:
            self._report(
                "TP003", "unterminated-conditional", f"#{keyword} without #if", where, Severity.ERROR
            )
            return active
        branch = branches[-1]
        if branch.undecided and not self._include_stack:
            self.undecided.append(Undecided(branch.undecided, branch.opened, where.start))
            branch.undecided = ""
        if keyword == "endif":
            return branches.pop().outer
        if keyword == "else":
            branch.active = branch.outer and not branch.taken
        else:
            test = keyword.removeprefix("el")
            branch.active = branch.outer and not branch.taken and self._test(test, where, rest)
        branch.taken = branch.taken or branch.active
        return branch.active

    def _test(self, keyword: str, where: Token, rest: list[Token]) -> bool:
        if keyword in {"ifdef", "ifndef"}:
            return bool(rest) and self.is_defined(rest[0].text) == (keyword == "ifdef")
        try:
            return evaluate_condition(rest, self.is_defined, self._expander.expand, self.config)
        except SourceError as error:
            self._report(
                "TP005",
                "condition-not-understood",
                f"cannot evaluate `#if {spell(rest)}`: {error.message}; taken as false",
                where,
                Severity.WARNING,
            )
            return False

    def is_defined(self, name: str) -> bool:
        """Return whether `defined(name)` holds here."""
        if name in self.macros:
            return True
        if name in self.undefined:
            return False
        if name.startswith("CONFIG_"):
            return self.config.value(name) is not None
        if self.config.is_compiler_feature(name):
            return True
        if self._include_stack:
            return False
        if self.assumes_features and self.config.is_feature(name):
            return True
        found = self.is_outside(name)
        if found is None:
            self._undecided_name = name
        return bool(found)

    def _include(self, where: Token, rest: list[Token], *, is_main: bool) -> None:
        if rest and rest[0].kind is Kind.NAME:
            rest = self._expander.expand(rest)
        text = spell(rest)
        is_quoted = text.startswith('"')
        name = text.strip('"<> ').replace(" ", "")
        if is_main:
            self.includes.append((name, is_quoted))
        if self.loader is None or not self.is_include_wanted(name, is_quoted):
            return
        file = self.loader.load(name, is_quoted=is_quoted, includer=where.file.path)
        if file is None or file.path in self._include_stack:
            return
        if len(self._include_stack) >= MAX_INCLUDE_DEPTH:
            raise SourceError(f"#include nests more than {MAX_INCLUDE_DEPTH} deep", where.span)
        self._n_included += 1
        if self._n_included > MAX_INCLUDES:
            raise SourceError(f"more than {MAX_INCLUDES} files included", where.span)
        self._include_stack.append(file.path)
        if (is_main or self._n_parts) and self.is_part(file):
            self._n_parts += 1
            self._read(lex(file)[:-1], is_main=False, has_text=True)
            self._flush()
            self._n_parts -= 1
        elif is_main and "TRACE_DEFINE_ENUM" in file.text:
            self._read_with_text(file)
        else:
            self._read_directives(file)
        self._include_stack.pop()

    def _read_with_text(self, file: SourceFile) -> None:
        """Keep the text of an included file apart: what it says of enums holds for the file itself too."""
        self._sink = self.included_out
        self._read(lex(file)[:-1], is_main=False, has_text=True)
        self._flush()
        self._sink = self.out


def _changes_macros(tokens: list[Token], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].text in {"define", "undef", "include"}


def _list_macros(tokens: list[Token], uncalled: set[str]) -> set[str]:
    """Return the names of calls that take a function-like macro as a bare argument."""
    callers: list[str] = []
    found: set[str] = set()
    for index, token in enumerate(tokens):
        if token.text == "(":
            callers.append(tokens[index - 1].text if index else "")
        elif token.text == ")" and callers:
            callers.pop()
        elif token.text in uncalled and callers:
            found.add(callers[-1])
    return found


def macros_of(file: SourceFile, *, config: Config, protected: Container[str] = ()) -> dict[str, Macro]:
    """Return the macros that a file by itself leaves defined; what it includes is not followed."""
    preprocessor = Preprocessor(config, None, protected, lambda _name, _is_quoted: False)
    preprocessor.take_macros(file, of=file)
    preprocessor.let_go()
    return preprocessor.macros


def preprocess(
    file: SourceFile,
    *,
    config: Config | None = None,
    loader: Loader | None = None,
    protected: Container[str] = (),
    is_include_wanted: Callable[[str, bool], bool] = lambda _name, is_quoted: is_quoted,
    preload: Iterable[SourceFile] = (),
    assumes_features: bool = False,
    find_elsewhere: Callable[[str, list[tuple[str, bool]]], Macro | None] | None = None,
    is_part: Callable[[SourceFile], bool] = lambda _file: False,
    is_outside: Callable[[str], bool | None] = lambda _name: None,
) -> Preprocessed:
    r"""Run the directives of a file and expand its text.

    `protected` names are not expanded unless the file itself defines them; `is_include_wanted`
    decides from a name and whether it is quoted which includes are followed; the macros of
    `preload` files are known before the first line; with `assumes_features`, what an architecture
    may have (`Config.is_feature`) counts as defined; `find_elsewhere` finds a macro, by name and the
    includes so far, that takes one of the file's macros as an argument; `is_part` says of an
    included file whether its text counts as the file's own; `is_outside` whether what is around
    the file defines a name, None when that cannot be known.  Raises SourceError when expansion or
    nesting grows without bound.

    >>> from tracepoint.source.text import SourceFile
    >>> out = preprocess(SourceFile("a.h", "#define TWICE(x) x x\nTWICE(f(1))\n"))
    >>> [t.text for t in out.tokens if t.text]
    ['f', '(', '1', ')', 'f', '(', '1', ')']
    """
    preprocessor = Preprocessor(
        config or Config(), loader, protected, is_include_wanted, assumes_features=assumes_features
    )
    if find_elsewhere is not None:
        preprocessor.find_elsewhere = lambda name: find_elsewhere(name, preprocessor.includes)
    preprocessor.is_part = is_part
    preprocessor.is_outside = is_outside
    for other in preload:
        preprocessor.take_macros(other, of=file)
    read = preprocessor.run(file)
    preprocessor.let_go()
    return read
