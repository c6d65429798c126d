"""The host's half of a guest against a machine of our own making: no QEMU, no kernel."""

import contextlib
import errno
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tracepoint.cli.main import main
from tracepoint.errors import LabError
from tracepoint.lab.guest import accelerator, agent, pace, qemu, watched
from tracepoint.lab.guest import machine as guest
from tracepoint.lab.guest.channel import Channel
from tracepoint.lab.kernels import packages

pytestmark = pytest.mark.programs

MACHINE = r"""#!{python}
import os, re, socket, subprocess, sys, time
log = re.search(r"path=(\S+?\.log)", " ".join(sys.argv))[1]
fds = [int(fd) for fd in re.findall(r"socket,id=tracepoint\.\w+,fd=(\d+)", " ".join(sys.argv))]
port = socket.socket(fileno=fds[0]).makefile("rwb")
output = socket.socket(fileno=fds[1])
mode = os.environ.get("MACHINE", "")
def say(text):
    with open(log, "a") as console:
        console.write(text + "\n")
with open(os.environ["STARTED"], "a") as file:
    print(sys.argv[sys.argv.index("-accel") + 1], os.getpid(), file=file)
kvm = os.environ.get("MACHINE_KVM", "") if "kvm" in sys.argv else ""
if kvm == "speaks, then hangs":
    say("[ 0.1] a first word")
if "hangs" in kvm:
    time.sleep(600)
if kvm == "aborts":
    sys.exit("qemu: cannot set this register")
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
    elif verb == "stream":
        child = subprocess.Popen(["sh", "-c", data], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while part := os.read(child.stdout.fileno(), 65536):
            output.sendall(part)
        output.sendall(b"%s %d\n" % (rest.split()[1].encode(), child.wait()))
        continue
    elif data == b"hang":
        time.sleep(60)
    elif data == b"oops":
        say("[ 5.0] Oops: 0002 [#1]\n[ 5.0] foo+0x1/0x2")
        status, answer = 0, b""
    elif data == b"late":
        say("[ 5.0] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [sh:60]")
        status, answer = 0, b"done"
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
    monkeypatch.setenv("STARTED", str(tmp_path / "started"))
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "modules.builtin").write_text("a/virtio_pci.ko\na/virtio_console.ko\n")
    (tmp_path / "vmlinuz").touch()
    image = packages.KernelImage("6.1.0-test", tmp_path / "vmlinuz", modules, "package", "1")
    monkeypatch.setattr(packages, "fetch_kernel", lambda _name, _apt=(): image)
    return monkeypatch


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


def test_output_is_seen_before_the_command_ends(booted, tmp_path):
    seen = tmp_path / "seen"
    parts = []

    def see(part):
        parts.append(part)
        seen.touch()

    command = f"printf 'one\\0\\377'; while [ ! -e {seen} ]; do sleep 0.1; done; echo two >&2; exit 3"
    assert booted.stream(command, see, 600) == 3
    assert parts[0] == b"one\0\xff"
    assert b"".join(parts[1:]) == b"two\n"
    assert booted.stream("exit 7", parts.append, 600) == 7
    assert booted.run("echo after").text == "after\n"


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_the_mark_is_found_wherever_it_is_cut(size):
    ours, theirs = socket.socketpair()
    channel = Channel(ours, LabError)
    said = b"some MAR MARMARK of MAR"
    message = said + b"MARK rest\n"
    parts = []

    def say():
        for at in range(0, len(message), size):
            theirs.sendall(message[at : at + size])
            time.sleep(0.01)

    with ours, theirs:
        thread = threading.Thread(target=say)
        thread.start()
        channel.copy_until(b"MARK of", parts.append, time.monotonic() + 600)
        channel.copy_until(b"MARK", parts.append, time.monotonic() + 600)
        assert channel.read_line(time.monotonic() + 600) == b" rest"
        thread.join()
    assert b"".join(parts) == said.replace(b"MARK of", b"")
    assert parts[0].startswith(b"some"[:size])


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["echo", "-n", "a  b", "--kernel", "x"], "a  b --kernel x"),
        (["--memory", "128", "--", "echo", "-q"], "-q\n"),
        (["echo a; echo '--'"], "a\n--\n"),
        (["--timeout", "600", "printf", "%s", "--"], "--"),
    ],
)
def test_options_of_lab_run_end_at_the_first_word(machine, capsys, words, printed):
    assert main(["lab", "run", *words]) == 0
    assert capsys.readouterr().out == printed


def test_lab_run_shows_output_as_it_comes(machine, tmp_path):
    seen = tmp_path / "seen"

    class Terminal(io.StringIO):
        def flush(self):
            if "one" in self.getvalue():
                seen.touch()

    machine.setattr(sys, "stdout", shown := Terminal())
    # A letter of two bytes is written in two parts.
    command = f"printf 'one \\303'; while [ ! -e {seen} ]; do sleep 0.1; done; printf '\\244 \\377'; exit 5"
    assert main(["lab", "run", "--timeout", "600", command]) == 5
    assert shown.getvalue() == "one \u00e4 \udcff"


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
    with pytest.raises(LabError, match="hangs: no answer in time"):
        booted.run("hang", timeout=0)
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


def test_the_log_of_a_guest_that_runs_stays(machine):
    with guest.boot() as one:
        for _ in range(guest._KEPT_LOGS + 5):
            with guest.boot():
                pass
        assert one.log_path.exists()


@pytest.fixture
def kvm(machine, tmp_path):
    """A machine with a /dev/kvm under which guests come up as MACHINE_KVM says."""
    device = tmp_path / "kvm-device"
    device.touch()
    machine.setattr(accelerator, "_DEVICE", str(device))
    # Our machine takes two starts of an interpreter, which a busy one may not get to for seconds.
    machine.setattr(guest, "_PATIENCE_WITH_KVM", guest.Patience(60, 60, 120))
    machine.delenv("TRACEPOINT_ACCEL")
    return machine


def let_it(kvm, how):
    """Let no guest come up under KVM; one that hangs has said what it says by the time it is given up."""
    kvm.setenv("MACHINE_KVM", how)
    if "hangs" in how:
        kvm.setattr(guest, "_PATIENCE_WITH_KVM", guest.Patience(1, 1, 10))


def starts(tmp_path):
    """Return the accelerators that QEMU was started with since the last call."""
    path = tmp_path / "started"
    words = [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    return [word.partition(",")[0] for word in words]


@pytest.mark.parametrize("how", ["hangs", "speaks, then hangs", "aborts"])
def test_a_guest_that_kvm_does_not_boot_is_emulated(kvm, tmp_path, caplog, how):
    let_it(kvm, how)
    with guest.boot() as one:
        assert one.run("echo up").text == "up\n"
        assert one.accelerator.name == "tcg"
    assert starts(tmp_path) == ["kvm", "tcg"]
    (said,) = caplog.messages
    assert said.startswith("no guest comes up under KVM here, emulation is used (the guest ")
    assert said.endswith("; TRACEPOINT_ACCEL=kvm or tcg decides")
    assert "memory" not in said
    assert "\n" not in said
    # Known for this boot of the machine, and to every process.
    with guest.boot():
        assert starts(tmp_path) == ["tcg"]
    assert len(caplog.messages) == 1
    kvm.setattr(accelerator, "_BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("another\n")
    with guest.boot():
        assert starts(tmp_path) == ["kvm", "tcg"]
    assert len(list((tmp_path / "cache/tracepoint/kvm").iterdir())) == 1


def test_a_lockup_breaks_a_guest_under_kvm_and_only_delays_an_emulated_one(kvm):
    with guest.boot() as one:
        assert one.accelerator.name == "kvm"
        with pytest.raises(LabError, match="the guest's kernel broke") as caught:
            one.run("late")
        assert "soft lockup" in caught.value.log_tail
    kvm.setenv("TRACEPOINT_ACCEL", "tcg")
    with guest.boot() as one:
        assert one.run("late").text == "done"
        with pytest.raises(LabError, match="the guest's kernel broke"):
            one.run("oops")


def test_kvm_that_has_booted_a_guest_gets_its_time(kvm, tmp_path, caplog):
    for _ in range(2):
        with guest.boot() as one:
            assert one.accelerator.name == "kvm"
        assert starts(tmp_path) == ["kvm"]
    assert not caplog.messages
    # What works stays known: another process that found it too slow does not decide.
    accelerator.remember(qemu.find_program(), works=False)
    assert accelerator.choose(qemu.find_program()) == accelerator.Accelerator("kvm")
    # Another QEMU is another question.
    with (tmp_path / "bin" / qemu.PROGRAM).open("a") as program:
        program.write("\n")
    assert accelerator.choose(qemu.find_program()).is_trial


def test_nothing_is_tried_without_kvm(kvm, tmp_path, caplog):
    kvm.setattr(accelerator, "_DEVICE", str(tmp_path / "nothing"))
    with guest.boot():
        pass
    assert starts(tmp_path) == ["tcg"]
    assert not caplog.messages
    assert not (tmp_path / "cache/tracepoint/kvm").exists()


def test_the_user_decides(kvm, tmp_path, caplog):
    kvm.setenv("MACHINE_KVM", "aborts")
    kvm.setenv("TRACEPOINT_ACCEL", "kvm")
    with (
        pytest.raises(LabError, match=r"gone \(under KVM; TRACEPOINT_ACCEL=tcg boots with") as caught,
        guest.boot(),
    ):
        pass
    assert caught.value.log_tail == "qemu: cannot set this register"
    kvm.setenv("TRACEPOINT_ACCEL", "tcg")
    with guest.boot():
        pass
    assert starts(tmp_path) == ["kvm", "tcg"]
    assert not caplog.messages
    kvm.setenv("TRACEPOINT_ACCEL", "xen")
    with pytest.raises(LabError, match="TRACEPOINT_ACCEL=xen: use kvm or tcg"), guest.boot():
        pass


def test_a_guest_that_breaks_in_both_says_nothing_about_kvm_later(kvm, tmp_path):
    kvm.setenv("MACHINE", "panics at boot")
    for _ in range(2):
        with pytest.raises(LabError, match="the guest is gone"), guest.boot():
            pass
        assert starts(tmp_path) == ["kvm", "tcg"]


def test_an_unproven_kvm_is_settled_before_a_guest_that_nobody_watches(kvm, tmp_path):
    let_it(kvm, "hangs")
    said = []
    for _ in range(2):
        assert guest.settle_accelerator(packages.fetch_kernel("6.1"), said.append) == accelerator.EMULATION
    assert starts(tmp_path) == ["kvm", "tcg"]
    assert len(said) == 1


def test_an_answer_that_cannot_be_kept_is_found_again(kvm, tmp_path):
    (tmp_path / "cache/tracepoint").mkdir(parents=True)
    (tmp_path / "cache/tracepoint/kvm").touch()
    for _ in range(2):
        with guest.boot():
            assert starts(tmp_path) == ["kvm"]


OWNER = """
import sys, threading, time
from pathlib import Path
from tracepoint.lab.guest import machine as guest
from tracepoint.lab.kernels import packages

