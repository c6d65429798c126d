"""Page faults: hand-made traces with their exact numbers, and what losses leave of them."""

from functools import partial

import pytest

from analysis.making import Schedule
from tracepoint.analysis import analyse_faults
from tracepoint.analysis.distribution import Bounds
from tracepoint.analysis.faults.machine import FaultOutcome, no_faults
from tracepoint.analysis.sections import Choice
from tracepoint.analysis.text import report_lines
from tracepoint.errors import TracepointError

A, B = 10, 20
USER, KERNEL = "exceptions:page_fault_user", "exceptions:page_fault_kernel"
DONE = "kprobes:fault_done"
HANDLER, TRAP, GUP = 0xFFFFFFFF81000000, 0xFFFFFFFF81000100, 0xFFFFFFFF81000200
SYMBOLS = f"""{HANDLER - 0x100:x} T _stext
{HANDLER:x} T handle_mm_fault
{TRAP:x} t do_user_addr_fault
{GUP:x} t __get_user_pages
{GUP + 0x100:x} t end
"""
MAJOR, RETRY, SIGBUS, COMPLETED = 4, 0x400, 2, 0x4000


class Faults(Schedule):
    """Faults that a test writes line by line."""

    def __init__(self, *events):
        super().__init__(*events)
        self.kallsyms = SYMBOLS
        self.saved_cmdlines = f"{A} one\n{B} two\n"

    def fault(self, us, tid, address=0x7F0000000000, code=6, cpu=0, ip=0x401000, event=USER):
        self.add(us, cpu, event, {"address": address, "ip": ip, "error_code": code}, tid)

    def done(self, us, tid, ret=0, cpu=0, caller=TRAP):
        self.add(us, cpu, DONE, {"__probe_func": HANDLER, "__probe_ret_ip": caller, "ret": ret}, tid)


@pytest.fixture
def analyse(analyse_made):
    return partial(analyse_made, analyse_faults)


def outcomes(report):
    return [row["outcome"] for row in report.page_fault]


def regions(report):
    """The region of each fault."""
    return [report.machine.known_regions[at] for at in report.parts.all_rows(no_faults()).region]


def test_a_fault_ends_where_the_handler_returns(analyse):
    made = Faults()
    made.fault(10, A)
    made.fault(11, B, cpu=1)
    made.done(13, B, MAJOR, cpu=1)
    made.done(17, A)
    report = analyse(made)
    assert [row["dur"] for row in report.page_fault] == [7000, 2000]
    assert outcomes(report) == ["minor", "major"]
    assert list(report.latency(FaultOutcome.MAJOR).values) == [2000]
    assert [(row["tid"], row["n"], row["n_major"]) for row in report.facts["tasks"]] == [
        (A, Bounds(1, 1), Bounds(0, 0)),
        (B, Bounds(1, 1), Bounds(1, 1)),
    ]


@pytest.mark.parametrize(
    ("results", "outcome"),
    [
        ([0], "minor"),
        ([COMPLETED], "minor"),
        ([MAJOR], "major"),
        ([RETRY, 0], "retried"),
        ([MAJOR | RETRY, 0], "major"),
        ([MAJOR | RETRY, RETRY, 0], "major"),
        ([MAJOR | SIGBUS], "failed"),
        ([RETRY], "unknown"),
    ],
)
def test_what_became_of_a_fault_is_what_all_its_tries_returned(analyse, results, outcome):
    made = Faults()
    made.fault(10, A)
    for n, ret in enumerate(results):
        made.done(11 + n, A, ret)
    report = analyse(made)
    assert outcomes(report) == [outcome]
    assert next(iter(report.page_fault))["dur"] == (-1 if outcome == "unknown" else 1000 * len(results))


def test_a_fault_that_was_never_handled_has_no_end(analyse):
    made = Faults()
    made.fault(10, A, address=8)
    made.fault(20, A)
    made.done(25, A)
    report = analyse(made)
    assert [row["dur"] for row in report.page_fault] == [-1, 5000]
    assert {row["kind"] for row in report.facts["regions"]} == {"first 64 KiB", "2 MiB"}


def test_get_user_pages_is_no_trap(analyse):
    made = Faults()
    made.fault(10, A)
    made.done(12, A, caller=GUP)
    made.done(14, A)
    made.done(16, A)
    report = analyse(made)
    assert [row["dur"] for row in report.page_fault] == [4000]
    assert (report.machine.n_without_trap, report.machine.n_orphans) == (1, 1)
    assert any("1 fault of get_user_pages()" in note for note in report.notes())


