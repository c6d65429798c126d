"""Hypothesis strategies that build valid declarations, for every room that wants random ones.

`headers()` makes a `TraceHeader` as `read_header_text` would: fields of all kinds, classes with
instances, every variant of the macros, print formats with nested conditionals and flag tables.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tracepoint.model.event import BareTracepoint, EnumDef, Event, EventClass, HeaderForm, TraceHeader
from tracepoint.model.field import ArrayField, Field
from tracepoint.model.origin import Code
from tracepoint.model.python.declare import declare, declare_class, declare_tracepoint, define_event
from tracepoint.model.python.fields import (
    array,
    bitmask,
    cpumask,
    dynamic_array,
    scalar,
    sockaddr,
    string,
    string_len,
    struct_field,
    vstring,
)
from tracepoint.model.python.names import entry_access

# Names that would read as something else: C words, and what declarations are made of.
_WORDS = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "bool",
        "asm",
        "typeof",
        "NULL",
        "defined",
    ]
)

names = st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True).filter(
    lambda n: n not in _WORDS and not n.startswith(("__", "tp_"))
)
ctypes = st.sampled_from(
    [
        "int",
        "unsigned int",
        "u8",
        "u16",
        "u32",
        "u64",
        "s64",
        "long",
        "unsigned long",
        "bool",
        "dev_t",
        "pid_t",
        "enum zone_type",
    ]
)
pointers = st.sampled_from(["struct page *", "const char *", "void *", "const struct cred *", "struct a **"])
param_types = st.one_of(ctypes, pointers, st.sampled_from(["int[4]", "void (*)(int)", "struct file * const"]))
lengths = st.sampled_from(["1", "8", "TASK_COMM_LEN", "2 * N", "sizeof(struct a)", "ARRAY_SIZE(x) + 1"])


@st.composite
def expressions(draw: st.DrawFn, leaves: tuple[str, ...], depth: int = 3) -> str:
    """Draw a C expression over `leaves`: arithmetic, casts, calls, and conditionals in conditionals."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from((*leaves, "0", "1", "0x10UL", "PAGE_SIZE")))
    inner = expressions(leaves, depth - 1)
    shape = draw(
        st.sampled_from(
            [
                "{a} + {b}",
                "({a} & {b})",
                "({a} ? {b} : {c})",
                "(u64){a}",
                "MAJOR({a})",
                "min({a}, {b})",
                "!{a}",
                "-{a}",
                "{a}->len",
            ]
        )
    )
    return shape.format(a=draw(inner), b=draw(inner), c=draw(inner))


@st.composite
def fields(draw: st.DrawFn, name: str, leaves: tuple[str, ...] = ("n",)) -> Field:
    """Draw a field of any kind called `name`; sources and lengths are made of `leaves`."""
    source = draw(expressions(leaves, 1))
    length = draw(lengths)
    rel = draw(st.booleans())
    make = draw(
        st.sampled_from(
            [
                lambda: scalar(draw(st.one_of(ctypes, pointers)), name),
                lambda: scalar(draw(ctypes), name, "FILTER_OTHER"),
                lambda: struct_field("struct rusage", name),
                lambda: struct_field("struct rusage", name, "FILTER_OTHER"),
                lambda: array(draw(ctypes), name, length),
                lambda: array("char", name, length),
                lambda: dynamic_array(draw(ctypes), name, source, rel=rel),
                lambda: string(name, source, rel=rel),
                lambda: string_len(name, source, "n", rel=rel),
                lambda: vstring(name, "vaf->fmt", "vaf->va"),
                lambda: bitmask(name, source, rel=rel),
                lambda: cpumask(name, rel=rel),
                lambda: sockaddr(name, length, rel=rel),
            ]
        )
    )
    return make()


@st.composite
def print_formats(draw: st.DrawFn, record: tuple[Field, ...]) -> Code:
    """Draw the text of TP_printk over the fields: conditionals, tables, joined strings."""
    leaves = tuple(entry_access(f) for f in record) or ("REC",)
    arguments = draw(st.lists(expressions(leaves), max_size=4))
    pieces = [f"a{index}=%d" for index in range(len(arguments))]
    text = f'"{" ".join(pieces)}"'
    if draw(st.booleans()):
        text += ' " and \\"more\\""'
    if draw(st.booleans()):
        table = draw(
            st.lists(
                st.sampled_from(['{ 1, "one" }', '{ X_BIT, "x" }', '{ (1 << 2), "," }']),
                min_size=1,
                max_size=6,
            )
        )
        arguments.append(f'__print_flags({leaves[0]}, "|", {", ".join(table)})')
    if draw(st.booleans()):
        arguments.append(f'__print_symbolic({leaves[-1]}, {{ 0, "off" }}, {{ 1, "on" }}) ? "a" : "b"')
    return Code(", ".join([text, *arguments]))


