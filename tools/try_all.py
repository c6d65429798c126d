"""`make try`: an example, a real fault with its fix, and how many of a kernel's events are simulated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = [sys.executable, "-m", "tracepoint"]
EVENT = "swap:mm_page_swap_in"
# Faults of released kernels that have a fix: the first one that the headers at hand still have is shown.
FAULTS = (("spmi.h", "TP319"), ("libata.h", "TP207"), ("9p.h", "TP305"))
NEXT = """
next:
  tracepoint check DRIVER/trace.h              what is wrong with a header of yours
  tracepoint try DRIVER/trace.h:EVENT -v       what one of its events records and prints; `try --help`
  tracepoint try DRIVER/trace.h --kernel 6.1   the same in a booted kernel (QEMU)"""


def run(*words: str, folder: Path = ROOT) -> int:
    """Show a command and run it."""
    print("$ tracepoint", *words, flush=True)
    return call(*words, folder=folder).returncode


def call(*words: str, folder: Path, **streams: object) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder."""
    command = [*PROGRAM, *words]
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, text=True, check=False, **streams)


def show_fault(events: Path) -> int:
    """Show a real fault of these headers and what its fix changes."""
    for name, code in FAULTS:
        words = ("check", name, "--select", code)
        if (events / name).is_file() and call(*words, folder=events, capture_output=True).returncode == 1:
            worst = run(*words, "-q", "--output-format", "concise", folder=events)
            return max(worst, run(*words, "-q", "--fix", "--unsafe", "--diff", folder=events))
    return 0


def main() -> int:
    """Return 0 when every command ran; findings in the headers are not a failure here."""
    worst = run("try", "--example", EVENT, "--only", "inputs,record,trace", *sys.argv[1:])
    ask = [sys.executable, str(ROOT / "tools/debian.py"), "headers"]
    headers = subprocess.run(ask, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    if headers:
        events = Path(headers) / "include/trace/events"
        print(f"\nin {events}:", flush=True)
        worst = max(worst, show_fault(events))
        worst = max(worst, run("try", "--summary", ".", *sys.argv[1:], folder=events))
    print(NEXT)
    return 0 if worst <= 1 else worst


if __name__ == "__main__":
    sys.exit(main())
