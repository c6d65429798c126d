"""Record every kind of trace event a guest can be made to fire, as raw pages and as the kernel's own text.

The text (`trace`) and the pages (`trace_pipe_raw`) are read from the same stopped buffer, so one is
the oracle for rendering the other.  A recording is a folder:

    info.json           kernel release, HZ, page size, processors, passes with their number of types
    events/             the whole tree of `format` files, header_page and header_event
    printk_formats, available_events, trace_clock, modules (/proc/modules), kallsyms at the end
    passes/NAME/        cpu0.raw cpu1.raw ... trace.txt stats.txt log.txt
                        saved_cmdlines, saved_tgids, kallsyms, modules just after the pass
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from module_trees import with_events, write_depmod
from tracepoint.errors import LabError
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.lab.kernels import modules, packages
from tracepoint.layout.corefile import LASTING_VARIABLES, core_offset

HERE = Path(__file__).parent
PROGRAMS = ("syscalls", "rawpages", "events")
TRACING = "/sys/kernel/tracing"
PAGE = 4096
# Fired so often that they would push everything else out; recorded in the first passes only.
NOISY = (
    "kmem:*", "rcu:*", "lock:*", "maple_tree:*", "irq_vectors:*", "tlb:*", "syscalls:*", "raw_syscalls:*",
    "sched:*", "timer:*", "9p:*", "percpu:*", "irq:*", "exceptions:*", "x86_fpu:*", "mmap:*", "mmap_lock:*",
    "context_tracking:*", "cpuhp:*", "msr:*", "pagemap:*", "power:cpu_idle", "filemap:*", "workqueue:*",
    "netfs:*", "fscache:*", "vmscan:*", "signal:*", "task:*", "nmi:*", "module:*", "avc:*",
)  # fmt: skip
QUIET_FROM = "20"
RISKY_FROM = "50"  # parts that may break the kernel come last, with all before them safe


def compile_programs(folder: Path) -> dict[str, Path]:
    """Compile the static programs for the guest; raises LabError with the compiler's words."""
    made = {}
    for name in PROGRAMS:
        target = folder / name
        command = [
            "cc",
            "-O1",
            "-static",
            "-o",
            str(target),
            *(str(source) for source in sorted((HERE / "programs").glob(f"{name}*.c"))),
            "-lpthread",
        ]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            raise LabError(
                f"{name}.c does not compile", " ".join(command), done.returncode, done.stderr.decode()
            )
        made[name] = target
    return made


def workload(only: str = "") -> list[Path]:
    """Return the parts of the workload in order; `only` is a regular expression over their names."""
    return [path for path in sorted((HERE / "workload").glob("*.sh")) if re.search(only, path.stem)]


def kernel_hz(image: packages.KernelImage) -> int:
    """Return the timer ticks a second that the package's configuration file states."""
    config = (image.image.parent / f"config-{image.release}").read_text()
    found = re.search(r"^CONFIG_HZ=(\d+)$", config, re.MULTILINE)
    if found is None:
        raise LabError(f"the configuration of {image.package} does not state CONFIG_HZ")
    return int(found[1])


