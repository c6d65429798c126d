"""The events that page faults are counted by, and those that say more of them."""

from tracepoint.analysis.needs import Fields, Need

#: Whatever the event of a user's probe is called, it is found by this function.
HANDLER = "handle_mm_fault"

_FAULT = Fields(("common_pid", "address", "ip", "error_code"))
_BLOCK = Fields(("common_pid", "rwbs"))
_BY = Fields(("common_pid",))

NEEDS = (
    Need({"exceptions:page_fault_user": _FAULT}, "faults of programs", is_needed=True),
    Need({"exceptions:page_fault_kernel": _FAULT}, "faults of the kernel, most of them for system calls"),
    Need(
        {"sched:sched_switch": Fields(("prev_pid", "prev_state"))},
        "whether a fault waited for a read",
    ),
    Need({"block:block_bio_queue": _BLOCK, "block:block_rq_issue": _BLOCK}, "whether a fault read"),
    Need({"raw_syscalls:sys_enter": _BY}, "reads that belong to a system call"),
    Need({"syscalls:sys_enter_mmap": Fields(("common_pid", "len", "flags", "fd"))}, "mappings"),
    Need({"syscalls:sys_exit_mmap": Fields(("common_pid", "ret"))}, "mappings"),
    Need({"syscalls:sys_exit_brk": Fields(("common_pid", "ret"))}, "heaps made by brk()"),
    Need({"syscalls:sys_enter_munmap": Fields(("common_pid", "addr", "len"))}, "mappings that ended"),
    Need({"sched:sched_process_exec": Fields(("pid",))}, "mappings that ended"),
    Need({"sched:sched_process_fork": Fields(("parent_pid", "child_pid"))}, "mappings of children"),
)
