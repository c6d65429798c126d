"""The numbers of the messages and fields that Perfetto reads ftrace events from.

Facts of protos/perfetto/trace of its source (v52).  Only events are here that its importer makes tracks,
states or names of; any other keeps all its fields as a GenericFtraceEvent.
"""

from __future__ import annotations

from tracepoint.named import NamedTuple

#: Of each event, the number of its message in FtraceEvent and those of the fields, by their names in the
#: record; `$` is before those of texts.
MESSAGES = {
    "print": (3, "ip=1 $buf=2"),
    "sched_switch": (
        4,
        "$prev_comm=1 prev_pid=2 prev_prio=3 prev_state=4 $next_comm=5 next_pid=6 next_prio=7",
    ),
    "sched_wakeup": (17, "$comm=1 pid=2 prio=3 success=4 target_cpu=5"),
    "sched_waking": (20, "$comm=1 pid=2 prio=3 success=4 target_cpu=5"),
    "sched_wakeup_new": (114, "$comm=1 pid=2 prio=3 success=4 target_cpu=5"),
    "sched_blocked_reason": (18, "pid=1 caller=2 io_wait=3"),
    "cpu_frequency": (11, "state=1 cpu_id=2"),
    "cpu_frequency_limits": (12, "min_freq=1 max_freq=2 cpu_id=3"),
    "cpu_idle": (13, "state=1 cpu_id=2"),
    "suspend_resume": (113, "$action=1 val=2 start=3"),
    "clock_enable": (14, "$name=1 state=2 cpu_id=3"),
    "clock_disable": (15, "$name=1 state=2 cpu_id=3"),
    "clock_set_rate": (16, "$name=1 state=2 cpu_id=3"),
    "softirq_entry": (24, "vec=1"),
    "softirq_exit": (25, "vec=1"),
    "softirq_raise": (26, "vec=1"),
    "irq_handler_entry": (36, "irq=1 $name=2 handler=3"),
    "irq_handler_exit": (37, "irq=1 ret=2"),
    "workqueue_activate_work": (56, "work=1 function=2"),
    "workqueue_execute_start": (58, "work=1 function=2"),
    "workqueue_execute_end": (57, "work=1 function=2"),
    "workqueue_queue_work": (59, "work=1 function=2 req_cpu=4 cpu=5 $workqueue=6"),
    "sched_process_exec": (237, "$filename=1 pid=2 old_pid=3"),
    "sched_process_exit": (238, "$comm=1 pid=2 tgid=3 prio=4"),
    "sched_process_fork": (239, "$parent_comm=1 parent_pid=2 $child_comm=3 child_pid=4"),
    "sched_process_free": (240, "$comm=1 pid=2 prio=3"),
    "sched_process_hang": (241, "$comm=1 pid=2"),
    "sched_process_wait": (242, "$comm=1 pid=2 prio=3"),
    "sched_migrate_task": (491, "$comm=1 pid=2 prio=3 orig_cpu=4 dest_cpu=5 running=6 load=7"),
    "sched_pi_setprio": (353, "$comm=1 newprio=2 oldprio=3 pid=4"),
    "sched_cpu_hotplug": (19, "affected_cpu=1 error=2 status=3"),
    "task_newtask": (235, "pid=1 $comm=2 clone_flags=3 oom_score_adj=4"),
    "task_rename": (236, "pid=1 $oldcomm=2 $newcomm=3 oom_score_adj=4"),
    "sys_enter": (329, "id=1 args=2"),
    "sys_exit": (330, "id=1 ret=2"),
    "rss_stat": (313, "member=1 size=2 curr=3 mm_id=4"),
    "cpuhp_enter": (345, "cpu=1 fun=2 idx=3 target=4"),
    "cpuhp_exit": (343, "cpu=1 idx=2 ret=3 state=4"),
    "signal_deliver": (324, "code=1 sa_flags=2 sig=3"),
    "signal_generate": (325, "code=1 $comm=2 group=3 pid=4 result=5 sig=6"),
    "mark_victim": (334, "pid=1"),
    "oom_score_adj_update": (326, "$comm=1 oom_score_adj=2 pid=3"),
    "mm_vmscan_direct_reclaim_begin": (46, "order=1 may_writepage=2 gfp_flags=3"),
    "mm_vmscan_direct_reclaim_end": (47, "nr_reclaimed=1"),
    "mm_vmscan_kswapd_wake": (48, "nid=1 order=2 zid=3"),
    "mm_vmscan_kswapd_sleep": (49, "nid=1"),
    "block_io_start": (546, "dev=1 sector=2 nr_sector=3 bytes=4 ioprio=5 $rwbs=6 $comm=7 $cmd=8"),
    "block_io_done": (547, "dev=1 sector=2 nr_sector=3 bytes=4 ioprio=5 $rwbs=6 $comm=7 $cmd=8"),
    "block_rq_issue": (45, "dev=1 sector=2 nr_sector=3 bytes=4 $rwbs=5 $comm=6 $cmd=7"),
    "block_rq_complete": (125, "dev=1 sector=2 nr_sector=3 errors=4 $rwbs=5 $cmd=6 error=7"),
    "funcgraph_entry": (437, "depth=1 func=2"),
    "funcgraph_exit": (438, "calltime=1 depth=2 func=3 overrun=4 rettime=5"),
}


