"""eBPF programs for an event: one for libbpf, and one that needs only bpf(2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError, SourceError
from tracepoint.generate.fileset import FileSet
from tracepoint.generate.writer import CodeWriter, check_event, check_name, fill_template
from tracepoint.source.ctype import parse_ctype
from tracepoint.source.cvalue import int_type_of

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat, FieldFormat
    from tracepoint.model.event import Event, Param

# BPF_MAX arguments of a tracepoint that a program can see (kernel/trace/bpf_trace.c: bpf_trace_run12).
MAX_ARGUMENTS = 12
_LONG = 8


def libbpf_program(event: Event, layout: EventFormat, *, name: str) -> FileSet:
    """Return a libbpf program that counts an event by process, its loader and a Makefile.

    `layout` is the record; the program sees it as a struct, and the arguments of the tracepoint in a
    second function.  Raises GenerateError for a name that is not valid in C.
    """
    check_name(name, "program")
    check_event(event.system, event.name)
    values = {"name": name, "event": event.full_name, "system": event.system, "point": event.name}
    program = fill_template(
        "bpf_program.c",
        **values,
        record=record_struct(layout, f"{name}_record"),
        fields=_field_comments(layout),
        arguments=_argument_comments(event),
    )
    return FileSet(
        {
            f"{name}.bpf.c": program,
            f"{name}.c": fill_template("bpf_loader.c", **values),
            "Makefile": fill_template("bpf_makefile", **values),
        }
    )


def bpf_counter(event: Event, *, name: str) -> FileSet:
    """Return a C program that counts an event while a command runs, with its own instructions.

    It needs only a compiler and the kernel's user headers, and may be linked statically.  Raises
    GenerateError for events without a tracepoint of their own.
    """
    check_name(name, "program")
    check_event(event.system, event.name)
    if event.is_syscall or event.is_nop:
        raise GenerateError(event.full_name, "the event has no tracepoint of its own")
    values = {"name": name, "event": event.full_name, "system": event.system, "point": event.name}
    return FileSet({f"{name}.c": fill_template("bpf_counter.c", **values)})


def record_struct(layout: EventFormat, name: str) -> str:
    """Return the record as a C struct for programs: integers of fixed size, holes filled, offsets checked.

    >>> from tracepoint.layout.format import EventFormat, FieldFormat
    >>> record = EventFormat("s", "e", (FieldFormat("n", "int", 8, 4, True),), "", n_common=0)
    >>> print(record_struct(record, "r").splitlines()[2].strip())
    __s32 n;
    """
    code = CodeWriter()
    at = 0
    checks = []
    with code.block(f"struct {name} {{", "} __attribute__((packed));"):
        for field in sorted(layout.fields, key=lambda f: f.offset):
            check_name(field.name, "field")
            if field.offset < at:
                raise GenerateError(f"{layout.system}:{layout.name}", f"field {field.name} overlaps another")
            if field.offset > at:
                code.line(f"__u8 unused_{at}[{field.offset - at}];")
            code.line(_member(field))
            at = field.offset + field.size
            checks.append((field.name, field.offset))
    code.line()
    for field_name, offset in checks:
        code.call("_Static_assert", [f"offsetof(struct {name}, {field_name}) == {offset}", f'"{field_name}"'])
    return code.text


def _member(field: FieldFormat) -> str:
    sign = "s" if field.is_signed else "u"
    if field.is_data_loc:
        return f"__u32 {field.name};"
    if not field.is_array and field.size in (1, 2, 4, 8):
        return f"__{sign}{8 * field.size} {field.name};"
    if field.element_ctype == "char":
        return f"char {field.name}[{field.size}];"
    width = _element_size(field)
    return f"__{sign if width > 1 else 'u'}{8 * width} {field.name}[{field.size // width}];"


def _element_size(field: FieldFormat) -> int:
    try:
        kind = int_type_of(parse_ctype(field.element_ctype), _LONG)
    except SourceError:
        kind = None
    size = kind.size if kind is not None else 1
    return size if field.size % size == 0 else 1


def _field_comments(layout: EventFormat) -> str:
    """Return what a program can read from the record, as a comment."""
    lines = ["\t/*"]
    for field in layout.event_fields:
        if field.is_data_loc:
            start = "the end of this word" if field.is_rel_loc else "the record's start"
            lines += [
                f"\t * record->{field.name}: the low 16 bits are the offset from",
                f"\t * {start}, the high 16 bits the length in bytes",
            ]
        else:
            lines.append(f"\t * record->{field.name}")
    return "\n".join([*lines, "\t */"]) if layout.event_fields else ""


def _argument_comments(event: Event) -> str:
    params = event.proto.params[:MAX_ARGUMENTS]
    if not params:
        return ""
    lines = [f"\t * call->args[{number}] is {_shown(param)}" for number, param in enumerate(params)]
    return "\n".join(["\t/*", *lines, "\t */"])


def _shown(param: Param) -> str:
    space = "" if param.ctype.endswith("*") else " "
    return f"{param.ctype}{space}{param.name}".replace("*/", "* /")[:56]
