import bz2
import gzip
import lzma
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from module_trees import with_events, write_depmod
from tracepoint.errors import LabError
from tracepoint.lab.kernels import modules


def elf(**sections: bytes) -> bytes:
    """A 64-bit ELF object with the given sections and nothing else."""
    names = [b"", *(name.encode() for name in sections), b".shstrtab"]
    strings = b"\0".join(names) + b"\0"
    contents = [b"", *sections.values(), strings]
    data = bytearray(64)
    headers = []
    for name, content in zip(names, contents, strict=True):
        headers.append(
            struct.pack("<IIQQQQ", strings.index(name + b"\0"), 1, 0, 0, len(data), len(content)) + bytes(24)
        )
        data += content
    struct.pack_into("<6sxx", data, 0, b"\x7fELF\x02\x01")
    struct.pack_into("<Q", data, 0x28, len(data))
    struct.pack_into("<HHH", data, 0x3A, 64, len(headers), len(headers) - 1)
    return bytes(data) + b"".join(headers)


def modinfo(**values: str) -> bytes:
    return b"\0".join(f"{key.rstrip('_')}={value}".encode() for key, value in values.items()) + b"\0"


@pytest.fixture
def tree(tmp_path) -> modules.ModuleTree:
    folder = tmp_path / "6.1.0-test"
    wanted = {
        "kernel/fs/top-one.ko": elf(
            **{".modinfo": modinfo(depends="middle,left-side", alias="fs-top"), "_ftrace_events": b"x"}
        ),
        "kernel/lib/middle.ko": elf(
            **{".modinfo": modinfo(depends="bottom", softdep="pre: soft missing post: late")}
        ),
        "kernel/lib/left_side.ko.xz": lzma.compress(elf(**{".modinfo": modinfo(depends="bottom,built")})),
        "kernel/lib/bottom.ko": elf(**{".modinfo": modinfo(depends="")}),
        "kernel/lib/soft.ko": elf(**{".modinfo": modinfo(depends="")}),
        "kernel/lib/late.ko": elf(**{".modinfo": modinfo(depends="")}),
    }
    for name, data in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (folder / "modules.builtin").write_text("kernel/lib/built.ko\n")
    return modules.ModuleTree(folder)


def test_load_order(tree):
    names = [modules.module_name(path) for path in tree.load_order(("top_one",))]
    assert sorted(names) == ["bottom", "left_side", "middle", "soft", "top_one"]
    assert names[-1] == "top_one"
    assert names.index("bottom") < min(names.index("middle"), names.index("left_side"))
    assert names.index("soft") < names.index("middle")
    assert tree.load_order(("built",)) == []


def test_each_once(tree):
    order = tree.load_order(("bottom", "top-one", "middle", "top_one"))
    assert len(order) == len(set(order)) == 5


def test_what_a_module_says(tree):
    info = tree.info("top-one")
    assert (info.depends, info.aliases, info.has_events) == (("middle", "left_side"), ("fs-top",), True)
    assert [info.name for info in with_events(tree)] == ["top_one"]
    assert "left-side" in tree
    assert "nothing" not in tree


def test_unknown_and_damaged(tree, tmp_path):
    with pytest.raises(LabError, match="no module nothing"):
        tree.load_order(("nothing",))
    good = elf(**{".modinfo": modinfo(depends="")})
    for number, data in enumerate((b"", b"\x7fELF", good[:70], good[:-30], b"\x7fELF\x01\x01" + good[6:])):
        path = tmp_path / f"bad{number}.ko"
        path.write_bytes(data)
        with pytest.raises(LabError, match="ELF"):
            modules.read_info(path)
    path = tmp_path / "bad.ko.xz"
    path.write_bytes(b"no xz")
    with pytest.raises(LabError, match="damaged xz"):
        modules.read_info(path)
    path.write_bytes(lzma.compress(good)[:-20])
    with pytest.raises(LabError, match="damaged: "):
        modules.read_info(path)


@pytest.mark.parametrize(
    ("end", "compress"), [("xz", lzma.compress), ("gz", gzip.compress), ("bz2", bz2.compress)]
)
def test_compressed_modules_are_read(tmp_path, end, compress):
    path = tmp_path / f"some.ko.{end}"
    path.write_bytes(compress(elf(**{".modinfo": modinfo(depends="")})))
    assert modules.read_info(path).name == "some"


def test_a_circle_ends(tmp_path):
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.ko").write_bytes(elf(**{".modinfo": modinfo(depends=other)}))
    assert len(modules.ModuleTree(tmp_path).load_order(("a",))) == 2


def test_depmod(tree):
    write_depmod(tree)
    dep = dict(line.split(":", 1) for line in (tree.folder / "modules.dep").read_text().splitlines())
    assert sorted(dep["kernel/fs/top-one.ko"].split()) == [
        "kernel/lib/bottom.ko",
        "kernel/lib/left_side.ko.xz",
        "kernel/lib/middle.ko",
        "kernel/lib/soft.ko",
    ]
    assert dep["kernel/lib/bottom.ko"] == ""
    assert "alias fs-top top_one" in (tree.folder / "modules.alias").read_text()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_an_object_of_the_compiler(tmp_path):
    source = tmp_path / "m.c"
    source.write_text(
        '__attribute__((section(".modinfo"), used)) static const char a[] = "depends=x,y";\n'
        '__attribute__((section("_ftrace_events"), used)) static void *b = 0;\n'
    )
    subprocess.run(["cc", "-c", "-o", tmp_path / "m.ko", source], check=True)
    info = modules.read_info(Path(tmp_path / "m.ko"))
    assert (info.depends, info.has_events) == (("x", "y"), True)
