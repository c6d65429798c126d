"""A kernel module that registers a probe for one tracepoint and counts its calls.

The count is in `/sys/kernel/debug/NAME/count`, one line for each CPU that passed the tracepoint and
`all SUM`; a write to `reset` sets it to zero.  The probe counts in memory of its own CPU, given to it
as private data, and is certainly gone when the module is unloaded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tracepoint.errors import GenerateError
from tracepoint.generate.fileset import FileSet
from tracepoint.generate.firing import local_names
from tracepoint.generate.writer import TAB, break_call, check_include, check_name, fill_template
from tracepoint.model.event import Event
from tracepoint.model.write import declare_param
from tracepoint.tree.tracing_macros import NEWEST, TreeFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracepoint.model.event import BareTracepoint

_STRUCT = re.compile(r"\b(?:struct|union)\s+[A-Za-z_]\w*")
_REGISTERED = ["probe_hit", "&probe_private"]
_INCLUDE = re.compile(r"""<[^<>"\n]+>|"[^<>"\n]+\"""")


def probe_module(
    event: Event | BareTracepoint,
    *,
    name: str,
    header: str = "",
    by_name: bool = False,
    facts: TreeFacts | None = None,
    includes: Sequence[str] = (),
) -> FileSet:
    """Return the files of a module called `name` with a probe for the event's tracepoint.

    `header` is the header that declares it, with brackets or quotes (default: `<trace/events/SYSTEM.h>`); the
    tracepoint must be exported (EXPORT_TRACEPOINT_SYMBOL_GPL), else `by_name` looks for it among
    those of the kernel itself.  `includes` are more files for types of the prototype.  Raises
    GenerateError when no probe can be registered for it.
    """
    check_name(name)
    facts = facts or NEWEST
    point, shown = _point(event, facts)
    if not header and isinstance(event, Event):
        header = f"<trace/events/{event.system}.h>"
    if not by_name and not _INCLUDE.fullmatch(header):
        raise GenerateError(shown, f'{header!r} is not a header to include; write <name.h> or "name.h"')
    for one in includes:
        check_include(one)
    text = fill_template(
        "probe.c",
        name=name,
        event=shown,
        call=point,
        includes="".join(f"#include {item}\n" for item in [*includes, *([] if by_name else [header])]),
        forward="\n".join(f"{struct};" for struct in _structs(event)) if by_name else "",
        members="\tstruct tracepoint *point;" if by_name else "",
        probe=_probe(event),
        find=fill_template("find.c", point=point) if by_name else "",
        register=_register(point, by_name=by_name),
        unregister=_unregister(point, by_name=by_name),
    )
    return FileSet(
        {
            f"{name}.c": text,
            "Kbuild": fill_template("Kbuild_plain", name=name),
            "Makefile": fill_template("Makefile"),
        }
    )


def _register(point: str, *, by_name: bool) -> str:
    call, arguments = ("probe_register", []) if by_name else (f"register_trace_{point}", _REGISTERED)
    return "\n".join("\t" + line for line in break_call(f"error = {call}", arguments, ");", TAB))


def _unregister(point: str, *, by_name: bool) -> str:
    call, arguments = f"unregister_trace_{point}", _REGISTERED
    if by_name:
        call = "tracepoint_probe_unregister"
        arguments = ["probe_private.point", "(void *)probe_hit", "&probe_private"]
    return "\n".join("\t" + line for line in break_call(call, arguments, ");", TAB))


def _point(event: Event | BareTracepoint, facts: TreeFacts) -> tuple[str, str]:
    """Return the name after `register_trace_`, and the name for users."""
    if not isinstance(event, Event):
        # The header is the kernel's own, so what it calls DECLARE_TRACE means what the kernel says.
        has_suffix = facts.has_tp_suffix and not event.macro.startswith("DECLARE_TRACE_EVENT")
        return f"{event.name}_tp" if has_suffix else event.name, event.name
    if event.is_syscall:
        raise GenerateError(event.full_name, "a system call's event has no tracepoint of its own")
    if event.is_nop:
        raise GenerateError(event.full_name, "a _NOP event never fires")
    return event.name, event.full_name


def _structs(event: Event | BareTracepoint) -> list[str]:
    found = [name for param in event.proto.params for name in _STRUCT.findall(param.ctype)]
    return list(dict.fromkeys(found))


def _probe(event: Event | BareTracepoint) -> str:
    """Return the probe: the prototype of the tracepoint after the private data.

    No parameter can be called `__data`: the kernel's own macros have one of that name.
    """
    names = local_names(event.proto, "probe_")
    params = [declare_param(param.ctype, names[param.name]) for param in event.proto.params]
    head = break_call("static void probe_hit", ["void *__data", *params], ")")
    lines = [
        *head,
        "{",
        "\ttypeof(probe_private) *probe_data = __data;",
        "",
        "\tthis_cpu_inc(*probe_data->hits);",
        "}",
    ]
    return "\n".join(lines)
