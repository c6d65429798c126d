"""The names of columns above the lines of `trace`: those of most tracers, and of some of their own."""

from __future__ import annotations


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
