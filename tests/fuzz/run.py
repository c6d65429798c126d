"""`make fuzz`: every target under atheris for its share of the time; what breaks goes to the corpus.

A crash, a hang of a minute or more than 2 GB is written to tests/fuzz/corpus/TARGET, from where the
ordinary test suite runs it for ever.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from targets import TARGETS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
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
}


def make_seeds(name: str, folder: Path) -> None:
    """Copy small real files that this machine has; a search that starts from them goes deeper."""
    kind = name if name in SEED_FILES or name in ("filter", "json") else "header"
    for place, pattern in SEED_FILES.get(kind, []):
        small = [p for p in sorted(place.glob(pattern)) if p.is_file() and p.stat().st_size <= MAX_BYTES]
        for path in small[:: max(1, len(small) // N_SEEDS)]:
            copy = folder / "_".join(path.parts[-3:])
            if not copy.exists():
                copy.write_bytes(path.read_bytes())


def fuzz(name: str, seconds: int) -> bool:
    """Fuzz one target and return whether nothing was found."""
    found = HERE / "corpus" / name
    work = ROOT / "build/fuzz" / name
    seeds = ROOT / "build/fuzz/seeds" / name
    for folder in (found, work, seeds):
        folder.mkdir(parents=True, exist_ok=True)
    make_seeds(name, seeds)
    done = subprocess.run(
        [
            *(sys.executable, str(HERE / "fuzz_one.py"), name),
            *(f"-max_total_time={seconds}", f"-timeout={HANG_S}", f"-rss_limit_mb={MEMORY_MB}"),
            *("-print_final_stats=1", "-verbosity=1", f"-max_len={MAX_BYTES}", f"-artifact_prefix={found}/"),
            *(f"-dict={HERE / 'words.dict'}", str(work), str(seeds), str(found)),
        ],
        cwd=ROOT,
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
    verdicts = [fuzz(name, share) for name in names]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
