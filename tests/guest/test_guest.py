"""What a booted guest does: commands, files, modules, and what happens when its kernel breaks."""

import os
import shutil

import pytest

from guest.conftest import kernel_or_skip
from tracepoint.errors import LabError
from tracepoint.lab.guest import accelerator, qemu
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.layout.format import read_format, write_format

pytestmark = pytest.mark.guest


def test_it_is_the_kernel_asked_for(guest):
    assert guest.run("uname -r").text.strip() == guest.image.release


def test_status_and_output(guest):
    done = guest.run("printf 'a\\0\\377'; echo words >&2; exit 7", check=False)
    assert (done.status, done.output) == (7, b"a\0\xffwords\n")
    with pytest.raises(LabError, match="status 1: false"):
        guest.run("false")


def test_a_command_that_takes_too_long_is_ended_and_the_guest_lives(guest):
    with pytest.raises(LabError, match=r"took longer than \d+ s: sleep 10000"):
        guest.run("sleep 10000", timeout=1)
    assert guest.run("echo alive").text == "alive\n"


@pytest.mark.parametrize("size", [0, 1, 4096, 100_001, 20 << 20])
def test_files_come_back_as_they_went(guest, size):
    data = os.urandom(size)
    guest.put("/tmp/some folder/file", data)
    assert guest.get("/tmp/some folder/file") == data
    guest.run("rm -r '/tmp/some folder'")


def test_many_requests(guest):
    for number in range(100):
        assert guest.run(f"echo {number}").text == f"{number}\n"


def test_files_without_a_size(guest):
    assert guest.get("/proc/version").startswith(b"Linux version 6.")
    assert b"sched:sched_switch\n" in guest.get("/sys/kernel/tracing/available_events")


def test_errors_name_the_file(guest):
    with pytest.raises(LabError, match=r"cannot read /nothing in the guest: .*No such file"):
        guest.get("/nothing")
    with pytest.raises(LabError, match="cannot write /proc/version in the guest"):
        guest.put("/proc/version", b"x")
    assert guest.run("echo alive").text == "alive\n"


def test_modules_load_with_what_they_need(guest):
    guest.insmod("xfs")
    assert (b"xfs:xfs_buf_init" in guest.get("/sys/kernel/tracing/available_events")) is True
    guest.rmmod("xfs")
    assert b"xfs:" not in guest.get("/sys/kernel/tracing/available_events")
    with pytest.raises(LabError, match="no module nothing_like_it"):
        guest.insmod("nothing_like_it")


def test_a_module_that_does_not_load_says_why(guest, tmp_path):
    path = tmp_path / "broken.ko"
    path.write_bytes(b"\x7fELF no module")
    with pytest.raises(LabError, match="module broken does not load"):
        guest.insmod(path)


def test_every_builtin_format_is_read_and_written(guest):
    guest.run("cd /sys/kernel/tracing; grep -H '' events/*/*/format >/tmp/formats", timeout=120)
    texts: dict[str, str] = {}
    for line in guest.get("/tmp/formats").decode().splitlines(keepends=True):
        path, _, rest = line.partition(":")
        texts[path] = texts.get(path, "") + rest
    assert len(texts) > 1000
    for path, text in texts.items():
        assert write_format(read_format(text, path.split("/")[1])) == text, path


def test_a_kernel_that_breaks_says_how():
    kernel_or_skip("6.1")
    with (
        pytest.raises(LabError, match="the guest is gone") as caught,
        lab_guest.boot("6.1") as guest,
    ):
        guest.run("echo c >/proc/sysrq-trigger")
    assert "Kernel panic - not syncing: sysrq triggered crash" in caught.value.log_tail
    assert "sysrq_handle_crash" in caught.value.log_tail


HANGING = """#!/bin/sh
echo "$@" >>{calls}
case "$*" in
*"-accel kvm"*) exec sleep 10000 ;;
esac
exec {program} "$@"
"""


def test_a_machine_whose_kvm_answers_and_boots_nothing(monkeypatch, tmp_path, caplog):
    kernel_or_skip("6.1")
    calls = tmp_path / "calls"
    standin = tmp_path / qemu.PROGRAM
    standin.write_text(HANGING.format(calls=calls, program=shutil.which(qemu.PROGRAM)))
    standin.chmod(0o755)
    (tmp_path / "device").touch()
    monkeypatch.setattr(accelerator, "_DEVICE", str(tmp_path / "device"))
    monkeypatch.setattr(accelerator, "cache_folder", lambda: tmp_path)
    monkeypatch.delenv("TRACEPOINT_ACCEL", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for _ in range(2):
        with lab_guest.boot("6.1") as guest:
            assert guest.run("uname -r").text.strip() == guest.image.release
    assert ["-accel kvm" in line for line in calls.read_text().splitlines()] == [True, False, False]
    (said,) = caplog.messages
    assert said.startswith("no guest comes up under KVM here, emulation is used (the guest hangs")