#: The systems of these events: one of a module that has the same name is another.
SYSTEMS = frozenset(
    "block clk cpuhp ftrace irq kmem oom power raw_syscalls sched signal task vmscan workqueue".split()
)


class MessageField(NamedTuple):
    """The number of a field of a message, and whether it is a text."""

    number: int
    is_text: bool


def fields_of(text: str) -> dict[str, MessageField]:
    """Return the fields of a message by name.

    >>> fields_of("irq=1 $name=2")
    {'irq': MessageField(number=1, is_text=False), 'name': MessageField(number=2, is_text=True)}
    """
    pairs = (word.split("=") for word in text.split())
    return {name.lstrip("$"): MessageField(int(number), name.startswith("$")) for name, number in pairs}


#: A file is a message of packets.
PACKET = 1


class Packet:
    """TracePacket: one of these, with the time of a process tree."""

    FTRACE_EVENTS = 1
    PROCESS_TREE = 2
    TIMESTAMP = 8
    SEQUENCE = 10
    FTRACE_STATS = 34
    SYSTEM_INFO = 45


class Bundle:
    """FtraceEventBundle: events of one CPU without a loss between them."""

    CPU = 1
    EVENT = 2
    LOST_EVENTS = 3


class FtraceEvent:
    """FtraceEvent: its time in ns, the thread that recorded it, and one message.

    There is a field for `common_flags` too, but the importer takes it for an event of its own.
    """

    TIMESTAMP = 1
    PID = 2
    GENERIC = 327


class Generic:
    """GenericFtraceEvent, and its fields."""

    NAME = 1
    FIELD = 2
    FIELD_NAME = 1
    TEXT = 3
    SIGNED = 4
    UNSIGNED = 5


class ProcessTree:
    """ProcessTree, with its processes and threads."""

    PROCESS = 1
    THREAD = 2
    PID = 1
    COMMAND = 3
    IS_COMM = 9
    TID = 1
    NAME = 2
    TGID = 3


class Stats:
    """FtraceStats: the counts of per_cpu/cpuN/stats at the begin and the end of a recording."""

    PHASE = 1
    CPU_STATS = 2
    BEGIN = 1
    END = 2
    CPU = 1
    OVERRUN = 3
    COMMIT_OVERRUN = 4
    DROPPED = 8


class SystemInfo:
    """SystemInfo with the names of uname."""

    UTSNAME = 1
    SYSTEM = 1
    VERSION = 2
    RELEASE = 3
    MACHINE = 4
