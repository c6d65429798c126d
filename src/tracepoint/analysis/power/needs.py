"""The events that idle states and frequencies are computed from."""

from tracepoint.analysis.needs import Fields, Need

IDLE, FREQUENCY, MISS = "power:cpu_idle", "power:cpu_frequency", "power:cpu_idle_miss"
SWITCH = "sched:sched_switch"
NEEDS = (
    Need({IDLE: Fields(("state", "cpu_id"))}, "idle states"),
    Need({FREQUENCY: Fields(("state", "cpu_id"))}, "frequencies"),
    Need({MISS: Fields(("cpu_id", "state", "below"))}, "states that were chosen badly"),
    Need(
        {SWITCH: Fields(("prev_pid", "next_pid"))},
        "cycles: how long a CPU ran at each frequency",
    ),
)
