"""Compile generated modules before they are written: missing definitions are included or reported.

A trace header relies on what the `.c` files that use it include.  A module made from it includes the
headers that define names missing for the compiler; if no header of that kernel defines one, an error names
the event, the type and what to do.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.lab.build.compile import compile_file
from tracepoint.lab.build.module import BuildError, write_files
from tracepoint.lab.build.stub import module_compiler
from tracepoint.lab.kernels.definers import Definers, missing_names
from tracepoint.lab.kernels.exports import Unexported, find_unexported, tracepoint_of
from tracepoint.layout.elf import Elf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tracepoint.generate.fileset import FileSet
    from tracepoint.lab.build.module import CompilerMessage
    from tracepoint.lab.build.stub import Compiler

_ROUNDS = 8
_N_SHOWN = 8
_WARNINGS = ("-Werror",)
_QUICK = ("-fsyntax-only",)
_OPENING = re.compile(
    r"^(?:(?!TRACE_DEFINE)[A-Z_]*(?:EVENT|CLASS|TRACE)[A-Z_]*\(\s*(\w+)|static int fire_trace_(\w+)"
    r"|(TRACE_DEFINE_)\w+)",
    re.MULTILINE,
)
# GCC's message for a word that is read as a number for a parameter of another type.
_OBJECT = re.compile(r"incompatible types when assigning to type '(\w+)'")
_ADDRESS = re.compile(r"assignment to '(\w+)' \{aka '[^']*\*[^']*'\} from '\w+'")
_NO_FILE = re.compile(r"^(\S+): No such file or directory")


@dataclass(slots=True)
class _Search:
    """What was included so far, and what was tried without success."""

    definers: Definers
    types: Mapping[str, str]
    included: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    typedefs: dict[str, str] = field(default_factory=dict)

    def go_on(self, messages: Sequence[CompilerMessage], files: FileSet) -> bool:
        """Include what defines the missing names; False when there is nothing left to try."""
        inside = [m for m in messages if m.path.startswith("/") or m.path not in files]
        if inside and self.included:
            # The last included header does not compile alone.
            self.refused.add(self.included.popitem()[1])
            return True
        n_before = len(self.included) + len(self.typedefs)
        for message in messages:
            for pattern, stands_for in ((_OBJECT, "struct"), (_ADDRESS, "void *")):
                found = pattern.search(message.text)
                if found:
                    self.typedefs[found[1]] = stands_for
        for name in dict.fromkeys(name for name, _ in missing_names(messages, self.types)):
            known = {*self.included.values(), *self.refused}
            header = next((one for one in self.definers.find(name) if one not in known), None)
            if header is not None and name not in self.included:
                self.included[name] = header
        return len(self.included) + len(self.typedefs) > n_before


def complete_module(
    make: Callable[[Sequence[str], Mapping[str, str]], FileSet],
    source: str,
    kernel_headers: Path,
    types: Mapping[str, str],
    folders: Iterable[Path] = (),
) -> FileSet:
    """Return the files of a module that compiles without a warning for the kernel of `kernel_headers`.

    `make` returns them with more files included, and with what typedefs stand for; `source` is the `.c`
    file among them; `types` maps names of parameters to their types; `folders` are searched for files in
    quotes.  Notes say what is included for which name.  Raises GenerateError for names that no header
    defines, BuildError for other errors, and LabError when there is no compiler.
    """
    compiler = module_compiler(kernel_headers, has_warnings=True)
    search = _Search(Definers(compiler), types)
    after = [word for folder in folders for word in ("-iquote", str(folder.resolve()))]
    messages: tuple[CompilerMessage, ...] = ()
    needed = Unexported()
    for _ in range(_ROUNDS):
        files = make(list(dict.fromkeys(search.included.values())), search.typedefs)
        with tempfile.TemporaryDirectory(prefix="tracepoint-") as name:
            write_files(files, Path(name))
            words = [f"-I{name}", *after, *_WARNINGS]
            messages = compile_file(compiler, Path(name) / source, after=[*words, *_QUICK])
            if not messages:
                needed = _unexported(compiler, Path(name) / source, words, kernel_headers)
        absent = next((str(found[1]) for m in messages if (found := _NO_FILE.match(m.text))), "")
        if absent and not search.included:
            return files.with_notes(f"not compiled: there is no {absent} here")
        if not messages and needed.names:
            raise _no_export(needed.names, files, kernel_headers)
        if not messages:
            return files.with_notes(*_notes(search.included, compiler), *map(_of_another, needed.tracepoints))
        if not search.go_on(messages, files):
            break
    raise _error(messages, files, kernel_headers, search)


def _unexported(compiler: Compiler, source: Path, words: Sequence[str], kernel_headers: Path) -> Unexported:
    """Return what the object of a file needs but the kernel does not export to modules."""
    compile_file(compiler, source, after=words)
    elf = Elf(Path(f"{source}.o").read_bytes())
    named = (elf.symbol_name(symbol) for symbol in elf.symbols if symbol.section < 0)
    # The file's own name is included too.
    return find_unexported([name for name in named if name.isidentifier()], kernel_headers)


def _no_export(names: Sequence[str], files: FileSet, kernel_headers: Path) -> GenerateError:
    rows: dict[str, dict[str, None]] = {}
    for name in names:
        tracepoint = tracepoint_of(name)
        shown = f"the tracepoint {tracepoint}" if tracepoint else f"{name}()"
        events = {_event_at(text, found.start()) for text in files.values() for found in _uses(name, text)}
        for event in sorted(events) or [""]:
            rows.setdefault(event, {})[shown] = None
    lines = [f"{event or 'the module'} needs {_listed(list(used))}" for event, used in rows.items()]
    what = f"the kernel of {kernel_headers} does not export to modules what is needed:"
    by_name = ", find tracepoints with --by-name" if any(map(tracepoint_of, names)) else ""
    advice = f"name other events (HEADER:EVENT){by_name}, or write the files as they are with --no-compile"
    return GenerateError("", "\n".join([what, *lines, advice]))


def _uses(name: str, text: str) -> Iterator[re.Match[str]]:
    return re.finditer(rf"\b{re.escape(name)}\b", text)


def _of_another(tracepoint: str) -> str:
    return (
        f"{tracepoint} is a tracepoint of another module, which has to be loaded first and to say "
        f"EXPORT_TRACEPOINT_SYMBOL_GPL({tracepoint})"
    )


def _notes(included: Mapping[str, str], compiler: Compiler) -> list[str]:
    names: dict[str, list[str]] = {}
    for name, header in included.items():
        names.setdefault(header, []).append(name)
    notes = [f"{header} is included for {', '.join(items)}" for header, items in names.items()]
    if compiler.instead_of:
        notes.append(f"compiled with {compiler.words[0]}: {compiler.instead_of} is not installed")
    return notes


def _error(
    messages: Sequence[CompilerMessage], files: FileSet, kernel_headers: Path, search: _Search
) -> GenerateError | BuildError:
    missing = missing_names(messages, search.types)
    kernel = f"the kernel of {kernel_headers}"
    if not missing:
        lines = [str(message) for message in messages[:_N_SHOWN]]
        return BuildError(
            f"the module does not compile for {kernel}", log_tail="\n".join(lines), messages=tuple(messages)
        )
    rows: dict[str, dict[str, None]] = {}
    for name, message in missing:
        other = search.included.get(name)
        shown = f"{name} ({other} has it for another configuration)" if other else name
        rows.setdefault(_event_of(message, files), {})[shown] = None
    lines = [f"{event or 'the module'} needs {_listed(list(names))}" for event, names in rows.items()]
    advice = (
        "give a file that does with --with '\"FILE.h\"', name other events (HEADER:EVENT), or write the "
        "files as they are with --no-compile"
    )
    return GenerateError(
        "", f"no header of {kernel} defines what is needed:\n" + "\n".join(lines) + f"\n{advice}"
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _N_SHOWN} more" if len(names) > _N_SHOWN else ""
    return ", ".join(names[:_N_SHOWN]) + more


def _event_of(message: CompilerMessage, files: FileSet) -> str:
    """Return the event or class at whose declaration an error was met."""
    for path, line in ((message.path, message.line), *message.places):
        if path not in files:
            continue
        before = "\n".join(files[path].splitlines()[:line])
        if _OPENING.search(before):
            return _event_at(before, len(before))
    return ""


def _event_at(text: str, position: int) -> str:
    """Return the event or class whose declaration contains a position of a file, empty for none."""
    found = list(_OPENING.finditer(text, 0, position))
    return found[-1][1] or found[-1][2] or "" if found else ""
