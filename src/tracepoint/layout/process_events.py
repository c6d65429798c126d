"""What rings of a Python process hold beside its events: the formats of the tracer's own, their numbers."""

from __future__ import annotations

from tracepoint.layout.format import COMMON_FIELDS, EventFormat, FieldFormat

PRINT_ID, FUNCTION_ID, STACK_ID, RAW_ID = 5, 1, 4, 18
# kernel/trace/trace.h, __TRACE_LAST_TYPE: smaller numbers are the kernel's own events.
FIRST_ID = 20
#: What `ip` of a mark is: the address of the first name, `tracing_mark_write`.
MARK_ADDRESS = 0x5059_0000_0000
ADDRESS_STEP = 16
_FRAMES = 8


def _own(name: str, number: int, fields: tuple[FieldFormat, ...], print_fmt: str) -> EventFormat:
    return EventFormat("ftrace", name, (*COMMON_FIELDS, *fields), print_fmt, id=number)


_STACK_FMT = " ".join([r'"\t=> %ps\n\t=> %ps\n\t=> %ps\n"'] * 2 + [r'"\t=> %ps\n\t=> %ps\n"'])
OWN_EVENTS = (
    _own(
        "function",
        FUNCTION_ID,
        (
            FieldFormat("ip", "unsigned long", 8, 8, False),
            FieldFormat("parent_ip", "unsigned long", 16, 8, False),
        ),
        '" %ps <-- %ps", (void *)REC->ip, (void *)REC->parent_ip',
    ),
    _own(
        "kernel_stack",
        STACK_ID,
        (
            FieldFormat("size", "int", 8, 4, True),
            FieldFormat("caller", f"unsigned long[{_FRAMES}]", 16, 8 * _FRAMES, False),
        ),
        _STACK_FMT + "".join(f", (void *)REC->caller[{i}]" for i in range(_FRAMES)),
    ),
    _own(
        "print",
        PRINT_ID,
        (FieldFormat("ip", "unsigned long", 8, 8, False), FieldFormat("buf", "char[]", 16, 0, True)),
        '"%ps: %s", (void *)REC->ip, REC->buf',
    ),
    _own(
        "raw_data",
        RAW_ID,
        (FieldFormat("id", "unsigned int", 8, 4, False), FieldFormat("buf", "char[]", 12, 0, True)),
        '"id:%04x %08x", REC->id, (int)REC->buf[0]',
    ),
)
OWN_BY_NAME = {form.name: form for form in OWN_EVENTS}
