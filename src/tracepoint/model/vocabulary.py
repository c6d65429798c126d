"""The macros of trace headers: the one list of words that `read` understands.

Signatures are those of include/linux/tracepoint.h and include/trace/{trace_events.h,stages/*}
from 3.6 to 7.x; where a macro changed its arguments, both forms are accepted by the reader.
"""

from __future__ import annotations

TRACE_EVENT_PARTS = ("name", "proto", "args", "struct", "assign", "print")
_CONDITION_PARTS = ("name", "proto", "args", "cond", "struct", "assign", "print")
_INSTANCE_PARTS = ("template", "name", "proto", "args")
_TRACE_PARTS = ("name", "proto", "args")

#: Macros that declare class and event together, with the names of their arguments.
EVENT_MACROS: dict[str, tuple[str, ...]] = {
    "TRACE_EVENT": TRACE_EVENT_PARTS,
    "TRACE_EVENT_CONDITION": _CONDITION_PARTS,
    "TRACE_EVENT_FN": (*TRACE_EVENT_PARTS, "reg", "unreg"),
    "TRACE_EVENT_FN_COND": (*_CONDITION_PARTS, "reg", "unreg"),
    "TRACE_EVENT_NOP": TRACE_EVENT_PARTS,
    "TRACE_EVENT_SYSCALL": (*TRACE_EVENT_PARTS, "reg", "unreg"),
    "TRACE_EVENT_WRITABLE": (*TRACE_EVENT_PARTS, "size"),
    "TRACE_CUSTOM_EVENT": TRACE_EVENT_PARTS,
}

#: Macros that declare only a class.
CLASS_MACROS: dict[str, tuple[str, ...]] = {
    "DECLARE_EVENT_CLASS": TRACE_EVENT_PARTS,
    "DECLARE_EVENT_CLASS_NOP": TRACE_EVENT_PARTS,
    "DECLARE_EVENT_SYSCALL_CLASS": TRACE_EVENT_PARTS,
    "DECLARE_CUSTOM_EVENT_CLASS": TRACE_EVENT_PARTS,
}

#: Macros that make an event from a class.
INSTANCE_MACROS: dict[str, tuple[str, ...]] = {
    "DEFINE_EVENT": _INSTANCE_PARTS,
    "DEFINE_EVENT_FN": (*_INSTANCE_PARTS, "reg", "unreg"),
    "DEFINE_EVENT_PRINT": (*_INSTANCE_PARTS, "print"),
    "DEFINE_EVENT_CONDITION": (*_INSTANCE_PARTS, "cond"),
    "DEFINE_EVENT_WRITABLE": (*_INSTANCE_PARTS, "size"),
    "DEFINE_EVENT_SYSCALL": _INSTANCE_PARTS,
    "DEFINE_EVENT_NOP": _INSTANCE_PARTS,
    "DEFINE_CUSTOM_EVENT": _INSTANCE_PARTS,
}

#: Macros that declare a tracepoint without a trace event.
TRACEPOINT_MACROS: dict[str, tuple[str, ...]] = {
    "DECLARE_TRACE": _TRACE_PARTS,
    "DECLARE_TRACE_CONDITION": (*_TRACE_PARTS, "cond"),
    "DECLARE_TRACE_NOARGS": ("name",),
    "DECLARE_TRACE_WRITABLE": (*_TRACE_PARTS, "size"),
    "DECLARE_TRACE_SYSCALL": _TRACE_PARTS,
    "DECLARE_TRACE_EVENT": _TRACE_PARTS,
    "DECLARE_TRACE_EVENT_CONDITION": (*_TRACE_PARTS, "cond"),
    "DECLARE_TRACE_EVENT_SYSCALL": _TRACE_PARTS,
    "DECLARE_EVENT_NOP": _TRACE_PARTS,
}

#: Macros about an event or a value that is declared elsewhere.
ANNOTATION_MACROS: dict[str, tuple[str, ...]] = {
    "TRACE_DEFINE_ENUM": ("name",),
    "TRACE_DEFINE_SIZEOF": ("name",),
    "TRACE_EVENT_FLAGS": ("name", "flags"),
    "TRACE_EVENT_PERF_PERM": ("name", "expr"),
}

#: The form of the documentation of 2008: `DEFINE_TRACE(name, TPPROTO(...), TPARGS(...))`.
LEGACY_MACROS: dict[str, tuple[str, ...]] = {"DEFINE_TRACE": _TRACE_PARTS}

