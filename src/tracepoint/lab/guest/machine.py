"""Boot a kernel in QEMU and work in it: run commands, copy files in and out, load modules.

One guest serves many jobs: requests go through one virtio-serial port, answers come back framed.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import logging
import math
import os
import secrets
import shlex
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.lab.guest import accelerator, agent, console, initramfs, pace, qemu
from tracepoint.lab.guest.channel import Channel
from tracepoint.lab.kernels import modules, packages
from tracepoint.layout.compressed import MODULE_ENDS
from tracepoint.named import NamedTuple
from tracepoint.tree.cache import cache_folder, oldest_first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracepoint.lab.guest.accelerator import Accelerator

_LOG = logging.getLogger(__name__)


class Patience(NamedTuple):
    """Seconds for a guest to boot: until the first console output, between outputs, and in all."""

    first_word: float
    next_word: float
    whole: float


# All limits are for an idle machine of usual speed, and grow by `Guest.slowness`.
_PATIENCE = Patience(180, 180, 720)
_PATIENCE_WITH_KVM = Patience(5, 20, 60)
_USUAL_BOOT_SECONDS = {"kvm": 1.5, "tcg": 4.0}
_GLANCE_SECONDS = 0.2
_GRACE_SECONDS = 20
_TRANSFER_SECONDS = 300
_CHANNEL_MODULES = ("virtio_pci", "virtio_console")
_SHARE_MODULES = ("9p", "9pnet_virtio")
_KEPT_LOGS = 20
_APPEND = "oops=panic"


@dataclass(frozen=True, slots=True)
class CompletedGuestCommand:
    """A command that ended: `status` as in the shell (128+N for signal N), `output` of both streams."""

    status: int
    output: bytes

    @property
    def text(self) -> str:
        """The output as text; bytes that are not UTF-8 are replaced."""
        return self.output.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class GuestPlan:
    """What to boot; see `boot` for the meaning of each part."""

    image: packages.KernelImage
    memory_mb: int = 512
    cpus: int = 2
    files: Mapping[str, bytes] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    shares: Mapping[str, Path] = field(default_factory=dict)
    append: str = ""


class Guest:
    """A booted guest; made by `boot`.

    `boot_seconds` is the time that it took to boot, `accelerator` how QEMU runs it, `slowness` the factor
    of its time limits.
    """

    def __init__(
        self,
        plan: GuestPlan,
        accelerator: Accelerator,
        process: subprocess.Popen[bytes],
        ports: tuple[socket.socket, socket.socket],
        log_path: Path,
    ) -> None:
        self.image = plan.image
        self.accelerator = accelerator
        self.log_path = log_path
        self.boot_seconds = 0.0
        self.slowness = 1.0
        self._memory_mb = plan.memory_mb
        self._process = process
        self._requests, self._output = (Channel(port, self._broken) for port in ports)

    @functools.cached_property
    def tree(self) -> modules.ModuleTree:
        """The modules of the kernel's package."""
        return modules.ModuleTree(self.image.modules)

    def run(self, command: str, timeout: float = 60, check: bool = True) -> CompletedGuestCommand:
        """Run `command` in the guest's shell for at most `timeout` seconds and return the result.

        The time is for a usual machine: it is extended on a slow or busy one.  With `check`, a status
        other than 0 raises LabError with the end of the output.  A command that runs too long is killed
        in the guest; if the guest itself no longer answers, it is stopped. A kernel that breaks
        raises LabError with its messages.
        """
        script = command.encode()
        if not script:
            raise ValueError("an empty command")
        timeout = self.limit(timeout)
        header = f"run {len(script)} {timeout}\n".encode()
        status, output = self._request(header + script, timeout + self.limit(_GRACE_SECONDS))
        if status and check:
            tail = console.last_lines(output.decode(errors="replace"))
            killed = self.killed_for_memory if status == 137 else ""
            reason = f"took longer than {timeout} s" if status == 137 else f"ended with status {status}"
            if killed:
                reason, tail = f"was killed: {self._memory_mb} MB of memory are too little", killed
            raise LabError(
                f"guest command {reason}: {_short(command)}", command, status, tail, str(self.log_path)
            )
        return CompletedGuestCommand(status, output)

    def stream(self, command: str, write: Callable[[bytes], None], seconds: int) -> int:
        """Run `command` like `run` and pass its output to `write` as it comes; return its status.

        The time is exact; `limit` converts a usual time.
        """
        script, mark = command.encode(), secrets.token_hex(16)
        deadline = time.monotonic() + seconds + self.limit(_GRACE_SECONDS)
        self._requests.send(f"stream {len(script)} {seconds} {mark}\n".encode() + script, deadline)
        self._output.copy_until(mark.encode(), write, deadline)
        status = self._output.read_line(deadline)
        self._check_kernel()
        return int(status)

    @property
    def killed_for_memory(self) -> str:
        """The lines in which the guest's kernel says that memory ran out; empty when it did not."""
        return console.memory_trouble(self.log)

    def put(self, path: str, data: bytes) -> None:
        """Write `data` to `path` in the guest; folders are created. Raises LabError on failure."""
        _check_path(path)
        message = f"put {len(data)} {path}\n".encode() + data
        status, error = self._request(message, self.limit(_TRANSFER_SECONDS))
        if status:
            raise LabError(f"cannot write {path} in the guest: {error.decode(errors='replace').strip()}")

    def get(self, path: str) -> bytes:
        """Return the content of `path` in the guest (any bytes).  Raises LabError when it cannot be read."""
        _check_path(path)
        status, data = self._request(f"get 0 {path}\n".encode(), self.limit(_TRANSFER_SECONDS))
        if status:
            raise LabError(f"cannot read {path} in the guest: {data.decode(errors='replace').strip()}")
        return data

    def read(self, path: str) -> str:
        """Return the content of `path` in the guest as text."""
        return self.get(path).decode(errors="replace")

    def insmod(self, name_or_path: str | Path, parameters: str = "") -> None:
        """Load a module: a file of this machine, or a name of the kernel's own package with what it needs.

        Modules that are already loaded are skipped. Raises LabError with the kernel's messages.
        """
        given = Path(name_or_path)
        paths = [given] if given.name.endswith(MODULE_ENDS) else self.tree.load_order((str(name_or_path),))
        loaded = {line.split(" ", 1)[0] for line in self.read("/proc/modules").splitlines()}
        for path in paths:
            name = modules.module_name(path)
            if name in loaded:
                continue
            target = f"/tmp/{name}.ko"  # noqa: S108 (inside the guest)
            self.put(target, modules.read_module(path))
            extra = parameters if path == paths[-1] else ""
            done = self.run(
                f"dmesg -c >/dev/null; insmod {target} {extra}; s=$?; rm {target}; exit $s", check=False
            )
            if done.status:
                words = self.run("dmesg | tail -n 12", check=False).text
                raise LabError(
                    f"module {name} does not load", f"insmod {path}", done.status, done.text + words
                )

    def rmmod(self, name: str) -> None:
        """Unload module `name`; raises LabError when the kernel refuses."""
        self.run(f"rmmod {shlex.quote(name)}")

    @property
    def log(self) -> str:
        """What the guest's console has shown up to now."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def limit(self, seconds: float) -> int:
        """Return the current time limit in this guest for this many seconds on a usual machine."""
        return math.ceil(seconds * max(self.slowness, pace.crowding()))

    def _greet(self) -> None:
        """Wait until the guest is up; each output on its console gives it more time."""
        self.slowness = pace.slowness()
        patience = _PATIENCE_WITH_KVM if self.accelerator.is_trial else _PATIENCE
        started = time.monotonic()
        end = started + patience.whole * self.slowness
        silent_until = min(end, started + patience.first_word * self.slowness)
        spoken = 0
        while not self._requests.has_line:
            now = time.monotonic()
            if self._requests.is_readable(min(silent_until - now, _GLANCE_SECONDS)):
                self._requests.receive(end)
            elif (size := self.log_path.stat().st_size) > spoken:
                spoken, silent_until = size, min(end, now + patience.next_word * self.slowness)
            elif now >= silent_until:
                raise self._broken("the guest hangs: it does not come up")
        line = self._requests.read_line(end)
        if line + b"\n" != agent.GREETING:
            raise self._broken(f"the guest answered {line[:60]!r} instead of its greeting")
        self.boot_seconds = time.monotonic() - started
        self.slowness = max(self.slowness, self.boot_seconds / _USUAL_BOOT_SECONDS[self.accelerator.name])

    def _request(self, message: bytes, seconds: float) -> tuple[int, bytes]:
        deadline = time.monotonic() + seconds
        self._requests.send(message, deadline)
        line = self._requests.read_line(deadline)
        status, _, size = line.decode(errors="replace").partition(" ")
        if not (status.isdigit() and size.isdigit()):
            raise self._broken(f"the guest answered {line[:60]!r}")
        data = self._requests.read_bytes(int(size), self.limit(_GRACE_SECONDS))
        self._check_kernel()
        return int(status), data

    def _check_kernel(self) -> None:
        if self._trouble:
            raise self._broken("the guest's kernel broke")

    def _broken(self, message: str) -> LabError:
        """Stop the guest and return the error with the reason and the last output of the kernel or QEMU."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        ended_with = self._process.poll()
        self.close()
        trouble = self._trouble
        words = trouble or console.last_lines(self.log) or console.last_lines(self._words_of_qemu)
        memory = console.memory_trouble(self.log)
        if memory:
            message += f": {self._memory_mb} MB of memory are too little"
            words = "\n".join(dict.fromkeys((*memory.splitlines(), *trouble.splitlines())))
        elif not words:
            message += " before its kernel said a word"
            # A kernel that does not fit resets the machine; one that hangs has another reason.
            message += f"; {self._memory_mb} MB of memory may be too little" if ended_with == 0 else ""
        if self.accelerator.name == "kvm" and not trouble:
            message += f" (under KVM; {accelerator.VARIABLE}=tcg boots with emulation)"
        return LabError(message, "qemu", self._process.returncode, words, str(self.log_path))

    @property
    def _trouble(self) -> str:
        return console.trouble(self.log, is_emulated=self.accelerator.name == "tcg")

    @property
    def _words_of_qemu(self) -> str:
        path = _words_path(self.log_path)
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """Stop the guest immediately; harmless if it has already ended."""
        self._process.kill()
        self._process.wait()
        self._requests.close()
        self._output.close()


