"""C functions that fire one event with the arguments of a line."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracepoint.errors import SourceError
from tracepoint.generate.writer import fill_template
from tracepoint.model.event import Event
from tracepoint.source.ctype import CType, parse_ctype
from tracepoint.source.cvalue import int_type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracepoint.generate.writer import CodeWriter
    from tracepoint.model.event import BareTracepoint, Param, Proto
    from tracepoint.source.environment import Environment

LIST_ROOM = 64
BYTES_ROOM = 2048
_LONG = 8
_ZEROS = "(void *)fire_zeros"
# The end of every line; also what brings the helper that takes words.
_END = "(fire_word(&line) ? -EINVAL : 0)"
# Locals of a generated function, and what macros of its helpers call.
_RESERVED = ("line", "error", "memset", "strsep")
_TAGGED = re.compile(r"(?:struct|union)\b")
_COPY = re.compile(r"\bmem(?:cpy|move)\s*\([^,;]*(?:\([^;]*?\)[^,;]*)?,([^;]*);")
# Types by value that a line cannot express: a zeroed object replaces them.
_OBJECTS = frozenset(
    "atomic_t cpumask_t guid_t kernel_cap_t kgid_t kuid_t nodemask_t p4d_t pgd_t pgprot_t pmd_t pte_t pud_t "
    "sigset_t spinlock_t swp_entry_t uuid_t".split()
)


@dataclass(frozen=True, slots=True)
class FiringArgument:
    """One argument of a firing: declarations, how it is read from the line, and what is passed.

    `shown` describes the word for users; empty if the line has no word for it.
    """

    declarations: tuple[str, ...]
    reads: tuple[str, ...]
    passed: str
    shown: str = ""


@dataclass(frozen=True, slots=True)
class FiringTarget:
    """Something that fires: its name, what follows `trace_` in C, and the prototype.

    `copied` are the parameters from which the assignment copies memory; `objects` and `addresses`
    are typedefs of structs and of pointers.
    """

    name: str
    call: str
    proto: Proto
    copied: frozenset[str] = frozenset()
    objects: frozenset[str] = frozenset()
    addresses: frozenset[str] = frozenset()


def target_of(
    point: Event | BareTracepoint, call: str, environment: Environment | None, typedefs: Mapping[str, str]
) -> FiringTarget:
    """Return what fires an event or tracepoint; `environment` and `typedefs` resolve types."""
    copies = _COPY.findall(point.assign.text) if isinstance(point, Event) else []
    copied = frozenset(word for text in copies for word in re.findall(r"\w+", text))
    objects, addresses = set(_OBJECTS), set()
    own = environment.definitions if environment is not None else ()
    for item in own:
        if item.lines[0].startswith(("typedef struct", "typedef union")):
            objects.add(item.name)
        elif "(*" in item.lines[0]:
            addresses.add(item.name)
    for param in point.proto.params:
        ctype = _parsed(param.ctype)
        found = typedefs.get(ctype.base) if ctype is not None else None
        if found is None and environment is not None and ctype is not None:
            found = environment.typedef(ctype.base)
        if found is not None and ctype is not None and ctype.base not in objects | addresses:
            kind = addresses if found.endswith("*") else objects if _TAGGED.match(found) else set()
            kind.add(ctype.base)
    return FiringTarget(point.name, call, point.proto, copied, frozenset(objects), frozenset(addresses))


def local_names(proto: Proto, prefix: str, reserved: Iterable[str] = ()) -> dict[str, str]:
    """Return the names of the parameters in a generated function.

    Names that begin with `prefix`, and `reserved` ones, belong to the template: `line` becomes `line_arg`.
    """
    own = frozenset(reserved)
    names = {param.name for param in proto.params}
    found = {}
    for name in names:
        local = name
        while local.startswith(prefix) or local in own or (local != name and local in names):
            local = f"arg_{local}" if local.startswith(prefix) else f"{local}_arg"
        found[name] = local
    return found


def _make_argument(target: FiringTarget, param: Param, name: str) -> FiringArgument:
    """Return how to get the argument for a parameter; `name` is its name in C.

    Scalars, texts, bytes and lists of numbers are words of the line; pointers to structs are an
    object of zeros.
    """
    is_copied = param.name in target.copied
    param = replace(param, name=name)
    ctype = _parsed(param.ctype)
    if ctype is None or ctype.is_function or param.ctype.count("(") or ctype.pointers > 1:
        return _address(param)
    if ctype.pointers == 1:
        return _pointer(param, ctype, is_copied=is_copied)
    if ctype.array:
        return _list(param, CType(ctype.base))
    if ctype.base in target.addresses:
        return _address(param)
    if _TAGGED.match(ctype.base) or ctype.base in target.objects:
        return FiringArgument((f"{ctype.base} {param.name} = {{ }};",), (), param.name)
    return _scalar(param.name, ctype.base)


def _parsed(text: str) -> CType | None:
    try:
        return parse_ctype(text)
    except SourceError:
        return None


def _scalar(name: str, base: str) -> FiringArgument:
    return FiringArgument((f"{base} {name};",), (f"fire_number(&line, {name})",), name, f"{name}: a number")


def _address(param: Param) -> FiringArgument:
    name = param.name
    read = f"fire_number(&line, {name})"
    passed = f"(void *){name}"
    return FiringArgument((f"unsigned long {name};",), (read,), passed, f"{name}: an address")


def _pointer(param: Param, ctype: CType, *, is_copied: bool) -> FiringArgument:
    name = param.name
    if ctype.base == "char":
        passed = name if "const" in ctype.qualifiers else f"(char *){name}"
        return FiringArgument(
            (f"const char *{name};",), (f"fire_text(&line, &{name})",), passed, f"{name}: a text"
        )
    if ctype.base == "struct va_format":
        text = f"{name}_text"
        lines = (f"const char *{text};", f"struct va_format {name} = {{ }};")
        check = f"fire_format(&line, &{text}, &{name})"
        return FiringArgument(lines, (check,), f"&{name}", f"{name}: a text without %")
    if ctype.base == "void":
        return _bytes(name) if is_copied else _address(param)
    if int_type_of(ctype, _LONG) is not None or int_type_of(ctype.base, _LONG) is not None:
        return _list(param, CType(ctype.base))
    return FiringArgument((), (), _ZEROS)


def _bytes(name: str) -> FiringArgument:
    lines = (f"static u8 {name}[{BYTES_ROOM}];",)
    read = f"fire_bytes(&line, {name}, sizeof({name}))"
    return FiringArgument(lines, (read,), name, f"{name}: bytes in hexadecimal")


def _list(param: Param, element: CType) -> FiringArgument:
    name, base = param.name, element.base
    if int_type_of(base, _LONG) is None:
        return FiringArgument((), (), _ZEROS)
    lines = (f"static {base} {name}[{LIST_ROOM}];",)
    return FiringArgument(lines, (f"fire_list(&line, {name})",), name, f"{name}: numbers joined by commas")


def write_fire(code: CodeWriter, target: FiringTarget, given: Mapping[str, str]) -> list[str]:
    """Write the function that fires a target with the words of a line; return what they are.

    `given` maps names of parameters to C expressions that are passed instead of a word.
    """
    names = local_names(target.proto, "fire_", {*_RESERVED, f"trace_{target.call}"})
    arguments = [
        FiringArgument((), (), given[param.name])
        if param.name in given
        else _make_argument(target, param, names[param.name])
        for param in target.proto.params
    ]
    reads = [*(read for argument in arguments for read in argument.reads), _END]
    code.line(f"static int fire_trace_{target.name}(char *line)")
    with code.block("{", "}"):
        for argument in arguments:
            code.lines(argument.declarations)
        code.line("int error;")
        code.line()
        for number, read in enumerate(reads):
            head = "\t" if number else "error = "
            code.line(f"{head}{read}{' ?:' if number < len(reads) - 1 else ';'}")
        with code.block("if (error)"):
            code.line("return error;")
        code.line()
        code.call(f"trace_{target.call}", [argument.passed for argument in arguments])
        code.line("return 0;")
    code.line()
    return [argument.shown for argument in arguments if argument.shown]


# What a generated function calls, the template that defines it, and what that needs.
_HELPERS = (
    ("fire_word(", "word", ()),
    ("fire_put(", "number", ()),
    ("fire_number(", "number", ()),
    ("fire_list(", "list", ("number",)),
    ("fire_text(", "text", ()),
    ("fire_format(", "format", ("text",)),
    ("fire_bytes(", "bytes", ()),
)


def write_helpers(events: str) -> str:
    """Return the functions that the given C text of firings needs, and no others."""
    needed = {name for call, own, more in _HELPERS if call in events for name in (own, *more)}
    order = dict.fromkeys(name for _, name, _ in _HELPERS)
    return "\n".join(fill_template(f"{name}.c") for name in order if name in needed)


def write_fire_inputs(code: CodeWriter, target: FiringTarget, table: str) -> None:
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


__all__ = ["FiringArgument", "FiringTarget", "empty_argument", "write_fire", "write_fire_inputs"]
