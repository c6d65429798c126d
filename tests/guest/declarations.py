"""Declarations of all field kinds that a kernel compiles, drawn at random, the same for a seed.

`tests/strategies.py` draws what the reader and the writer must take; most of that names structs and
constants that exist nowhere.  Here every declaration means something.  Hypothesis is not the one who
draws: what it draws for a seed depends on the code that is loaded.
"""

from __future__ import annotations

import random
import string as characters
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tracepoint.model.event import Event
from tracepoint.model.field import Field
from tracepoint.model.origin import Code
from tracepoint.model.python import fields
from tracepoint.model.python.declare import declare
from tracepoint.model.write import header_of, write_header

INCLUDES = (
    "<linux/in.h>",
    "<linux/in6.h>",
    "<linux/kdev_t.h>",
    "<linux/mmzone.h>",
    "<linux/socket.h>",
    "<linux/tracepoint.h>",
)
# Type: length modifier of its conversions.
INTEGERS = {
    "int": "", "unsigned int": "", "u8": "", "s8": "", "u16": "", "s16": "", "u32": "", "s32": "",
    "short": "", "unsigned char": "", "signed char": "", "char": "", "pid_t": "", "gfp_t": "", "umode_t": "",
    "u64": "ll", "s64": "ll", "long": "l", "unsigned long": "l", "size_t": "z", "loff_t": "ll", "sector_t": "ll",
    "enum zone_type": "", "bool": "", "dev_t": "",
}  # fmt: skip
ELEMENTS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "int": 4, "s16": 2, "unsigned long": 8}
POINTERS = ("void *", "const void *", "struct page *", "const struct cred *")
PROTO = "struct thing *p, int n, u64 wide, unsigned int bits, const char *text, struct va_format *vaf"
_NUMBERS = ("p->a", "p->sub.b", "p->list[2]", "n", "wide", "bits", "1", "0x10", "7UL")
Drawn = Callable[[random.Random], object]
Draw = Callable[[Drawn], object]


def one_of(choices: Sequence[object]) -> Drawn:
    """Draw one of some things."""
    return lambda source: source.choice(choices)


def shuffled(things: Sequence[object]) -> Drawn:
    """Draw an order."""
    return lambda source: source.sample(things, len(things))


def words() -> Drawn:
    """Draw the end of a name; some look like the name of a type."""
    ends = ("_t", "_len", "", "_u8")
    return lambda source: "".join(source.choices(characters.ascii_lowercase, k=3)) + source.choice(ends)


def composite(function: Callable[..., object]) -> Callable[..., Drawn]:
    """Let a function draw, as hypothesis does."""
    return lambda *args: lambda source: function(lambda drawn: drawn(source), *args)


@dataclass(frozen=True)
class Piece:
    """One field with the statement that fills it and the part of TP_printk that shows it."""

    field: Field
    assign: str
    text: str
    arguments: tuple[str, ...]


def _plain(ctype: str) -> str:
    """One source has one type, in C as here."""
    return ctype.replace(" ", "_")


@composite
def numbers(draw: Draw, depth: int = 2) -> str:
    """Draw an integer expression over the parameters."""
    if depth == 0 or draw(one_of([False, True])):
        return draw(one_of(_NUMBERS))
    shape = draw(
        one_of(
            [
                *("{a} + {b}", "({a} & {b})", "({a} | {b})", "({a} ^ {b})", "({a} ? {b} : {c})", "(u64){a}"),
                *("(s16){a}", "!{a}", "~{a}", "-(int){a}", "({a} > {b})", "({a} == {b})", "({a} >> 3)"),
                *(
                    "({a} << 2)",
                    "min_t(int, {a}, {b})",
                    "max_t(u64, {a}, {b})",
                    "({a} && {b})",
                    "(u8)({a} - {b})",
                ),
            ]
        )
    )
    inner = numbers(depth - 1)
    return shape.format(a=draw(inner), b=draw(inner), c=draw(inner))


