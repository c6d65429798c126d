"""A print format names an enum constant that is not exported with TRACE_DEFINE_ENUM.

## What it does

Finds names in `TP_printk` that are enum constants, in the header or in what it includes, and that no
`TRACE_DEFINE_ENUM` of the same system exports.

## Why it is bad

The compiler knows the constant, but the text of `print fmt:` in tracefs keeps its name. `perf`, `trace-cmd`
and all other readers of raw records find `{ FOO_A, "a" }` and do not know what `FOO_A` is: they print the
number or reject the event. (Macros are not affected: the preprocessor has replaced them.)

## Example

```c
enum fruit { FRUIT_APPLE, FRUIT_PEAR };

TRACE_EVENT(eaten,
    TP_PROTO(int fruit),
    TP_ARGS(fruit),
    TP_STRUCT__entry(__field(int, fruit)),
    TP_fast_assign(__entry->fruit = fruit;),
    TP_printk("fruit=%s", __print_symbolic(__entry->fruit,
        { FRUIT_APPLE, "apple" }, /* error: TP307 */
        { FRUIT_PEAR, "pear" }))
);
```

## Use instead

```c
enum fruit { FRUIT_APPLE, FRUIT_PEAR };
TRACE_DEFINE_ENUM(FRUIT_APPLE);
TRACE_DEFINE_ENUM(FRUIT_PEAR);

TRACE_EVENT(eaten,
    TP_PROTO(int fruit),
    TP_ARGS(fruit),
    TP_STRUCT__entry(__field(int, fruit)),
    TP_fast_assign(__entry->fruit = fruit;),
    TP_printk("fruit=%s", __print_symbolic(__entry->fruit,
        { FRUIT_APPLE, "apple" },
        { FRUIT_PEAR, "pear" }))
);
```

## Fix safety

Safe: the record and the trace text stay the same; `print fmt:` gets numbers that readers understand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tracepoint.check.across import Across
from tracepoint.check.context import CheckContext, PrintView, origin_of
from tracepoint.check.finding import Finding, Located, locate
from tracepoint.diagnostics import Edit, Fix, Safety
from tracepoint.errors import TracepointError
from tracepoint.model.read import read_header_text
from tracepoint.source.text import SourceFile

_MAX_NAMED = 4
_MAX_KEPT = 512
#: Files that trace headers share; all others export their own names.
_IS_SHARED = re.compile(r"(?:^|/)trace/|trace[^/]*\.h$")
_EXPORTS: dict[str, tuple[SourceFile, frozenset[str]]] = {}
#: Values that readers know already.
_KNOWN = frozenset({"true", "false", "NULL"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """The constants of one print format, with the place of each; `fixed_at` is where exports would go."""

    system: str
    names: dict[str, Located]
    event: str
    path: str
    fixed_at: int | None


def candidates(context: CheckContext) -> Iterator[Candidate]:
    """Yield print formats with enum constants that the header and what it includes do not export."""
    if context.header.environment is None:
        return
    for view in context.prints:
        missing: dict[str, Located] = {}
        for name in view.free_names:
            if name.name in context.exported or name.name in _KNOWN or name.name in missing:
                continue
            if context.is_enumerator(name.name) and not _is_exported_elsewhere(context, name.name):
                missing[name.name] = locate(name)
        if missing:
            at = _place_of_exports(context, view)
            yield Candidate(context.header.system, missing, view.event_name, context.header.path, at)


def decide(formats: Iterable[Candidate], across: Across) -> Iterator[Finding]:
    """Yield print formats with enum constants that no header exports."""
    done: set[str] = set()
    for printed in formats:
        names = [name for name in printed.names if not across.exports(printed.system, name)]
        if names:
            fresh = [name for name in names if name not in done]
            done.update(names)
            yield Finding(
                f"{_listed(names)} not exported with TRACE_DEFINE_ENUM",
                printed.names[names[0]],
                label="readers see the name, not the number",
                help=(f"before the event: TRACE_DEFINE_ENUM({names[0]});",),
                fix=_fix(printed, fresh),
                event=printed.event,
            )


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return f"enum constant {names[0]} is"
    text = ", ".join(names[:_MAX_NAMED])
    if len(names) > _MAX_NAMED:
        text += f" and {len(names) - _MAX_NAMED} more"
    return f"enum constants {text} are"


def _is_exported_elsewhere(context: CheckContext, name: str) -> bool:
    """Return whether an included file, such as those of trace/misc, exports the name for this header too."""
    environment = context.header.environment
    closure = environment.closure if environment is not None else None
    if closure is None:
        return False
    if context.header.path not in context.shared_exports:
        found = (_exports(file) for file in closure.files if _IS_SHARED.search(file.path))
        context.shared_exports[context.header.path] = frozenset().union(*found)
    return name in context.shared_exports[context.header.path]


def _exports(file: SourceFile) -> frozenset[str]:
    """Return what a file that trace headers include exports on their behalf."""
    known = _EXPORTS.get(file.path)
    if known is None or known[0] is not file:
        names: frozenset[str] = frozenset()
        if "TRACE_DEFINE_ENUM" in file.text and not re.search(r"#\s*define\s+TRACE_SYSTEM\b", file.text):
            try:
                names = frozenset(e.name for e in read_header_text(file.text, file.path).enums)
            except TracepointError:
                names = frozenset()
        known = _EXPORTS[file.path] = (file, names)
        if len(_EXPORTS) > _MAX_KEPT:
            _EXPORTS.clear()
    return known[1]


def _place_of_exports(context: CheckContext, view: PrintView) -> int | None:
    """Return where the exports for a print format can go, or None when there is no free place."""
    source = context.header.source
    origin = origin_of(
        view.events[0] if view.code is not view.view.event_class.printk else None, view.view.event_class
    )
    if source is None or origin is None or origin.span.start < 0:
        return None
    line_start = source.text.rfind("\n", 0, origin.span.start) + 1
    before = source.text[:line_start].rstrip("\n")
    if source.text[line_start : origin.span.start].strip() or before.endswith("\\"):
        return None
    if re.search(r"/\*(?:(?!\*/).)*$", before, re.DOTALL):
        return None
    return line_start


def _fix(printed: Candidate, names: list[str]) -> Fix | None:
    at = printed.fixed_at
    if at is None or not names:
        return None
    text = "".join(f"TRACE_DEFINE_ENUM({name});\n" for name in names) + "\n"
    return Fix("export the constants", (Edit(printed.path, at, at, text),), Safety.SAFE)
