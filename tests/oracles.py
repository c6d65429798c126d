"""Where the judges are: kernel sources, recorded data.  A missing one is a skip with its reason."""

from __future__ import annotations

import gc
import io
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tracepoint.errors import LabError
from tracepoint.lab.build.source import point_release, tree_version
from tracepoint.lab.build.stub import find_kernel_headers
from tracepoint.layout.compressed import decompress
from tracepoint.source.config import Config, parse_dot_config
from tracepoint.source.text import decode
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.headers import HeaderReader, paused_collector
from tracepoint.tree.scan import find_headers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.model.event import TraceHeader

ROOT = Path(__file__).resolve().parent.parent


def data_folder() -> Path:
    """The recorded data that is too big for the repository."""
    return Path(os.environ.get("TRACEPOINT_DATA", ROOT.parent / "shared" / "data"))


def without_mounts(*command: str) -> list[str]:
    """The command, unable to mount a file system.

    `trace-cmd convert` mounts tracefs where it may, and this machine's own is not touched.
    """
    return ["setpriv", "--bounding-set=-sys_admin", *command] if os.geteuid() == 0 else [*command]


def data_file(name: str) -> Path:
    """One file of the recorded data; skips when it is not there."""
    path = data_folder() / name
    if not path.exists():
        pytest.skip(f"{name} is not in TRACEPOINT_DATA ({data_folder()})")
    return path


def unpacked(name: str) -> bytes:
    """One compressed file of the recorded data as it was; skips when it or the program is not there."""
    path = data_file(name)
    if shutil.which("zstd") is None:
        pytest.skip("no zstd: apt-get install zstd")
    return subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout


def kernel_source(name: str = "linux-source-6.1") -> Path:
    """An unpacked Debian kernel source; skips when it is not there."""
    path = cache_folder() / "sources" / name
    if not (path / "include/linux/tracepoint.h").is_file():
        pytest.skip(f"{name} is not unpacked in {path}: `make test` as root fetches it")
    return path


def installed_headers() -> Path:
    """The kernel headers that modules are compiled against; skips when there are none."""
    try:
        return find_kernel_headers()
    except LabError as error:
        pytest.skip(str(error))


def kernel_sources() -> list[str]:
    """The names of the kernel sources that are there."""
    folder = cache_folder() / "sources"
    return sorted(p.name for p in folder.glob("linux-source-*")) if folder.is_dir() else []


def headers_of(tree: Path) -> list[TraceHeader]:
    """Every trace header of a kernel source, read.  Hundreds of megabytes: nobody may keep them for long."""
    reader = HeaderReader()
    with paused_collector():
        return [reader.read(path) for path in find_headers([str(tree)])]


def lend_headers(tree: Path) -> Iterator[list[TraceHeader]]:
    """`headers_of`, for a fixture: they are gone when its last test has run."""
    headers = headers_of(tree)
    yield headers
    headers.clear()
    gc.collect()


def wrongly_missing(missing: set[str], tree: Path, version: str) -> list[str]:
    """Those events of a kernel that its source has and that were not found in it.

    Of a kernel of the source's own version that is all.  A source of another point release may lack some: of
    those, the ones that its trace headers name.
    """
    if not missing or tree_version(tree) == point_release(version):
        return sorted(missing)
    words = {
        word
        for path in find_headers([str(tree)])
        for word in re.findall(r"\w+", decode(Path(path).read_bytes()))
    }
    return sorted(name for name in missing if name.partition(":")[2] in words)


def package_with_modules(pattern: str) -> Path:
    """The newest unpacked kernel package that has modules; skips when there is none."""
    packages = [p for p in sorted((cache_folder() / "kernels").glob(pattern)) if "-cloud-" not in p.name]
    if not packages or not any(packages[-1].glob("**/*.ko*")):
        pytest.skip(f"no modules of {pattern} in {cache_folder()}: `make test` with apt-get fetches them")
    return packages[-1]


def modules_of(pattern: str) -> Iterator[bytes]:
    """The bytes of every module of an unpacked kernel package; skips when there is none."""
    for module in sorted(package_with_modules(pattern).glob("**/*.ko*")):
        data = module.read_bytes()
        yield data if data.startswith(b"\x7fELF") else decompress(data)


def kernel_config(pattern: str) -> Config:
    """The configuration of an unpacked kernel package; skips when there is none."""
    packages = [p for p in sorted((cache_folder() / "kernels").glob(pattern)) if "-cloud-" not in p.name]
    files = [file for p in packages[-1:] for file in sorted(p.glob("boot/config-*"))]
    if not files:
        pytest.skip(f"no kernel {pattern} in {cache_folder()}: `make test` with apt-get fetches it")
    return Config(parse_dot_config(files[0].read_text()), is_on_by_default=False)


def builtin_formats() -> dict[str, str]:
    """`system/event` to format text of the booted 6.1.187 kernel of the recorded data."""
    archive = data_file("formats-6.1.187-builtin.tar.zst")
    unpacked = subprocess.run(["zstd", "-dcq", archive], capture_output=True, check=False)
    if unpacked.returncode:
        pytest.skip(f"zstd cannot read {archive.name}")
    formats = {}
    with tarfile.open(fileobj=io.BytesIO(unpacked.stdout)) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.name.endswith("/format") else None
            if file is not None:
                formats["/".join(member.name.split("/")[-3:-1])] = file.read().decode(
                    "utf-8", "surrogateescape"
                )
    return formats
