"""The host's half of a guest against a machine of our own making: no QEMU, no kernel."""

import contextlib
import os
import sys
import time
from pathlib import Path

import pytest

from tracepoint.errors import LabError
from tracepoint.lab import agent, guest, packages, qemu

MACHINE = r"""#!{python}
import os, re, socket, subprocess, sys, time
log = re.search(r"path=(\S+?\.log)", " ".join(sys.argv))[1]
fd = int(re.search(r"socket,id=lab,fd=(\d+)", " ".join(sys.argv))[1])
port = socket.socket(fileno=fd).makefile("rwb")
mode = os.environ.get("MACHINE", "")
def say(text):
    with open(log, "a") as console:
        console.write(text + "\n")
if mode != "does not fit":
    say("[ 0.1] Linux version")
if mode == "panics at boot":
    say("[ 0.2] Kernel panic - not syncing: VFS")
    sys.exit(0)
if mode == "does not fit":
    sys.exit(0)
if mode == "greets wrongly":
    port.write(b"login: \n")
else:
    port.write({greeting!r})
port.flush()
store = {{}}
while line := port.readline():
    verb, size, rest = line.decode().rstrip("\n").split(" ", 2)
    data = port.read(int(size))
    if verb == "put":
        status, answer = (1, b"read-only") if rest.startswith("/proc") else (0, b"")
        store[rest] = data
    elif verb == "get":
        status, answer = (0, store[rest]) if rest in store else (1, b"no such file")
    elif data == b"hang":
        time.sleep(60)
    elif data == b"oops":
        say("[ 5.0] Oops: 0002 [#1]\n[ 5.0] foo+0x1/0x2")
        status, answer = 0, b""
    elif data == b"die":
        say("[ 6.0] Kernel panic - not syncing: died")
        sys.exit(1)
    elif data == b"hog":
        say("[ 7.0] Out of memory: Killed process 60 (hog) total-vm:205800kB")
        status, answer = 137, b"Killed"
    elif data == b"starve":
        say("[ 8.0] Out of memory: Killed process 61 (exe) total-vm:2128kB\n[ 8.1] quiet")
        sys.exit(0)
    elif data == b"babble":
        port.write(b"what?\n"); port.flush(); continue
    else:
        done = subprocess.run(["sh", "-c", data.decode()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        status, answer = done.returncode, done.stdout
    port.write(b"%d %d\n" % (status, len(answer)) + answer)
    port.flush()
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Make `boot` start the machine above with an empty kernel."""
    program = tmp_path / "bin" / qemu.PROGRAM
    program.parent.mkdir()
    program.write_text(MACHINE.format(python=sys.executable, greeting=agent.GREETING))
    busybox = tmp_path / "bin/busybox"
    busybox.write_bytes(b"static")
    for path in (program, busybox):
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TRACEPOINT_ACCEL", "tcg")
    qemu.kvm_works.cache_clear()
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "modules.builtin").write_text("a/virtio_pci.ko\na/virtio_console.ko\n")
    (tmp_path / "vmlinuz").touch()
    image = packages.KernelImage("6.1.0-test", tmp_path / "vmlinuz", modules, "package", "1")
    monkeypatch.setattr(packages, "fetch_kernel", lambda _name: image)
    yield monkeypatch
    qemu.kvm_works.cache_clear()


@pytest.fixture
def booted(machine):
    with guest.boot() as one:
        yield one


def test_run(booted):
    done = booted.run("printf 'a\\0b'; echo c >&2")
    assert (done.status, done.output) == (0, b"a\0bc\n")
    assert booted.run("exit 3", check=False).status == 3
    with pytest.raises(LabError, match="ended with status 4: echo words; exit 4") as caught:
        booted.run("echo words; exit 4")
    assert caught.value.log_tail == "words"
    assert caught.value.status == 4
    with pytest.raises(ValueError, match="empty"):
        booted.run("")


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 3_000_000])
def test_put_and_get(booted, size):
    data = os.urandom(size)
    booted.put("/tmp/a name", data)
    assert booted.get("/tmp/a name") == data
    assert booted.run("echo after").text == "after\n"


