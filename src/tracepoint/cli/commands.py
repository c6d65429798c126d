"""The subcommands of `tracepoint`: the module of each, its line of help and its examples."""

from __future__ import annotations

from tracepoint.named import NamedTuple


class Command(NamedTuple):
    """One subcommand: its module in `tracepoint.cli`, one line of help, and examples.

    Every example is run by the tests in the root of the repository; `#` begins a comment.  Commands
    that are `is_live` work on a running kernel, so their examples run in a guest;
    commands with `meanwhile` run the command after `--`.
    """

    module: str
    summary: str
    examples: tuple[str, ...]
    is_live: bool = False
    meanwhile: bool = False


COMMANDS = {
    "try": Command(
        "declare.try_",
        "show what a declared event does: findings, format, inputs, record, trace lines",
        (
            "tracepoint try --example swap",
            "tracepoint try examples/swap.h:mm_page_swap_in --set 'address=0x7f00' --count 2",
        ),
    ),
    "check": Command(
        "declare.check",
        "find what is wrong with trace headers, and fix it",
        (
            "tracepoint check examples/",
            "tracepoint check examples/swap.h --select TP3 --output-format concise",
            "tracepoint check examples/ --fix --diff",
        ),
    ),
    "explain": Command(
        "declare.explain",
        "print the page of one rule",
        ("tracepoint explain TP301", "tracepoint explain --list"),
    ),
    "fmt": Command(
        "declare.fmt",
        "format the lines that break the style of their trace header",
        ("tracepoint fmt --check examples/", "tracepoint fmt --diff examples/swap.h"),
    ),
    "show": Command(
        "declare.show",
        "print a header, event, object or format file in another form",
        (
            "tracepoint show examples/swap.h --as format",
            "tracepoint show examples/swap.h:mm_page_swap_in --as layout --abi i386",
        ),
    ),
    "generate": Command(
        "declare.generate",
        "generate source code: module, probe, header, lttng, bpf, bpftrace, commands, markdown",
        (
            "tracepoint generate module examples/swap.h --name swap_events",
            "tracepoint generate bpftrace examples/swap.h:mm_page_swap_in --by comm --measure hist:address",
            "tracepoint generate markdown examples/swap.h",
        ),
    ),
    "server": Command(
        "declare.server",
        "serve an editor: findings as you type, hovers, outline, offsets beside fields",
        ("tracepoint server --show-settings", "tracepoint server --abi arm64 --show-settings"),
    ),
    "diff": Command(
        "tree.diff",
        "show what changed between two sets of events, and which readers break",
        (
            "tracepoint diff examples/swap.h examples/traps.h",
            "tracepoint diff --breaking examples/swap.h examples/swap.h",
        ),
    ),
    "read": Command(
        "trace.read",
        "show the records of a recording as the kernel's trace file does, or as JSON lines, CSV or tables",
        (
            "tracepoint read tests/tracefile/golden/cut.v6.dat",
            "tracepoint read tests/tracefile/golden/cut.v6.dat 'sched:*wak*' irq --format jsonl",
        ),
    ),
    "stat": Command(
        "trace.stat",
        "show what is in a recording: its span, its losses, its records by event, CPU and task",
        (
            "tracepoint stat tests/tracefile/golden/cut.v6.dat",
            "tracepoint stat tests/tracefile/golden/cut.v6.dat --json --quick",
        ),
    ),
    "convert": Command(
        "trace.convert",
        "write a recording as Perfetto, CTF, Parquet, Arrow, CSV or JSON lines",
        (
            "tracepoint convert tests/tracefile/golden/cut.v6.dat /tmp/cut.pftrace",
            "tracepoint convert tests/tracefile/golden/cut.v6.dat /tmp/sched.out sched --to perfetto",
        ),
    ),
    "cut": Command(
        "trace.cut",
        "write some events, or a range of times, of a recording as a trace.dat of its own",
        (
            "tracepoint cut tests/tracefile/golden/cut.v6.dat sched -o /tmp/sched.dat",
            "tracepoint cut tests/tracefile/golden/cut.v6.dat --from 10.63 --to 10.65 -o /tmp/window.dat",
        ),
    ),
    "merge": Command(
        "trace.merge",
        "write several recordings as one trace.dat, by time",
        (
            "tracepoint merge tests/tracefile/golden/cut.v6.dat tests/tracefile/golden/cut.v6.dat -o /tmp/a",
            "tracepoint merge tests/tracefile/golden/cut.v6.dat --from 10.63 --to 10.65 -o /tmp/a.dat",
        ),
    ),
    "sql": Command(
        "trace.sql",
        "run SQL over the events of a recording, by DuckDB",
        (
            "tracepoint sql tests/tracefile/golden/cut.v6.dat 'select count(*) from sched.sched_switch'",
            "tracepoint sql tests/tracefile/golden/cut.v6.dat 'from sched_waking limit 2' --format csv",
        ),
    ),
    "analyse": Command(
        "trace.analyse",
        "answer what a recording was taken for: who ran and who waited, system calls, page faults, "
        "interrupts, disks, locks, memory, any pair of events",
        (
            "tracepoint analyse sched tests/tracefile/golden/cut.v6.dat",
            "tracepoint analyse sched tests/tracefile/golden/cut.v6.dat --cpu 0 --format json",
        ),
    ),
    "report": Command(
        "trace.report",
        "make one HTML file of analyses to look at: a timeline, heat maps, a flame graph, tables",
        (
            "tracepoint report tests/tracefile/golden/cut.v6.dat sched -o /tmp/web.html",
            "tracepoint report tests/tracefile/golden/cut.v6.dat --from 10.63 --to 10.70 -o /tmp/part.html",
        ),
    ),
    "compare": Command(
        "trace.compare",
        "show what changed between recordings or sets of them, how sure that is, and who explains it",
        (
            "tracepoint compare tests/tracefile/golden/cut.v6.dat tests/tracefile/golden/cut.v6.dat",
            "tracepoint compare tests/tracefile/golden/cut.v6.dat tests/tracefile/golden/cut.v6.dat --all",
        ),
    ),
    "fleet": Command(
        "trace.fleet",
        "put the figures of many recordings together, in this process, on Dask or on Spark",
        (
            "tracepoint fleet run sched tests/tracefile/golden/cut.v6.dat --by host,comm",
            "tracepoint fleet run events tests/tracefile/golden/cut.v6.dat --format json",
        ),
    ),
    "index": Command(
        "tree.index",
        "index a kernel tree: its events, call sites, exports",
        ("tracepoint index tests/tree/small", "tracepoint index tests/tree/small --json"),
    ),
    "find": Command(
        "tree.find",
        "find events of an indexed tree, their callers, or those without any",
        (
            "tracepoint find 'swap_*' --tree tests/tree/small --callers",
            "tracepoint find --unused --tree tests/tree/small",
        ),
    ),
    "place": Command(
        "tree.place",
        "add events to the source of a kernel tree, as patches for git am",
        (
            (
                "tracepoint place --tree tests/tree/small --at mm/swap.c:read_back --entry"
                " --call 'swap_never(\"in\")' --why 'See what is read.' --author 'Me <me@example.org>'"
            ),
            "tracepoint place --tree tests/tree/small --plan tests/place/small.toml",
        ),
    ),
    "catalog": Command(
        "tree.catalog",
        "generate a searchable site of all tracepoints of one or more kernel trees",
        (
            "tracepoint catalog tests/tree/small -o /tmp/tracepoint-catalog",
            "tracepoint catalog old=tests/tree/small new=tests/tree/small -o /tmp/tracepoint-catalog",
        ),
    ),
    "lab": Command(
        "lab.lab",
        "boot kernels (Debian's, or built with your patches) and run commands and modules in them",
        ("tracepoint lab kernels", "tracepoint lab kernels --json"),
    ),
    "list": Command(
        "kernel.list_",
        "list the events of the running kernel",
        ("tracepoint list 'sched:*wak*'", "tracepoint list --state sched"),
        is_live=True,
    ),
    "enable": Command(
        "kernel.enable",
        "enable events of the running kernel, permanently or while a command runs",
        ("tracepoint enable sched 'irq:softirq_*'", "tracepoint enable 'sched:sched_process_*' -- ls /"),
        is_live=True,
        meanwhile=True,
    ),
    "disable": Command(
        "kernel.disable",
        "disable events of the running kernel",
        ("tracepoint disable 'irq:*'", "tracepoint disable --remove"),
        is_live=True,
        meanwhile=True,
    ),
    "filter": Command(
        "kernel.filter_",
        "set, clear or show the filter of an event of the running kernel",
        (
            "tracepoint filter sched:sched_switch 'prev_comm == \"sh\" && next_pid != 0'",
            "tracepoint filter sched",
            "tracepoint filter sched:sched_switch 0",
        ),
        is_live=True,
        meanwhile=True,
    ),
    "trigger": Command(
        "kernel.trigger",
        "set, remove or show what happens when an event of the running kernel fires",
        (
            "tracepoint trigger sched:sched_process_fork 'traceoff:1 if child_pid > 1000'",
            "tracepoint trigger sched:sched_process_fork '!traceoff'",
        ),
        is_live=True,
        meanwhile=True,
    ),
    "hist": Command(
        "kernel.hist",
        "count an event of the running kernel by its fields and show the table",
        (
            "tracepoint hist sched:sched_switch next_comm --sort hitcount.descending --seconds 1",
            "tracepoint hist raw_syscalls:sys_enter id.syscall --where 'id < 3' -- ls /",
        ),
        is_live=True,
        meanwhile=True,
    ),
    "record": Command(
        "kernel.record",
        "record events of the running kernel to a trace.dat",
        (
            "tracepoint record sched 'irq:softirq_*' --seconds 1 -o sched.dat",
            "tracepoint record 'sched:sched_process_*' --clock mono -o ls.dat -- ls /",
        ),
        is_live=True,
        meanwhile=True,
    ),
    "stream": Command(
        "kernel.stream",
        "print events of the running kernel as they come, as trace_pipe does",
        (
            "tracepoint stream sched 'irq:softirq_*' --seconds 1",
            "tracepoint stream 'sched:sched_process_*' --format jsonl -- ls /",
        ),
        is_live=True,
        meanwhile=True,
    ),
    "top": Command(
        "kernel.top",
        "show how often events of the running kernel fire, by event, CPU or task",
        (
            "tracepoint top sched 'irq:softirq_*' --seconds 2",
            "tracepoint top raw_syscalls --by task --json -- ls /",
        ),
        is_live=True,
        meanwhile=True,
    ),
    "mount": Command(
        "process.mount",
        "show the events of a running Python process as a directory like tracefs",
        ("tracepoint mount /tmp/shop --pid 4711", "tracepoint mount ./trace"),
        is_live=True,
    ),
    "ps": Command(
        "process.ps",
        "list the Python processes that can be traced, and control one of them",
        (
            "tracepoint ps",
            "tracepoint ps --pid 4711 --enable shop:",
            "tracepoint ps --pid 4711 --record shop.dat --seconds 1",
        ),
        is_live=True,
    ),
    "restore": Command(
        "kernel.restore",
        "restore what an interrupted run changed in the running kernel",
        ("tracepoint restore", "tracepoint restore --journals /run/tracepoint"),
        is_live=True,
    ),
}