def test_a_loss_hides_the_ends_that_it_may_hold(analyse):
    made = Faults()
    made.fault(10, A)
    made.done(12, A)
    made.fault(20, A)
    made.lose(0, 2)
    made.done(40, A)
    made.fault(50, A)
    made.done(51, A)
    report = analyse(made)
    assert [row["dur"] for row in report.page_fault] == [2000, -1, 1000]
    times = report.latency()
    assert times.count == Bounds(2, 5)
    assert times.quantile(0.5).high >= 2000
    assert report.coverage.bound(3) == Bounds(3, 5)
    assert report.facts["kinds"][0]["n"] == Bounds(3, 5)


def test_kinds_are_the_bits_of_the_error_code(analyse):
    made = Faults()
    for n, code in enumerate((6, 4, 0x14, 7, 0x25, 0x0D)):
        made.fault(n, A, code=code)
    made.fault(9, A, address=0xFFFF888000000000, code=0, event=KERNEL, ip=HANDLER + 4)
    report = analyse(made)
    found = {(row["mode"], row["access"], row["cause"], row["memory"]) for row in report.facts["kinds"]}
    assert found == {
        ("user", "write", "not present", "user"),
        ("user", "read", "not present", "user"),
        ("user", "fetch", "not present", "user"),
        ("user", "write", "protection", "user"),
        ("user", "read", "protection key", "user"),
        ("user", "read", "reserved bit", "user"),
        ("kernel", "read", "not present", "kernel"),
    }
    assert {row["function"] for row in report.facts["places"]} == {"-", "handle_mm_fault"}


def test_a_region_is_a_mapping_where_its_call_was_recorded(analyse):
    start, anonymous = 0x7F0000000000, 0x22
    made = Faults()
    made.saved_tgids = f"{A} {A}\n{B} {A}\n"
    made.add(1, 0, "syscalls:sys_enter_mmap", {"len": 0x2000, "flags": anonymous, "fd": 2**64 - 1}, A)
    made.add(2, 0, "syscalls:sys_exit_mmap", {"ret": start}, A)
    made.fault(3, B, address=start + 0x1FFF)
    made.add(4, 0, "syscalls:sys_enter_munmap", {"addr": start + 0x1000, "len": 0x1000}, B)
    made.fault(5, A, address=start + 0x1000)
    made.add(6, 0, "syscalls:sys_enter_mmap", {"len": 0x1000, "flags": 2, "fd": 3}, A)
    made.add(7, 0, "syscalls:sys_exit_mmap", {"ret": -12}, A)
    made.add(8, 0, "syscalls:sys_exit_brk", {"ret": 0x5000000}, A)
    made.add(9, 0, "syscalls:sys_exit_brk", {"ret": 0x5002000}, A)
    made.fault(10, A, address=0x5001000)
    report = analyse(made)
    assert [(region.kind, region.start) for region in regions(report)] == [
        ("anonymous", start),
        ("2 MiB", start),
        ("heap", 0x5000000),
    ]
    assert [(row["pid"], row["n_tasks"]) for row in report.facts["processes"]] == [(A, 2)]


def test_a_program_that_begins_has_other_mappings(analyse):
    made = Faults()
    made.add(1, 0, "syscalls:sys_enter_mmap", {"len": 0x1000, "flags": 0x22}, A)
    made.add(2, 0, "syscalls:sys_exit_mmap", {"ret": 0x7F0000000000}, A)
    made.add(3, 0, "sched:sched_process_fork", {"parent_pid": A, "child_pid": B}, A)
    made.fault(4, B)
    made.add(5, 0, "sched:sched_process_exec", {"pid": B, "old_pid": B}, B)
    made.fault(6, B)
    made.fault(7, A)
    report = analyse(made)
    assert [region.kind for region in regions(report)] == [
        "anonymous",
        "2 MiB",
        "anonymous",
    ]


def read_and_wait(made, us, tid, rwbs="RA"):
    made.add(us, 0, "block:block_bio_queue", {"rwbs": rwbs}, tid)
    made.switch(us + 1, 0, tid, "D", 0)
    made.switch(us + 2, 0, 0, "R", tid)


