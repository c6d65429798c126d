import gzip
import shutil
import stat
import subprocess

import pytest

from tracepoint.lab.guest import initramfs


def unpack(archive: bytes) -> dict[str, tuple[int, bytes, tuple[int, int]]]:
    """A reader of the newc form, written from its description and not from the writer."""
    found = {}
    position = 0
    while True:
        assert position % 4 == 0
        assert archive[position : position + 6] == b"070701"
        numbers = [int(archive[position + 6 + 8 * i : position + 14 + 8 * i], 16) for i in range(13)]
        mode, size, name_size = numbers[1], numbers[6], numbers[11]
        name = archive[position + 110 : position + 110 + name_size]
        assert name.endswith(b"\0")
        data_at = (position + 110 + name_size + 3) & ~3
        position = (data_at + size + 3) & ~3
        if name == b"TRAILER!!!\0":
            assert not archive[position:].strip(b"\0")
            return found
        found[name[:-1].decode()] = (mode, archive[data_at : data_at + size], (numbers[9], numbers[10]))


@pytest.mark.parametrize("large", [0, 1 << 20])
def test_everything_comes_back(large, monkeypatch):
    monkeypatch.setattr(initramfs, "_LARGE", large)
    entries = {
        "init": initramfs.regular(b"#!/bin/sh\n", 0o755),
        "bin/odd": initramfs.regular(bytes(range(251))),
        "bin/sh": initramfs.link("busybox"),
        "dev/console": initramfs.character_device(5, 1),
        "empty": initramfs.regular(b""),
    }
    archive = initramfs.pack(entries)
    found = unpack(archive if large else gzip.decompress(archive))
    assert found["init"] == (stat.S_IFREG | 0o755, b"#!/bin/sh\n", (0, 0))
    assert found["bin/odd"][1] == bytes(range(251))
    assert found["bin/sh"] == (stat.S_IFLNK | 0o777, b"busybox", (0, 0))
    assert found["dev/console"] == (stat.S_IFCHR | 0o600, b"", (5, 1))
    assert found["bin"][0] == found["dev"][0] == stat.S_IFDIR | 0o755
    assert sorted(found) == sorted([*entries, "bin", "dev"])
    names = list(found)
    assert names.index("bin") < names.index("bin/odd")


def test_same_entries_same_bytes():
    one = initramfs.pack({"a": initramfs.regular(b"1"), "b": initramfs.regular(b"2")})
    two = initramfs.pack({"b": initramfs.regular(b"2"), "a": initramfs.regular(b"1")})
    assert one == two


@pytest.mark.parametrize("path", ["/init", "a//b", "a/../b", "./a", "a/", "", "a\0b"])
def test_paths_that_cannot_be(path):
    with pytest.raises(ValueError, match="initial ram disk"):
        initramfs.pack({path: initramfs.regular(b"")})


@pytest.mark.skipif(
    shutil.which("busybox") is None, reason="busybox is not installed (package busybox-static)"
)
def test_busybox_reads_it(tmp_path):
    archive = initramfs.pack({"d/f": initramfs.regular(b"hello\n")})
    subprocess.run(["busybox", "cpio", "-i"], input=archive, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "d/f").read_bytes() == b"hello\n"