def test_put_and_get_that_fail(booted):
    with pytest.raises(LabError, match="cannot write /proc/x in the guest: read-only"):
        booted.put("/proc/x", b"")
    with pytest.raises(LabError, match="cannot read /x in the guest: no such file"):
        booted.get("/x")
    for path in ("relative", "/a\nb", "/a ", "/a\0"):
        with pytest.raises(ValueError, match="absolute path"):
            booted.get(path)


def test_a_guest_that_hangs_is_ended(booted, monkeypatch):
    monkeypatch.setattr(guest, "_GRACE_SECONDS", 0.3)
    started = time.monotonic()
    with pytest.raises(LabError, match="hangs: no answer in time"):
        booted.run("hang", timeout=0)
    assert time.monotonic() - started < 5
    with pytest.raises(LabError):
        booted.run("true")


@pytest.mark.parametrize(
    ("command", "message", "words"),
    [
        ("oops", "the guest's kernel broke", "Oops: 0002 [#1]\nfoo+0x1/0x2"),
        ("die", "the guest is gone", "Kernel panic - not syncing: died"),
        (
            "starve",
            "the guest is gone: 512 MB of memory are too little",
            "Out of memory: Killed process 61 (exe)",
        ),
        ("babble", r"answered b'what\?'", "Linux version"),
    ],
)
def test_a_guest_that_breaks(booted, command, message, words):
    with pytest.raises(LabError, match=message) as caught:
        booted.run(command)
    assert words in caught.value.log_tail
    assert Path(caught.value.log_path).exists()


@pytest.mark.parametrize(
    ("mode", "message"),
    [("panics at boot", "the guest is gone"), ("greets wrongly", "instead of its greeting")],
)
def test_a_guest_that_does_not_come_up(machine, mode, message):
    machine.setenv("MACHINE", mode)
    with pytest.raises(LabError, match=message), guest.boot():
        pytest.fail("there is no guest")


def test_the_guest_ends_with_the_block(machine):
    with contextlib.suppress(KeyError), guest.boot() as one:
        process = one._process
        raise KeyError
    assert process.returncode is not None


def test_what_is_missing(machine, tmp_path):
    (tmp_path / "bin" / qemu.PROGRAM).unlink()
    machine.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(LabError, match="qemu-system-x86_64 is not installed"), guest.boot():
        pass
    (tmp_path / "bin/busybox").write_bytes(b"\x7fELF ... /lib64/ld-linux-x86-64.so.2 ")
    with pytest.raises(LabError, match="install busybox-static"), guest.boot():
        pass
    (tmp_path / "bin/busybox").unlink()
    with pytest.raises(LabError, match="busybox is not installed"), guest.boot():
        pass


def test_old_logs_go(machine, tmp_path):
    for _ in range(guest._KEPT_LOGS + 5):
        with guest.boot() as one:
            assert one.run("echo a").text == "a\n"
    assert len(list((tmp_path / "cache/tracepoint/logs").glob("*.log"))) <= guest._KEPT_LOGS + 1


def test_kvm_is_tried(machine, tmp_path):
    machine.delenv("TRACEPOINT_ACCEL")
    program = tmp_path / "bin" / qemu.PROGRAM
    real_access = os.access
    machine.setattr(os, "access", lambda path, mode: path == "/dev/kvm" or real_access(path, mode))
    for status, works in ((33, True), (1, False)):
        qemu.kvm_works.cache_clear()
        program.write_text(f"#!/bin/sh\nexit {status}\n")
        assert qemu.kvm_works() is works
    assert "tcg,thread=single" in qemu.accelerator_options()


def test_a_command_killed_for_want_of_memory_is_no_slow_one(booted):
    with pytest.raises(LabError, match="was killed: 512 MB of memory are too little: hog") as caught:
        booted.run("hog")
    assert caught.value.log_tail == "Out of memory: Killed process 60 (hog) total-vm:205800kB"
    # A command that ends like that without the kernel's doing took too long.
    assert booted.run("hog", check=False).status == 137


def test_a_guest_that_is_too_small_for_its_first_files(machine):
    machine.setenv("MACHINE", "does not fit")
    with (
        pytest.raises(LabError, match="before its kernel said a word; 64 MB of memory may be too little"),
        guest.boot(memory_mb=64),
    ):
        pass
