"""`make fuzz`: every target under atheris for its share of the time; what breaks goes to the corpus.

With clang, the C modules are built with AddressSanitizer, UndefinedBehaviorSanitizer and libFuzzer's coverage, so
the search goes by the branches of C as by those of Python.  A crash, a hang of a minute or more than 2 GB is
written to tests/fuzz/corpus/TARGET, from where the ordinary test suite runs it permanently.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import os
import random
import shutil
import struct
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from targets import PRINTED, TARGETS, page_layout, recorded_layouts, sched_formats

from tracepoint.convert.ctf.write import write_ctf
from tracepoint.decode.trace import open_trace
from tracepoint.layout.format import read_format
from tracepoint.printk.program import compile_print
from tracepoint.record.write import write_pages

if TYPE_CHECKING:
    from tracepoint.layout.format import EventFormat

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import build_core  # noqa: E402 - of the tools, which are no package

BUILD = ROOT / "build/fuzz"
HANG_S = 60
MEMORY_MB = 2048
MAX_BYTES = 65536
N_SEEDS = 200
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracepoint"
SEED_FILES = {
    "header": [
        (ROOT / "examples", "*.h"),
        (Path("/usr/src"), "linux-headers-*-common/include/trace/events/*.h"),
    ],
    "format": [(ROOT / "tests", "**/*.format")],
    "object": [(CACHE / "kernels", "*/lib/modules/*/kernel/drivers/**/*.ko"), (ROOT / "tests", "**/*.o")],
    "btf": [(Path("/sys/kernel/btf"), "*")],
    "tracedat": [(ROOT / "tests/tracefile/golden", "*.dat")],
}
# Print formats of the event that `targets.py` has, which use every kind of instruction.
PRINTS = (
    '"%d %u %#x %5.3d|%-8ld", REC->n, REC->n, REC->n, REC->n, (long)REC->n',
    '"%s %.3s %*s", __get_str(s), __get_str(s), REC->n, __get_str(s)',
    '"%p %pK %ps %pS %pe", REC->p, REC->p, REC->p, REC->p, REC->p',
    '"%s", __print_flags(REC->n, "|", {1, "A"}, {2, "B"}, {0x10, "C"})',
    '"%s %s", __print_symbolic(REC->n, {0, "no"}, {-1, "all"}), REC->n ? "yes" : "no"',
    '"%s %s", __print_hex(REC->b, 8), __print_hex_str(REC->b, REC->n & 7)',
    '"%s", __print_array(__get_rel_dynamic_array(r), __get_rel_dynamic_array_len(r) / 2, 2)',
    '"%pI4 %pi4 %pI6c %pM %pUb %pUL %8ph %*phC", REC->b, REC->b, REC->b, REC->b, REC->b, REC->b, REC->b, REC->n, REC->b',
    '"%s %c%%", __get_bitmask(s), REC->n >> 2 & 0x7f',
    '"%llu %lld", REC->n * 3ull / (REC->n + 1), (REC->n << 3) % 7 - ~REC->n',
)
SANITIZERS = ["-fsanitize=address,undefined,fuzzer-no-link", "-fno-sanitize-recover=all"]
# A freed block is kept for a while; the default of 256 MB would count as memory of the target.
ASAN_OPTIONS = "detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1"


def build_sanitized() -> tuple[str, str]:
    """Return the folder of the C modules and the library of sanitizers of atheris; "-" and "" without clang."""
    compiler = next(
        filter(None, map(shutil.which, ("clang", *(f"clang-{n}" for n in range(21, 13, -1))))), None
    )
    atheris = importlib.util.find_spec("atheris")
    library = Path(str(atheris and atheris.origin)).parent.parent / "asan_with_fuzzer.so"
    if compiler is None or not library.exists():
        sys.stderr.write("fuzz: no clang, so C runs without sanitizers: apt-get install clang\n")
        return "-", ""
    folder = BUILD / "sanitized"
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["-std=gnu11", "-O1", "-g", "-fPIC", "-w", f"-I{sysconfig.get_path('include')}", *SANITIZERS]
    for name, patterns in build_core.SOURCES.items():
        sources = sorted(path for pattern in patterns for path in (ROOT / "csrc").glob(pattern))
        made = [folder / f"{name}.{source.stem}.o" for source in sources]
        for source, target in zip(sources, made, strict=True):
            subprocess.run([compiler, "-c", *flags, str(source), "-o", str(target)], check=True)
        # Linked without sanitizers: their functions come from the library that is loaded first.
        module = folder / f"{name}{build_core.SUFFIX}"
        subprocess.run([compiler, "-shared", "-pthread", *map(str, made), "-o", str(module)], check=True)
    return str(folder), str(library)


def make_page_seeds(folder: Path, more: bytes) -> None:
    """Write pages of each layout that `targets.py` makes, with records of its event, after other choices."""
    for choice in range(16):
        rng, layout = random.Random(choice), page_layout(choice)
        order = ">" if layout.is_big_endian else "<"
        record = (
            struct.pack(order + "HBBiiIQ8sI", 7, 0, 0, 1, -1, 4 << 16 | 36, 1 << 40, b"12345678", 0) + b"abc"
        )
        records = [(10**9 + n * rng.randrange(1 << 29), record[: layout.data_size // 2]) for n in range(20)]
        (folder / f"layout{choice}").write_bytes(bytes([choice]) + more + write_pages(records, layout))


def make_text_seeds(folder: Path) -> None:
    """Write the first pages of each recording of a tracer, with symbols and without."""
    for name, recording in recorded_layouts()["recordings"].items():
        pages = b"".join(base64.b64decode(part)[: 2 * 4096] for part in recording["pages"])
        for first in (b"\0", b"\xff"):
            (folder / f"{name}{first[0]}").write_bytes((first + pages)[:MAX_BYTES])


def make_ctf_seeds(folder: Path) -> None:
    """Write the stream of a CPU of a recording with the metadata of it."""
    with TemporaryDirectory() as made, open_trace(ROOT / "tests/tracefile/golden/cut.v6.dat") as trace:
        write_ctf(trace, Path(made) / "ctf")
        metadata = (Path(made) / "ctf/metadata").read_bytes()
        for path in (Path(made) / "ctf").glob("*[0-9]"):
            data = metadata + b"\0\0\0\0" + path.read_bytes()
            (folder / path.name).write_bytes(data[:MAX_BYTES])


def make_ring_seeds(folder: Path) -> None:
    """Write the ring of a process that records events, whole and after its first records were overwritten."""
    program = """