def test_major_is_inferred_of_a_read_and_a_wait(analyse):
    made = Faults()
    made.fault(10, A)
    read_and_wait(made, 11, A)
    made.fault(20, A)
    made.add(21, 0, "raw_syscalls:sys_enter", {"id": 0}, A)
    read_and_wait(made, 22, A)
    made.fault(30, A)
    read_and_wait(made, 31, A, "WS")
    report = analyse(made)
    (row,) = report.facts["outcomes"]
    assert (row["n"], row["outcome"]) == (Bounds(1, 1), "major, inferred: read, then waited")


def test_after_a_loss_nobody_knows_what_is_mapped_and_which_reads_are_of_a_fault(analyse):
    made = Faults()
    made.add(1, 0, "syscalls:sys_enter_mmap", {"len": 0x1000, "flags": 0x22}, A)
    made.add(2, 0, "syscalls:sys_exit_mmap", {"ret": 0x7F0000000000}, A)
    made.add(3, 0, "raw_syscalls:sys_enter", {"id": 0}, B)
    made.fault(4, A)
    made.lose(0, 1)
    read_and_wait(made, 10, A)
    made.fault(20, A)
    report = analyse(made)
    assert [region.kind for region in regions(report)] == [
        "anonymous",
        "2 MiB",
    ]
    assert {row["kind"]: row["n"] for row in report.facts["regions"]} == {
        "anonymous": Bounds(1, 3),
        "2 MiB": Bounds(0, 3),
    }
    (inferred,) = (row["n"] for row in report.facts["outcomes"] if "inferred" in row["outcome"])
    assert inferred == Bounds(0, 2)


def test_the_recorder_is_named(analyse):
    made = Faults()
    made.saved_cmdlines = f"{A} trace-cmd\n{B} two\n"
    made.fault(10, A)
    made.fault(11, B)
    assert "1 fault of trace-cmd-10, which recorded" in list(analyse(made).notes())


def test_text_shows_what_is_chosen(analyse):
    made = Faults()
    made.fault(10, A)
    made.fault(11, B, cpu=1)
    report = analyse(made)
    text = "\n".join(report_lines(report, Choice(tasks=["two"])))
    assert "two-20" in text
    assert "one-10" not in text
    assert "one-10" not in "\n".join(report_lines(report, Choice(cpus=[1])))


def test_without_faults_of_programs_there_is_nothing(analyse):
    made = Schedule("sched:sched_switch")
    made.switch(1, 0, A, "S", B)
    with pytest.raises(TracepointError, match="no exceptions:page_fault_user"):
        analyse(made)


def many(*, has_calls):
    """Faults of several tasks and kinds; with system calls, whose begin ends what is known of a fault."""
    made = Faults()
    for at in range(60):
        event = KERNEL if at % 7 == 3 else USER
        address = (0x7F0000000000 + at * 0x1000, 0x10, 0x5000, (1 << 63) + at * 0x100000)[at % 4]
        made.fault(10 * at + 1, (A, B)[at % 2], address, at % 24, at % 3, 0x400000 + at % 5, event)
    if has_calls:
        made.add(700, 0, "raw_syscalls:sys_enter", {"id": 1}, A)
    return made


def test_faults_alone_are_counted_as_they_are_with_the_same_figures(analyse, monkeypatch):
    whole = analyse(many(has_calls=True))
    rows, facts = whole.page_fault.to_dicts(), whole.facts
    # Millions of them take no step each.
    monkeypatch.setattr("tracepoint.analysis.faults.machine.FaultMachine.fault", None)
    alone = analyse(many(has_calls=False))
    assert alone.page_fault.to_dicts() == rows
    for key in ("kinds", "tasks", "regions", "places"):
        assert [{k: v for k, v in row.items() if k != "rate"} for row in alone.facts[key]] == [
            {k: v for k, v in row.items() if k != "rate"} for row in facts[key]
        ]
    assert sum(row["n"].low for row in alone.facts["regions"]) == 60


def test_chosen_tasks_and_cpus_are_those_of_all_faults(analyse):
    report = analyse(many(has_calls=False))
    (tasks,) = [one for one in report.sections(Choice(tasks=["one"], cpus=[0])) if one.key == "tasks"]
    assert [row[0].low for row in tasks.rows] == [
        sum(row["tid"] == A and row["cpu"] == 0 for row in report.page_fault)
    ]
