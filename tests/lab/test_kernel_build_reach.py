"""Which folders make enters for a change: a made-up tree whose Makefiles descend as a kernel's do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.mini_kernel import FILES, MAKEFILE, PATCH, make_tree
from tracepoint.errors import LabError
from tracepoint.lab.build import kernel as kernel_build
from tracepoint.lab.build import make as kernel_make
from tracepoint.lab.build.kernel import BuildError, build_kernel
from tracepoint.lab.build.reach import unreached_folders
from tracepoint.lab.build.sync import replace_file

pytestmark = pytest.mark.programs

TOP = """\
FOLDERS := mm kernel drivers
.PHONY: $(FOLDERS)
$(FOLDERS): prepare
	@$(MAKE) -C $(O) -f $(CURDIR)/scripts/Makefile.build obj=$@ srctree=$(CURDIR)

$(O)/vmlinux: $(FOLDERS)
	@cat $(FOLDERS:%=$(O)/%/built-in.a) > $@
"""
FOLDER = """\
objects := $(patsubst $(srctree)/%.c,%.o,$(wildcard $(srctree)/$(obj)/*.c))

.PHONY: enter
enter: $(objects)
	@echo "  ENTER   $(obj)"; rm -f $(obj)/built-in.a; ar cDrS $(obj)/built-in.a $(objects)

-include $(wildcard $(obj)/.*.cmd)

$(obj)/%.o: $(srctree)/$(obj)/%.c
	@mkdir -p $(@D)
	@echo "  CC      $@"
	@$(CC) -c -D__KERNEL__ -I$(srctree)/include -MD -MF $@.d -o $@ $<
	@(echo "# gcc -c -D__KERNEL__ -o $@"; cat $@.d) > $(@D)/.$(@F).cmd
"""
LONG_AGO = 1_600_000_000
EVERY = ["drivers", "kernel", "mm"]
HEADER = (
    "--- a/include/linux/mini.h\n+++ b/include/linux/mini.h\n@@ -1 +1 @@\n-#define MINI 1\n+#define MINI 2\n"
)
NEW_FILE = "--- /dev/null\n+++ b/mm/new.c\n@@ -0,0 +1 @@\n+int added;\n"
OTHER_RULE = "--- a/Makefile\n+++ b/Makefile\n@@ -1 +1,2 @@\n+# another rule\n VERSION = 9\n"
BOTH = PATCH.replace("return more;", "return morr;").replace("--\n2.39\n", "") + (
    "--- a/kernel/fork.c\n+++ b/kernel/fork.c\n@@ -1,2 +1,3 @@\n #include <linux/mini.h>\n+int forks;\n \n"
)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A series of its own in an empty cache."""
    if shutil.which("make") is None or shutil.which("gcc") is None:
        pytest.skip("needs make and gcc (Debian packages)")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kernel_make, "check_tools", lambda: None)
    return write_tree(tmp_path / "tracepoint/sources/linux-source-9.9")


def write_tree(folder: Path) -> Path:
    tree = make_tree(folder)
    (tree / "Makefile").write_text(MAKEFILE[: MAKEFILE.index("$(O)/vmlinux:")] + TOP)
    (tree / "scripts/Makefile.build").write_text(FOLDER)
    (tree / "drivers").mkdir()
    (tree / "drivers/probe.c").write_text("int probe;\n")
    return tree


@pytest.fixture
def entered(tmp_path: Path) -> Callable[[], list[str]]:
    def read() -> list[str]:
        """Return the folders that the last make entered."""
        logs = (tmp_path / "tracepoint/logs").glob("build-*")
        text = max(logs, key=lambda path: path.stat().st_mtime_ns).read_text()
        lines = text[text.rindex("# building") :].splitlines()
        return sorted(line.split()[1] for line in lines if line.startswith("  ENTER"))

    return read


@pytest.mark.parametrize(
    ("patch", "folders", "steps"),
    [
        (PATCH, ["mm"], 1),
        (HEADER, ["kernel", "mm"], 2),
        (NEW_FILE, EVERY, 1),
        (OTHER_RULE, EVERY, 0),
    ],
    ids=["a file", "a header", "a new file", "a Makefile"],
)
def test_make_enters_what_a_change_can_reach(source, entered, patch, folders, steps):
    first = build_kernel("9.9")
    assert entered() == EVERY
    assert build_kernel("9.9", [patch]).steps == steps
    assert entered() == folders
    # Back again; a folder that lost a file is another case than one that got it.
    back = build_kernel("9.9")
    assert back.vmlinux.read_bytes() == (back.objects / "vmlinux").read_bytes() == first.vmlinux.read_bytes()


def test_make_enters_every_folder_after_a_make_that_failed(source, entered):
    build_kernel("9.9")
    with pytest.raises(BuildError, match="does not build"):
        build_kernel("9.9", [BOTH], jobs=1)
    # kernel/fork.c is as the failed make had it, and may have no object.
    built = build_kernel("9.9", [BOTH.replace("morr", "more")], jobs=1)
    assert entered() == EVERY
    assert b"forks" in built.vmlinux.read_bytes()


def test_make_enters_every_folder_when_none_followed_a_change(source, entered, monkeypatch):
    build_kernel("9.9")
    with monkeypatch.context() as broken:
        broken.setattr(kernel_build, "tree_version", lambda _tree: (_ for _ in ()).throw(LabError("cut off")))
        with pytest.raises(LabError, match="cut off"):
            build_kernel("9.9", [PATCH])
    assert build_kernel("9.9", [PATCH]).steps == 1
    assert entered() == EVERY


def test_make_enters_every_folder_with_another_configuration(source, entered):
    build_kernel("9.9")
    kconfig = '--- a/Kconfig\n+++ b/Kconfig\n@@ -1 +1,2 @@\n+# more\n source "init/Kconfig"\n'
    build_kernel("9.9", [kconfig])
    assert entered() == EVERY


def test_a_tree_of_ones_own_is_entered_where_it_changed(source, entered, tmp_path):
    tree = write_tree(tmp_path / "own")
    for path in tree.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    build_kernel(tree)
    assert build_kernel(tree).steps == 0
    assert entered() == []
    # Written where it is, which the copy by hard links follows, and as a new file, which it does not.
    for number, write in enumerate((Path.write_bytes, replace_file), 2):
        write(tree / "kernel/fork.c", FILES["kernel/fork.c"].replace("+ 1", f"+ {number}").encode())
        assert build_kernel(tree).steps == 1
        assert entered() == ["kernel"]
    (tree / "drivers/probe.c").unlink()
    (tree / "drivers/other.c").write_text("int other;\n")
    assert build_kernel(tree).steps == 1
    assert entered() == EVERY


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Objects as a kernel's make leaves them; mm/swap.c is used by another folder too, under an odd path."""
    (tmp_path / "source/mm").mkdir(parents=True)
    (tmp_path / "source/mm/swap.c").touch()
    for name, text in {
        "mm/.swap.o.cmd": "gcc -D__KERNEL__ -o\nsource_mm/swap.o := ../source/mm/swap.c\n",
        "lib/raid/.user.o.cmd": "gcc -D__KERNEL__ -o\n  /x/source/lib/raid/../../mm/swap.c \\\n  y.h",
        "lib/.sort.o.cmd": "gcc -D__KERNEL__ -o\n  ../source/lib/swap.cc ../source/lib/xswap.c",
        "drivers/net/.tun.o.cmd": "gcc -D__KERNEL__ -o\n  ../source/net.h",
        "tools/.relocs.cmd": "gcc -o relocs\n  ../source/tools/relocs.c",
    }.items():
        path = tmp_path / "objects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder in (".", "mm", "lib", "lib/raid", "lib/zlib", "drivers", "drivers/net", "drivers/usb", "a b"):
        (tmp_path / "objects" / folder).mkdir(exist_ok=True)
        (tmp_path / "objects" / folder / "built-in.a").touch()
    return tmp_path


def test_folders_without_an_object_that_depends_on_the_change(made: Path):
    assert unreached_folders(made / "objects", made / "source", ["mm/swap.c"]) == ["drivers", "lib/zlib"]
    assert unreached_folders(made / "objects", made / "source", []) == ["drivers", "lib", "mm"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tools/.relocs.o.cmd", "gcc -o relocs.o\n  ../source/mm/swap.c"),
        ("kernel/.bounds.s.cmd", "gcc -D__KERNEL__ -S\n  ../source/mm/swap.c"),
        ("kernel/.vmlinux.lds.cmd", "gcc -E -D__KERNEL__ \n  ../source/mm/swap.c"),
    ],
    ids=["a program of the build", "a generated header", "a linker script"],
)
def test_what_reaches_more_than_objects_may_reach_every_folder(made: Path, name: str, text: str):
    path = made / "objects" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert unreached_folders(made / "objects", made / "source", ["mm/swap.c"]) == []


def test_a_file_that_no_object_names_may_reach_every_folder(made: Path):
    (made / "source/mm/Makefile").touch()
    (made / "source/swap.c").touch()
    for changed in (["mm/Makefile"], ["mm/swap.c", "mm/Makefile"], ["swap.c"], ["mm/gone.c"]):
        assert unreached_folders(made / "objects", made / "source", changed) == []


def test_exports_that_depend_on_all_modules_may_reach_every_folder(made: Path):
    (made / "objects/include/config").mkdir(parents=True)
    (made / "objects/include/config/TRIM_UNUSED_KSYMS").touch()
    assert unreached_folders(made / "objects", made / "source", ["mm/swap.c"]) == []
