"""Where the judges are: kernel sources, recorded data.  A missing one is a skip with its reason."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tracepoint.lab.packages import cache_folder
from tracepoint.layout.objects import decompress

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent


def data_folder() -> Path:
    """The recorded data that is too big for the repository."""
    return Path(os.environ.get("TRACEPOINT_DATA", ROOT.parent / "shared" / "data"))


def data_file(name: str) -> Path:
    """One file of the recorded data; skips when it is not there."""
    path = data_folder() / name
    if not path.exists():
        pytest.skip(f"{name} is not in TRACEPOINT_DATA ({data_folder()})")
    return path


def kernel_source(name: str = "linux-source-6.1") -> Path:
    """An unpacked Debian kernel source; skips when it is not there."""
    path = cache_folder() / "sources" / name
    if not (path / "include/linux/tracepoint.h").is_file():
        pytest.skip(f"{name} is not unpacked in {path}: `make test` as root fetches it")
    return path


def kernel_sources() -> list[str]:
    """The names of the kernel sources that are there."""
    folder = cache_folder() / "sources"
    return sorted(p.name for p in folder.glob("linux-source-*")) if folder.is_dir() else []


def modules_of(pattern: str) -> Iterator[bytes]:
    """The bytes of every module of an unpacked kernel package; skips when there is none."""
    packages = [p for p in sorted((cache_folder() / "kernels").glob(pattern)) if "-cloud-" not in p.name]
    modules = [m for p in packages[-1:] for m in sorted(p.glob("**/*.ko*"))]
    if not modules:
        pytest.skip(f"no modules of {pattern} in {cache_folder()}: `make test` with apt-get fetches them")
    for module in modules:
        data = module.read_bytes()
        yield data if data.startswith(b"\x7fELF") else decompress(data)


def builtin_formats() -> dict[str, str]:
    """`system/event` to format text of the booted 6.1.187 kernel of the recorded data."""
    archive = data_file("formats-6.1.187-builtin.tar.zst")
    listing = subprocess.run(["tar", "--zstd", "-tf", archive], capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip(f"tar cannot read {archive.name}: install zstd")
    unpacked = subprocess.run(["tar", "--zstd", "-xOf", archive], capture_output=True, check=True).stdout
    names = [line for line in listing.stdout.splitlines() if line.endswith("/format")]
    texts = unpacked.decode("utf-8", "surrogateescape").split("\nname: ")
    texts = [texts[0], *("name: " + text for text in texts[1:])]
    return {"/".join(n.split("/")[-3:-1]): t.rstrip("\n") + "\n" for n, t in zip(names, texts, strict=True)}
