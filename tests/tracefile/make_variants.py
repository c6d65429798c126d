"""Record, in a guest, how the kernel writes one buffer under every option: `PYTHONPATH=tests python tests/tracefile/make_variants.py`.

A small buffer that overflowed on both CPUs is shown with each option, then its pages are taken; the same with a
clock that does not count ns.  All of it becomes golden/variants.json.xz, which test_variants.py compares.
"""

import base64
import json
import lzma
import re
from pathlib import Path

from guest.rings import drain
from tracepoint.lab.guest import machine as lab_guest

TARGET = Path(__file__).parent / "golden" / "variants.json.xz"
TRACING = "/sys/kernel/tracing"
VARIANTS = {
    "plain": "",
    "tgid": "record-tgid",
    "no irq-info": "noirq-info",
    "no irq-info, tgid": "noirq-info record-tgid",
    "latency": "latency-format",
    "latency, verbose": "latency-format verbose",
    "verbose": "verbose",
    "no context": "nocontext-info",
    "no annotate": "noannotate",
}
DEFAULT = "norecord-tgid irq-info nolatency-format noverbose context-info annotate"
EVENTS = "sched/sched_switch sched/sched_waking irq/softirq_raise timer/timer_start"


def options(names):
    return "; ".join(f"echo {name} >trace_options" for name in names.split())


def record(guest, clock):
    """Fill a small buffer, show it in every way, then take its pages."""
    guest.run(
        f"cd {TRACING}; mount -t tracefs t . 2>/dev/null; echo 0 >tracing_on; echo {clock} >trace_clock; "
        "echo 8 >buffer_size_kb; echo >trace; echo 0 >events/enable; "
        + "".join(f"echo 1 >events/{event}/enable; " for event in EVENTS.split())
        + "echo record-tgid >trace_options; echo 1 >tracing_on; "
        "for i in $(seq 24); do for cpu in 1 2; do taskset $cpu ls / >/dev/null; "
        "echo mark $i >trace_marker; done; done; echo 0 >tracing_on",
        timeout=120,
    )
    texts = {}
    for name, wanted in VARIANTS.items():
        texts[name] = guest.run(
            f"cd {TRACING}; {options(DEFAULT)}; {options(wanted or 'context-info')}; cat trace", timeout=120
        ).text
    guest.run(f"cd {TRACING}; {options(DEFAULT)}")
    stats = [guest.run(f"cat {TRACING}/per_cpu/cpu{cpu}/stats").text for cpu in range(2)]
    cpus = []
    for cpu in range(2):
        guest.run(drain(f"{TRACING}/per_cpu/cpu{cpu}/trace_pipe_raw", f"/tmp/raw{cpu}"))
        cpus.append(base64.b64encode(guest.get(f"/tmp/raw{cpu}")).decode())
    names = ("saved_cmdlines", "saved_tgids")
    return {
        "clock": clock,
        "texts": texts,
        "stats": stats,
        "pages": cpus,
        **{name: guest.get(f"{TRACING}/{name}").decode() for name in names},
    }


def formats(guest):
    paths = [*EVENTS.split(), "ftrace/print"]
    return [(path.split("/")[0], guest.get(f"{TRACING}/events/{path}/format").decode()) for path in paths]


def lossy_pipe(guest):
    """What trace_pipe begins with after an overflow, and the kernel's count."""
    guest.run(
        f"cd {TRACING}; echo 0 >events/enable; echo local >trace_clock; echo >trace; echo 1 >tracing_on; "
        "for i in $(seq 400); do echo pipe $i >trace_marker; done; echo 0 >tracing_on",
        timeout=120,
    )
    stats = [guest.run(f"cat {TRACING}/per_cpu/cpu{cpu}/stats").text for cpu in range(2)]
    guest.run(drain(f"{TRACING}/trace_pipe", "/tmp/pipe"))
    return {"stats": stats, "text": guest.get("/tmp/pipe").decode()}


def symbols(guest, recordings):
    """The lines of kallsyms for the functions that the texts name, and the first and last of the kernel."""
    lines = [line for line in guest.get("/proc/kallsyms").decode().split("\n") if line and "[" not in line]
    texts = "".join(text for recording in recordings for text in recording["texts"].values())
    names = {"_stext", "tracing_mark_write", *re.findall(r"function=(\w+)", texts)}
    last = max(lines, key=lambda line: int(line.split()[0], 16))
    return "".join(f"{line}\n" for line in lines if line.split()[2] in names or line is last)


def make(kernel):
    """Boot a kernel and return all that the tests compare."""
    with lab_guest.boot(kernel, append="no_hash_pointers") as guest:
        made = {
            "release": guest.run("uname -r").text.strip(),
            "recordings": [record(guest, clock) for clock in ("local", "counter")],
            "formats": formats(guest),
            "header_page": guest.get(f"{TRACING}/events/header_page").decode(),
            "pipe": lossy_pipe(guest),
        }
        made["symbols"] = symbols(guest, made["recordings"])
    return made


if __name__ == "__main__":
    TARGET.write_bytes(lzma.compress(json.dumps(make("6.1"), indent=1).encode()))