def workload_hash() -> str:
    """Return a hash of everything that decides what a recording holds."""
    digest = hashlib.sha256()
    for path in sorted([*(HERE / "workload").glob("*.sh"), *(HERE / "programs").glob("*.c"), Path(__file__)]):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class Recorder:
    """Records passes in a booted guest into a folder."""

    def __init__(self, guest: lab_guest.Guest, folder: Path, buffer_kb: int = 131072) -> None:
        self.guest = guest
        self.folder = folder
        self.buffer_kb = buffer_kb
        self.passes: list[dict[str, object]] = []
        self.refused: dict[str, str] = {}

    def load_modules(self) -> None:
        """Load every module of the package that brings events; note those that do not load."""
        names = " ".join(info.name for info in with_events(self.guest.tree))
        script = (
            f"for m in {names}; do [ -d /sys/module/$m ] || timeout 60 modprobe $m >/tmp/err 2>&1"
            ' || echo "$m|$(cat /tmp/err)"; done'
        )
        for line in self.guest.run(script, timeout=400).text.splitlines():
            name, _, words = line.partition("|")
            self.refused[name] = words

    def prepare(self) -> None:
        """Size the buffer, choose options and read everything that stays the same."""
        self.guest.run(
            f"cd {TRACING}; echo 0 >tracing_on; echo {self.buffer_kb} >buffer_size_kb; "
            "echo 30000 >saved_cmdlines_size; echo 1 >options/record-tgid"
        )

    def enable(self, quiet: bool, syscalls: bool) -> None:
        """Enable all events; `quiet` leaves the noisy ones out, `syscalls` takes only those of system calls."""
        if syscalls:
            lines = (
                "echo 0 >events/enable; echo 1 >events/syscalls/enable; echo 1 >events/raw_syscalls/enable"
            )
        else:
            lines = (
                "echo 1 >events/enable; echo 0 >events/syscalls/enable; echo 0 >events/raw_syscalls/enable"
            )
        if quiet:
            for pattern in NOISY:
                system, _, event = pattern.partition(":")
                lines += f"; echo 0 >events/{system}/{'' if event == '*' else event + '/'}enable"
        self.guest.run(f"cd {TRACING}; {lines}", timeout=200, check=False)

    def record(self, part: Path, seconds: int = 240) -> None:
        """Run one part of the workload with tracing on and keep what the buffer then holds."""
        self.guest.put("/tmp/part.sh", part.read_bytes())
        started = time.monotonic()
        self.guest.run(
            f"cd {TRACING}; echo >trace; echo 1 >tracing_on; cd /; "
            "export PATH=/tools/sbin:/tools/usr/sbin:/tools/bin:/tools/usr/bin:/host/sbin:/host/usr/sbin:$PATH:/host/usr/bin; "
            "export LD_LIBRARY_PATH=/tools/lib/x86_64-linux-gnu:/tools/usr/lib/x86_64-linux-gnu; "
            f"timeout -s KILL {seconds} sh -x /tmp/part.sh >/tmp/part.log 2>&1; echo 0 >{TRACING}/tracing_on",
            timeout=seconds + 60,
            check=False,
        )
        ran = time.monotonic() - started
        target = self.folder / "passes" / part.stem
        target.mkdir(parents=True, exist_ok=True)
        self.guest.run(
            f"cd {TRACING}; echo 0 >options/record-tgid; cat trace >/tmp/trace.txt; echo 1 >options/record-tgid",
            timeout=500,
        )
        (target / "trace.txt").write_bytes(self.guest.get("/tmp/trace.txt"))
        (target / "log.txt").write_bytes(self.guest.get("/tmp/part.log"))
        (target / "stats.txt").write_text(self.guest.run(f"cd {TRACING}/per_cpu; tail -n 20 cpu*/stats").text)
        for name in ("saved_cmdlines", "saved_tgids"):
            (target / name).write_bytes(self.guest.get(f"{TRACING}/{name}"))
        for name in ("kallsyms", "modules"):
            (target / name).write_bytes(self.guest.get(f"/proc/{name}"))
        for cpu in self._processors():
            raw = f"{TRACING}/per_cpu/cpu{cpu}/trace_pipe_raw"
            self.guest.run(f"rm -f /tmp/raw; /lab/bin/rawpages {raw} /tmp/raw {PAGE}", timeout=200)
            (target / f"cpu{cpu}.raw").write_bytes(self.guest.get("/tmp/raw"))
        self.guest.run(f"rm -f /tmp/raw /tmp/trace.txt; echo >{TRACING}/trace")
        types = event_types(target / "trace.txt")
        self.passes.append({"name": part.stem, "seconds": round(ran, 1), "types": len(types)})

    def finish(self) -> None:
        """Keep the facts that rendering needs; done last so that every symbol and name is in them."""
        for path, text in self.tracing_files(
            "events/*/*/format events/header_page events/header_event"
        ).items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)
        for name in ("printk_formats", "available_events", "trace_clock"):
            (self.folder / name).write_bytes(self.guest.get(f"{TRACING}/{name}"))
        (self.folder / "kallsyms").write_bytes(self.guest.get("/proc/kallsyms"))
        (self.folder / "modules").write_bytes(self.guest.get("/proc/modules"))
        types: set[str] = set()
        for path in self.folder.glob("passes/*/trace.txt"):
            types |= event_types(path)
        known = {path.parent.name for path in self.folder.glob("events/*/*/format")}
        types = {name for name in types if name in known or name.startswith("sys_")} | ({"bprint"} & types)
        info = {
            "release": self.guest.image.release,
            "package": f"{self.guest.image.package}_{self.guest.image.version}",
            "hz": kernel_hz(self.guest.image),
            "page_size": PAGE,
            "cpus": len(self._processors()),
            "variables": self._variables(),
            "workload": workload_hash(),
            "passes": self.passes,
            "types": len(types),
            "types_not_syscalls": len([name for name in types if not name.startswith("sys_")]),
            "modules_refused": self.refused,
        }
        (self.folder / "info.json").write_text(json.dumps(info, indent=1) + "\n")

    def _variables(self) -> dict[str, int]:
        """Return what print formats read in the kernel's memory, and what stays the same while it runs."""
        symbols = [line.split() for line in self.guest.get("/proc/kallsyms").decode().splitlines()]
        places = {words[2]: int(words[0], 16) for words in symbols if words[2] in LASTING_VARIABLES}
        self.guest.run("dd if=/proc/kcore of=/tmp/kcore bs=4096 count=4")
        head = self.guest.get("/tmp/kcore")
        found = {}
        for name, address in places.items():
            offset = core_offset(head, address)
            if offset is not None and offset % 8 == 0:
                self.guest.run(f"dd if=/proc/kcore of=/tmp/word bs=8 skip={offset // 8} count=1")
                found[name] = int.from_bytes(self.guest.get("/tmp/word"), "little")
        return found

    def tracing_files(self, patterns: str) -> dict[str, bytes]:
        """Return the content of files of tracefs; in one go, because they are thousands."""
        self.guest.run(f"cd {TRACING}; grep -H '' {patterns} >/tmp/files", timeout=200)
        found: dict[str, bytes] = {}
        for line in self.guest.get("/tmp/files").splitlines(keepends=True):
            path, _, rest = line.partition(b":")
            found[path.decode()] = found.get(path.decode(), b"") + rest
        return found

    def _processors(self) -> list[int]:
        names = self.guest.run(f"ls {TRACING}/per_cpu").text.split()
        return sorted(int(name.removeprefix("cpu")) for name in names)


