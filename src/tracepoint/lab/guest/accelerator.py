"""KVM or emulation: KVM is used once one of our guests has booted under it since this machine booted.

A device node proves nothing, nor do a few instructions: on some machines those run, but every kernel
hangs. So the first guest is the test, and its result is kept in the user's cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tracepoint.errors import LabError
from tracepoint.lab.build.sync import replace_file
from tracepoint.tree.cache import cache_folder

VARIABLE = "TRACEPOINT_ACCEL"
_DEVICE = "/dev/kvm"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_WORKS = b"works\n"
_FAILS = b"fails\n"


@dataclass(frozen=True, slots=True)
class Accelerator:
    """How QEMU runs a guest: `name` is kvm or tcg; `is_trial`: no guest has booted that way yet."""

    name: str
    is_trial: bool = False

    @property
    def options(self) -> list[str]:
        """The words for QEMU."""
        if self.name == "kvm":
            return ["-accel", "kvm", "-cpu", "host"]
        # One thread for all processors: with one each, a processor may still run the int3 of a jump label
        # that another has finished patching, and the guest dies in a tracepoint that is being switched.
        return ["-accel", "tcg,thread=single", "-cpu", "max"]


EMULATION = Accelerator("tcg")


def choose(program: str) -> Accelerator:
    """Return what the QEMU at path `program` shall use: the user's wish, else what is known of KVM here.

    The wish is TRACEPOINT_ACCEL, `kvm` or `tcg`; raises LabError when it is something else.
    """
    wish = os.environ.get(VARIABLE, "")
    if wish not in ("", "kvm", "tcg"):
        raise LabError(f"{VARIABLE}={wish}: use kvm or tcg")
    if wish:
        return Accelerator(wish)
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return EMULATION
    known = _read(_answer(program))
    return EMULATION if known == _FAILS else Accelerator("kvm", is_trial=known != _WORKS)


def remember(program: str, works: bool) -> None:
    """Keep for this boot of the machine whether guests come up under KVM with the QEMU at path `program`.

    A guest that booted outweighs one that did not. Nothing is kept when the cache cannot be written.
    """
    path = _answer(program)
    if _read(path) == _WORKS:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.iterdir():
            if not old.name.startswith(_boot()):
                old.unlink(missing_ok=True)
        replace_file(path, _WORKS if works else _FAILS)


def _answer(program: str) -> Path:
    """Return the file for this knowledge: one for each boot and each version of QEMU."""
    real = Path(program).resolve()
    told = real.stat()
    version = hashlib.sha256(f"{real} {told.st_size} {told.st_mtime_ns}".encode()).hexdigest()[:16]
    return cache_folder() / "kvm" / f"{_boot()}-{version}"


def _boot() -> str:
    return _BOOT_ID.read_text().strip()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