@composite
def integers(draw: Draw, name: str) -> Piece:
    ctype = draw(one_of(sorted(INTEGERS)))
    made = fields.scalar(ctype, name, draw(one_of(["", "", "FILTER_OTHER"])))
    here = f"__entry->{name}"
    value = draw(numbers())
    assign = draw(one_of([f"{here} = {value};", f"if (n) {here} = {value}; else {here} = 0;"]))
    if ctype == "dev_t":
        return Piece(made, assign, f"{name}=%d:%d", (f"MAJOR({here})", f"MINOR({here})"))
    if ctype == "bool":
        shown = draw(one_of([("%d", here), ("%s", f'{here} ? "yes" : "no"')]))
        return Piece(made, assign, f"{name}={shown[0]}", (shown[1],))
    return Piece(made, assign, *draw(shown_numbers(name, here, INTEGERS[ctype])))


@composite
def shown_numbers(draw: Draw, name: str, here: str, modifier: str) -> tuple[str, tuple[str, ...]]:
    kind = draw(one_of(["plain", "plain", "plain", "flags", "symbol", "shifted"]))
    flag = draw(one_of(["", "#", "0", "-", "+", " "]))
    width = draw(one_of(["", "3", "12"]))
    letter = draw(one_of("duxXoi" if flag not in ("#", "+", " ") else ("xo" if flag == "#" else "di")))
    match kind:
        case "flags":
            mark = draw(one_of(["|", ",", " + ", ""]))
            table = '{ 1, "one" }, { 0x2, "two" }, { 1UL << 2, "four" }, { 0x30, "mask" }'
            return f"{name}=%s", (f'__print_flags({here}, "{mark}", {table})',)
        case "symbol":
            table = '{ 0, "zero" }, { 1, "one" }, { 4096, "a \\"page\\"" }, { -1, "minus" }'
            return f"{name}=%s", (f"__print_symbolic({here}, {table})",)
        case "shifted":
            return f"{name}=%llx", (f"(unsigned long long)({here} >> 4) * 2",)
    return f"{name}=%{flag}{width}{modifier}{letter}", (here,)


@composite
def pointers(draw: Draw, name: str) -> Piece:
    made = fields.scalar(draw(one_of(POINTERS)), name)
    source = draw(one_of(["p->owner", "p", "p->sub.next"]))
    shown = draw(one_of(["%p", "%px", "%20p"]))
    return Piece(made, f"__entry->{name} = (void *){source};", f"{name}={shown}", (f"__entry->{name}",))


@composite
def structs(draw: Draw, name: str) -> Piece:
    made = fields.struct_field("struct in6_addr", name)
    form = draw(one_of(["%pI6c", "%pI6", "%pi6"]))
    return Piece(made, f"__entry->{name} = p->peer;", f"{name}={form}", (f"&__entry->{name}",))


@composite
def arrays(draw: Draw, name: str) -> Piece:
    ctype = draw(one_of(sorted(ELEMENTS)))
    count = draw(one_of([1, 2, 4, 6, 16]))
    here = f"__entry->{name}"
    assign = draw(
        one_of(
            [
                f"memcpy({here}, p->{_plain(ctype)}s, sizeof({here}));",
                f"for (i = 0; i < {count}; i++) {here}[i] = p->table_{_plain(ctype)}[i];",
                f"memset({here}, 0x5a, sizeof({here})); {here}[0] = n;",
            ]
        )
    )
    shown = [("%s", f"__print_array({here}, {count}, {ELEMENTS[ctype]})")]
    if ctype == "u8":
        shown += [("%s", f"__print_hex({here}, {count})"), ("%s", f"__print_hex_str({here}, {count})")]
        shown += [("%*ph", f"{count}, {here}"), ("%6phC", here)]
        shown += [("%pM", here), ("%pmR", here)] if count >= 6 else []
        shown += [("%pUb", here), ("%pUL", here)] if count == 16 else []
    form, argument = draw(one_of(shown))
    return Piece(fields.array(ctype, name, str(count)), assign, f"{name}={form}", (argument,))