@st.composite
def assignments(draw: st.DrawFn, record: tuple[Field, ...], leaves: tuple[str, ...]) -> Code:
    """Draw the statements of TP_fast_assign: assignments, copies, branches, blocks, locals."""
    statements = []
    for field in record:
        value = draw(expressions(leaves, 2))
        if field.is_dynamic:
            statements.append(f"__assign_str({field.name}, {value});")
        elif isinstance(field, ArrayField):
            statements.append(f"memcpy(__entry->{field.name}, {value}, sizeof(__entry->{field.name}));")
        else:
            one = f"__entry->{field.name} = {value};"
            shape = draw(
                st.sampled_from(
                    [
                        "{s}",
                        "{s}",
                        "if (x) {s}",
                        "if (x) {{ {s} }} else {{ y++; }}",
                        "if (x) {s} else y = 0;",
                        "do {{ {s} }} while (0);",
                    ]
                )
            )
            statements.append(shape.format(s=one))
    if draw(st.booleans()):
        statements.insert(0, "struct page *local = a[1]; int x = 0, y;")
    return Code(" ".join(statements))


@st.composite
def classes(draw: st.DrawFn, name: str, macro: str = "DECLARE_EVENT_CLASS") -> EventClass:
    """Draw an event class."""
    params = draw(st.lists(names, max_size=4, unique=True))
    proto = ", ".join(_param(draw(param_types), p) for p in params) or "void"
    leaves = tuple(params) or ("jiffies",)
    record = tuple(draw(fields(n, leaves)) for n in draw(st.lists(names, max_size=5, unique=True)))
    return declare_class(
        name,
        proto=proto,
        struct=record,
        assign=draw(assignments(record, leaves)),
        printk=draw(print_formats(record)),
        macro=macro,
    )


def _param(ctype: str, name: str) -> str:
    if "(*)" in ctype:
        return ctype.replace("(*)", f"(*{name})")
    base, bracket, rest = ctype.partition("[")
    return f"{base} {name}{bracket}{rest}"


@st.composite
def events(draw: st.DrawFn, name: str, system: str = "demo") -> Event:
    """Draw an event that declares its own class, in any variant of TRACE_EVENT."""
    cls = draw(classes(name))
    extra = draw(
        st.sampled_from(
            [
                {},
                {"condition": "a && (b || !c)"},
                {"reg": "my_reg", "unreg": "my_unreg"},
                {"reg": "my_reg", "unreg": "my_unreg", "condition": "x"},
                {"writable_size": "sizeof(struct a)"},
                {"macro": "TRACE_EVENT_NOP"},
                {"macro": "TRACE_CUSTOM_EVENT"},
                {"flags": "TRACE_EVENT_FL_CAP_ANY"},
                {"perf_perm": "is_sampling_event(p_event) ? -EPERM : 0"},
            ]
        )
    )
    return declare(
        name, system=system, proto=cls.proto, struct=cls.fields, assign=cls.assign, printk=cls.printk, **extra
    )


@st.composite
def instances(draw: st.DrawFn, cls: EventClass, name: str, system: str = "demo") -> Event:
    """Draw an event of a class, in any variant of DEFINE_EVENT."""
    extra = draw(
        st.sampled_from(
            [
                {},
                {},
                {"condition": "x > 1"},
                {"reg": "r", "unreg": "u"},
                {"writable_size": "8"},
                {"printk": Code('"own %d", 1')},
            ]
        )
    )
    return define_event(cls, name, system=system, **extra)


@st.composite
def tracepoints(draw: st.DrawFn, name: str) -> BareTracepoint:
    """Draw a tracepoint without an event."""
    extra = draw(
        st.sampled_from([{}, {"condition": "x"}, {"writable_size": "4"}, {"macro": "DECLARE_TRACE_SYSCALL"}])
    )
    params = draw(st.lists(names, max_size=3, unique=True))
    proto = ", ".join(_param(draw(param_types), p) for p in params) or "void"
    return declare_tracepoint(name, proto=proto, **extra)


@st.composite
def headers(draw: st.DrawFn) -> TraceHeader:
    """Draw a whole trace header."""
    chosen = draw(st.lists(names, min_size=1, max_size=7, unique=True))
    all_classes: list[EventClass] = []
    all_events: list[Event] = []
    all_tracepoints: list[BareTracepoint] = []
    for name in chosen:
        declared = [cls for cls in all_classes if cls.macro == "DECLARE_EVENT_CLASS"]
        match draw(st.sampled_from(["event", "class", "instance", "tracepoint"])):
            case "class":
                all_classes.append(draw(classes(name)))
            case "instance" if declared:
                all_events.append(draw(instances(draw(st.sampled_from(declared)), name)))
            case "tracepoint":
                all_tracepoints.append(draw(tracepoints(name)))
            case _:
                event = draw(events(name))
                all_classes.append(event.event_class)
                all_events.append(event)
    form = HeaderForm(
        guard=draw(st.sampled_from(["", "_TRACE_DEMO_H"])),
        include_path=draw(st.sampled_from(["", ".", "../../fs/demo"])),
        include_file=draw(st.sampled_from(["", "demo_trace"])),
        includes=("<linux/tracepoint.h>",),
    )
    if form.guard and draw(st.booleans()):
        form = HeaderForm(
            guard=form.guard,
            has_multi_read=True,
            include_path=form.include_path,
            include_file=form.include_file,
            includes=form.includes,
        )
    enums = tuple(EnumDef(n.upper(), draw(st.booleans()), "demo") for n in draw(st.lists(names, max_size=2)))
    return TraceHeader("demo", tuple(all_events), tuple(all_classes), tuple(all_tracepoints), enums, form)
