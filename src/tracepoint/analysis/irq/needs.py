"""The events of interrupts and of what they defer."""

from __future__ import annotations

from tracepoint.analysis.needs import Fields, Need

_TASK = "common_pid"
#: The system vectors of x86: arch/x86/include/asm/trace/irq_vectors.h.
VECTORS = (
    "local_timer", "reschedule", "call_function_single", "call_function", "irq_work", "x86_platform_ipi",
    "error_apic", "spurious_apic", "thermal_apic", "threshold_apic", "deferred_error_apic",
)  # fmt: skip


NEEDS = (
    Need({"irq:softirq_entry": Fields((_TASK, "vec"))}, "softirqs"),
    Need({"irq:softirq_exit": Fields(("vec",))}, "how long softirqs ran"),
    Need({"irq:softirq_raise": Fields(("vec",))}, "how long softirqs waited"),
    Need({"irq:irq_handler_entry": Fields((_TASK, "irq"), ("name",))}, "interrupt handlers"),
    Need({"irq:irq_handler_exit": Fields(("irq",), ("ret",))}, "how long interrupt handlers ran"),
    Need(
        {f"irq_vectors:{name}_entry": Fields((_TASK,)) for name in VECTORS}
        | {f"irq_vectors:{name}_exit": Fields() for name in VECTORS},
        "interrupts of timers and of other CPUs",
    ),
    Need({"irq:tasklet_entry": Fields(("tasklet", "func"))}, "tasklets"),
    Need({"irq:tasklet_exit": Fields(("tasklet",))}, "how long tasklets ran"),
    Need({"timer:hrtimer_start": Fields(("hrtimer", "softexpires"))}, "when high resolution timers were due"),
    Need(
        {"timer:hrtimer_expire_entry": Fields(("hrtimer", "function", "now"))},
        "how late high resolution timers were",
    ),
    Need({"timer:hrtimer_expire_exit": Fields(("hrtimer",))}, "how long high resolution timers ran"),
    Need({"timer:timer_start": Fields(("timer", "expires"), ("bucket_expiry",))}, "when timers were due"),
    Need({"timer:timer_expire_entry": Fields(("timer", "function", "now"))}, "how late timers were"),
    Need({"timer:timer_expire_exit": Fields(("timer",))}, "how long timers ran"),
    Need(
        {"workqueue:workqueue_queue_work": Fields(("work", "function"), ("workqueue",))},
        "how long work waited",
    ),
    Need({"workqueue:workqueue_execute_start": Fields((_TASK, "work", "function"))}, "work"),
    Need({"workqueue:workqueue_execute_end": Fields((_TASK,))}, "how long work ran"),
)