@composite
def char_arrays(draw: Draw, name: str) -> Piece:
    length = draw(one_of(["8", "TASK_COMM_LEN", "33"]))
    here = f"__entry->{name}"
    assign = draw(
        one_of(
            [
                f"strscpy({here}, p->comm, sizeof({here}));",
                f"strscpy({here}, text, {length});",
                f"memcpy({here}, p->comm, {length});",
            ]
        )
    )
    # What memcpy copied need not end.
    form = draw(one_of(["%.5s", "%-10.4s", "%.*s"] if "memcpy" in assign else ["%s", "%-20s", "%.3s"]))
    return Piece(
        fields.array("char", name, length),
        assign,
        f"{name}={form}",
        ("4", here) if "*" in form else (here,),
    )


@composite
def dynamic_arrays(draw: Draw, name: str, rel: bool = False) -> Piece:
    ctype = draw(one_of(sorted(ELEMENTS)))
    length = draw(one_of(["p->count", "3", "p->count + 1"]))
    get, what = ("__get_rel_dynamic_array", f"({name})") if rel else ("__get_dynamic_array", f"({name})")
    source = f"p->{draw(one_of(['data', 'more']))}_{_plain(ctype)}s"
    assign = f"memcpy({get}{what}, {source}, ({length}) * sizeof({ctype}));"
    n = f"{get}_len{what}"
    shown = [f"__print_array({get}{what}, {n} / {ELEMENTS[ctype]}, {ELEMENTS[ctype]})"]
    if ctype == "u8":
        shown += [
            f"__print_hex({get}{what}, {n})",
            f'__print_hex_dump("", DUMP_PREFIX_OFFSET, 16, 1, {get}{what}, {n}, true)',
        ]
    return Piece(
        fields.dynamic_array(ctype, name, length, rel=rel), assign, f"{name}=%s", (draw(one_of(shown)),)
    )


@composite
def strings(draw: Draw, name: str, rel: bool = False) -> Piece:
    source = draw(one_of(["text", "p->name", 'n ? text : "none"']))
    get, put = ("__get_rel_str", "__assign_rel_str") if rel else ("__get_str", "__assign_str")
    form = draw(one_of(["%s", "%-12s", "%.4s", "%20.3s"]))
    made = fields.string(name, source, rel=rel)
    return Piece(made, f"{put}({name}, {source});", f"{name}={form}", (f"{get}({name})",))


@composite
def string_lens(draw: Draw, name: str, rel: bool = False) -> Piece:
    length = draw(one_of(["p->name_len", "3"]))
    get, put = ("__get_rel_str", "__assign_rel_str_len") if rel else ("__get_str", "__assign_str_len")
    made = fields.string_len(name, "p->name", length, rel=rel)
    return Piece(made, f"{put}({name}, p->name, {length});", f"{name}=%s", (f"{get}({name})",))


@composite
def vstrings(draw: Draw, name: str) -> Piece:
    made = fields.vstring(name, "vaf->fmt", "vaf->va")
    form = draw(one_of(["%s", "%.9s"]))
    return Piece(
        made, f"__assign_vstr({name}, vaf->fmt, vaf->va);", f"{name}={form}", (f"__get_str({name})",)
    )


@composite
def bitmasks(draw: Draw, name: str, rel: bool = False) -> Piece:
    n_bits = draw(one_of(["64", "20", "130"]))
    get, put = ("__get_rel_bitmask", "__assign_rel_bitmask") if rel else ("__get_bitmask", "__assign_bitmask")
    made = fields.bitmask(name, n_bits, rel=rel)
    return Piece(made, f"{put}({name}, p->ports, {n_bits});", f"{name}=%s", (f"{get}({name})",))


