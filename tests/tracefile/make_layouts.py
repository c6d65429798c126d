"""Record, in guests, what each tracer's `trace` shows under each option: `PYTHONPATH=tests python tests/tracefile/make_layouts.py`.

A small buffer is shown under every set of options, then its pages are taken.  All of it becomes
golden/layouts.json.xz, which test_layouts.py compares.  Arguments choose what is recorded anew, as NAME or
NAME=KERNEL; Debian's kernels do not have the tracers of `tracers`, so that is recorded from one of our own:

    tracepoint lab build --kernel 6.1 --config HWLAT_TRACER=y --config OSNOISE_TRACER=y \\
        --config TIMERLAT_TRACER=y --config PROFILE_ANNOTATED_BRANCHES=y --config BRANCH_TRACER=y
    PYTHONPATH=tests python tests/tracefile/make_layouts.py tracers=built:6.1-...
"""

import base64
import json
import lzma
import re
import sys
from pathlib import Path

from guest.rings import drain
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.lab.guest.machine import Guest

TARGET = Path(__file__).parent / "golden" / "layouts.json.xz"
TRACING = "/sys/kernel/tracing"
FIRST = "echo 0 >tracing_on; echo nop >current_tracer; echo 0 >events/enable; echo >set_ftrace_filter; "

GRAPH = r"""
echo 40 >buffer_size_kb
echo 'ksys_write ksys_read schedule __do_softirq' | tr ' ' '\n' >set_graph_function
echo function_graph >current_tracer
echo 1 >events/sched/sched_switch/enable
echo 1 >events/sched/sched_waking/enable
echo stacktrace >events/sched/sched_switch/trigger
echo >trace; echo 1 >tracing_on
for cpu in 1 2; do taskset $cpu sh -c 'echo mark >trace_marker; cat /proc/self/stat >/dev/null'; done
sleep 0.05
echo 'in the graph' >trace_marker
printf 'abcdefghi' >trace_marker_raw
echo 0 >tracing_on
echo '!stacktrace' >events/sched/sched_switch/trigger
"""
GRAPH_VARIANTS = (
    "", "nofuncgraph-cpu", "nofuncgraph-duration", "nofuncgraph-overhead", "funcgraph-proc", "funcgraph-abstime",
    "funcgraph-tail", "funcgraph-overrun", "latency-format", "latency-format funcgraph-proc funcgraph-abstime",
    "nocontext-info", "nocontext-info nofuncgraph-cpu", "sym-offset sym-addr", "verbose", "raw", "record-tgid",
    "nofuncgraph-cpu nofuncgraph-duration funcgraph-proc", "noirq-info", "funcgraph-retval", "printk-msg-only",
)  # fmt: skip
FUNCTION = r"""
echo 24 >buffer_size_kb
echo 'ksys_write ksys_read schedule' | tr ' ' '\n' >set_ftrace_filter
echo function >current_tracer
echo 1 >options/userstacktrace
echo 1 >events/sched/sched_waking/enable
echo 1 >events/sched/sched_process_exec/enable
echo >trace; echo 1 >tracing_on
echo 'among functions' >trace_marker
echo 1 >options/func_stack_trace
sleep 0.01
echo 0 >options/func_stack_trace
printf 'abcdefghi' >trace_marker_raw
for cpu in 1 2; do taskset $cpu ls / >/dev/null; done
echo 1 >options/func-no-repeats
for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=1 count=20 2>/dev/null; done
echo 0 >tracing_on
echo 0 >options/func-no-repeats
echo 0 >options/userstacktrace
"""
FUNCTION_VARIANTS = (
    "", "noprint-parent", "sym-offset", "sym-addr", "sym-offset sym-addr", "raw", "hex", "bin",
    "verbose", "latency-format", "latency-format verbose", "nocontext-info", "printk-msg-only",
    "printk-msg-only notrace_printk", "fields", "fields nocontext-info", "raw nocontext-info", "raw hex",
    "hex fields", "latency-format raw",
)  # fmt: skip
TRACER = r"""
echo 8 >buffer_size_kb
%s
echo %s >current_tracer
echo >trace; echo 1 >tracing_on
sleep %s
echo mark >trace_marker
echo 0 >tracing_on
"""
TRACER_VARIANTS = ("", "raw", "hex", "bin", "latency-format", "nocontext-info", "verbose")
TRACERS = {
    "hwlat": ("echo 1 >tracing_thresh", "hwlat", 3),
    "osnoise": ("echo 100000 >osnoise/period_us; echo 50000 >osnoise/runtime_us", "osnoise", 2),
    "timerlat": ("echo 0 >tracing_thresh; echo 50000 >osnoise/timerlat_period_us", "timerlat", 2),
    "branch": ("", "branch", 0.01),
}
Cases = dict[str, tuple[str, tuple[str, ...]]]
DEBIAN: Cases = {"graph": (GRAPH, GRAPH_VARIANTS), "function": (FUNCTION, FUNCTION_VARIANTS)}
CASES: dict[str, Cases] = {
    "6.1": DEBIAN,
    "6.12": DEBIAN,
    "tracers": {name: (TRACER % how, TRACER_VARIANTS) for name, how in TRACERS.items()},
}
_EVENT = re.compile(r"(?:: |/\* )([a-z]\w+): ")


