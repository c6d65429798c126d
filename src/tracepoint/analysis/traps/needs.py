"""The events that tell of traps: few vectors have one, all that end a program have a signal."""

from tracepoint.analysis.needs import Fields, Need

FAULTS = ("exceptions:page_fault_user", "exceptions:page_fault_kernel")
ENTRY, EXIT = "traps:trap_entry", "traps:trap_exit"
SIGNAL, NMI, CHECK = "signal:signal_generate", "nmi:nmi_handler", "mce:mce_record"
#: Each has an event for its begin and its end.
INTERRUPTS = (
    "local_timer reschedule call_function call_function_single irq_work thermal_apic threshold_apic "
    "deferred_error_apic error_apic spurious_apic x86_platform_ipi"
).split()

_BY = ("common_pid",)

NEEDS = (
    Need({SIGNAL: Fields((*_BY, "sig", "code", "pid"))}, "the signals that traps became"),
    Need({FAULTS[0]: Fields(_BY)}, "page faults of programs"),
    Need({FAULTS[1]: Fields(_BY)}, "page faults of the kernel"),
    Need({ENTRY: Fields((*_BY, "trap"))}, "all other traps, in a patched kernel"),
    Need({EXIT: Fields((*_BY, "trap"))}, "how long traps took, in a patched kernel"),
    Need({NMI: Fields(_BY)}, "interrupts that cannot be masked"),
    Need({CHECK: Fields(_BY)}, "machine checks"),
    Need(
        {
            f"irq_vectors:{name}_{end}": Fields((*_BY, "vector"))
            for name in INTERRUPTS
            for end in ("entry", "exit")
        },
        "interrupts of the processor's own",
    ),
)
