"""Kernels of our own, built and booted: from a changed patch to its event, and what goes wrong on the way.

Both versions' folders are built by the fixture `patched` of other tests or by the first test here; all else
compiles a handful of objects.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from guest.built import KERNEL, source_or_skip
from tracepoint.cli.main import main
from tracepoint.errors import LabError
from tracepoint.lab.build import make as kernel_make
from tracepoint.lab.build.kernel import BuildError, BuiltKernel, build_kernel
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.lab.kernels import headers, packages

pytestmark = [pytest.mark.guest, pytest.mark.slow]
HEADER = "include/trace/events/kmem.h"
EVENT = """\
TRACE_EVENT(lab_changed,

	TP_PROTO(unsigned long address, int order),

	TP_ARGS(address, order),

	TP_STRUCT__entry(
		__field(unsigned long, address)
		__field(int, order)
		__field(int, stamp)
	),

	TP_fast_assign(
		__entry->address = address;
		__entry->order = order;
		__entry->stamp = STAMP;
	),

	TP_printk("address=%lx order=%d stamp=%d", __entry->address, __entry->order, __entry->stamp)
);

"""
CALL = "\ttrace_lab_changed(vmf->address, 3);\n"


@pytest.fixture(scope="module")
def source() -> Path:
    return source_or_skip()


def make_patch(source: Path, stamp: int, call: str = CALL) -> str:
    """Return a patch that declares an event in a header that much of mm includes, and calls it."""
    files = {name: (source / name).read_text() for name in (HEADER, "mm/memory.c")}
    end = files[HEADER].rindex("#endif")
    place = files["mm/memory.c"].index("\treturn handle_pte_fault(&vmf);\n")
    changed = {
        HEADER: files[HEADER][:end] + EVENT.replace("STAMP", str(stamp)) + files[HEADER][end:],
        "mm/memory.c": files["mm/memory.c"][:place]
        + call.replace("vmf->", "vmf.")
        + files["mm/memory.c"][place:],
    }
    return "".join(
        line
        for name, text in files.items()
        for line in difflib.unified_diff(
            text.splitlines(True), changed[name].splitlines(True), f"a/{name}", f"b/{name}"
        )
    )


def write(folder: Path, text: str) -> Path:
    path = folder / "lab-changed.patch"
    path.write_text(text)
    return path


@dataclass(frozen=True)
class Cycle:
    """A patch was changed: what was built before and after, and what was seen of it at once.

    All of it is done in one go: the folder that it is built in is that of the last build, whichever test asked.
    """

    first: BuiltKernel
    built: BuiltKernel
    left: int
    again: BuiltKernel
    stamp: int
    headers: Path | None
    lines: list[str]
    status: int
    said: str


def objects_left(built: BuiltKernel) -> int:
    """Return what make still builds when it enters every folder: objects, and 1 when the kernel is another."""
    vmlinux = built.objects / "vmlinux"
    before = vmlinux.stat().st_mtime_ns
    make = kernel_make.Make(built.source, built.objects, kernel_make.new_log("every-folder"))
    make.run("entering every folder", ("bzImage", "modules"))
    return make.steps + (vmlinux.stat().st_mtime_ns != before)


@pytest.fixture(scope="module")
def cycle(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Cycle:
    """A kernel with an event, its patch changed to what no cache has seen, rebuilt, booted and verified."""
    first = build_kernel(KERNEL, [write(tmp_path_factory.mktemp("patch"), make_patch(source, 1))])
    stamp = time.time_ns() % 1_000_000_000
    patch = make_patch(source, stamp)
    built = build_kernel(KERNEL, [write(tmp_path_factory.mktemp("patch"), patch)])
    left = objects_left(built)
    event = "/sys/kernel/tracing/events/kmem/lab_changed"
    with lab_guest.boot(f"built:{built.name}") as one:
        lines = one.run(
            f"uname -r; echo 1 > {event}/enable; head -c 100000 /dev/zero | wc -c; echo 0 > {event}/enable;"
            " cd /sys/kernel/tracing; grep -c lab_changed: trace; grep -m1 lab_changed: trace"
        ).text.splitlines()
    # Its declaration, simulated, against the same kernel by a module that is built for it.
    with contextlib.redirect_stdout(io.StringIO()) as said:
        status = main(["try", f"{built.source / HEADER}:lab_changed", "--kernel", f"built:{built.name}"])
    again = build_kernel(KERNEL, [write(tmp_path_factory.mktemp("patch"), patch)])
    found = headers.find_headers(packages.fetch_kernel(f"built:{built.image.parent.name}"))
    return Cycle(first, built, left, again, stamp, found, lines, status, said.getvalue())


@pytest.fixture(scope="module")
def changed(cycle: Cycle) -> BuiltKernel:
    return cycle.built


@pytest.fixture(scope="module")
def booted(changed: BuiltKernel) -> Iterator[lab_guest.Guest]:
    with lab_guest.boot(f"built:{changed.image.parent.name}") as one:
        yield one


def test_a_changed_patch_is_seen_in_a_guest_after_few_steps(cycle: Cycle) -> None:
    assert 0 < cycle.built.steps < 60
    release, _, n_events, event = cycle.lines
    assert release == cycle.built.release
    assert int(n_events) > 10
    assert event.endswith(f" order=3 stamp={cycle.stamp}")
    assert cycle.status == 0, cycle.said
    assert "1 of 1 events as simulated" in cycle.said


def test_folders_that_a_change_does_not_reach_have_nothing_left_to_build(cycle: Cycle) -> None:
    assert cycle.left == 0


def test_nothing_is_compiled_for_what_is_there(cycle: Cycle) -> None:
    assert (cycle.again.image, cycle.again.steps) == (cycle.built.image, 0)


def test_what_the_guest_needs_of_it(booted):
    tracing = set(booted.run("ls /sys/kernel/tracing").text.split())
    assert {"user_events_data", "synthetic_events", "kprobe_events", "snapshot"} <= tracing
    triggers = booted.read("/sys/kernel/tracing/events/kmem/lab_changed/trigger")
    assert "hist" in triggers
    assert {"zram0", "ram0"} <= set(booted.run("ls /sys/block").text.split())
    config = booted.run("zcat /proc/config.gz").text
    assert "CONFIG_JUMP_LABEL=y" in config
    assert booted.run("nproc").text == "2\n"


def test_power_off_ends_it(changed):
    with (
        lab_guest.boot(f"built:{changed.image.parent.name}") as one,
        pytest.raises(LabError, match="the guest is gone") as caught,
    ):
        one.run("poweroff -f", timeout=30)
    assert caught.value.status == 0


@pytest.mark.parametrize("name", ["image", "vmlinux"])
def test_an_image_is_booted_from_anywhere(changed, tmp_path, capsys, name):
    copy = tmp_path / "kernel"
    shutil.copyfile(getattr(changed, name), copy)
    assert main(["lab", "run", "--image", str(copy), "uname -r"]) == 0
    assert capsys.readouterr().out == changed.release + "\n"


def test_headers_are_those_of_the_last_build_only(cycle: Cycle) -> None:
    assert cycle.headers == cycle.built.objects
    old = packages.fetch_kernel(f"built:{cycle.first.image.parent.name}")
    assert headers.find_headers(old) is None
    with pytest.raises(LabError, match="holds another build by now"):
        headers.fetch_headers(old)


def test_a_guest_out_of_memory_says_so(changed, capsys):
    words = [
        "lab",
        "run",
        "--kernel",
        f"built:{changed.image.parent.name}",
        "--memory",
        "64",
        "--workload",
        "hog",
    ]
    assert main([*words, "hog -m 200 -r 1"]) == 137
    error = capsys.readouterr().err
    assert "the command was killed: 64 MB of memory are not enough (--memory)" in error
    assert "Out of memory: Killed process" in error


def test_a_call_that_does_not_compile_names_the_line_of_the_patch(changed, source, tmp_path):
    patch = write(tmp_path, make_patch(source, 2, "\ttrace_lab_changed(vmf->adress);\n"))
    number = next(n for n, line in enumerate(patch.read_text().splitlines(), 1) if "adress" in line)
    with pytest.raises(BuildError) as caught:
        build_kernel(KERNEL, [patch])
    assert f"[lab-changed.patch:{number}]" in caught.value.log_tail
    assert caught.value.messages[0].path == "mm/memory.c"


def test_an_event_without_a_home_is_told(changed, source, tmp_path):
    """No file defines the tracepoints of the header: the linker says so, and we say what to do."""
    home = (source / "mm/slab_common.c").read_text().splitlines(True)
    without = [line for line in home if line != "#define CREATE_TRACE_POINTS\n"]
    lost = "".join(difflib.unified_diff(home, without, "a/mm/slab_common.c", "b/mm/slab_common.c"))
    with pytest.raises(
        BuildError, match=r"no file makes tracepoint \w+ \(CREATE_TRACE_POINTS before its header"
    ):
        build_kernel(KERNEL, [write(tmp_path, make_patch(source, 1)), lost])


def test_the_original_tree_is_as_it_was(changed, source):
    if not (source / ".git").exists():
        assert "lab_changed" not in (source / HEADER).read_text()
    assert (
        subprocess.run(
            ["find", str(source.resolve()), "-newermt", "-1 hour", "-type", "f"],
            capture_output=True,
            check=True,
        ).stdout
        == b""
    )
