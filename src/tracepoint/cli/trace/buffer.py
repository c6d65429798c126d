"""What the commands that read a trace.dat share: the ring buffer of a name, the machine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.tracefile.options import OptionId, find_options

if TYPE_CHECKING:
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.container import Container


def buffer_named(trace: Container, name: str) -> TraceBuffer:
    """Return the ring buffer of an instance, the top one for an empty name; raises TracepointError."""
    for buffer in trace.buffers:
        if buffer.name == name:
            return buffer
    names = ", ".join(buffer.name or "the top one" for buffer in trace.buffers) or "none"
    wanted = f"instance {name!r}" if name else "top buffer"
    raise TracepointError(f"{trace.path}: no {wanted}; buffers: {names}")


def uname_of(trace: Container) -> list[str]:
    """Return the words of uname: system, machine name, release, the rest."""
    return " ".join(option.text for option in find_options(trace.options, OptionId.UNAME)).split()
