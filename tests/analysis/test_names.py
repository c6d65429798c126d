"""Names of tasks that the recorder did not save are those that the scheduler's records have."""

import tracepoint as tp
from analysis.making import Schedule
from tracepoint.analysis import analyse_syscalls
from tracepoint.analysis.names import task_names


def test_names_are_saved_ones_or_the_last_of_the_scheduler(made):
    schedule = Schedule()
    schedule.saved_cmdlines = "8 saved\n"
    for us, tid, name in ((10, 7, "early"), (20, 8, "other"), (30, 7, "late")):
        values = {"prev_pid": 0, "next_pid": tid, "next_comm": name, "prev_comm": "swapper/0"}
        schedule.add(us, 0, "sched:sched_switch", values)
    schedule.add(40, 0, "raw_syscalls:sys_enter", {"id": 0}, 7)
    schedule.add(45, 0, "raw_syscalls:sys_exit", {"id": 0}, 7)
    with tp.open_trace(made(schedule)) as trace:
        assert task_names(trace) == {0: "<idle>", 7: "late", 8: "saved"}
        report = analyse_syscalls(trace)
    (tasks,) = (section for section in report.sections() if section.key == "tasks")
    assert [row[-2] for row in tasks.rows] == ["late-7"]


def test_without_records_of_the_scheduler_there_are_the_saved_ones(made):
    schedule = Schedule()
    schedule.saved_cmdlines = "8 saved\n"
    schedule.add(40, 0, "raw_syscalls:sys_enter", {"id": 0}, 7)
    with tp.open_trace(made(schedule)) as trace:
        assert task_names(trace) == {0: "<idle>", 8: "saved"}
