"""A guest's serial line on this terminal: a shell in a booted kernel."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tracepoint.lab.build.module import disk_errors
from tracepoint.lab.guest import qemu
from tracepoint.lab.guest.machine import GuestPlan, build_initrd, settle_accelerator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.lab.kernels import packages

# `cttyhack` gives the shell its own terminal, so that Ctrl-C reaches the programs in it.  The kernel drops
# what a terminal has not sent when the leader of its session ends (drivers/tty/tty_ldisc.c:
# tty_ldisc_hangup()), so the leader waits with `stty`, which returns when all is sent, after the shell.
_INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/lab/bin:/bin:/sbin:/usr/bin:/usr/sbin HOME=/root TERM=@TERM@ PS1='guest \\w # '
mount -a
cp -a /lab/dev/. /dev
mount -a -T /lab/fstab
while read -r module; do insmod "$module"; done </lab/modules
echo "kernel $(uname -r); tracefs is in /sys/kernel/tracing; exit, or Ctrl-A X, ends the guest"
cd /root
setsid cttyhack sh -c 'sh; trap "" TTOU; stty sane'
reboot -f
"""


def run_shell(
    image: packages.KernelImage,
    *,
    memory_mb: int = 512,
    cpus: int = 2,
    modules: Sequence[str] = (),
    files: Mapping[str, bytes] | None = None,
    terminal: str = "linux",
    say: Callable[[str], None],
) -> int:
    """Boot a kernel with a shell on this terminal and return QEMU's exit status when it has ended.

    `modules` of the package are loaded at start, `files` put in place (path to bytes); `say` is called when
    there is KVM but no guest boots under it.  Raises LabError when QEMU, busybox or a module is missing,
    or the disk is full.
    """
    name = terminal if terminal.replace("-", "").isalnum() else "linux"
    init = {"/init": _INIT.replace("@TERM@", name).encode()}
    plan = GuestPlan(image, memory_mb, cpus, {**(files or {}), **init}, tuple(modules))
    with TemporaryDirectory(prefix="tracepoint-shell-") as folder, disk_errors(Path(folder)):
        initrd = Path(folder) / "initrd"
        initrd.write_bytes(build_initrd(plan))
        words = [
            *qemu.boot_words(image.image, initrd, memory_mb, cpus),
            *("-chardev", "stdio,id=terminal,mux=on,signal=off"),
            *("-serial", "chardev:terminal", "-mon", "chardev=terminal"),
        ]
        with qemu.start(settle_accelerator(image, say), words) as process:
            return process.wait()
