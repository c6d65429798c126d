"""QEMU: the command line, and whether KVM truly works here."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from tracepoint.errors import LabError

PROGRAM = "qemu-system-x86_64"
_PROBE_SECONDS = 5
# A 64 KiB ROM whose reset vector writes to QEMU's debug exit port: mov dx,0xf4; mov al,0x10; out dx,al; hlt
_PROBE_CODE = b"\xba\xf4\x00\xb0\x10\xee\xf4"
_PROBE_STATUS = (0x10 << 1) | 1


def find_program() -> str:
    """Return the path of QEMU, or raise LabError saying which package brings it."""
    path = shutil.which(PROGRAM)
    if path is None:
        raise LabError(f"{PROGRAM} is not installed (Debian package qemu-system-x86)")
    return path


@functools.cache
def kvm_works() -> bool:
    """Whether QEMU can run instructions under KVM here; found by trying, not by looking at /dev/kvm.

    A device node may be there and still not work (nested machines).  `TRACEPOINT_ACCEL=tcg` says no,
    `TRACEPOINT_ACCEL=kvm` says yes without trying.
    """
    wish = os.environ.get("TRACEPOINT_ACCEL", "")
    if wish in ("kvm", "tcg"):
        return wish == "kvm"
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    with TemporaryDirectory(prefix="tracepoint-kvm-") as folder:
        rom = Path(folder) / "probe.bin"
        rom.write_bytes(_PROBE_CODE.rjust(0x10000 - 16 + len(_PROBE_CODE), b"\xf4").ljust(0x10000, b"\xf4"))
        command = [
            *(find_program(), "-M", "pc", "-accel", "kvm", "-cpu", "host", "-m", "16", "-nodefaults"),
            *("-display", "none", "-no-reboot", "-bios", str(rom)),
            *("-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"),
        ]
        try:
            done = subprocess.run(  # noqa: S603 (fixed arguments)
                command, capture_output=True, timeout=_PROBE_SECONDS, check=False, stdin=subprocess.DEVNULL
            )
        except (subprocess.TimeoutExpired, OSError):
            return False
        return done.returncode == _PROBE_STATUS


def accelerator_options() -> list[str]:
    """Return the options that choose KVM where it works and emulation (TCG) where not."""
    if kvm_works():
        return ["-accel", "kvm", "-cpu", "host"]
    # One thread for all processors: with one each, a processor may still run the int3 of a jump label
    # that another has finished patching, and the guest dies in a tracepoint that is being switched.
    return ["-accel", "tcg,thread=single", "-cpu", "max"]
