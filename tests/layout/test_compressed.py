"""Compressed modules and boot images: every form, damaged ones, and Debian's own kernels."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.errors import LayoutError
from tracepoint.layout.btf import find_btf
from tracepoint.layout.compressed import decompress, kernel_payload
from tracepoint.layout.zstd import load_zstd
from tracepoint.tree.cache import cache_folder

PLAIN = b"\x7fELF " + bytes(range(256)) * 40
LZ4 = b"\x02\x21\x4c\x18"


def lengths(n: int) -> tuple[int, bytes]:
    """The half of a token and the bytes after it that say `n`."""
    return (n, b"") if n < 15 else (15, b"\xff" * ((n - 15) // 255) + bytes([(n - 15) % 255]))


def lz4_block(runs: list[tuple[bytes, int, int]], last: bytes) -> tuple[bytes, bytes]:
    """A block of runs, each bytes and (how far back, how many) to repeat; and what it expands to."""
    packed, plain = b"", bytearray()
    for literal, distance, n_again in [*runs, (last, 0, 4)]:
        (high, more), (low, again) = lengths(len(literal)), lengths(n_again - 4)
        packed += bytes([high << 4 | low]) + more + literal
        plain += literal
        if distance:
            packed += struct.pack("<H", distance) + again
            for _ in range(n_again):
                plain.append(plain[-distance])
    return packed, bytes(plain)


def lz4(*blocks: bytes) -> bytes:
    return LZ4 + b"".join(struct.pack("<I", len(block)) + block for block in blocks)


def zstd(data: bytes) -> bytes:
    library = load_zstd()
    if library is None:
        pytest.skip("no library for zstd: pip install zstandard")
    return library.compress(data, 3)


PACKERS = {
    "xz": lzma.compress,
    "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "zstd": zstd,
    "lz4": lambda data: lz4(lz4_block([], data)[0]),
}


def boot_image(packed: bytes) -> bytes:
    head = bytearray(1024)
    head[0x1F1] = 1
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", head, 0x248, 16, len(packed))
    return bytes(head) + bytes(16) + packed + b"after"


@pytest.mark.parametrize("form", PACKERS)
def test_every_form(form: str) -> None:
    packed = PACKERS[form](PLAIN)
    size = struct.pack("<I", len(PLAIN))
    assert decompress(packed) == PLAIN
    assert decompress(packed + size) == PLAIN
    assert kernel_payload(boot_image(packed + size)) == PLAIN


@pytest.mark.parametrize("form", PACKERS)
def test_cut_and_damaged_images_are_errors(form: str) -> None:
    packed = PACKERS[form](PLAIN)
    size = struct.pack("<I", len(PLAIN))
    with pytest.raises(LayoutError, match="damaged"):
        kernel_payload(boot_image(packed[:-20]))
    with pytest.raises(LayoutError, match="another size"):
        kernel_payload(boot_image(packed + struct.pack("<I", len(PLAIN) + 1)))
    with pytest.raises(LayoutError, match="cut off"):
        kernel_payload(boot_image(packed + size)[:-20])
    with pytest.raises(LayoutError, match="cut off"):
        kernel_payload(boot_image(packed + size)[:0x24A])


def test_other_bytes_come_back_as_they_are() -> None:
    assert decompress(PLAIN) is PLAIN
    assert kernel_payload(PLAIN) is PLAIN
    assert kernel_payload(boot_image(PLAIN)) == PLAIN


@pytest.mark.parametrize(
    "data",
    [
        b"\xfd7zXZ\0" + b"garbage" * 5,
        b"\x1f\x8bgarbage",
        b"BZhgarbage",
        lzma.compress(PLAIN)[:-20],
        lz4(b"\x10a\x00\x00"),  # a repetition of nothing
        lz4(b"\x10a\x02\x00"),  # from before the block
        lz4(b"\x10a\x01"),  # cut in a distance
        lz4(b"\xf0"),  # cut in a length
        lz4(b"\x50abc"),  # cut in the bytes
        lz4(b"\x10a")[:-1],
        lz4(b"\x1fa\x01\x00" + b"\xff" * 40000 + b"\x00"),  # more than a block may have
    ],
)
def test_damaged_data_is_an_error(data: bytes) -> None:
    with pytest.raises(LayoutError, match="damaged"):
        decompress(data)


def test_zstd_without_a_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracepoint.layout.zstd._ZSTD_LIBRARIES", ())
    with pytest.raises(LayoutError, match="pip install zstandard"):
        decompress(b"\x28\xb5\x2f\xfd....")


RUNS = st.lists(
    st.tuples(st.binary(min_size=1, max_size=300), st.integers(1, 400), st.integers(4, 600)), max_size=6
)


@given(RUNS, st.binary(max_size=40))
def test_lz4_repeats_what_it_says(runs: list[tuple[bytes, int, int]], last: bytes) -> None:
    n_before, possible = 0, []
    for literal, distance, n_again in runs:
        n_before += len(literal)
        possible.append((literal, min(distance, n_before), n_again))
        n_before += n_again
    packed, plain = lz4_block(possible, last)
    assert decompress(lz4(packed, packed)) == plain * 2


@given(st.binary(max_size=60))
def test_lz4_of_anything_is_read_or_refused(block: bytes) -> None:
    try:
        made = decompress(lz4(block))
    except LayoutError:
        return
    assert len(made) <= 255 * len(block)


@pytest.mark.oracle
def test_every_unpacked_kernel_tells_its_types() -> None:
    """Debian packs with xz, lz4 (the cloud kernels of 6.1) and zstd (from 6.12 on)."""
    images = sorted((cache_folder() / "kernels").rglob("vmlinuz*"))
    if not images:
        pytest.skip(f"no kernel in {cache_folder()}: `make test` with apt-get fetches them")
    for image in images:
        kernel = kernel_payload(image.read_bytes())
        btf = find_btf(kernel)
        assert btf is not None, image
        page = btf.find("struct page")
        assert page is not None
        assert btf.size_of(page).size == 64
        # It says of itself which it is: boot/vmlinuz-RELEASE, or lib/modules/RELEASE/vmlinuz.
        release = image.name.removeprefix("vmlinuz").removeprefix("-") or image.parent.name
        assert f"Linux version {release} ".encode() in kernel