@contextlib.contextmanager
def boot(
    kernel: str = "6.1",
    *,
    memory_mb: int = 512,
    cpus: int = 2,
    files: Mapping[str, bytes] | None = None,
    modules: Sequence[str] = (),
    shares: Mapping[str, Path] | None = None,
    append: str = "",
    say: Callable[[str], None] = _LOG.warning,
) -> Iterator[Guest]:
    """Boot `kernel` (a name of `lab.kernels`, or a Debian package name) and yield the guest.

    `memory_mb` and `cpus` are the machine's size; `files` are put into it (path -> bytes, made
    executable); `modules` of the package are loaded at start; `shares` are folders of this machine,
    visible read-only under the given paths (full kernels only: they need 9p); `append` goes to the
    kernel command line; `say` is called when there is KVM but no guest boots under it. The guest ends
    with the block. Raises LabError when QEMU, busybox or the kernel is missing, or when the guest does not
    boot.
    """
    plan = GuestPlan(
        packages.fetch_kernel(kernel), memory_mb, cpus, files or {}, tuple(modules), shares or {}, append
    )
    with boot_plan(plan, say) as guest:
        yield guest


@contextlib.contextmanager
def boot_plan(plan: GuestPlan, say: Callable[[str], None] = _LOG.warning) -> Iterator[Guest]:
    """Boot according to a plan, with an available kernel, and yield the guest like `boot`."""
    with TemporaryDirectory(prefix="tracepoint-guest-") as folder:
        initrd = Path(folder) / "initrd"
        initrd.write_bytes(build_initrd(plan))
        guest = _come_up(plan, initrd, say)
        try:
            yield guest
        finally:
            guest.close()


