"""C functions that fire one event with the arguments of a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.source.ctype import CType, parse_ctype
from tracepoint.source.cvalue import int_type_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracepoint.generate.writer import CodeWriter
    from tracepoint.model.event import Param, Proto

LIST_ROOM = 64
_LONG = 8
# Types by value that a line cannot spell: an object of zeros stands for them.
_OBJECTS = frozenset(
    "atomic_t cpumask_t guid_t kernel_cap_t kgid_t kuid_t nodemask_t p4d_t pgd_t pgprot_t pmd_t pte_t pud_t "
    "sigset_t spinlock_t swp_entry_t uuid_t".split()
)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a firing: declarations, how it is read from the line, and what is passed.

    `shown` says for people what the word is; empty when the line has no word for it.
    """

    declarations: tuple[str, ...]
    reads: tuple[str, ...]
    passed: str
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """Something that fires: its name, what follows `trace_` in C, and the prototype."""

    name: str
    call: str
    proto: Proto


def make_argument(param: Param, given: Mapping[str, str]) -> Argument:
    """Return how the argument for a parameter is got.

    Scalars, texts and lists of numbers are words of the line; pointers to structs are an object of
    zeros; `given` maps names of parameters to C expressions that are taken instead.
    """
    name = param.name
    if name in given:
        return Argument((), (), given[name])
    ctype = _parsed(param.ctype)
    if ctype is None or ctype.is_function or param.ctype.count("(") or ctype.pointers > 1:
        return _address(param)
    if ctype.pointers == 1:
        return _pointer(param, ctype)
    if ctype.array:
        return _list(param, CType(ctype.base))
    if ctype.base.startswith(("struct ", "union ")) or ctype.base in _OBJECTS:
        return Argument((f"{ctype.base} {name} = {{ }};",), (), name)
    return _scalar(name, ctype.base)


def _parsed(text: str) -> CType | None:
    try:
        return parse_ctype(text)
    except SourceError:
        return None


def _scalar(name: str, base: str) -> Argument:
    stored = "u8" if base in ("bool", "_Bool") else base
    read = f"fire_number(&line, &{name}, sizeof({name}), is_signed_type({stored}))"
    return Argument((f"{stored} {name};",), (read,), name, f"{name}: a number")


def _address(param: Param) -> Argument:
    name = param.name
    read = f"fire_number(&line, &{name}, sizeof({name}), false)"
    return Argument((f"unsigned long {name};",), (read,), f"(void *){name}", f"{name}: an address")


def _pointer(param: Param, ctype: CType) -> Argument:
    name = param.name
    if ctype.base == "char":
        passed = name if "const" in ctype.qualifiers else f"(char *){name}"
        return Argument((f"const char *{name};",), (f"fire_text(&line, &{name})",), passed, f"{name}: a text")
    if ctype.base == "struct va_format":
        text = f"{name}_text"
        lines = (f"const char *{text};", f"struct va_format {name} = {{ }};")
        check = f"fire_format(&line, &{text}, &{name})"
        return Argument(lines, (check,), f"&{name}", f"{name}: a text without %")
    if ctype.base == "void":
        return _address(param)
    if int_type_of(ctype, _LONG) is not None or int_type_of(ctype.base, _LONG) is not None:
        return _list(param, CType(ctype.base))
    return Argument((), (), "(void *)fire_zeros")


def _list(param: Param, element: CType) -> Argument:
    name, base = param.name, element.base
    if int_type_of(base, _LONG) is None:
        return Argument((), (), "(void *)fire_zeros")
    stored = "u8" if base in ("bool", "_Bool") else base
    read = f"fire_list(&line, {name}, sizeof({name}[0]), ARRAY_SIZE({name}), is_signed_type({stored}))"
    passed = f"(bool *){name}" if stored != base else name
    return Argument(
        (f"static {stored} {name}[{LIST_ROOM}];",), (read,), passed, f"{name}: numbers joined by commas"
    )


def write_fire(code: CodeWriter, target: Target, given: Mapping[str, str]) -> list[str]:
    """Write the function that fires a target with the words of a line; return what they are."""
    arguments = [make_argument(param, given) for param in target.proto.params]
    reads = [read for argument in arguments for read in argument.reads]
    code.line(f"static int fire_trace_{target.name}(char *line)")
    with code.block("{", "}"):
        for argument in arguments:
            code.lines(argument.declarations)
        code.line("int error;")
        code.line()
        _write_reads(code, [*reads, "fire_end(&line)"])
        code.line()
        code.call(f"trace_{target.call}", [argument.passed for argument in arguments])
        code.line("return 0;")
    code.line()
    return [argument.shown for argument in arguments if argument.shown]


def _write_reads(code: CodeWriter, reads: Sequence[str]) -> None:
    """Read word after word until one is refused."""
    for number, read in enumerate(reads):
        function, _, rest = read.partition("(")
        words = rest.removesuffix(")")
        parts = _split(words)
        if number == 0:
            code.call(f"error = {function}", parts)
        else:
            with code.block("if (!error)"):
                code.call(f"error = {function}", parts)
    with code.block("if (error)"):
        code.line("return error;")


def _split(text: str) -> list[str]:
    """Split arguments at the commas outside of parentheses."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def write_fire_inputs(code: CodeWriter, target: Target, table: str) -> None:
    """Write the function that sets the inputs of an event's class from a line and fires with no arguments."""
    code.line(f"static int fire_trace_{target.name}(char *line)")
    with code.block("{", "}"):
        if table:
            code.line("int error;")
            code.line()
            code.call("error = fire_set_all", [table, f"ARRAY_SIZE({table})", "line"])
            with code.block("if (error)"):
                code.line("return error;")
            code.line()
        code.call(f"trace_{target.call}", [empty_argument(param) for param in target.proto.params])
        code.line("return 0;")
    code.line()


def empty_argument(param: Param) -> str:
    """Return a value of a parameter's type that means nothing: zero, NULL, an object of zeros."""
    ctype = _parsed(param.ctype)
    if ctype is None or ctype.pointers or ctype.is_function or ctype.array or "(" in param.ctype:
        return "NULL"
    if int_type_of(ctype, _LONG) is not None or ctype.base.startswith("enum "):
        return "0"
    return f"({ctype.base}){{ 0 }}" if ctype.base not in ("bool", "_Bool") else "false"


__all__ = ["Argument", "Target", "empty_argument", "make_argument", "write_fire", "write_fire_inputs"]