import sys
import tracepoint as tp

@tp.trace_event(system="fuzz", printk='"%llu %s", n, name')
def step(n: tp.u64, name: str) -> None: ...

step.enable(tp.tracing.make_instance("fuzz", n_pages=3, directory=sys.argv[1]))
for n in range(int(sys.argv[2])):
    step(n, "name")
"""
    for n_records in (5, 1000):
        with TemporaryDirectory() as made:
            subprocess.run([sys.executable, "-c", program, made, str(n_records)], check=True)
            (formats,) = Path(made).glob("formats-*")
            (ring,) = Path(made).glob("ring-*")
            data = formats.read_bytes() + b"\0\0\0\0" + ring.read_bytes()
            (folder / f"ring{n_records}").write_bytes(data[:MAX_BYTES])


def make_sched_seeds(folder: Path) -> None:
    """Write tasks that wake and replace each other on two CPUs."""
    forms = {form.name: form for form in (read_format(text, system) for system, text in sched_formats())}
    layout = page_layout(12)
    for seed in range(8):
        rng, cpus = random.Random(seed), []
        for cpu in range(2):
            records, running = [], 0
            for n in range(60):
                name = rng.choice(["sched_switch", "sched_switch", "sched_waking", "sched_wakeup"])
                after = rng.randrange(6)
                values = {"common_pid": running, "pid": after, "prev_pid": running, "next_pid": after}
                values |= {"prev_state": rng.choice([0, 1, 2, 256]), "next_prio": 120}
                records.append((10**9 + n * 1000 + cpu, event_record(forms[name], values)))
                running = after if name == "sched_switch" else running
            cpus.append(write_pages(records, layout))
        n_bytes = max(map(len, cpus))
        (folder / f"sched{seed}").write_bytes(b"".join(cpu.ljust(n_bytes, b"\0") for cpu in cpus))


def event_record(form: EventFormat, values: dict[str, int]) -> bytes:
    """Return a record with values of the fields that an event has."""
    data = bytearray(form.end)
    for field in form.fields:
        value = {**values, "common_type": form.id}.get(field.name)
        if value is not None:
            data[field.offset : field.offset + field.size] = value.to_bytes(field.size, "little")
    return bytes(data)


def make_print_seeds(name: str, folder: Path) -> None:
    """Write a record with each print format: as text, or as the packed program of it."""
    record = (
        struct.pack("<HBBiiIQ8sI", 7, 0, 0, 1, 3, 4 << 16 | 36, 1 << 40, b"12345678", 4)
        + b"abc\0\x01\0\x02\0"
    )
    for number, text in enumerate(PRINTS):
        packed = compile_print(replace(PRINTED, print_fmt=text)).packed
        data = record[8:] + b"\0\0\0\0" + text.encode() if name == "printk" else record.ljust(64) + packed
        (folder / f"print{number}").write_bytes(data)


def make_seeds(name: str, folder: Path) -> None:
    """Copy small real files that this machine has; a search that starts from them goes deeper."""
    if name in ("pages", "columns", "follow", "join", "sieve"):
        make_page_seeds(folder, {"follow": b"\0", "sieve": b"\x80\0\xff"}.get(name, b""))
        return
    if name in ("lines", "graph"):
        make_text_seeds(folder)
        return
    if name in ("ctf", "rings", "sched"):
        {"ctf": make_ctf_seeds, "rings": make_ring_seeds, "sched": make_sched_seeds}[name](folder)
        return
    if name in ("printk", "program"):
        make_print_seeds(name, folder)
        return
    kind = name if name in SEED_FILES or name in ("filter", "json") else "header"
    for place, pattern in SEED_FILES.get(kind, []):
        small = [p for p in sorted(place.glob(pattern)) if p.is_file() and p.stat().st_size <= MAX_BYTES]
        for path in small[:: max(1, len(small) // N_SEEDS)]:
            copy = folder / "_".join(path.parts[-3:])
            if not copy.exists():
                copy.write_bytes(path.read_bytes())


def fuzz(name: str, seconds: int, module: str, sanitizers: str) -> bool:
    """Fuzz one target and return whether nothing was found."""
    found = HERE / "corpus" / name
    work = BUILD / name
    seeds = BUILD / "seeds" / name
    for folder in (found, work, seeds):
        folder.mkdir(parents=True, exist_ok=True)
    make_seeds(name, seeds)
    done = subprocess.run(
        [
            *(sys.executable, str(HERE / "fuzz_one.py"), name, module),
            *(f"-max_total_time={seconds}", f"-timeout={HANG_S}", f"-rss_limit_mb={MEMORY_MB}"),
            *("-print_final_stats=1", "-verbosity=1", f"-max_len={MAX_BYTES}", f"-artifact_prefix={found}/"),
            *(f"-dict={HERE / 'words.dict'}", str(work), str(seeds), str(found)),
        ],
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": sanitizers, "ASAN_OPTIONS": ASAN_OPTIONS},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    log = done.stdout.decode(errors="replace")
    (work.parent / f"{name}.log").write_text(log)
    runs = [line.split()[-1] for line in log.splitlines() if "number_of_executed_units" in line]
    verdict = "nothing found" if done.returncode == 0 else f"FAILED, see build/fuzz/{name}.log"
    n_runs = runs[-1] if runs else "?"
    print(f"{name:10} {seconds:5} s {n_runs:>10} inputs  {verdict}", flush=True)
    return done.returncode == 0


def main() -> int:
    """Return 1 when a target broke, 2 when atheris is not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="for all targets together")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all of {', '.join(TARGETS)}")
    args = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        sys.stderr.write("fuzz: no atheris for this Python (a wheel exists for 3.11 to 3.13 on x86-64)\n")
        return 2
    os.nice(10)
    names = args.targets or list(TARGETS)
    share = max(1, int(args.minutes * 60 / len(names)))
    module, sanitizers = build_sanitized()
    verdicts = [fuzz(name, share, module, sanitizers) for name in names]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
