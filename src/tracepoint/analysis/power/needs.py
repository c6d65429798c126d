"""The events that idle states and frequencies are computed from."""

from tracepoint.analysis.needs import Fields, Need

NEEDS = (
    Need({"power:cpu_idle": Fields(("state", "cpu_id"))}, "idle states"),
    Need({"power:cpu_frequency": Fields(("state", "cpu_id"))}, "frequencies"),
    Need({"power:cpu_idle_miss": Fields(("cpu_id", "state", "below"))}, "states that were chosen badly"),
    Need(
        {"sched:sched_switch": Fields(("prev_pid", "next_pid"))},
        "cycles: how long a CPU ran at each frequency",
    ),
)