DECLARING_MACROS: dict[str, tuple[str, ...]] = {
    **EVENT_MACROS,
    **CLASS_MACROS,
    **INSTANCE_MACROS,
    **TRACEPOINT_MACROS,
    **ANNOTATION_MACROS,
    **LEGACY_MACROS,
}

#: The wrapper macro of each part; the misspelt and old ones are read too.
PART_MACROS: dict[str, tuple[str, ...]] = {
    "proto": ("TP_PROTO", "TPPROTO", "TPPTOTO", "PARAMS"),
    "args": ("TP_ARGS", "TPARGS", "PARAMS"),
    "cond": ("TP_CONDITION", "PARAMS"),
    "struct": ("TP_STRUCT__entry", "PARAMS"),
    "assign": ("TP_fast_assign", "PARAMS"),
    "print": ("TP_printk", "PARAMS"),
}

#: Field macros without `__`, with the names of their arguments.
FIELD_MACROS: dict[str, tuple[str, ...]] = {
    "field": ("type", "name"),
    "field_ext": ("type", "name", "filter_type"),
    "field_struct": ("type", "name"),
    "field_struct_ext": ("type", "name", "filter_type"),
    "array": ("type", "name", "length"),
    "dynamic_array": ("type", "name", "length"),
    "rel_dynamic_array": ("type", "name", "length"),
    "string": ("name", "source"),
    "rel_string": ("name", "source"),
    "string_len": ("name", "source", "length"),
    "rel_string_len": ("name", "source", "length"),
    "vstring": ("name", "source", "va_list"),
    "bitmask": ("name", "n_bits"),
    "rel_bitmask": ("name", "n_bits"),
    "cpumask": ("name",),
    "rel_cpumask": ("name",),
    "sockaddr": ("name", "length"),
    "rel_sockaddr": ("name", "length"),
}

#: Getters of a field, whose name is their argument: those that give a text, an address, a length.
TEXT_GETTERS = frozenset(
    "__get_str __get_rel_str __get_bitmask __get_rel_bitmask __get_cpumask __get_rel_cpumask".split()
)
ADDRESS_GETTERS = frozenset(
    "__get_dynamic_array __get_rel_dynamic_array __get_sockaddr __get_rel_sockaddr".split()
)
LENGTH_GETTERS = frozenset(["__get_dynamic_array_len", "__get_rel_dynamic_array_len"])

#: Helpers whose first argument is a field's name, not a value.
FIELD_HELPERS = TEXT_GETTERS | ADDRESS_GETTERS | LENGTH_GETTERS | {"__print_dynamic_array"}

#: Helpers that print their arguments as a text.
TEXT_HELPERS = frozenset(
    [
        "__print_flags",
        "__print_flags_u64",
        "__print_symbolic",
        "__print_symbolic_u64",
        "__print_hex",
        "__print_hex_str",
        "__print_hex_dump",
        "__print_array",
        "__print_dynamic_array",
    ]
)

#: What TP_printk may call: printed by stage 3 of the kernel's macros.
PRINT_HELPERS = (
    FIELD_HELPERS
    | TEXT_HELPERS
    | {"__print_ns_to_secs", "__print_ns_without_secs", "__get_buf"}
    | {"__event_in_irq", "__event_in_hardirq", "__event_in_softirq"}
)

#: What TP_fast_assign may call beyond plain C.
ASSIGN_HELPERS = frozenset(
    [
        "__assign_str",
        "__assign_rel_str",
        "__assign_str_len",
        "__assign_rel_str_len",
        "__assign_vstr",
        "__assign_bitmask",
        "__assign_rel_bitmask",
        "__assign_cpumask",
        "__assign_rel_cpumask",
        "__assign_sockaddr",
        "__assign_rel_sockaddr",
        "__perf_count",
        "__perf_task",
        "__perf_addr",
    ]
)

#: Object-like macros by which a header says where it belongs.
HEADER_MACROS = frozenset(
    [
        "TRACE_SYSTEM",
        "TRACE_SYSTEM_VAR",
        "TRACE_SYSTEM_STRING",
        "TRACE_INCLUDE_PATH",
        "TRACE_INCLUDE_FILE",
        "NOTRACE",
    ]
)

#: Names that stay as they are when macros are expanded: the reader gives them their meaning.
PROTECTED = frozenset(
    {
        *DECLARING_MACROS,
        *(name for names in PART_MACROS.values() for name in names),
        *("__" + kind for kind in FIELD_MACROS),
        *PRINT_HELPERS,
        *ASSIGN_HELPERS,
        *HEADER_MACROS,
        "__entry",
    }
)