image = packages.KernelImage("6.1.0-test", Path(sys.argv[1]), Path(sys.argv[2]), "package", "1")
def hold():
    with guest.boot_plan(guest.GuestPlan(image)) as one:
        if sys.argv[3] == "booted":
            print("up", flush=True)
        time.sleep(600)
thread = threading.Thread(target=hold)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("when", ["booted", "hangs"])
def test_no_qemu_is_left_by_a_process_that_is_killed(kvm, tmp_path, when):
    if when == "hangs":
        kvm.setenv("TRACEPOINT_ACCEL", "kvm")
        kvm.setenv("MACHINE_KVM", "hangs")
    words = [sys.executable, "-c", OWNER, str(tmp_path / "vmlinuz"), str(tmp_path / "modules"), when]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as owner:
        started = tmp_path / "started"
        wait_until(lambda: started.exists() and started.read_text().endswith("\n"))
        machine = int(started.read_text().split()[1])
        if when == "booted":
            assert owner.stdout.readline() == b"up\n"
        assert is_running(machine)
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_running(machine))


def test_a_thread_that_ends_takes_no_guest_with_it(machine):
    with contextlib.ExitStack() as stack:
        booted = []
        thread = threading.Thread(target=lambda: booted.append(stack.enter_context(guest.boot())))
        thread.start()
        thread.join()
        assert booted[0].run("echo alive").text == "alive\n"


def test_a_process_whose_owner_has_ended_does_not_begin(monkeypatch):
    monkeypatch.setattr(os, "execv", lambda *words: pytest.fail(str(words)))
    with subprocess.Popen(["true"]) as ended:
        pass
    watched.main([str(ended.pid), "/bin/true"])
    watched.main([str(os.getpid()), "/bin/true"])


def test_a_program_runs_unwatched_where_that_cannot_be(monkeypatch):
    begun = []
    monkeypatch.setattr(os, "execv", lambda *words: begun.append(words))

    def refuse(_process):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    watched.main([str(os.getppid()), "/bin/true", "word"])
    assert begun == [("/bin/true", ["/bin/true", "word"])]


def wait_until(condition):
    end = time.monotonic() + 60 * pace.slowness()
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_running(process):
    """Whether a process is there and has not ended: nobody may have fetched its status yet."""
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


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
