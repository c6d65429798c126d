"""Find the header of a kernel that defines a name missing for the compiler."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.lab.programs import grep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tracepoint.lab.build.module import CompilerMessage
    from tracepoint.lab.build.stub import Compiler

# GCC's messages about an undefined name; the first group is the name.
_MISSING = tuple(
    re.compile(text)
    for text in (
        r"(?:undefined|incomplete)(?: element)? type '(?:const )?((?:struct|union|enum) \w+)",
        r"unknown type name '(\w+)'",
        r"'(\w+)' undeclared",
        r"implicit declaration of function '(\w+)'",
        r"expected (?:declaration specifiers or '\.\.\.'|'\)'|specifier-qualifier-list) before '(\w+)'",
        r"variable '\w+' has initializer but incomplete type",
    )
)
_OF_PARAMETER = re.compile(r"(?:parameter \d+ \('(\w+)'\) has incomplete|storage size of '(\w+)' isn't)")
_KEYWORDS = frozenset("char const double enum float int long short signed struct union unsigned void".split())
# What the tracing macros themselves would have defined.
_OF_MACROS = re.compile(
    r"(?:__traceiter|__tracepoint|__SC[KT]_|__bpf_trace|perf_trace|trace_event|trace_raw|check_trace|trace"
    r"|register_trace|unregister_trace)_"
)
_SHAPES = {
    "tag": r"^(typedef )?{0}[[:space:]]*(__[a-z_]+[[:space:]]*)*\{{",
    "function": r"^[a-z].*[ *]{0}\(|^#[[:space:]]*define[[:space:]]+{0}\(",
    "name": (
        r"^\}} ?{0};|^typedef .*[ *]{0};|^typedef .*\(\*{0}\)"
        r"|^#[[:space:]]*define[[:space:]]+{0}([[:space:]]|$)"
        r"|^[[:space:]]+{0}([[:space:]]*=.*)?,|^[[:space:]]+{0}$|^extern .*[ *]{0}(;|\[)"
    ),
}
#: Headers that are included by others only, or by user space.
_INNER = ("asm-generic/", "generated/", "uapi/", "acpi/", "xen/", "trace/")


def missing_names(
    messages: Iterable[CompilerMessage], types: Mapping[str, str]
) -> list[tuple[str, CompilerMessage]]:
    """Return the undefined names, once for each error; `types` are those of parameters.

    Functions end with `()`.
    """
    found: list[tuple[str, CompilerMessage]] = []
    for message in messages:
        name = ""
        parameter = _OF_PARAMETER.search(message.text)
        if parameter:
            name = types.get(parameter[1] or parameter[2], "")
        for pattern in _MISSING:
            match = pattern.search(message.text)
            if match and match.groups():
                name = match[1]
                break
        if name and name not in _KEYWORDS and not _OF_MACROS.match(name):
            is_function = message.text.startswith("implicit")
            found.append((f"{name}()" if is_function else name, message))
    return found


@dataclass(slots=True)
class Definers:
    """Looks for definitions below the include folders of a kernel, with grep."""

    compiler: Compiler
    _found: dict[str, list[str]] = field(default_factory=dict)

    def find(self, name: str) -> list[str]:
        """Return the headers that define a name (`struct x`, `x`, `x()`), in brackets, likely ones first."""
        if name not in self._found:
            self._found[name] = self._search(name)
        return self._found[name]

    def _search(self, name: str) -> list[str]:
        shape = "function" if name.endswith("()") else "tag" if " " in name else "name"
        pattern = _SHAPES[shape].format(name.removesuffix("()").replace(" ", "[[:space:]]+"))
        folders = self.folders()
        paths = {self._included(str(path), folders) for path in grep("E", "*.h", [pattern], folders)}
        return [f"<{path}>" for path in sorted(paths, key=_rank)]

    def folders(self) -> list[Path]:
        """Return the folders that the compiler searches, without nested ones."""
        words = [word[2:] for word in self.compiler.words if word.startswith("-I")]
        folders = [(self.compiler.folder / word).resolve() for word in words]
        return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]

    @staticmethod
    def _included(path: str, folders: list[Path]) -> str:
        """Return the shortest name under which a file is included."""
        names = [os.path.relpath(path, folder) for folder in folders if path.startswith(f"{folder}/")]
        return min(names, key=len, default=path)


def _rank(path: str) -> tuple[bool, bool, int, str]:
    return path.startswith(_INNER), not path.startswith(("linux/", "net/", "asm/")), len(path), path
