"""How a C file of the kernel is built, as far as Makefiles and Kconfig tell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.place.kernel import Kernel

_MAKEFILES = ("Kbuild", "Makefile")
_ASSIGNMENT = re.compile(r"^[ \t]*([\w.-]+?)-(y|m|objs|\$[({][^=\n]*[)}])[ \t]*[:+?]?=[ \t]*([^#\n]*)")
_ADDPREFIX = re.compile(r"\$[({]addprefix[ \t]+([\w./-]+),([^()]*)[)}]")
_CONDITION = re.compile(r"^[ \t]*(ifdef|ifndef|ifeq|ifneq|endif)\b(.*)")
_OPTION = re.compile(r"\bCONFIG_(\w+)")
_REFERENCE = re.compile(r"\$[({]([\w.-]+)-(?:y|m|objs)[)}]")
_GOALS = frozenset(("obj", "lib", "core", "drivers", "net", "libs"))
_KIND = re.compile(r"^[ \t]+(?:def_)?(tristate|bool)\b", re.MULTILINE)
_SELECT = re.compile(r"^[ \t]+select[ \t]+(\w+)[ \t]*$", re.MULTILINE)
_DEPENDS = re.compile(r"^[ \t]+depends on[ \t]+(.*)$", re.MULTILINE)
_ALWAYS = re.compile(r"^[ \t]+def_bool y[ \t]*$", re.MULTILINE)
_MAX_STEPS = 12


class _Listed(NamedTuple):
    """One list of a Makefile: its name without `-y`, what follows the dash, its words, its options."""

    name: str
    how: str
    words: tuple[str, ...]
    options: frozenset[str]


@dataclass(frozen=True, slots=True)
class Built:
    """How a file is built: under which options, and whether into a module.

    `module` is the object that becomes the module (empty when the file is built in, or when nothing
    is known); `is_known` is false when no Makefile lists the file.  An option may be `A|B`: one of them.
    """

    options: frozenset[str] = frozenset()
    module: str = ""
    is_known: bool = True

    @property
    def is_always(self) -> bool:
        """Whether every kernel has it."""
        return self.is_known and not self.options and not self.module


class Kbuild:
    """Reads the Makefiles of a tree, each once."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._lists: dict[str, tuple[_Listed, ...]] = {}
        self._built: dict[str, Built] = {}
        self._kinds: dict[tuple[str, str], str] = {}

    def built(self, path: str) -> Built:
        """Return how a C file is built."""
        if path not in self._built:
            self._built[path] = self._find(path)
        return self._built[path]

    def _find(self, path: str) -> Built:
        folder, _, name = path.rpartition("/")
        word = name.rpartition(".")[0] + ".o"
        # A Makefile may list files of the folders below it (fs/xfs/libxfs).
        while folder:
            found = self._in_folder(folder, word)
            if found is not None:
                return Built(found.options | self._options_of(folder), found.module)
            folder, _, last = folder.rpartition("/")
            word = f"{last}/{word}"
        return Built(is_known=False)

    def _in_folder(self, folder: str, word: str) -> Built | None:
        ways = list(self._ways(folder, word, 0))
        # The way that most kernels have: built in, under the fewest options.
        best = min(ways, key=lambda b: (bool(b.module), len(b.options)), default=None)
        if best is None:
            return None
        return Built(_any_of([b.options for b in ways if b.module == best.module], frozenset()), best.module)

    def _ways(self, folder: str, word: str, depth: int) -> Iterator[Built]:
        """Yield how the lists of a folder bring a word, through the lists that name other lists."""
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
        return any(self._kind(folder, option) == "tristate" for option in _OPTION.findall(how))

    def _options_of(self, folder: str) -> frozenset[str]:
        """Return the options that decide whether make enters a folder at all."""
        options: frozenset[str] = frozenset()
        while True:
            parent, _, name = folder.rpartition("/")
            if not parent or parent == "arch":
                return options
            ways = [
                listed.options
                for listed in self._read(parent)
                if listed.name in _GOALS and f"{name}/" in listed.words
            ]
            options |= _any_of(ways, options)
            folder = parent

    def _read(self, folder: str) -> tuple[_Listed, ...]:
        if folder not in self._lists:
            texts = (self._kernel.text(f"{folder}/{name}") for name in _MAKEFILES)
            self._lists[folder] = tuple(listed for text in texts if text for listed in _lists(text))
        return self._lists[folder]

    def _kind(self, folder: str, option: str) -> str:
        """Return `tristate` or `bool`, empty when no Kconfig near the folder says."""
        key = folder, option
        if key not in self._kinds:
            self._kinds[key] = self._find_kind(folder, option)
        return self._kinds[key]

    def _find_kind(self, folder: str, option: str) -> str:
        for entry in self._entries(folder, option):
            kind = _KIND.search(entry)
            if kind is not None:
                return kind[1]
        return ""

    def _entries(self, folder: str, option: str) -> Iterator[str]:
        """Yield what the Kconfig files of a folder, and of those around it, say of an option."""
        entry = re.compile(rf"^(?:menu)?config {re.escape(option)}\n((?:[ \t].*\n|\n)*)", re.MULTILINE)
        while True:
            for name in ("Kconfig", "Kconfig.debug"):
                text = self._kernel.text(f"{folder}/{name}" if folder else name)
                yield from (found[1] for found in entry.finditer(text or ""))
            if not folder:
                return
            folder = folder.rpartition("/")[0]

    def missing(self, path: str, given: frozenset[str], wanted: frozenset[str]) -> frozenset[str]:
        """Return the wanted options that the given ones, which bring a file, do not bring along.

        What an option selects or depends on comes with it.  Without TRACEPOINTS no call does anything.
        """
        folder = path.rpartition("/")[0]
        brought = given | {"TRACEPOINTS"}
        for option in given:
            for entry in self._entries(folder, option):
                brought |= frozenset(_SELECT.findall(entry))
                for condition in _DEPENDS.findall(entry):
                    brought |= (
                        frozenset() if "||" in condition else frozenset(map(str.strip, condition.split("&&")))
                    )
        for option in wanted - brought:  # MMU is `def_bool y` for the files of x86
            if any(_ALWAYS.search(entry) for entry in self._entries(folder, option)):
                brought |= {option}
        return frozenset(option for option in wanted if brought.isdisjoint(option.split("|")))


def _any_of(ways: list[frozenset[str]], given: frozenset[str]) -> frozenset[str]:
    """Return what is needed for one of some ways, each a set of options, where some are given.

    Several ways of one option each become one name, `A|B`.  A kernel with tracepoints has TRACEPOINTS.
    """
    ways = [way - given - {"TRACEPOINTS"} for way in ways]
    shortest = min(ways, key=len, default=frozenset())
    if len(shortest) != 1:
        return shortest
    return frozenset(["|".join(sorted({name for way in ways if len(way) == 1 for name in way}))])


def _lists(text: str) -> Iterator[_Listed]:
    conditions: list[frozenset[str]] = []
    joined = text.replace("\\\n", " ")
    joined = _ADDPREFIX.sub(lambda m: " ".join(m[1] + word for word in m[2].split()), joined)
    for line in joined.split("\n"):
        condition = _CONDITION.match(line)
        if condition is not None:
            if condition[1] != "endif":
                conditions.append(frozenset(_OPTION.findall(condition[2])) or frozenset(("?",)))
            elif conditions:
                conditions.pop()
            continue
        found = _ASSIGNMENT.match(line)
        if found is None:
            continue
        options = frozenset(_OPTION.findall(found[2])).union(*conditions)
        yield _Listed(found[1], found[2], tuple(found[3].split()), options)
