"""Functions whose head is a macro call: system calls, x86 traps, helpers of eBPF."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.place.variables import Variable, declared, split_commas

if TYPE_CHECKING:
    from tracepoint.place.code import SourceCode

_SYSCALL = re.compile(r"(COMPAT_)?SYSCALL_(?:32_)?DEFINE(\d)")
_BPF = re.compile(r"BPF_CALL_(\d)")
_TRAP = re.compile(r"DEFINE_(?:IDT|FRED)ENTRY(\w*)")
#: Macros of arch/x86/include/asm/idtentry.h with a body that may be instrumented, and its parameters.
_OPEN_TRAPS = {
    "": (("struct pt_regs *", "regs"),),
    "_SW": (("struct pt_regs *", "regs"),),
    "_ERRORCODE": (("struct pt_regs *", "regs"), ("unsigned long", "error_code")),
    "_IRQ": (("struct pt_regs *", "regs"), ("u32", "vector")),
    "_SYSVEC": (("struct pt_regs *", "regs"),),
    "_SYSVEC_SIMPLE": (("struct pt_regs *", "regs"),),
}
#: Those whose body is the noinstr entry itself; `_DF` has a third parameter on 32 bits only.
_ERROR_CODE_TRAPS = frozenset({"_RAW_ERRORCODE", "_DF", "_VC_KERNEL", "_VC_USER"})
_PREFIXES = {"_VC_KERNEL": "kernel_", "_VC_USER": "user_", "_MCE_USER": "noist_", "_DEBUG_USER": "noist_"}

#: Each represents two parameters, which only `compat_arg_u64_glue(x)` may name.
_HALVES = frozenset({"compat_arg_u64", "compat_arg_u64_dual"})


@dataclass(frozen=True, slots=True)
class Made:
    """The function that a macro at the head of a function defines; fields as in `functions.Function`."""

    names: tuple[str, ...]
    params: tuple[Variable, ...] = ()
    returns: str = ""
    words: frozenset[str] = frozenset()
    trouble: str = ""
    remarks: tuple[str, ...] = ()


def made_function(code: SourceCode, at: int) -> Made:
    """Return the function that the macro call at a token makes of the braces after it."""
    macro = code.texts[at]
    parts = list(split_commas(code, at + 2, code.match[at + 1]))
    first = code.texts[parts[0][0]] if parts else macro
    if (call := _SYSCALL.fullmatch(macro)) is not None:
        prefix = "compat_sys_" if call[1] else "sys_"
        params, trouble = _pairs(code, macro, parts, int(call[2]))
        return Made((first, prefix + first), params, "long", frozenset({"static"}), trouble)
    if (call := _BPF.fullmatch(macro)) is not None:
        params, trouble = _pairs(code, macro, parts, int(call[1]))
        return Made((first,), params, "u64", frozenset({"static"}), trouble)
    if (call := _TRAP.fullmatch(macro)) is not None and len(parts) == 1:
        return _trap(call[1], first, macro, parts[0][0])
    if not macro.isupper():
        return Made((macro,), trouble="has no return type: its head may come from an unknown macro")
    return Made((first, macro), trouble=f"is defined by the unknown macro {macro}()")


def _pairs(
    code: SourceCode, macro: str, parts: list[tuple[int, int]], n_params: int
) -> tuple[tuple[Variable, ...], str]:
    """Read `name, type, name, type, name`; the macro's name has the count."""
    halves = [part for part in parts[1:] if code.texts[part[0]] in _HALVES]
    parts = [part for part in parts if part not in halves]
    n_params -= 2 * len(halves)
    if len(parts) != 1 + 2 * n_params:
        return (), f"is defined by {macro}() with {len(parts)} arguments instead of {1 + 2 * n_params}"
    params = []
    for (begin, end), (name, _) in zip(parts[1::2], parts[2::2], strict=True):
        stars = sum(code.texts[at] == "*" for at in range(begin, end))
        base = " ".join(code.texts[at] for at in range(begin, end) if code.texts[at] != "*")
        found = declared(code, begin, end)
        words = found[0].words if found else frozenset[str]()
        base = " ".join(word for word in base.split() if not word.startswith("__") or word[2:3] in "beslu")
        params.append(Variable(code.texts[name], f"{base} {'*' * stars}".strip(), name, True, False, words))
    return tuple(params), ""


def _trap(kind: str, name: str, macro: str, at: int) -> Made:
    open_params = _OPEN_TRAPS.get(kind)
    if open_params is not None:
        params = tuple(Variable(param, type_, at, True) for type_, param in open_params)
        inner = f"__{name}"
        remark = f"the body after {macro}({name}) is the function {inner}(), which the entry code calls"
        return Made((name, inner), params, "void", frozenset({"static"}), remarks=(remark,))
    params = (Variable("regs", "struct pt_regs *", at, True),)
    if kind in _ERROR_CODE_TRAPS:
        params += (Variable("error_code", "unsigned long", at, True),)
    full = _PREFIXES.get(kind, "") + name
    names = (full,) if full == name else (full, f"{macro}({name})")
    return Made(names, params, "void", frozenset({"noinstr"}))
