"""Start QEMU: the only place that starts guests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tracepoint.errors import LabError
from tracepoint.lab.guest import watched

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tracepoint.lab.guest.accelerator import Accelerator

PROGRAM = "qemu-system-x86_64"
_APPEND = "console=ttyS0 quiet panic=-1 no_timer_check rdinit=/init"


def find_program() -> str:
    """Return the path of QEMU, or raise LabError that names its package."""
    path = shutil.which(PROGRAM)
    if path is None:
        raise LabError(f"{PROGRAM} is not installed (Debian package qemu-system-x86)")
    return os.path.abspath(path)  # noqa: PTH100 (a link keeps its name: programs look at how they are called)


def boot_words(image: Path, initrd: Path, memory_mb: int, cpus: int, append: str = "") -> list[str]:
    """Return the words for a machine that boots `image`; `append` comes after our kernel command line."""
    return [
        *("-m", str(memory_mb), "-smp", str(cpus), "-nodefaults", "-display", "none", "-no-reboot"),
        *("-kernel", str(image), "-initrd", str(initrd), "-append", f"{_APPEND} {append}".strip()),
    ]


def start(accelerator: Accelerator, words: Sequence[str], **streams: Any) -> subprocess.Popen[bytes]:
    """Start QEMU, which ends when this process does; `streams` are as for Popen.

    Raises LabError when it is not installed.
    """
    command = [find_program(), "-M", "pc", *accelerator.options, *words]
    return subprocess.Popen(  # noqa: S603 (QEMU with the words of our callers)
        [sys.executable, "-I", "-S", watched.__file__, str(os.getpid()), *command], **streams
    )
