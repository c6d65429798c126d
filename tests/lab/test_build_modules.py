"""Building modules: with a `make` of our own that is quick, and with the real one where headers are."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from pathlib import Path

import pytest

from oracles import installed_headers
from tracepoint.errors import LabError
from tracepoint.lab.build import module as build
from tracepoint.lab.build.module import BuildError, build_modules, disk_errors, read_messages, write_files
from tracepoint.lab.kernels.headers import has_unsigned_char

# What a compiler says, with make's noise around it.
OUTPUT = """\
In file included from ./include/trace/define_trace.h:102,
                 from demo.h:60,
                 from demo_main.c:9:
demo.h: In function 'trace_event_raw_event_demo':
./demo.h:41:35: error: 'struct page' has no member named 'pfm'
./include/trace/stages/stage6_event_callback.h:5:2: note: in definition of macro 'TP_fast_assign'
demo.h:30:1: note: in expansion of macro 'TRACE_EVENT'
demo.h:41:35: error: 'struct page' has no member named 'pfm'
demo.h:7: warning: unused
demo.h:9: note: in expansion of macro 'WARNED'
demo.h:50:1: fatal error: no.h: No such file or directory
compilation terminated.
make[2]: *** [scripts/Makefile.build:250: demo_main.o] Error 1
"""
GOOD = {
    "demo.c": '#include <linux/module.h>\nMODULE_LICENSE("GPL");\nint demo_value;\n',
    "Kbuild": "obj-m := demo.o\n",
}


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A cache of its own, headers that are none, and a `make` whose text the test gives."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()
    headers = tmp_path / "headers"
    headers.mkdir()
    (headers / "Makefile").touch()

    def install(script: str) -> Path:
        path = tmp_path / "bin/make"
        path.write_text(
            f'#!/bin/sh\nfor w in "$@"; do case $w in M=*) cd "${{w#M=}}";; esac; done\n{script}\n'
        )
        path.chmod(0o755)
        return headers

    return install


def left_over(tmp_path: Path) -> list[str]:
    folder = tmp_path / "cache/tracepoint/modules"
    return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []


def test_errors_are_kept_once_with_their_places():
    first, last = read_messages(OUTPUT)
    assert str(first) == "demo.h:41:35: 'struct page' has no member named 'pfm'"
    assert first.places == (("include/trace/stages/stage6_event_callback.h", 5), ("demo.h", 30))
    assert (last.path, last.line, last.text, last.places) == (
        "demo.h",
        50,
        "no.h: No such file or directory",
        (),
    )


def test_a_module_is_built_once(fake, tmp_path):
    headers = fake(f"echo x >>{tmp_path}/calls; touch demo.ko")
    (module,) = build_modules(GOOD, headers)
    assert module.name == "demo.ko"
    assert build_modules(dict(reversed(GOOD.items())), headers) == (module,)
    assert (tmp_path / "calls").read_text() == "x\n"
    other = build_modules({**GOOD, "demo.c": "int other;\n"}, headers)
    assert other != (module,)
    assert build_modules(GOOD, headers, warnings_fail=False) != (module,)
    assert (tmp_path / "calls").read_text() == "x\nx\nx\n"


def test_only_the_compilers_words_are_shown(fake, tmp_path):
    headers = fake(f"cat <<'E'\n{OUTPUT}E\nexit 2")
    with pytest.raises(BuildError) as caught:
        build_modules(GOOD, headers)
    assert str(caught.value) == (
        "the module does not compile\n"
        "demo.h:41:35: 'struct page' has no member named 'pfm'\n"
        "demo.h:50:1: no.h: No such file or directory"
    )
    assert caught.value.status == 2
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ('ERROR: modpost: "nothing" [demo.ko] undefined!', "does not build\nERROR: modpost"),
        ("cc1: error: no space\nld: final link failed: No space left on device", "no space left on the disk"),
        ("/bin/sh: 1: gcc-99: not found", "the compiler that the headers ask for is not installed"),
    ],
)
def test_other_failures(fake, tmp_path, words, said):
    headers = fake(f"echo 'make: entering'; cat <<'E'\n{words}\nE\nexit 2")
    with pytest.raises(BuildError, match=said):
        build_modules(GOOD, headers)
    assert left_over(tmp_path) == []


def test_nothing_built_is_an_error(fake, tmp_path):
    with pytest.raises(BuildError, match=r"built no module of Kbuild, demo\.c"):
        build_modules(GOOD, fake("exit 0"))
    assert left_over(tmp_path) == []


def test_a_build_that_never_ends_is_ended_with_its_children(fake, tmp_path):
    headers = fake(f"sleep 100000 & echo $! >{tmp_path}/child; wait")
    with pytest.raises(LabError, match="longer than 3 s"):
        build_modules(GOOD, headers, seconds=3)
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    turns = 0
    # SIGKILL was sent: on a busy machine the process may not have run since.
    while child.exists() and child.read_text().split()[2] != "Z":
        assert (turns := turns + 1) < 1000
        time.sleep(0.01)
    assert left_over(tmp_path) == []


def test_what_is_missing_is_named(fake, tmp_path, monkeypatch):
    headers = fake("exit 0")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(LabError, match="make is not installed"):
        build_modules(GOOD, headers)
    with pytest.raises(LabError, match="no kernel headers here"):
        build_modules(GOOD, tmp_path / "elsewhere")
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("name", ["../out.c", "/etc/out.c", "a/../../out.c"])
def test_files_stay_in_their_folder(tmp_path, name):
    with pytest.raises(LabError, match="leads out"):
        write_files({name: "x"}, tmp_path / "in")
    assert not (tmp_path / "out.c").exists()


def test_a_full_disk_is_named(tmp_path):
    with (
        pytest.raises(LabError, match=r"no space left for /a/b .*XDG_CACHE_HOME"),
        disk_errors(tmp_path / "x/y"),
    ):
        raise OSError(errno.ENOSPC, "No space left on device", "/a/b")
    with pytest.raises(LabError, match="cannot be written: Read-only"), disk_errors(tmp_path):
        raise OSError(errno.EROFS, "Read-only file system", "/a/b")
    with pytest.raises(FileNotFoundError), disk_errors(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "No such file", "/a/b")


def test_a_cache_that_is_a_file(fake, tmp_path):
    headers = fake("touch demo.ko")
    (tmp_path / "cache").write_text("")
    with pytest.raises(LabError, match="cannot be written"):
        build_modules(GOOD, headers)


def test_old_modules_are_forgotten(fake, monkeypatch, tmp_path):
    headers = fake("touch demo.ko")
    monkeypatch.setattr(build, "_KEPT", 2)
    for number in range(4):
        build_modules({**GOOD, "number": str(number)}, headers)
    assert len(left_over(tmp_path)) == 2


def test_the_sign_of_char_is_read_from_the_makefiles(tmp_path):
    own, common = tmp_path / "linux-headers-1-own", tmp_path / "linux-headers-1-common"
    own.mkdir()
    common.mkdir()
    (own / "Makefile").write_text(
        "include $(dir $(lastword $(MAKEFILE_LIST)))../linux-headers-1-common/Makefile\n"
    )
    (common / "Makefile").write_text("KBUILD_CFLAGS += -O2\n")
    assert not has_unsigned_char(own)
    (common / "Makefile").write_text("KBUILD_CFLAGS += -funsigned-char\n")
    assert has_unsigned_char(own)


@pytest.mark.oracle
def test_the_real_make(tmp_path, monkeypatch):
    headers = installed_headers()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (module,) = build_modules(GOOD, headers)
    assert module.read_bytes().startswith(b"\x7fELF")
    with pytest.raises(BuildError, match=r"demo\.c:6:13: unused variable"):
        build_modules(
            {**GOOD, "demo.c": GOOD["demo.c"] + "int f(void)\n{\n\tint unused;\n\treturn 0;\n}\n"}, headers
        )
    with pytest.raises(BuildError, match=r"demo\.c:4:12: .*'?nothing.? undeclared"):
        build_modules({**GOOD, "demo.c": GOOD["demo.c"] + "int demo = nothing;\n"}, headers)
    assert len(left_over(tmp_path)) == 1


@pytest.mark.root
@pytest.mark.parametrize(
    "script", ["head -c 9000000 /dev/zero >demo.ko", "head -c 700000 /dev/zero >demo.ko"]
)
def test_a_small_disk_that_fills_up(fake, tmp_path, script):
    """While make works, and while its module is copied."""
    if os.geteuid() != 0:
        pytest.skip("a file system of a given size is mounted: run as root")
    headers = fake(f"exec 2>&1; {script}")
    folder = tmp_path / "cache"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", str(folder)], check=True)
    try:
        with pytest.raises(LabError, match="no space left"):
            build_modules(GOOD, headers)
        assert left_over(tmp_path) == []
    finally:
        subprocess.run(["umount", str(folder)], check=True)
