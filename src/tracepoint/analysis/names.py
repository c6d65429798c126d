"""The names of tasks, as far as a recording has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.decode.plan import ColumnKind
from tracepoint.tracefile.recording import read_pairs

if TYPE_CHECKING:
    from tracepoint.decode.trace import Trace

_SWITCH = "sched:sched_switch"
_IDLE = "<idle>"


def task_names(trace: Trace) -> dict[int, str]:
    """Return the names of tasks by id: those that the recorder saved, else the last one in sched_switch.

    The kernel saves the names of the last 128 tasks only (`saved_cmdlines_size`).

    >>> import tracepoint as tp
    >>> with tp.open_trace("tests/tracefile/golden/cut.v6.dat") as trace:
    ...     names = task_names(trace)
    >>> names[0], names[104]
    ('<idle>', 'sh')
    """
    found: dict[int, str] = {}
    if _SWITCH in trace and {"next_pid", "next_comm"} <= {
        field.name for field in trace.format(_SWITCH).fields
    }:
        # In parts: a large recording has more switches than memory.
        for window in trace.windows():
            table = trace.between(*window).joined({_SWITCH: ("next_pid", "next_comm")})
            tids, names = (table.column("sched_switch", field) for field in ("next_pid", "next_comm"))
            if names.plan.kind is ColumnKind.TEXT:
                words = names.words
                last = dict(zip(tids.numbers, names.numbers, strict=True))
                # A damaged record that ends before its name has any number there.
                found |= {tid: words[word] for tid, word in last.items() if 0 <= word < len(words)}
    return found | saved_names(trace)


def saved_names(trace: Trace) -> dict[int, str]:
    """Return the names of tasks that the recorder saved, by id, and that of idle threads."""
    return read_pairs(trace.file.saved_cmdlines) | {0: _IDLE}