def set_options(words: str, known: set[str], *, undo: bool = False) -> str | None:
    """Return the commands for options, or those that undo them; None where the kernel has not all."""
    commands = []
    for word in words.split():
        is_off = word not in known
        name = word[2:] if is_off else word
        if name not in known:
            return None
        commands.append(f"echo {int(is_off is undo)} >options/{name}")
    return "; ".join(commands) or "true"


def show(guest: Guest, words: str) -> str | None:
    """Return what `trace` shows under these options."""
    known = set(guest.run(f"ls {TRACING}/options").text.split())
    commands, back = set_options(words, known), set_options(words, known, undo=True)
    if commands is None:
        return None
    guest.run(f"cd {TRACING}; {commands}; cat trace >/tmp/shown; {back}", timeout=120)
    return guest.get("/tmp/shown").decode("utf-8", "surrogateescape")


def pages(guest: Guest) -> list[str]:
    """Take the pages of both CPUs."""
    found = []
    for cpu in range(2):
        guest.run(drain(f"{TRACING}/per_cpu/cpu{cpu}/trace_pipe_raw", f"/tmp/raw{cpu}"))
        found.append(base64.b64encode(guest.get(f"/tmp/raw{cpu}")).decode())
    return found


def record(guest: Guest, script: str, variants: tuple[str, ...]) -> dict[str, object]:
    """Fill a small buffer, show it in every way, then take its pages."""
    guest.run(f"cd {TRACING}; {FIRST} {script}", timeout=120)
    made: dict[str, object] = {"tracer": guest.read(f"{TRACING}/current_tracer").strip()}
    texts = {words: show(guest, words) for words in variants}
    made["texts"] = {words: text for words, text in texts.items() if text is not None}
    made["stats"] = [guest.read(f"{TRACING}/per_cpu/cpu{cpu}/stats") for cpu in range(2)]
    for name in ("saved_cmdlines", "saved_tgids", "trace_options"):
        made[name] = guest.read(f"{TRACING}/{name}")
    made["pages"] = pages(guest)
    guest.run(f"cd {TRACING}; {FIRST} echo >set_graph_function; echo >trace; echo 1 >tracing_on")
    return made


def formats(guest: Guest, names: set[str]) -> list[tuple[str, str]]:
    """Return the formats of the tracer's own events and of others by name."""
    paths = guest.run(f"cd {TRACING}/events; ls -d */*/format").text.split()
    kept = [p.split("/") for p in paths if p.startswith("ftrace/") or p.split("/")[1] in names]
    return [(p[0], guest.read(f"{TRACING}/events/{'/'.join(p)}")) for p in kept]


def symbols(guest: Guest, text: str) -> str:
    """Return the lines of kallsyms for what a text names, and for what follows each."""
    lines = sorted(line for line in guest.read("/proc/kallsyms").split("\n") if line and "[" not in line)
    words = {"_stext", "__irqentry_text_start", "__irqentry_text_end", *re.findall(r"[\w.]+", text)}
    kept = {
        line: None
        for at, line in enumerate(lines)
        for line in lines[at : at + 2 + _n_equal(lines, at)]
        if lines[at].split()[2] in words and line.split()[1] not in "aA"
    }
    return "".join(f"{line}\n" for line in [*kept, lines[-1]])


def _n_equal(lines: list[str], at: int) -> int:
    """Return how many lines after one have its address."""
    n = 0
    while at + n + 1 < len(lines) and lines[at + n + 1][:16] == lines[at][:16]:
        n += 1
    return n


def make(kernel: str, cases: Cases) -> dict[str, object]:
    """Boot a kernel and return all that the tests compare."""
    with lab_guest.boot(kernel, append="no_hash_pointers") as guest:
        known = guest.read(f"{TRACING}/available_tracers").split()
        recordings = {name: record(guest, *case) for name, case in cases.items()}
        text = "".join(text for one in recordings.values() for text in one["texts"].values())
        return {
            "release": guest.run("uname -r").text.strip(),
            "tracers": known,
            "recordings": recordings,
            "formats": formats(guest, set(_EVENT.findall(text))),
            "header_page": guest.read(f"{TRACING}/events/header_page"),
            "symbols": symbols(guest, text),
        }


if __name__ == "__main__":
    made = json.loads(lzma.decompress(TARGET.read_bytes())) if TARGET.exists() else {}
    for word in sys.argv[1:] or ("6.1", "6.12"):
        name, _, kernel = word.partition("=")
        made[name] = make(kernel or name, CASES[name])
    TARGET.write_bytes(lzma.compress(json.dumps(made, indent=1).encode()))