_LINE = re.compile(rb"^.{16}-\d+ +\[\d+\] \S+ +[\d.]+: ([A-Za-z_]\w*)(?:[:(]| ->)", re.MULTILINE)


def event_types(path: Path) -> set[str]:
    """Return the names that stand after the time stamps in a `trace` text."""
    return {name.decode() for name in _LINE.findall(path.read_bytes())}


def say(text: str) -> None:
    """Tell how far we are."""
    sys.stderr.write(text)
    sys.stderr.flush()


def record(kernel: str, folder: Path, only: str = "", tools: Path | None = None) -> dict[str, object]:
    """Boot `kernel`, run the workload's parts that match `only`, and return what info.json says."""
    image = packages.fetch_kernel(kernel)
    tree = modules.ModuleTree(image.modules)
    write_depmod(tree)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="recording-", dir=folder.parent))
    with tempfile.TemporaryDirectory() as build:
        files = {
            f"/lab/bin/{name}": path.read_bytes() for name, path in compile_programs(Path(build)).items()
        }
    shares = {"/host": Path("/"), "/lib/modules": image.modules.parent} | ({"/tools": tools} if tools else {})
    with lab_guest.boot(
        kernel, memory_mb=3072, files=files, shares=shares, append="no_hash_pointers"
    ) as guest:
        recorder = Recorder(guest, scratch)
        recorder.load_modules()
        recorder.prepare()
        for part in workload(f"{only or '.'}|^00"):
            quiet = part.stem >= QUIET_FROM
            if part.stem >= RISKY_FROM:
                recorder.finish()
            started = time.monotonic()
            recorder.enable(quiet=quiet, syscalls=part.stem.startswith("01"))
            try:
                recorder.record(part)
            except LabError as error:
                if part.stem < RISKY_FROM:
                    raise
                say(f"{part.stem}: {error}\n")
                shutil.rmtree(scratch / "passes" / part.stem, ignore_errors=True)
                break
            say(f"{recorder.passes[-1]} {time.monotonic() - started:.1f} s\n")
        else:
            recorder.finish()
    shutil.rmtree(folder, ignore_errors=True)
    scratch.rename(folder)
    return json.loads((folder / "info.json").read_text())


def main() -> None:
    """Record from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", default="6.1-full")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--tools", type=Path)
    given = parser.parse_args()
    say(json.dumps(record(given.kernel, given.out, given.only, given.tools), indent=1) + "\n")


if __name__ == "__main__":
    main()
