"""Builds of a made-up tree: what is built again and what is not, and every way in which it goes wrong."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lab.mini_kernel import FILES, PATCH, contents, make_tree
from tracepoint.cli.lab.lab import VERBS
from tracepoint.cli.main import main
from tracepoint.errors import LabError
from tracepoint.lab.build import make as kernel_make
from tracepoint.lab.build import store as kernel_store
from tracepoint.lab.build.kernel import (
    BuildError,
    PatchError,
    build_kernel,
    compile_object,
    configured_tree,
)
from tracepoint.lab.kernels import packages

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(
        shutil.which("make") is None or shutil.which("gcc") is None,
        reason="needs make and gcc (Debian packages)",
    ),
]
SERIES = "9.9"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache with the source of one series; the tree's options take the place of ours."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kernel_make, "check_tools", lambda: None)
    make_tree(tmp_path / "tracepoint/sources/linux-source-9.9")
    return tmp_path / "tracepoint"


@pytest.fixture
def source(cache: Path) -> Path:
    return cache / "sources/linux-source-9.9"


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    path = tmp_path / "0001-swap-more.patch"
    path.write_text(PATCH)
    return path


def test_only_what_changed_is_built_again(cache: Path, source: Path, patch: Path):
    original = contents(source)
    plain = build_kernel(SERIES)
    assert (plain.release, plain.name, plain.steps) == ("9.9.1-mini", "9.9", 2)
    assert plain.image.read_bytes()[:4] == b"\x7fELF"

    patched = build_kernel(SERIES, [patch])
    assert (patched.name, patched.steps) == ("9.9+0001-swap-more", 1)
    assert patched.image.read_bytes() != plain.image.read_bytes()
    assert b"int more" in (patched.source / "mm/swap.c").read_bytes()
    assert contents(source) == original

    # Both are kept; there and back again costs what differs, so that the folder is that of the last one.
    for patches, image, steps in (((patch,), patched.image, 0), ((), plain.image, 1), ((), plain.image, 0)):
        changed_at = image.stat().st_ctime_ns
        again = build_kernel(SERIES, patches)
        assert (again.image, again.steps) == (image, steps)
        assert image.stat().st_ctime_ns == changed_at
        assert (b"int more" in (again.source / "mm/swap.c").read_bytes()) == bool(patches)

    other = PATCH.replace("more = MINI", "more = 2 * MINI")
    assert build_kernel(SERIES, [other]).steps == 1


def test_a_patch_to_a_header_builds_what_includes_it(source: Path):
    build_kernel(SERIES)
    header = "--- a/include/linux/mini.h\n+++ b/include/linux/mini.h\n@@ -1 +1 @@\n-#define MINI 1\n+#define MINI 2\n"
    assert build_kernel(SERIES, [header]).steps == 2
    # Without the patch, the header is older than the objects made with it; they are built again all the same.
    assert build_kernel(SERIES, [PATCH]).steps == 2


def test_a_tree_of_ones_own_is_followed(tmp_path: Path):
    tree = make_tree(tmp_path / "my tree")
    first = build_kernel(tree)
    assert first.name.startswith("my-tree-")
    assert build_kernel(tree).steps == 0
    (tree / "kernel/fork.c").write_text(FILES["kernel/fork.c"].replace("+ 1", "+ 2"))
    second = build_kernel(tree, jobs=1)
    assert (second.name, second.steps) == (first.name, 1)
    assert second.image.read_bytes() != first.image.read_bytes()
    assert sorted(contents(tree)) == sorted(["Makefile", *FILES])


def test_a_patch_that_does_not_apply_changes_nothing(cache: Path, source: Path, patch: Path):
    built = build_kernel(SERIES, [patch])
    before = contents(built.source)
    with pytest.raises(PatchError, match=r"0001-swap-more.patch:9: hunk 1 does not apply to mm/swap.c:2"):
        build_kernel(SERIES, [patch, patch])
    assert contents(built.source) == before
    assert build_kernel(SERIES, [patch]).steps == 0


def test_the_compilers_words_name_the_line_of_the_patch(cache: Path, patch: Path):
    bad = patch.with_name("bad.patch")
    bad.write_text(PATCH.replace("return more", "return mroe"))
    with pytest.raises(BuildError) as error:
        build_kernel(SERIES, [bad])
    lines = str(error.value).splitlines()
    assert lines[0] == "the kernel does not build"
    assert lines[1].startswith("mm/swap.c:6:16: ")
    assert lines[1].endswith("[bad.patch:15]")
    assert Path(error.value.log_path).read_text().count("mroe") >= 1
    assert error.value.messages[0].path == "mm/swap.c"
    # The good one still builds in the same folder.
    assert build_kernel(SERIES, [patch]).steps >= 1


def test_options_that_the_tree_drops_are_an_error_with_the_reason():
    with pytest.raises(LabError) as error:
        build_kernel(SERIES, options={"IMPOSSIBLE": "y", "MODULES": "y"})
    assert str(error.value).splitlines() == [
        "the configuration drops 1 wanted options",
        "CONFIG_IMPOSSIBLE=y became n: it depends on A && B",
    ]
    # Asked for nothing, an own option of the lab may not be lost either; what may be is not an error.
    assert build_kernel(SERIES, options={"MODULES": "y"}).name.startswith("9.9-")


def test_other_options_have_a_folder_of_their_own(tmp_path: Path):
    fragment = tmp_path / "mine.config"
    fragment.write_text("# more\nCONFIG_EXTRA=y\nCONFIG_SMP=y\n")
    one = build_kernel(SERIES, fragments=[fragment])
    two = build_kernel(SERIES, fragments=["CONFIG_EXTRA=y\nCONFIG_SMP=y\n"])
    three = build_kernel(SERIES, options={"EXTRA": "n"})
    assert one.objects == two.objects != three.objects
    assert "CONFIG_EXTRA=y" in one.config.read_text()
    assert "# CONFIG_EXTRA is not set" in three.config.read_text()


def test_one_object_is_compiled_with_edits_that_do_not_stay():
    build = configured_tree(SERIES)
    assert build.release == "9.9.1"
    before = {path: path.stat().st_mtime_ns for path in build.source.rglob("*") if path.is_file()}
    compile_object(build, "mm/swap.o")
    made = (build.objects / "mm/swap.o").read_bytes()
    edits = {
        "mm/swap.c": "#include <linux/mini.h>\nint other(void) { return NEW; }\n",
        "include/linux/new.h": b"",
    }
    with pytest.raises(BuildError, match=r"mm/swap.c:2:26: .NEW. undeclared"):
        compile_object(build, "mm/swap.o", edits)
    compile_object(
        build,
        ["mm/swap.o", "kernel/fork.o"],
        edits | {"include/linux/mini.h": "#define MINI 3\n#define NEW 4\n"},
    )
    assert {path: path.stat().st_mtime_ns for path in build.source.rglob("*") if path.is_file()} == before
    # The object of the edited file is not taken for the object of the tree's.
    compile_object(build, "mm/swap.o")
    assert (build.objects / "mm/swap.o").read_bytes() == made
    with pytest.raises(LabError, match="leads out of the kernel tree"):
        compile_object(build, "mm/swap.o", {"../../x.c": "int x;\n"})
    with pytest.raises(BuildError, match="No rule to make target"):
        compile_object(build, "mm/nosuch.o")


def test_edits_of_a_process_that_was_killed_are_undone(source: Path):
    build = configured_tree(SERIES)
    held = build.folder / "held"
    held.mkdir()
    os.link(build.source / "mm/swap.c", held / "0")
    (held / "names").write_text(json.dumps({"mm/swap.c": "0", "mm/new.c": "1"}))
    (build.source / "mm/swap.c").unlink()
    (build.source / "mm/swap.c").write_text("half")
    (build.source / "mm/new.c").write_text("half")
    assert contents(configured_tree(SERIES).source) == contents(source) | {"Documentation/Kconfig": b""}


def test_objects_of_a_build_that_was_killed_are_not_trusted():
    built = build_kernel(SERIES)
    (built.objects / "mm/swap.o").write_text("half")
    (built.objects.parent / "running").touch()
    other = build_kernel(SERIES, [PATCH])
    assert other.steps == 2


INTERRUPTED = """
import sys
from tracepoint.lab.build import make as kernel_make
from tracepoint.lab.build.kernel import build_kernel
kernel_make.check_tools = lambda: None
build_kernel(sys.argv[1], progress=lambda stage, done, of: print(stage, done, flush=True))
"""


def test_interrupting_leaves_no_half_state(tmp_path: Path, cache: Path):
    tree = make_tree(tmp_path / "slow")
    text = (tree / "Makefile").read_text()
    (tree / "Makefile").write_text(
        text.replace("\t@$(CC)", "\t@echo half > $@; test ! -e slow || sleep 300\n\t@$(CC)")
    )
    (tree / "slow").touch()
    words = [sys.executable, "-c", INTERRUPTED, str(tree)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder = None
    for line in process.stdout:
        folder = next((cache / "built/trees").glob("slow-*"), None)
        if line.startswith("building") and folder and list(folder.rglob("objects/*/*.o")):
            break
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=200)[1]  # no compiler is waited for
    assert folder is not None
    assert list(folder.rglob("*.o")) == []
    assert not (folder / "running").exists()
    (tree / "slow").unlink()
    assert build_kernel(tree).steps == 2


def test_a_folder_is_in_use_until_the_make_of_a_killed_build_has_ended(tmp_path: Path, cache: Path):
    tree = make_tree(tmp_path / "slow")
    text = (tree / "Makefile").read_text()
    go = tmp_path / "go"
    waits = f"\t@touch $(O)/begun; until test -e {go}; do sleep 0.1; done\n\t@$(CC)"
    (tree / "Makefile").write_text(text.replace("\t@$(CC)", waits))
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(tree)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (begun := list((cache / "built/trees").glob("slow-*/objects/begun"))):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()
    with pytest.raises(LabError, match="in use by another build"):
        kernel_store.clean(str(tree))
    go.touch()
    built = build_kernel(tree)
    assert built.objects == begun[0].parent
    # Nothing of the killed one is trusted.
    assert built.steps == 2


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch, source: Path):
    makefile = (source / "Makefile").read_text()
    (source / "Makefile").write_text(
        makefile.replace(
            "\t@$(CC)",
            "\t@echo 'fatal error: error writing to /tmp/x.s: No space left on device'; exit 1; $(CC)",
        )
    )
    with pytest.raises(BuildError, match="does not build: no space left on the disk of"):
        build_kernel(SERIES)
    usage = shutil._ntuple_diskusage(1 << 40, 1 << 40, 1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(LabError, match="less than 1 GB free on the disk of"):
        configured_tree(SERIES)
    with pytest.raises(LabError, match=r"less than 3 GB free in .*: no room to unpack linux-source-9.8"):
        build_kernel("9.8")


def test_what_a_tracepoint_without_a_home_says(source: Path):
    makefile = (source / "Makefile").read_text()
    words = "ld: vmlinux.o: in function f: mm/swap.c:9: undefined reference to \\140__tracepoint_swap_in'"
    (source / "Makefile").write_text(makefile.replace("\t@cat $^ > $@", f'\t@printf "{words}\\n"; false'))
    with pytest.raises(BuildError, match=r"no file makes tracepoint swap_in .CREATE_TRACE_POINTS"):
        build_kernel(SERIES)


def test_missing_programs_are_named_with_the_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("make", "gcc", "ld", "bc", "awk", "gzip"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(LabError) as error:
        build_kernel(SERIES)
    assert str(error.value) == (
        "a kernel cannot be built here without flex, bison, gelf.h; apt-get install flex bison libelf-dev"
    )


def test_a_folder_in_use_is_waited_for(cache: Path):
    built = build_kernel(SERIES)
    said: list[str] = []
    with kernel_store.locked(built.objects.parent):
        with pytest.raises(LabError, match="in use by another build"):
            kernel_store.clean(SERIES)
        script = INTERRUPTED.replace("progress=", "say=lambda words: print(words, flush=True), progress=")
        words = [
            sys.executable,
            "-c",
            script.replace("sys.argv[1]", "sys.argv[1], [sys.argv[2]]"),
            SERIES,
            PATCH,
        ]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        said.append(process.stdout.readline())
    process.communicate(timeout=60)
    assert said == [f"waiting for another build in {built.objects.parent}\n"]
    assert process.returncode == 0


def test_a_folder_that_is_deleted_while_it_is_waited_for(cache: Path, tmp_path: Path):
    folder, had = tmp_path / "folder", []

    def wait() -> None:
        with kernel_store.locked(folder, had.append):
            had.append((folder / "running").exists())

    with kernel_store.locked(folder):
        thread = threading.Thread(target=wait)
        thread.start()
        while not had:
            time.sleep(0.01)
        shutil.rmtree(folder)
    thread.join()
    assert had == [f"waiting for another build in {folder}", True]
    assert not (folder / "running").exists()


def test_a_finished_kernel_is_one_of_the_labs(cache: Path, patch: Path):
    build_kernel(SERIES)
    patched = build_kernel(SERIES, [patch])
    image = packages.fetch_kernel(f"built:{patched.name}")
    assert (image.release, image.image) == ("9.9.1-mini", patched.image)
    assert packages.fetch_kernel(f"built:{patched.image.parent.name}") == image
    with pytest.raises(LabError, match=r"no kernel built:x: there is built:9.9, built:9.9\+0001-swap-more"):
        packages.fetch_kernel("built:x")
    with pytest.raises(
        LabError, match=r"no kernel built:9.9\+0001-swp-more: did you mean built:9.9\+0001-swap"
    ):
        packages.fetch_kernel("built:9.9+0001-swp-more")
    for number in range(5):
        build_kernel(SERIES, [patch, _variant(number)])
    assert len(list((cache / "built").glob("9.9+0001-swap-more+patch-2.*"))) == 3
    assert patched.image.exists()


def test_folders_of_builds_that_nobody_used_for_long_go(monkeypatch: pytest.MonkeyPatch, cache: Path):
    monkeypatch.setattr(kernel_store, "_KEPT_TREES", 3)
    monkeypatch.setattr(kernel_store, "_KEPT_KERNELS", 4)
    first = build_kernel(SERIES)
    with kernel_store.locked(first.objects.parent):
        for number in range(6):
            last = build_kernel(SERIES, options={"NUMBER": str(number)})
    trees = {path.parent for path in (cache / "built/trees").glob("*/state.json")}
    # The oldest was in use, and the new ones come after the others went.
    assert {first.objects.parent, last.objects.parent} <= trees
    assert len(trees) == 4 + 1
    assert len(packages.built_kernels()) == 4
    assert last.image.exists()


def _variant(number: int) -> str:
    return f"--- /dev/null\n+++ b/mm/new.c\n@@ -0,0 +1 @@\n+int new{number};\n"


def test_the_command(capsys: pytest.CaptureFixture[str], patch: Path, cache: Path):
    assert main(["lab", "build", "--kernel", SERIES, "--patch", str(patch), "--json", "-j", "2"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["name"] == "9.9+0001-swap-more"
    assert Path(shown["image"]).exists()
    assert main(["lab", "build", "--kernel", SERIES, "--patch", str(patch)]) == 0
    words = capsys.readouterr()
    assert words.out == f"built:9.9+0001-swap-more  9.9.1-mini  {shown['image']}\n"
    assert words.err.startswith("nothing to compile")
    assert main(["lab", "kernels", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["kernels"]
    assert "built:9.9+0001-swap-more" in [row["name"] for row in rows]
    assert main(["lab", "build", "--clean", "--kernel", SERIES]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert list((cache / "built").glob("*9.9*")) == []
    assert main(["lab", "build", "--clean"]) == 5
    assert "nothing was built in" in capsys.readouterr().err


@pytest.mark.parametrize("example", VERBS["build"].examples)
def test_examples_of_help_run(
    example: str, patch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Path
):
    source.rename(source.with_name("linux-source-6.12"))
    make_tree(tmp_path / "linux")
    patch.rename(tmp_path / "swap.patch")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(example)[1:]) == 0


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--kernel", "/"], 5, "/: not a kernel tree: it has no Makefile"),
        (["--kernel", "/nosuch"], 5, "there is no such folder, nor is it a series such as 6.12"),
        (["--kernel", "built:6.1"], 5, "built kernels are for `lab run` and `lab shell`"),
        (["--kernel", SERIES, "--patch", "/nosuch.patch"], 5, "/nosuch.patch cannot be read"),
        (["--kernel", SERIES, "--patch", "/"], 5, "cannot be read: /: a folder, not a file"),
        (["--kernel", SERIES, "--fragment", "/nosuch"], 5, "/nosuch cannot be read"),
        (["--kernel", SERIES, "--config", "SMP"], 5, "write NAME=y"),
        (["--kernel", SERIES, "--config", "IMPOSSIBLE=y"], 5, "it depends on A && B"),
        (["--kernel", SERIES, "-j", "0"], 2, "-j"),
    ],
)
def test_bad_words(capsys: pytest.CaptureFixture[str], words: list[str], status: int, message: str):
    assert main(["lab", "build", *words]) == status
    assert message in capsys.readouterr().err


def test_a_first_build_without_a_patch_tells_of_no_changed_file(cache: Path):
    said: list[str] = []
    built = build_kernel(SERIES, say=said.append)
    # The configuration includes this file, which the unpacked source has not.
    assert (built.source / "Documentation/Kconfig").exists()
    assert not [text for text in said if "changed" in text]