@composite
def cpumasks(draw: Draw, name: str, rel: bool = False) -> Piece:
    get, put = ("__get_rel_cpumask", "__assign_rel_cpumask") if rel else ("__get_cpumask", "__assign_cpumask")
    source = draw(one_of(["cpumask_bits(p->cpus)", "cpumask_bits(p->others)"]))
    return Piece(
        fields.cpumask(name, rel=rel), f"{put}({name}, {source});", f"{name}=%s", (f"{get}({name})",)
    )


@composite
def sockaddrs(draw: Draw, name: str, rel: bool = False) -> Piece:
    length = "sizeof(struct sockaddr_in)"
    get, put = (
        ("__get_rel_sockaddr", "__assign_rel_sockaddr") if rel else ("__get_sockaddr", "__assign_sockaddr")
    )
    form = draw(one_of(["%pISpc", "%pISc", "%pIS"]))
    made = fields.sockaddr(name, length, rel=rel)
    return Piece(made, f"{put}({name}, p->address, {length});", f"{name}={form}", (f"{get}({name})",))


KINDS = {
    "integer": integers,
    "pointer": pointers,
    "struct": structs,
    "array": arrays,
    "char array": char_arrays,
    "dynamic array": dynamic_arrays,
    "string": strings,
    "string_len": string_lens,
    "vstring": vstrings,
    "bitmask": bitmasks,
    "cpumask": cpumasks,
    "sockaddr": sockaddrs,
    "rel dynamic array": lambda name: dynamic_arrays(name, True),
    "rel string": lambda name: strings(name, True),
    "rel string_len": lambda name: string_lens(name, True),
    "rel bitmask": lambda name: bitmasks(name, True),
    "rel cpumask": lambda name: cpumasks(name, True),
    "rel sockaddr": lambda name: sockaddrs(name, True),
}


@composite
def declarations(draw: Draw, number: int) -> Event:
    """Draw event `number`: its first field is of kind `number`, the others are of any."""
    kinds = list(KINDS)
    some = [*kinds, *["integer"] * 6]
    more = [draw(one_of(some)) for _ in range(draw(one_of(range(6))))]
    chosen = [kinds[number % len(kinds)], *more]
    pieces = [draw(KINDS[kind](f"f{i}_{draw(words())}")) for i, kind in enumerate(chosen)]
    order = draw(shuffled(pieces))
    text = " ".join(piece.text for piece in order)
    # A width from an argument stands last: kernels check %s and %pI as if they had not counted it
    # (6.12: kernel/trace/trace_events.c: test_event_printk()).
    glue = draw(one_of(["", " 100%%", ' \\"end\\"', "\\ttab", " star=%*d"]))
    arguments = "".join(f", {argument}" for piece in order for argument in piece.arguments)
    arguments += ", 6, 42" if "*" in glue else ""
    locals_ = "int i; " if any("for (i" in piece.assign for piece in pieces) else ""
    return declare(
        f"w{number:02}",
        system="verified",
        proto=PROTO,
        struct=[piece.field for piece in pieces],
        assign=Code(locals_ + " ".join(piece.assign for piece in draw(shuffled(pieces)))),
        printk=Code(f'"{text}{glue}"{arguments}'),
        condition=draw(one_of(["", "", "", "n >= 0", "p->a && !p->off"])),
    )


def draw_events(count: int, first_seed: int) -> list[Event]:
    """Return `count` events, always the same for a seed."""
    source = random.Random(first_seed)
    return [declarations(number)(source) for number in range(count)]


def header_text(events: list[Event], file: str) -> str:
    """Return the text of a header `file`.h that declares the events."""
    header = header_of(events)
    form = replace(
        header.form, guard=f"_TRACE_{file.upper()}_H", has_multi_read=True, include_path=".",
        include_file=file, includes=INCLUDES,
    )  # fmt: skip
    return write_header(replace(header, form=form))
