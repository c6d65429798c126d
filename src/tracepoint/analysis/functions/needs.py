"""The events that times of functions are computed from."""

from tracepoint.analysis.needs import Fields, Need

NEEDS = (
    Need(
        {"ftrace:funcgraph_exit": Fields(("common_pid", "func", "depth", "calltime", "rettime"))},
        "times of functions; recorded with the tracer function_graph",
        is_needed=True,
    ),
    Need({"ftrace:funcgraph_entry": Fields(("common_pid", "func", "depth"))}, "the callers of functions"),
)
