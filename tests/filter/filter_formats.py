"""Record formats for the filter tests: those of a 6.1 kernel, cut to what the filters name."""

from tracepoint.layout.format import EventFormat, FieldFormat

COMMON = (
    FieldFormat("common_type", "unsigned short", 0, 2, False),
    FieldFormat("common_flags", "unsigned char", 2, 1, False),
    FieldFormat("common_preempt_count", "unsigned char", 3, 1, False),
    FieldFormat("common_pid", "int", 4, 4, True),
)


def event(system, name, *fields):
    return EventFormat(system, name, (*COMMON, *(FieldFormat(*f) for f in fields)), "")


SCHED_SWITCH = event(
    "sched",
    "sched_switch",
    ("prev_comm", "char[16]", 8, 16, True),
    ("prev_pid", "pid_t", 24, 4, True),
    ("prev_prio", "int", 28, 4, True),
    ("prev_state", "long", 32, 8, True),
    ("next_comm", "char[16]", 40, 16, True),
    ("next_pid", "pid_t", 56, 4, True),
    ("next_prio", "int", 60, 4, True),
)
SCHED_WAKEUP = event(
    "sched", "sched_wakeup", ("comm", "char[16]", 8, 16, True), ("pid", "pid_t", 24, 4, True)
)
PROCESS_EXEC = event("sched", "sched_process_exec", ("filename", "__data_loc char[]", 8, 4, True))
OPENAT = event(
    "syscalls",
    "sys_enter_openat",
    ("__syscall_nr", "int", 8, 4, True),
    ("dfd", "int", 16, 8, False),
    ("filename", "const char *", 24, 8, False),
    ("flags", "int", 32, 8, False),
)
SOFTIRQ = event("irq", "softirq_entry", ("vec", "unsigned int", 8, 4, False))
KMALLOC = event(
    "kmem",
    "kmalloc",
    ("call_site", "unsigned long", 8, 8, False),
    ("ptr", "const void *", 16, 8, False),
    ("gfp_flags", "unsigned long", 40, 8, False),
)
FOO = event(
    "foo",
    "foo_bar",
    ("n", "int", 8, 4, True),
    ("small", "u8", 12, 1, False),
    ("name", "__data_loc char[]", 16, 4, True),
    ("list", "__data_loc int[]", 20, 4, True),
    ("cpus", "__data_loc unsigned long[]", 24, 4, False),
    ("trio", "u16[3]", 28, 6, False),
    ("stamp", "u64", 40, 8, False),
    ("mask", "__data_loc cpumask_t[]", 48, 4, False),
    ("addr", "unsigned long", 56, 8, False),
    ("rel", "__rel_loc char[]", 64, 4, False),
    ("comm16", "char[16]", 68, 16, False),
    ("text", "char *", 88, 8, False),
)
EVENTS = {
    e.system + "/" + e.name: e for e in (SCHED_SWITCH, SCHED_WAKEUP, PROCESS_EXEC, OPENAT, SOFTIRQ, KMALLOC)
}
