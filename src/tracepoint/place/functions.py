"""The functions that a C file defines, including those whose head is a macro."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracepoint.place.heads import made_function
from tracepoint.place.variables import ATTRIBUTES, STORAGE, Variable, declared, split_commas

if TYPE_CHECKING:
    from tracepoint.place.code import SourceCode

_MAX_OLD_PARAMETERS = 12
#: The maximum number of tokens before a function's name; the kernel has up to 20.
_MAX_HEAD = 1000
_NOT_NAMES = frozenset({"if", "for", "while", "switch", "return", "sizeof", "do", "else"})


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    `names` are the names it can be called by, `head` its first token, `name_at` the token of its name,
    `open` and `close` its braces (`close` is -1 when there is none); `returns` the C type, empty if
    unknown; `words` are its storage class and attributes; `trouble` says why no call can be added, empty if
    one can; `remarks` are messages for the user.
    """

    names: tuple[str, ...]
    head: int
    name_at: int
    open: int
    close: int
    params: tuple[Variable, ...] = ()
    returns: str = ""
    words: frozenset[str] = frozenset()
    trouble: str = ""
    remarks: tuple[str, ...] = ()


def find_functions(code: SourceCode) -> list[Function]:
    r"""Return the functions of a file in their order.

    >>> from tracepoint.place.code import read_code
    >>> from tracepoint.source.text import SourceFile
    >>> text = "struct s { int a; };\nstatic int __init f(struct s *s, int n) __acquires(l)\n{\n}\n"
    >>> for f in find_functions(read_code(SourceFile("a.c", text))):
    ...     print(f.names, f.returns, [p.name for p in f.params], sorted(f.words))
    ('f',) int ['s', 'n'] ['__acquires', '__init', 'static']
    """
    found: list[Function] = []
    texts = code.texts
    at = head = 0
    before: deque[int] = deque([0], _MAX_OLD_PARAMETERS)  # starts of the declarations before `head`
    while at < len(texts):
        text = texts[at]
        if text in (";", "}"):
            before.append(head)
            head = at + 1
        elif text == "{":
            close = code.match.get(at, -1)
            function = _function(code, head, at, before[0])
            if function is not None:
                found.append(function)
                head = len(texts) if close < 0 else close + 1
                before.clear()
                before.append(head)
            at = len(texts) if close < 0 else close
        elif text in ("(", "["):
            at = code.match.get(at, at)
        at += 1
    return found


def _function(code: SourceCode, head: int, brace: int, before: int) -> Function | None:
    """Read the head of a function before its brace; None if the brace begins something else."""
    close = code.match.get(brace, -1)
    declarator = _declarator(code, head, brace)
    if declarator is None:
        old = _old_style(code, before, head, brace)
        if old < 0:
            return None
        reason = "is written in the old style with its parameters declared after the parentheses"
        return Function((code.texts[old],), before, old, brace, close, trouble=reason)
    name_at, group = declarator
    if name_at - head > _MAX_HEAD:
        return None
    if any(code.texts[at] == "=" for at in range(head, name_at)):
        return None
    begin, kind, words = _specifiers(code, head, name_at)
    words |= _words_after(code, code.match[group], brace)
    if code.texts[name_at - 1] in {".", "->"} or code.texts[name_at] in _NOT_NAMES:
        return None
    if not kind and not (words & STORAGE):
        return made_by_macro(code, name_at, brace, close)
    name = _given_name(code, name_at, group)
    trouble = ""
    params = read_parameters(code, group)
    arm = next((code.arms[at] for at in (name_at, begin) if code.arms[at] is not code.arms[brace]), None)
    if arm is not None and _same_heads(code, head, name_at, group):
        params = tuple(replace(param, at=brace) for param in params)
    elif arm is not None:
        trouble = f"has a head that depends on `{arm.text}`"
    return Function((name,), begin, name_at, brace, close, params, kind, frozenset(words), trouble)


def _given_name(code: SourceCode, name_at: int, group: int) -> str:
    """Return the name of a function, or for `FNAME(fetch)(...)` the name in the parentheses."""
    inner = name_at + 1
    if inner != group and code.texts[inner] == "(" and code.match[inner] + 1 == group:
        words = [code.texts[at] for at in range(inner, group) if code.is_name(at)]
        return words[-1] if words else code.texts[name_at]
    return code.texts[name_at]


def _same_heads(code: SourceCode, head: int, name_at: int, group: int) -> bool:
    """Return whether the heads of a function in all branches of a conditional differ only in attributes."""
    name = code.texts[name_at]
    parameters = code.texts[group : code.match[group]]
    kind = _specifiers(code, head, name_at)[1]
    others = [at for at in code.uses(name, head, name_at, _MAX_HEAD) if code.texts[at + 1] == "("]
    return bool(others) and all(
        code.texts[at + 1 : code.match.get(at + 1, at)] == parameters
        and _specifiers(code, head, at)[1] == kind
        for at in others
    )


def _words_after(code: SourceCode, at: int, brace: int) -> set[str]:
    """Return the attributes between a function's parameters and its brace."""
    words = set()
    while at < brace:
        if code.texts[at] == "(":
            at = code.match[at]
        elif code.is_name(at):
            words.add(code.texts[at])
        at += 1
    return words