def settle_accelerator(image: packages.KernelImage, say: Callable[[str], None]) -> Accelerator:
    """Return what QEMU uses for an unattended guest; if KVM is unproven, another one boots first.

    Raises LabError as `boot` does.
    """
    chosen = accelerator.choose(qemu.find_program())
    if not chosen.is_trial:
        return chosen
    with boot_plan(GuestPlan(image), say) as guest:
        return replace(guest.accelerator, is_trial=False)


def _come_up(plan: GuestPlan, initrd: Path, say: Callable[[str], None]) -> Guest:
    """Start a guest and return it when it is up; if KVM is unproven, emulation is the fallback."""
    program = qemu.find_program()
    chosen = accelerator.choose(program)
    if not chosen.is_trial:
        return _greeted(plan, initrd, chosen)
    try:
        guest = _greeted(plan, initrd, chosen)
    except LabError as error:
        say(
            f"no guest comes up under KVM here, emulation is used ({error.args[0].partition(' (under')[0]}); "
            f"{accelerator.VARIABLE}=kvm or tcg decides"
        )
        guest = _greeted(plan, initrd, accelerator.EMULATION)
    accelerator.remember(program, guest.accelerator.name == "kvm")
    return guest


def _greeted(plan: GuestPlan, initrd: Path, chosen: Accelerator) -> Guest:
    guest = _start(plan, initrd, chosen)
    try:
        guest._greet()  # noqa: SLF001 (the other half of one thing)
    except BaseException:
        guest.close()
        raise
    return guest


