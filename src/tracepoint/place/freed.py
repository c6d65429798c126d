"""Pointers that an earlier call has freed, or may have freed, judged by its name or its body."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.named import NamedTuple
from tracepoint.place.functions import find_functions
from tracepoint.place.statements import StatementKind, StatementSpan
from tracepoint.place.variables import split_commas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.place.code import SourceCode
    from tracepoint.place.sites import Site

#: Functions that free what an argument points to, and the index of that argument.
_FREES = {
    **dict.fromkeys("kfree kvfree vfree kfree_sensitive kvfree_sensitive kfree_const free_percpu".split(), 0),
    **dict.fromkeys("kfree_skb consume_skb dev_kfree_skb dev_kfree_skb_any free_task".split(), 0),
    **dict.fromkeys("kmem_cache_free mempool_free dma_pool_free devm_kfree".split(), 1),
}
#: Names of functions that free, or drop a reference that may be the last one.
_MAY_FREE = re.compile(r"k?v?free_\w+|\w+_(?:free|put|release|destroy|free_rcu)|put_\w+|k?free_rcu")


class Freed(NamedTuple):
    """What happened to a pointer: the call, the number of its line, and whether it certainly frees."""

    call: str
    line: int
    is_sure: bool


def freed_pointers(code: SourceCode, site: Site) -> dict[str, Freed]:
    """Return the names that the calls before a place free, unless they are assigned after it.

    Only calls that run whenever the place is reached count: a branch before it may not have been taken.
    """
    found: dict[str, Freed] = {}
    for statement in _before(site):
        if statement.kind is not StatementKind.EXPRESSION:
            for name in [name for name in found if _is_set(code, statement, name)]:
                del found[name]
            continue
        first = statement.first
        found.pop(code.texts[first] if code.texts[first + 1] == "=" else "", None)
        if code.texts[first + 1] != "(" or code.match.get(first + 1, -1) < 0:
            continue
        freed = _freed_argument(code, first)
        if freed is not None:
            name, is_sure = freed
            found[name] = Freed(code.texts[first], code.line(first), is_sure)
    return found


def _before(site: Site) -> Iterator[StatementSpan]:
    """Yield the statements before a place in its block and in the enclosing blocks, in order."""
    chain: list[list[StatementSpan]] = []
    here: StatementSpan | None = site.block
    index = site.index
    while here is not None:
        if here.kind is StatementKind.BLOCK:
            chain.append(here.children[:index])
        parent = here.parent
        if parent is not None and parent.kind is StatementKind.BLOCK and not here.is_value:
            index = parent.children.index(here)
        else:
            index = 0
        here = parent
    for statements in reversed(chain):
        yield from statements


def _is_set(code: SourceCode, statement: StatementSpan, name: str) -> bool:
    return any(code.texts[at + 1] == "=" for at in code.uses(name, statement.first, statement.last, 100))


def _freed_argument(code: SourceCode, at: int) -> tuple[str, bool] | None:
    """Return the plain name that the call at a token frees, and whether that is certain; else None."""
    function = code.texts[at]
    arguments = [
        code.texts[first] if last - first == 1 and code.is_name(first) else ""
        for first, last in split_commas(code, at + 2, code.match[at + 1])
    ]
    number, is_sure = _FREES.get(function), True
    if number is None:
        number = _freed_parameter(code, function)
    if number is None and _MAY_FREE.fullmatch(function):
        number, is_sure = 0, False
    if number is None or number >= len(arguments) or not arguments[number]:
        return None
    return arguments[number], is_sure


def _freed_parameter(code: SourceCode, name: str) -> int | None:
    """Return the parameter that a function of this file frees at the level of its body, or None."""
    for function in find_functions(code):
        if name not in function.names:
            continue
        params = [param.name for param in function.params]
        for free, number in _FREES.items():
            for at in code.uses(free, function.open, function.close, 20):
                close = code.match.get(at + 1, -1)
                given = list(split_commas(code, at + 2, close)) if close > 0 else []
                if number < len(given) and given[number][1] - given[number][0] == 1:
                    freed = code.texts[given[number][0]]
                    if freed in params and _depth(code, function.open, at) == 1:
                        return params.index(freed)
    return None


def _depth(code: SourceCode, start: int, at: int) -> int:
    """Return how many braces are open at a token since `start`, the brace there included."""
    texts = code.texts[start:at]
    return texts.count("{") - texts.count("}")
