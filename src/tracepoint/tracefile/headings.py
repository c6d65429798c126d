"""The names of columns above the lines of `trace`: those of most tracers, and of some of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.tracefile.textoptions import SECTION_TRACERS

if TYPE_CHECKING:
    from tracepoint.tracefile.textoptions import TextOptions


def plain_columns(*, has_tgid: bool) -> str:
    """Return the names of the columns without irq-info."""
    tgid, bar = ("   TGID   ", "     |    ") if has_tgid else ("", "")
    return (
        f"#           TASK-PID    {tgid} CPU#     TIMESTAMP  FUNCTION\n"
        f"#              | |      {bar}   |         |         |\n"
    )


def irq_columns(*, has_tgid: bool) -> str:
    """Return the names of the columns with irq-info."""
    width = 12 if has_tgid else 2
    gap, tgid, bar = " " * width, "     TGID   "[:width], "       |    "[:width]
    start = f"#                            {gap} "
    return (
        f"{start} _-----=> irqs-off/BH-disabled\n"
        f"{start}/ _----=> need-resched\n"
        f"{start[:-1]}| / _---=> hardirq/softirq\n"
        f"{start[:-1]}|| / _--=> preempt-depth\n"
        f"{start[:-1]}||| / _-=> migrate-disable\n"
        f"{start[:-1]}|||| /     delay\n"
        f"#           TASK-PID  {tgid} CPU#  |||||  TIMESTAMP  FUNCTION\n"
        f"#              | |    {bar}   |   |||||     |         |\n"
    )


def latency_heading(options: TextOptions, entries: str, n_cpus: int) -> str:
    """Return what a latency trace says of itself: kernel/trace/trace.c, print_trace_header().

    A `?` stands for what no recording holds: how the kernel preempts where its version does not say so, and
    of a latency tracer the latency, its CPU and task, and where it began and ended; others have none.
    """
    is_measured = options.measures_latency
    latency, task, number = ("?", "?-?", "?") if is_measured else ("0", "-0", "0")
    section = "#  => started at: ?\n#  => ended at:   ?\n#\n" if options.tracer in SECTION_TRACERS else ""
    return (
        f"# {options.tracer} latency trace v1.1.5 on {options.release or '?'}\n"
        f"# {'-' * 68}\n"
        f"# latency: {latency} us, {entries}, CPU#{number} |"
        f" (M:{options.preemption or '?'} VP:0, KP:0, SP:0 HP:0 #P:{n_cpus})\n"
        "#    -----------------\n"
        f"#    | task: {task} (uid:{number} nice:{number} policy:{number} rt_prio:{number})\n"
        "#    -----------------\n"
        f"{section}#\n"
    )


LATENCY_COLUMNS = (
    "#                    _------=> CPU#            \n"
    "#                   / _-----=> irqs-off/BH-disabled\n"
    "#                  | / _----=> need-resched    \n"
    "#                  || / _---=> hardirq/softirq \n"
    "#                  ||| / _--=> preempt-depth   \n"
    "#                  |||| / _-=> migrate-disable \n"
    "#                  ||||| /     delay           \n"
    "#  cmd     pid     |||||| time  |   caller     \n"
    "#     \\   /        ||||||  \\    |    /       \n"
)
_FLAGS = (
    "#                                _-----=> irqs-off\n"
    "#                               / _----=> need-resched\n"
    "#                              | / _---=> hardirq/softirq\n"
    "#                              || / _--=> preempt-depth\n"
    "#                              ||| / _-=> migrate-disable"
)
_TASK = "#           TASK-PID      CPU# |||||   TIMESTAMP   "
_BARS = "#              | |         |   |||||      |         "
_GAP = 21 * " "
#: What the kernel shows whatever the options are: print_osnoise_headers() and others; it writes `%%` so.
OWN_HEADINGS = {
    "osnoise": (
        f"{_FLAGS}{_GAP}    MAX\n"
        f"#                              |||| /     delay               {_GAP[1:]}SINGLE"
        "      Interference counters:\n"
        "#                              |||||               RUNTIME      NOISE  %% OF CPU  NOISE "
        f"   +{29 * '-'}+\n"
        f"{_TASK} IN US       IN US  AVAILABLE  IN US     HW    NMI    IRQ   SIRQ THREAD\n"
        f"{_BARS}  |             |    |            |{5 * '      |'}\n"
    ),
    "timerlat": (
        f"{_FLAGS}\n"
        "#                              |||| /     delay\n"
        "#                              |||||            ACTIVATION\n"
        f"{_TASK}ID            CONTEXT                 LATENCY\n"
        f"{_BARS}|                  |                       |\n"
    ),
    "branch": (
        "#           TASK-PID    CPU#    TIMESTAMP  CORRECT  FUNC:FILE:LINE\n"
        "#              | |       |          |         |       |\n"
    ),
}