def build_initrd(plan: GuestPlan) -> bytes:
    """Return the initial ram disk for `plan`; raises LabError when busybox or a module is missing."""
    tree = modules.ModuleTree(plan.image.modules)
    wanted = (*_CHANNEL_MODULES, *(_SHARE_MODULES if plan.shares else ()), *plan.modules)
    order = tree.load_order(wanted)
    has_own_tmp = any(path.strip("/").startswith("tmp/") for path in plan.files)
    entries = agent.system_entries(has_own_tmp=has_own_tmp)
    entries["bin/busybox"] = initramfs.regular(static_busybox(), 0o755)
    names = [f"lab/modules.d/{number:03}-{modules.module_name(path)}.ko" for number, path in enumerate(order)]
    entries.update(
        (name, initramfs.regular(modules.read_module(path))) for name, path in zip(names, order, strict=True)
    )
    entries["lab/modules"] = initramfs.regular("".join(f"/{name}\n" for name in names).encode())
    options = "ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose"
    mounts = [f"9p share{number} {target} {options}\n" for number, target in enumerate(plan.shares)]
    entries["lab/mounts"] = initramfs.regular("".join(mounts).encode())
    for path, data in plan.files.items():
        entries[path.strip("/")] = initramfs.regular(data, 0o755)
    return initramfs.pack(entries)


def _start(plan: GuestPlan, initrd: Path, chosen: Accelerator) -> Guest:
    log_path = _new_log(plan.image.release)
    log_path.touch()
    (ours, theirs), (our_output, their_output) = socket.socketpair(), socket.socketpair()
    devices = []
    for name, port in ((agent.PORT_NAME, theirs), (agent.OUTPUT_NAME, their_output)):
        devices += ["-chardev", f"socket,id={name},fd={port.fileno()}"]
        devices += ["-device", f"virtserialport,chardev={name},name={name}"]
    for number, source in enumerate(plan.shares.values()):
        devices += ["-virtfs", f"local,path={source},mount_tag=share{number},security_model=none,readonly=on"]
    append = f"{_APPEND} {plan.append}"
    words = [
        *qemu.boot_words(plan.image.image, initrd, plan.memory_mb, plan.cpus, append),
        *("-chardev", f"file,id=console,path={log_path}", "-serial", "chardev:console"),
        # Port 0 is a console's; the default of 31 ports makes 64 queues, which take an emulated guest 0.05 s.
        *("-device", "virtio-serial-pci,max_ports=3", *devices),
    ]
    with theirs, their_output, _words_path(log_path).open("wb") as said:
        # QEMU inherits the lock: as long as it runs the log is not deleted, see `_new_log`.
        fcntl.flock(said, fcntl.LOCK_SH)
        process = qemu.start(
            chosen,
            words,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            pass_fds=(theirs.fileno(), their_output.fileno()),
        )
    return Guest(plan, chosen, process, (ours, our_output), log_path)


def _words_path(log_path: Path) -> Path:
    """Return the file for QEMU's own output while the guest's console goes to `log_path`."""
    return log_path.with_suffix(".qemu")


def static_busybox() -> bytes:
    """Return the program that every guest starts with; raises LabError when it is missing or dynamic."""
    path = shutil.which("busybox")
    if path is None:
        raise LabError("busybox is not installed (Debian package busybox-static)")
    data = Path(path).read_bytes()
    if b"ld-linux" in data[:4096]:
        raise LabError(f"{path} is linked dynamically and cannot start a guest: install busybox-static")
    return data


def _new_log(release: str) -> Path:
    """Return the path for a new guest's log; of guests that have ended only the last logs are kept."""
    folder = cache_folder() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    for old in oldest_first(folder.glob("guest-*.log"))[:-_KEPT_LOGS]:
        if not _is_written(old):
            for path in (old, _words_path(old)):
                path.unlink(missing_ok=True)
    return (
        folder
        / f"guest-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 1000}-{release}.log"
    )


def _is_written(log_path: Path) -> bool:
    """Return whether the guest of a log still runs: its QEMU holds a lock on the file of its messages."""
    try:
        with _words_path(log_path).open("rb") as said:
            fcntl.flock(said, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _check_path(path: str) -> None:
    if "\n" in path or "\0" in path or not path.startswith("/") or path != path.strip():
        raise ValueError(f"{path!r} is not an absolute path that can be sent to a guest")


def _short(command: str) -> str:
    first, _, rest = command.strip().partition("\n")
    return first[:100] + (" ..." if rest or len(first) > 100 else "")
