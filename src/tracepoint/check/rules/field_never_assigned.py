"""A field of the record is never assigned, so readers see what was in the buffer before.

## What it does

Finds fields, arrays, bitmasks and addresses that `TP_fast_assign` never mentions. Macros are expanded
first. Nothing is reported when the whole record is passed to a function, or when the statements use a macro
that could not be found. Fields called `pad` or `reserved` are ignored.

## Why it is bad

The ring buffer is not cleared: the field shows bytes of an older record. The data is wrong in
every trace, and looks plausible.

## Example

```c
TRACE_EVENT(page_moved,
    TP_PROTO(unsigned long pfn, int node),
    TP_ARGS(pfn, node),
    TP_STRUCT__entry(
        __field(unsigned long, pfn)
        __field(int, node) /* error: TP202 */
    ),
    TP_fast_assign(__entry->pfn = pfn;),
    TP_printk("pfn=%lx node=%d", __entry->pfn, __entry->node)
);
```

## Use instead

Assign it on every path, or remove it from the record.

```c
TRACE_EVENT(page_moved,
    TP_PROTO(unsigned long pfn, int node),
    TP_ARGS(pfn, node),
    TP_STRUCT__entry(
        __field(unsigned long, pfn)
        __field(int, node)
    ),
    TP_fast_assign(
        __entry->pfn = pfn;
        __entry->node = node;
    ),
    TP_printk("pfn=%lx node=%d", __entry->pfn, __entry->node)
);
```

## Fix safety

Unsafe: the contents of the record change. When a parameter has the field's name and type (or both are
plain numbers), the fix assigns it; otherwise the header does not show what the field should hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracepoint.check.context import CheckContext, ClassView, origin_of
from tracepoint.check.finding import Finding
from tracepoint.check.syntax import RECORD_NAMES
from tracepoint.diagnostics import Edit, Fix, Safety
from tracepoint.model.field import ArrayField, Field, ScalarField, StringField, UnknownField
from tracepoint.source.lexer import Kind

_DELIBERATE = ("pad", "reserved", "__pad", "unused", "dummy")


def check(context: CheckContext) -> Iterator[Finding]:
    """Yield the fields that nothing assigns."""
    for view in context.classes:
        for field in view.event_class.fields:
            place = origin_of(field, view.event_class)
            if isinstance(field, (StringField, UnknownField)) or place is None:
                continue
            if field.name.partition("[")[0].strip() in view.assigned:
                continue
            if isinstance(field, ArrayField) and context.sizes.evaluate(field.length) == 0:
                continue
            if field.name.startswith(_DELIBERATE) or not can_claim(view) or field.name in view.scratch:
                continue
            shown = any(field.name in p.names for p in view.prints)
            params = view.event_class.proto.names
            advice = (
                f"add __entry->{field.name} = {field.name};"
                if field.name in params
                else "assign it or remove it"
            )
            yield Finding(
                f"field {field.name} {'is shown but never assigned' if shown else 'is never assigned'}",
                place,
                label="holds bytes of an older record",
                help=(advice,),
                fix=_fix(context, view, field),
                event=view.event_name,
            )


def _fix(context: CheckContext, view: ClassView, field: Field) -> Fix | None:
    """Assign the parameter of the same name, when it is of the same type or both are plain numbers."""
    params = {param.name: param.ctype for param in view.event_class.proto.params}
    if not isinstance(field, ScalarField) or field.name not in params:
        return None
    types = (field.ctype.strip(), params[field.name].strip())
    is_plain = not any("*" in each or each.startswith(("struct ", "union ")) for each in types)
    if types[0] != types[1] and not is_plain:
        return None
    return add_statement(context, view, f"__entry->{field.name} = {field.name};", f"assign {field.name}")


def add_statement(context: CheckContext, view: ClassView, statement: str, message: str) -> Fix | None:
    """Return the fix that puts a statement after the last one of TP_fast_assign, indented as that is."""
    if not view.assign:
        return None
    last = view.assign[-1]
    source = context.header.source
    if last.expansion is not None or source is None or last.file.path != source.path:
        return None
    ends = [i for i, token in enumerate(view.assign[:-1]) if token.text in {";", "{", "}"}]
    first = view.assign[ends[-1] + 1 if ends else 0]
    before = source.text[source.text.rfind("\n", 0, first.root.start) + 1 : first.root.start]
    # What follows `TP_fast_assign(` is aligned with that bracket.
    blanks = "".join(char if char == "\t" else " " for char in before)
    separator = "" if last.text in {";", "}"} else ";"
    edit = Edit(source.path, last.end, last.end, f"{separator}\n{blanks}{statement}")
    return Fix(message, (edit,), Safety.UNSAFE)


def can_claim(view: ClassView) -> bool:
    """Return whether the statements are known well enough to say that they omit a field."""
    return view.is_recorded and not view.hands_record_on and not _has_unknown_macro(view)


def _has_unknown_macro(view: ClassView) -> bool:
    """Return whether a name that looks like a macro remains where a statement begins.

    Its body, in a header that was not found, may assign anything.
    """
    tokens = view.assign
    for index, token in enumerate(tokens):
        begins = index == 0 or tokens[index - 1].text in {";", "{", "}", ")"}
        if not begins or token.kind is not Kind.NAME or token.text in RECORD_NAMES:
            continue
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if following in {";", ""} and token.text not in {"break", "continue", "return"}:
            return True
        if following == "(" and token.text.isupper():
            return True
    return False
