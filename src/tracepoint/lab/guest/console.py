"""The relevant lines of a guest's kernel log when the kernel breaks."""

from __future__ import annotations

import re

_FATAL = re.compile(
    r"Kernel panic|\bOops\b|\bBUG:|general protection fault|kernel BUG at|invalid opcode: 0000"
    r"|unable to handle|double fault|Unable to mount root|soft lockup|hung_task: blocked"
)
# The kernel's messages about a processor that did not run for long; an emulated one on a busy machine may not
# run for a while and continue afterwards.
_LATE = re.compile(r"BUG: (?:soft|workqueue) lockup")
# With an initial ram disk, a root that cannot be mounted means that the disk's content did not fit.
_MEMORY = re.compile(
    r"Out of memory|out of memory|deadlocked on memory|Initramfs unpacking failed|page allocation failure"
    r"|oom-kill:|Unable to mount root fs|initrd too large|Cannot allocate memory"
)
_NOISE = re.compile(r"^(Code:|R(?!IP)[A-Z0-9]{1,2}:|[CDEFGS]S:|CR\d|DR\d|PKRU|Modules linked in|FS:)|^\s*\? ")
_STAMP = re.compile(r"^(<\d+>)?\[\s*\d+\.\d+\]\s?")
_LINES = 40


def trouble(log: str, *, is_emulated: bool = False) -> str:
    r"""Return the lines of kernel log `log` from the first fatal one on, without register dumps.

    The empty string means that nothing fatal was found.  A lockup that a watchdog reports is fatal unless
    the guest `is_emulated`: there it says that the machine is slow.

    >>> trouble("[ 1.0] fine\n[ 2.0] Kernel panic - not syncing: Oh\n[ 2.1] R12: 0000\n[ 2.1] end\n")
    'Kernel panic - not syncing: Oh\nend'
    """
    lines = [_STAMP.sub("", line.rstrip("\r")) for line in log.splitlines()]
    for number, line in enumerate(lines):
        if _FATAL.search(line) and not (is_emulated and _LATE.search(line)):
            useful = [text for text in lines[number:] if text.strip() and not _NOISE.search(text)]
            return "\n".join(useful[:_LINES])
    return ""


def memory_trouble(log: str) -> str:
    r"""Return the lines of kernel log `log` about too little memory; none means that there was enough.

    >>> memory_trouble("[ 1.0] fine\n[ 2.0] Out of memory: Killed process 60 (hog) total-vm:205800kB\n")
    'Out of memory: Killed process 60 (hog) total-vm:205800kB'
    """
    lines = [_STAMP.sub("", line.rstrip("\r")) for line in log.splitlines()]
    return "\n".join([line for line in lines if _MEMORY.search(line)][-_LINES:])


def last_lines(log: str, count: int = 12) -> str:
    """Return the last `count` lines of `log` that are not empty."""
    return "\n".join([line for line in log.splitlines() if line.strip()][-count:])