def made_by_macro(code: SourceCode, name_at: int, brace: int, close: int) -> Function:
    """Return the function whose head is a macro call."""
    made = made_function(code, name_at)
    return Function(
        made.names,
        name_at,
        name_at,
        brace,
        close,
        made.params,
        made.returns,
        made.words,
        made.trouble,
        made.remarks,
    )


def _declarator(code: SourceCode, head: int, brace: int) -> tuple[int, int] | None:
    """Search back from a brace; return the tokens of the name and of the parameters' parenthesis."""
    at = brace - 1
    while at >= head:
        if code.texts[at] == ")" and at in code.match:
            group = code.match[at]
            name = group - 1
            if name < head:
                return None
            if code.is_name(name):
                if code.texts[name] in ATTRIBUTES or _is_attribute(code, name, head):
                    at = name - 1
                    continue
                return name, group
            return _after_group(code, head, name, group)
        if not code.is_name(at):
            return None
        at -= 1
    return None


def _is_attribute(code: SourceCode, name: int, head: int) -> bool:
    """Return whether `__name(...)` follows the parameters: then a function's parenthesis is before it."""
    if not code.texts[name].startswith("__"):
        return False
    at = name - 1
    while at > head and code.is_name(at) and code.texts[at].startswith("__"):
        at -= 1
    return code.texts[at] == ")" and at > head and code.texts[at - 1] != ","


def _after_group(code: SourceCode, head: int, at: int, group: int) -> tuple[int, int] | None:
    """`FNAME(fetch)(params)` and `(*name(params))(params of the result)`."""
    if code.texts[at] != ")" or at not in code.match:
        return None
    begin = code.match[at]
    if begin > head and code.is_name(begin - 1) and code.texts[begin + 1] != "*":
        return begin - 1, group
    for inner in range(begin + 1, at):
        if code.is_name(inner) and code.texts[inner + 1] == "(":
            return inner, inner + 1
    return None


def _specifiers(code: SourceCode, head: int, name_at: int) -> tuple[int, str, set[str]]:
    """Return where a function's head begins, its return type, and the other words before its name."""
    begin, types, words = _words_before(code, head, name_at)
    before = name_at - 1
    while code.texts[before] == "*":
        before -= 1
    if code.texts[before] == "(":  # (*name(params))(params of the result)
        return begin, "", words | {"static"}
    nearest = code.texts[name_at - 1]
    if not types and nearest in words and nearest not in ATTRIBUTES | STORAGE:  # a type such as __wsum
        types.append(nearest)
        words.discard(nearest)
    while len(types) > 1 and types[-1].isupper():  # a macro on a line of its own
        words.add(types.pop())
    return begin, " ".join(reversed(types)).replace("* *", "**"), words


def _words_before(code: SourceCode, head: int, name_at: int) -> tuple[int, list[str], set[str]]:
    """Search back from a function's name; return the position, the reversed words of the type, the others."""
    types: list[str] = []
    words: set[str] = set()
    at = name_at - 1
    begin = name_at
    while at >= head:
        text = code.texts[at]
        if text == ")" and at in code.match:
            group = code.match[at]
            is_attribute = group > head and code.texts[group - 1] in ATTRIBUTES
            if not is_attribute and (group <= head or not code.texts[group - 1].startswith("__")):
                break
            words.add(code.texts[group - 1])
            at = group - 1
        elif text == "*":
            types.append("*")
        elif not code.is_name(at):
            break
        elif _is_modifier(text) or (text.startswith("__") and types[-1:] not in ([], ["*"])):
            words.add(text)
        else:
            types.append(text)
        begin = at
        at -= 1
    return begin, types, words


def _is_modifier(text: str) -> bool:
    """Return whether a word is like `__init` or `__sched`, and not a type such as `__be32` or `__poll_t`."""
    if text in STORAGE or text in ATTRIBUTES or text in {"nokprobe_inline", "forceinline", "STATIC"}:
        return True
    is_number = text[2:4] in {"be", "le"} or (text[2:3] in "us" and text[3:].isdigit())
    return text.startswith("__") and not text.endswith("_t") and not is_number


def _old_style(code: SourceCode, before: int, head: int, brace: int) -> int:
    """Return the name in `f(a, b) int a; int b; {`, or -1."""
    if head != brace:
        return -1
    for at in range(before, head):
        if code.texts[at] == "(" and at > before and code.is_name(at - 1):
            close = code.match.get(at, -1)
            is_list = all(code.is_name(k) or code.texts[k] == "," for k in range(at + 1, close))
            if close > at + 1 and is_list and close + 1 < head and code.is_name(close + 1):
                return at - 1
    return -1


def read_parameters(code: SourceCode, group: int) -> tuple[Variable, ...]:
    """Return the named parameters of a function from the token of its parenthesis."""
    params: list[Variable] = []
    for begin, end in split_commas(code, group + 1, code.match[group]):
        if end - begin == 1:  # void, or only a type
            continue
        found = declared(code, begin, end)
        params += [
            Variable(v.name, v.type + " *" * v.is_array, v.at, True, False, v.words) for v in found[:1]
        ]
    return tuple(params)
