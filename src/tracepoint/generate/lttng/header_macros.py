"""What a trace header defines for its own probes only, which LTTng's probes need too."""

from __future__ import annotations

import re

_DIRECTIVE = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)")
_ASKS = re.compile(r"CREATE_TRACE_POINTS\s*(?:/\*.*\*/\s*)?|defined\s*\(?\s*CREATE_TRACE_POINTS\s*\)?\s*")
_QUOTED_INCLUDE = re.compile(r'\s*#\s*include\s*"')


def private_helpers(text: str) -> str:
    r"""Return the functions of a header between `#ifdef CREATE_TRACE_POINTS` and its end.

    The kernel's header is included without that macro in a probe of LTTng, so the compiler does not see
    them (include/trace/events/sched.h: __trace_sched_switch_state()).

    >>> private_helpers("#ifdef CREATE_TRACE_POINTS\nstatic inline int f(void) { return 1; }\n#endif\n")
    'static inline int f(void) { return 1; }\n'
    """
    blocks: list[str] = []
    block: list[str] = []
    depth = start = 0
    is_open = False
    for line in text.splitlines():
        found = _DIRECTIVE.match(line)
        word = found[1] if found else ""
        depth += word.startswith("if")
        if word.startswith("if") and not is_open and found is not None:
            is_open = word != "ifndef" and _ASKS.fullmatch(found[2].strip()) is not None
            start = depth
            continue
        if is_open and depth == start and word in ("else", "elif", "endif"):
            is_open = False
            if any("{" in inner for inner in block):
                blocks.append("\n".join(block).strip("\n") + "\n")
            block = []
        elif is_open and not _QUOTED_INCLUDE.match(line):
            block.append(line)
        depth -= word == "endif"
    return "\n".join(blocks)
