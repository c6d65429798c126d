"""Comparing strings as the kernel's filters do.

`data` is the whole field as it is in the record, also what follows its NUL: the kernel
compares with the field's size, not with the string's length.
Kernel: regex_match_full() and its neighbours in kernel/trace/trace_events_filter.c, lib/glob.c.
"""

from __future__ import annotations

from tracepoint.filter.tree import Match, Pattern


def match_pattern(pattern: Pattern, data: bytes) -> bool:
    """Return whether `data` matches, before `is_inverted` is applied.

    >>> match_pattern(Pattern(Match.END, b"sh"), b"bash" + bytes(1))
    True
    >>> match_pattern(Pattern(Match.END, b"sh"), b"bash" + bytes(12))
    False
    """
    wanted = pattern.text
    match pattern.match:
        case Match.FULL:
            return len(data) >= len(wanted) and _c_string(data) == wanted
        case Match.FRONT:
            return _c_string(data).startswith(wanted)
        case Match.MIDDLE:
            return wanted in data
        case Match.END:
            return bool(data) and data[:-1].endswith(wanted)
        case Match.GLOB:
            return match_glob(wanted, _c_string(data))


def _c_string(data: bytes) -> bytes:
    return data.split(b"\0", 1)[0]


def match_glob(pattern: bytes, text: bytes) -> bool:
    r"""Shell-style match: `?`, `*`, `[...]` with `!` and ranges, and `\`; `text` holds no NUL.

    Takes at most len(pattern) * len(text) steps.

    >>> match_glob(b"f?o[a-c]*", b"fxobar"), match_glob(b"[!a]*", b"abc"), match_glob(b"[a", b"[a")
    (True, False, True)
    """
    at = here = 0
    retry: tuple[int, int] | None = None
    while True:
        step = _step(pattern, at, text[here] if here < len(text) else None)
        if step is _STAR:
            at += 1
            if at == len(pattern):
                return True
            retry = (at, here)
            continue
        if step is not None:
            if here == len(text):
                return True
            at, here = step, here + 1
            continue
        if here >= len(text) or retry is None:
            return False
        retry = (retry[0], retry[1] + 1)
        at, here = retry


_STAR = -1


def _step(pattern: bytes, at: int, char: int | None) -> int | None:
    """Return the pattern's place after matching `char` (None: the end), -1 at a `*`, None where it fails."""
    if at >= len(pattern):
        return at if char is None else None
    wanted = pattern[at]
    if wanted == ord("*"):
        return _STAR
    if wanted == ord("?"):
        return None if char is None else at + 1
    if wanted == ord("["):
        end, is_member = _character_class(pattern, at + 1, char or 0)
        if end is not None:
            return end if is_member else None
    if wanted == ord("\\"):
        at += 1
        if at >= len(pattern):
            return at if char is None else None
        wanted = pattern[at]
    return at + 1 if char == wanted else None


def _character_class(pattern: bytes, at: int, char: int) -> tuple[int | None, bool]:
    """Return the place after a class and whether `char` is in it; None for one that never closes."""
    is_inverted = pattern[at : at + 1] == b"!"
    at += is_inverted
    is_member = False
    is_first = True
    while is_first or pattern[at : at + 1] != b"]":
        is_first = False
        if at >= len(pattern):
            return None, False
        low = high = pattern[at]
        at += 1
        if pattern[at : at + 1] == b"-" and pattern[at + 1 : at + 2] != b"]":
            if at + 1 >= len(pattern):
                return None, False
            high = pattern[at + 1]
            at += 2
        is_member = is_member or low <= char <= high
    return at + 1, is_member != is_inverted
