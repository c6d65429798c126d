"""The structs, unions and typedefs that a C file and what it includes define."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from tracepoint.errors import PlaceError
from tracepoint.named import NamedTuple
from tracepoint.place.code import read_code
from tracepoint.place.loader import KernelLoader, arch_of, includers
from tracepoint.place.members import Body, read_members
from tracepoint.source.brackets import find_close_in_text
from tracepoint.source.closure import IncludeClosure
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from tracepoint.place.kernel import KernelTree

# An unterminated comment goes to the end, as in C: otherwise each `/*` in it would be searched from.
_TEXT = re.compile(r"/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z)|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_ATTRIBUTE = r"__\w+(?:\s*\((?:[^()]|\([^()]*\))*\))?"
#: More than any struct of the kernel has; struct task_struct has 25,000.
_MAX_BODY = 400_000
#: Nested embedded structs.
_MAX_EMBEDDED = 8
#: Nested macros that expand to members.
_MAX_MACROS = 3
#: The maximum number of such macros in a struct, and of definitions of one tag in a file.
_MAX_WORDS = 20
_MAX_DEFINITIONS = 20


class FoundStruct(NamedTuple):
    """A struct or union, combined from its definitions, and the file of the first of them.

    `doubt` says why it may have other members than were read, empty if it has none.
    """

    body: Body
    path: str
    doubt: str


class Structs:
    """The members of structs, as one C file sees them.

    With a kernel tree everything that the file includes is searched, without one only the file.
    """

    def __init__(self, source: SourceFile, kernel: KernelTree | None = None) -> None:
        self.path = source.path
        self.has_headers = kernel is not None
        self._source = source
        self._arch = arch_of(source.path)
        self._kernel = kernel
        self._loader = _Alone() if kernel is None else KernelLoader(kernel, source.path)
        self._shared = None if kernel is None else kernel.shared
        self._roots = [(name, is_quoted, source.path) for name, is_quoted in _includes(source.text)]
        self._closure = IncludeClosure(self._loader, self._roots, self._shared)
        self._is_wide = kernel is None
        self._bare: dict[str, str] = {}
        self._found: dict[tuple[str, str], FoundStruct | None] = {}
        self._level = 0

    def find(self, keyword: str, tag: str) -> FoundStruct | None:
        """Return the struct or union of a tag, or None if no include defines it."""
        key = (keyword, tag)
        if key not in self._found:
            self._found[key] = None  # for for one that embeds itself
            self._level += 1
            self._found[key] = self._search(keyword, tag) if self._level <= _MAX_EMBEDDED else None
            self._level -= 1
            if self._found[key] is None and self._widen():
                self._found.clear()
                return self.find(keyword, tag)
        return self._found[key]

    def _widen(self) -> bool:
        """Add the includes of files that include this one (kernel/sched/rt.c); return whether any exist."""
        if self._is_wide or self._kernel is None:
            return False
        self._is_wide = True
        for file in includers(self._kernel, self.path):
            self._roots.append((file.path.rpartition("/")[2], True, self.path))
        self._closure = IncludeClosure(self._loader, self._roots, self._shared)
        return True

    def typedef(self, name: str) -> str:
        """Return the struct or union that a typedef names, with its stars; empty when it is none or unknown.

        >>> Structs(SourceFile("a.c", "typedef struct jbd2_handle handle_t;")).typedef("handle_t")
        'struct jbd2_handle'
        """
        told = re.compile(rf"\btypedef\s+(?:const\s+)?(struct|union)\s+(\w+)\s*(\**)\s*{re.escape(name)}\s*;")
        found = {
            hit.groups()
            for file in self._files()
            if name in file.text
            for hit in told.finditer(self._text(file))
        }
        if len(found) != 1:  # none, or another one in each branch of an #if
            return ""
        keyword, tag, stars = found.pop()
        return f"{keyword} {tag} {stars}".rstrip()

    def declares(self, name: str) -> bool:
        """Return whether a header declares a variable, an enumerator or a macro of this name."""
        if self.macro(name) is not None or any(self._closure.declaring(name)):
            return True
        told = re.compile(
            rf"\bextern\b[^;{{}}()]{{0,400}}\b{name}\b[^;{{}}()]{{0,400}};"
            rf"|\bDECLARE_\w+\([^;]{{0,300}}\b{name}\b"
        )
        return any(name in file.text and told.search(self._text(file)) for file in self._closure.files)

    def has_function(self, name: str) -> bool:
        """Return whether a header declares, defines or uses a function or macro of this name."""
        told = re.compile(rf"\b{name}\s*\(")
        return any(name in file.text and told.search(self._text(file)) for file in self._closure.files)

    def macro(self, name: str) -> tuple[str, ...] | None:
        """Return the members that a macro expands to: `#define sk_prot __sk_common.skc_prot`.

        None if no such macro is defined, nothing if it expands to something else.
        """
        told = re.compile(
            rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b(?:[ \t]+([\w.]+)[ \t]*$)?", re.MULTILINE
        )
        for file in [self._source, *self._closure.defining(name)]:
            found = told.search(self._text(file)) if name in file.text else None
            if found:
                parts = tuple((found[1] or "").split("."))
                return parts if all(part.isidentifier() for part in parts) else ()
        return None

    def _files(self) -> list[SourceFile]:
        return [self._source, *self._closure.files]

    def _text(self, file: SourceFile) -> str:
        """Return the text of a file without comments and strings."""
        if file.path not in self._bare:
            self._bare[file.path] = _TEXT.sub(" ", file.text)
        return self._bare[file.path]

    def _search(self, keyword: str, tag: str) -> FoundStruct | None:
        hint = re.compile(rf"\b{tag}\b[^;,=]{{0,300}}\{{")
        told = re.compile(rf"\b{keyword}\s+(?:{_ATTRIBUTE}\s+)?{tag}\s*(?:{_ATTRIBUTE}\s*)?\{{")
        body = Body()
        path = doubt = ""
        for file in self._files():
            if tag not in file.text or not hint.search(file.text):
                continue
            for hit in islice(told.finditer(self._text(file)), _MAX_DEFINITIONS):
                found = self._read(self._text(file), hit.start(), hit.end())
                body.take(found)
                path = path or file.path
                where = arch_of(file.path)
                if where and where != self._arch:
                    doubt = doubt or f"{file.path} is only one of several architectures"
                elif found.doubt:
                    doubt = doubt or f"{found.doubt} in {file.path} is not understood"
        if not path:
            other_name = self.macro(tag) or ()  # #define rcu_head callback_head
            return self.find(keyword, other_name[0]) if len(other_name) == 1 else None
        for inner in dict.fromkeys(body.embedded):
            other = self.find(*inner)
            if other is None:
                doubt = doubt or f"{' '.join(inner)} in it is not found"
            else:
                body.take(other.body)
                doubt = doubt or other.doubt
        return FoundStruct(body, path, doubt)

    def _read(self, text: str, start: int, brace: int) -> Body:
        """Read one definition whose opening brace ends at `brace`, macros among its members expanded."""
        text = _definition(text, start, brace)
        found = _read_braces(text)
        for _ in range(_MAX_MACROS):
            words = list(dict.fromkeys(found.unread))
            bodies = {word: self._bodies(word) for word in words[:_MAX_WORDS]}
            if len(words) > _MAX_WORDS or not all(bodies.values()):
                break
            for word, body in bodies.items():
                if text.count(word) * len(body) + len(text) > _MAX_BODY:
                    return found
                text = re.sub(rf"\b{word}\b", body.replace("\\", ""), text)
            found = _read_braces(text) if bodies else found
        return found

    def _bodies(self, name: str) -> str:
        """Return the expansions of a macro without parameters, one for each definition."""
        told = re.compile(rf"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]((?:[^\\\n]|\\\n)*)$", re.MULTILINE)
        files = [self._source, *self._closure.defining(name)]
        found = [hit[1] for file in files for hit in told.finditer(self._text(file))]
        return ";".join(body.replace("\\\n", " ") for body in found)


def _includes(text: str) -> list[tuple[str, bool]]:
    found = re.findall(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', text, re.MULTILINE)
    return [(name, quote == '"') for quote, name in found]


def _definition(text: str, start: int, brace: int) -> str:
    """Return the text of a definition up to its closing brace, nothing if it is not found."""
    line = text.rfind("\n", 0, start) + 1
    if text[line:start].lstrip().startswith("#") or text[:line].endswith("\\\n"):  # in a macro
        return ""
    close = find_close_in_text(text, brace - 1, _MAX_BODY)
    return text[start : close + 1] if close >= 0 else ""


def _read_braces(text: str) -> Body:
    try:
        code = read_code(SourceFile("<struct>", f"{text};"))
    except PlaceError:
        return Body(doubt="a conditional")
    brace = code.texts.index("{") if "{" in code.texts else -1
    if code.unmatched or brace not in code.match:
        return Body(doubt="its text")
    body = read_members(code, brace)
    if any(directive.keyword == "include" for directive in code.directives):
        body.doubt = body.doubt or "an included part"
    if any("differently" in why for _, _, why in code.unseen):
        body.doubt = body.doubt or "a conditional"
    return body


class _Alone:
    """Finds no file."""

    def load(self, name: str, *, is_quoted: bool, includer: str) -> SourceFile | None:
        """Return nothing."""
        del name, is_quoted, includer
        return None
