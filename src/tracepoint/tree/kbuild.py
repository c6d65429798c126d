"""How a C file of the kernel is built, as far as Makefiles and Kconfig show."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.tree.kconfig import Kconfig, negated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAKEFILES = ("Kbuild", "Makefile")
_ASSIGNMENT = re.compile(r"^[ \t]*([\w.-]+?)-(y|m|objs|\$[({][^=\n]*[)}])[ \t]*[:+?]?=[ \t]*([^#\n]*)")
_ADDPREFIX = re.compile(r"\$[({]addprefix[ \t]+([\w./-]+),([^()]*)[)}]")
_CONDITION = re.compile(r"^[ \t]*(else[ \t]+)?(ifdef|ifndef|ifeq|ifneq|else|endif)\b(.*)")
_ONE_OPTION = re.compile(
    r"[ \t]*\(?[ \t]*(?:\$[({])?CONFIG_(\w+)[)}]?[ \t]*(?:,[ \t]*([ymn]?)[ \t]*\))?[ \t]*(?:#.*)?"
)
_OPTION = re.compile(r"\bCONFIG_(\w+)")
_REFERENCE = re.compile(r"\$[({]([\w.-]+)-(?:y|m|objs)[)}]")
_GOALS = frozenset(("obj", "lib", "core", "drivers", "net", "libs"))
_MAX_STEPS = 12


class _Listed(NamedTuple):
    """One list of a Makefile: its name without `-y`, what follows the dash, its words, its options."""

    name: str
    how: str
    words: tuple[str, ...]
    options: frozenset[str]


@dataclass(frozen=True, slots=True)
class Built:
    """How a file is built: under which options, and whether in a module.

    `module` is the object that becomes the module (empty if the file is built in or nothing
    is known); `is_known` is False if no Makefile lists the file.  An option may be `A|B`: one of them.
    """

    options: frozenset[str] = frozenset()
    module: str = ""
    is_known: bool = True

    @property
    def is_always(self) -> bool:
        """Whether every kernel has it."""
        return self.is_known and not self.options and not self.module


class Kbuild:
    """Reads the Makefiles and Kconfig files of a tree, each once.

    `read` returns the text of a file below the tree, None when there is none.
    """

    def __init__(self, read: Callable[[str], str | None]) -> None:
        self._text = read
        self._kconfig = Kconfig(read)
        self._lists: dict[str, tuple[_Listed, ...]] = {}
        self._built: dict[str, Built] = {}

    def built(self, path: str) -> Built:
        """Return how a C file is built."""
        if path not in self._built:
            self._built[path] = self._find(path)
        return self._built[path]

    def _find(self, path: str) -> Built:
        for folder, word in _words_of(path):
            found = self._in_folder(folder, word)
            if found is not None:
                return Built(found.options | self._options_of(folder), found.module)
        return Built(is_known=False)

    def exclude_each_other(self, one: str, other: str) -> bool:
        """Return whether Kconfig or a Makefile makes two C files alternatives: no kernel has both.

        One needs an option that the other needs off (`depends on !OTHER`, two branches of an `ifdef`), or
        they need two options of one `choice`.
        """
        first, second = self._needed(one), self._needed(other)
        if any(negated(literal) in second for literal in first):
            return True
        folders = {path.rpartition("/")[0] for path in (one, other)}
        choices = [choice for folder in folders for choice in self._kconfig.choices(folder)]
        return any(
            a != b and a in choice and b in choice for choice in choices for a in first for b in second
        )

    def _needed(self, path: str) -> frozenset[str]:
        """Return the options without which a file is never built, and `!NAME` for those that must be off."""
        for folder, word in _words_of(path):
            ways = [way.options for way in self._ways(folder, word, 0)]
            if ways:
                needed = _common(ways).union(*map(_common, self._ways_into(folder)))
                return self._kconfig.with_required(path.rpartition("/")[0], needed - {"?"})
        return frozenset()

    def _in_folder(self, folder: str, word: str) -> Built | None:
        ways = list(self._ways(folder, word, 0))
        # The most common way: built in, under the fewest options.
        best = min(ways, key=lambda b: (bool(b.module), len(b.options)), default=None)
        if best is None:
            return None
        return Built(_any_of([b.options for b in ways if b.module == best.module], frozenset()), best.module)

    def _ways(self, folder: str, word: str, depth: int) -> Iterator[Built]:
        """Yield how the lists of a folder include a word, through lists that name other lists."""
        if depth > _MAX_STEPS:
            return
        for listed in self._read(folder):
            references = {found[1] for w in listed.words if (found := _REFERENCE.fullmatch(w))}
            if word not in listed.words and word.removesuffix("-y") not in references:
                continue
            options = listed.options
            if listed.name in _GOALS and listed.how != "objs":
                is_module = word.endswith(".o") and self._may_be_module(folder, listed.how)
                yield Built(options, f"{folder}/{word}" if is_module else "")
                continue
            for next_word in (f"{listed.name}.o", f"{listed.name}-y"):
                for outer in self._ways(folder, next_word, depth + 1):
                    yield Built(outer.options | options, outer.module)

    def _may_be_module(self, folder: str, how: str) -> bool:
        if how == "m":
            return True
        if not how.startswith("$"):
            return False
        return any(self._kconfig.kind(folder, option) == "tristate" for option in _OPTION.findall(how))

    def _options_of(self, folder: str) -> frozenset[str]:
        """Return the options that decide whether make enters a folder at all."""
        options: frozenset[str] = frozenset()
        for ways in self._ways_into(folder):
            options |= _any_of(ways, options)
        return options

    def _ways_into(self, folder: str) -> Iterator[list[frozenset[str]]]:
        """Yield the options under which make enters a folder, then its parent, and so on."""
        while True:
            parent, _, name = folder.rpartition("/")
            if not parent or parent == "arch":
                return
            yield [
                listed.options
                for listed in self._read(parent)
                if listed.name in _GOALS and f"{name}/" in listed.words
            ]
            folder = parent

    def _read(self, folder: str) -> tuple[_Listed, ...]:
        if folder not in self._lists:
            texts = (self._text(f"{folder}/{name}") for name in _MAKEFILES)
            self._lists[folder] = tuple(listed for text in texts if text for listed in _lists(text))
        return self._lists[folder]

    def missing(self, path: str, given: frozenset[str], wanted: frozenset[str]) -> frozenset[str]:
        """Return the wanted options that are not implied by those that build a file.

        An option implies what it selects or depends on. Without TRACEPOINTS no call does anything.
        """
        folder = path.rpartition("/")[0]
        brought = given | {"TRACEPOINTS"}
        for option in given:
            brought |= self._kconfig.brought_by(folder, option)
        # MMU is `def_bool y` for the files of x86.
        brought |= {option for option in wanted - brought if self._kconfig.is_always(folder, option)}
        return frozenset(option for option in wanted if brought.isdisjoint(option.split("|")))


def _words_of(path: str) -> Iterator[tuple[str, str]]:
    """Yield the folders whose Makefile may list a C file, with its name there."""
    folder, _, name = path.rpartition("/")
    word = name.rpartition(".")[0] + ".o"
    # A Makefile may list files of the folders below it (fs/xfs/libxfs).
    while folder:
        yield folder, word
        folder, _, last = folder.rpartition("/")
        word = f"{last}/{word}"


def _common(ways: list[frozenset[str]]) -> frozenset[str]:
    return frozenset.intersection(*ways) if ways else frozenset()


def _any_of(ways: list[frozenset[str]], given: frozenset[str]) -> frozenset[str]:
    """Return what one of several alternatives needs, each a set of options, given some options.

    Alternatives of one option each become one name, `A|B`.  A kernel with tracepoints has TRACEPOINTS.
    """
    ways = [way - given - {"TRACEPOINTS"} for way in ways]
    shortest = min(ways, key=len, default=frozenset())
    if len(shortest) != 1:
        return shortest
    names = {name for way in ways if len(way) == 1 for name in way}
    if any(negated(name) in names - {"?"} for name in names):  # both branches of an `ifdef` list it
        return frozenset()
    return frozenset(["|".join(sorted(names))])


def _lists(text: str) -> Iterator[_Listed]:
    conditions: list[frozenset[str]] = []
    joined = text.replace("\\\n", " ")
    joined = _ADDPREFIX.sub(lambda m: " ".join(m[1] + word for word in m[2].split()), joined)
    for line in joined.split("\n"):
        condition = _CONDITION.match(line)
        if condition is not None:
            _enter(conditions, condition)
            continue
        found = _ASSIGNMENT.match(line)
        if found is None:
            continue
        options = frozenset(_OPTION.findall(found[2])).union(*conditions)
        yield _Listed(found[1], found[2], tuple(found[3].split()), options)


def _enter(conditions: list[frozenset[str]], directive: re.Match[str]) -> None:
    """Update the conditions for the lines after a conditional directive of a Makefile."""
    is_else, keyword, rest = directive.groups()
    if keyword == "endif":
        if conditions:
            conditions.pop()
        return
    if keyword == "else" or is_else:
        held = conditions.pop() if conditions else frozenset("?")
        before = frozenset(map(negated, held)) if len(held) == 1 else frozenset("?")
    else:
        before = frozenset()
    conditions.append(before if keyword == "else" else before | {_literal(keyword, rest)})


def _literal(keyword: str, rest: str) -> str:
    """Return the option that a condition needs, `!NAME` if it must be off, `?` if neither is clear.

    >>> _literal("ifneq", " ($(CONFIG_A),)"), _literal("ifndef", " CONFIG_A"), _literal("ifeq", " ($(V),1)")
    ('A', '!A', '?')
    """
    found = _ONE_OPTION.fullmatch(rest)
    if found is None:
        return "?"
    is_equal, is_off = keyword == "ifeq", found[2] in ("", "n")
    if keyword.endswith("def"):
        return found[1] if keyword == "ifdef" else f"!{found[1]}"
    if not is_equal and not is_off:
        return "?"  # `ifneq ($(CONFIG_X),y)` also holds for a module
    return f"!{found[1]}" if is_equal and is_off else found[1]
