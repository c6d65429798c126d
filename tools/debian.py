"""Fetch what Debian offers for the guest and oracle tests: tools/debian.py tests|bench|headers.

`tests`: installs programs, kernel headers and kernel source with apt-get (as root), unpacks the
kernel images into the user's cache.  `bench`: installs what benchmarks measure with.  `headers`:
prints the folder of a kernel's headers, which is fetched without root when none is installed.
What cannot be had is named, with the reason, and is no failure: the tests that need it skip.
TRACEPOINT_APT=no forbids all of it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.lab.kernel_source import fetch_source as fetch_kernel_source
from tracepoint.lab.kernels import ANY_KERNEL, find_kernel, version_key
from tracepoint.lab.packages import cache_folder, candidates, fetch_kernel
from tracepoint.lab.suites import apt_options

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = {
    "qemu-system-x86": "the guest tests boot kernels with it",
    "busybox-static": "the guest's programs",
    "kmod": "the guest's module order",
    "zstd": "recorded data is packed with it",
    "git": "patches are applied with git am",
    "perl": "the kernel's checkpatch.pl is written in it",
    "xz-utils": "kernel source and modules are packed with it",
    "chromium": "the catalog's pages are tested in it",
    "trace-cmd": "it judges what we write, and works on the mounted control files",
    "libtracefs-dev": "the same with the library below it",
    "clang-14": "generated eBPF programs are compiled with it",
    "libbpf-dev": "generated eBPF programs are compiled against it",
    "fuse3": "mounts the control files of a process",
    "flex": "the kernel's configuration is read with it",
    "bison": "the kernel's configuration is read with it",
    "bc": "a kernel's build computes with it",
    "libelf-dev": "a kernel's build checks its objects with it",
    "ccache": "kernels that were built once are built again in seconds",
    "libelf1": "compiling against kernel headers needs it",
}
BENCH_PROGRAMS = {
    "valgrind": "instructions are counted with it",
    "lttng-tools": "LTTng-UST records beside us",
    "liblttng-ust-dev": "LTTng-UST records beside us",
}
SERIES = "6.1"
SOURCES = ("6.1", "6.12")
#: The newest kernel of this suite is read and booted too; the system's own lists stay as they are.
NEWEST_SUITE = "sid"
KERNELS = (SERIES, f"{SERIES}-full", "6.12")
NEWEST_PATTERN = r"linux-image-[0-9.]+[+]deb[0-9]+-cloud-amd64"
USR_SRC = Path("/usr/src")
SECONDS = 1200


def say(text: str) -> None:
    """Tell the human, at once."""
    sys.stderr.write(f"debian: {text}\n")
    sys.stderr.flush()


def apt(*words: str, folder: Path | None = None) -> str:
    """Run apt-get without questions; return an empty string, or what went wrong."""
    command = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=2", *words]
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    tail = done.stderr.decode(errors="replace").strip().splitlines()
    return "" if done.returncode == 0 else (tail[-1] if tail else f"apt-get ended with {done.returncode}")


def is_installed(package: str) -> bool:
    """Whether dpkg has the package."""
    command = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    done = subprocess.run(command, capture_output=True, check=False)
    return done.stdout == b"installed"


def header_packages() -> list[str]:
    """Return the header packages of the newest kernel of the series that apt knows."""
    images = candidates(find_kernel(f"{SERIES}-full"))
    return [images[0].replace("linux-image-", "linux-headers-")] if images else []


def install(packages: dict[str, str]) -> None:
    """Install what is not there yet, each on its own, so that one failure costs only that one."""
    missing = {name: why for name, why in packages.items() if not is_installed(name)}
    for name, why in missing.items():
        say(f"installing {name} ({why})")
        problem = apt("install", "--no-install-recommends", name)
        if problem:
            say(f"no {name}: {problem}; tests that need it will skip")


def prepare_tests() -> bool:
    """Bring everything that the guest and oracle tests need; return whether all of it is there."""
    is_root = os.geteuid() == 0
    if not is_root:
        say("not root: nothing is installed; tests that need QEMU, busybox or kernel headers may skip")
    if is_root:
        if not header_packages_or_none():
            apt("update")
        headers = dict.fromkeys(header_packages_or_none(), "stubs are compiled against it")
        install(PROGRAMS | headers)
    is_complete = True
    for name in KERNELS:
        try:
            say(f"kernel {name}: {fetch_kernel(name).release}")
        except (LabError, OSError) as error:
            say(f"no kernel {name}: {error}; guest tests will skip")
            is_complete = False
    sources = [fetch_source(series) for series in SOURCES]
    fetch_newest()
    return None not in sources and is_complete and all(map(is_installed, PROGRAMS))


def header_packages_or_none() -> list[str]:
    """Return the header packages, or none when apt cannot say."""
    try:
        return header_packages()
    except LabError:
        return []


def fetch_newest() -> None:
    """Fetch the newest kernel that Debian has, image and source of one version, if the mirror offers it."""
    try:
        options = apt_options([NEWEST_SUITE], say)
        names = candidates(replace(ANY_KERNEL, package_pattern=NEWEST_PATTERN), options)
        release = fetch_kernel(names[0], options).release if names else ""
    except (LabError, OSError) as error:
        say(f"no kernel of {NEWEST_SUITE}: {error}; it is not compared with its source")
        return
    series = re.match(r"[0-9]+\.[0-9]+", release)
    if series:
        say(f"kernel of {NEWEST_SUITE}: {release}")
        fetch_source(series[0], options)


def fetch_source(series: str, options: Sequence[str] = ()) -> Path | None:
    """Download and unpack a kernel source package into the cache, once, and return the tree.

    `options` are for apt, when the package is not in the system's own lists.
    """
    try:
        return fetch_kernel_source(series, say, options)
    except (LabError, OSError) as error:
        say(f"no source of {series}: {error}; tests that read it or build kernels of it will skip")
        return None


def find_headers() -> Path | None:
    """Return a folder of kernel headers that holds include/trace/events, fetching it when needed."""
    places = [*USR_SRC.glob("linux-headers-*-common"), *(cache_folder() / "headers").glob("*-common")]
    found = [place for place in places if (place / "include/trace/events").is_dir()]
    if not found and os.environ.get("TRACEPOINT_APT") != "no":
        fetched = fetch_headers()
        found = [fetched] if fetched else []
    return max(found, key=lambda place: version_key(place.name), default=None)


def fetch_headers() -> Path | None:
    """Download and unpack the architecture-independent headers package into the cache."""
    names = header_packages_or_none()
    if not names:
        say("apt knows no kernel headers (apt-get update may help): only the examples are tried")
        return None
    package = re.sub(r"-[a-z0-9]+$", "-common", names[0])
    folder = cache_folder() / "headers"
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="unpack-", dir=folder) as scratch:
        problem = apt("download", package, folder=Path(scratch))
        debs = sorted(Path(scratch).glob("*.deb"))
        if problem or not debs:
            say(f"no {package}: {problem or 'nothing was downloaded'}: only the examples are tried")
            return None
        subprocess.run(["dpkg-deb", "-x", str(debs[0]), scratch], check=True)
        place = folder / package
        if not place.is_dir():
            (Path(scratch) / "usr/src" / package).rename(place)
    return place


def main() -> int:
    """Do what the first argument says."""
    is_allowed = os.environ.get("TRACEPOINT_APT") != "no" and shutil.which("apt-get") is not None
    if sys.argv[1:] == ["headers"]:
        place = find_headers()
        if place is not None:
            sys.stdout.write(f"{place}\n")
        return 0
    if sys.argv[1:] == ["bench"]:
        if is_allowed and os.geteuid() == 0:
            install(BENCH_PROGRAMS)
        return 0
    if sys.argv[1:] != ["tests"]:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    stamp = Path(sys.prefix) / ".debian"
    if stamp.exists() and stamp.stat().st_mtime > Path(__file__).stat().st_mtime:
        return 0
    if is_allowed:
        if prepare_tests():
            stamp.touch()
    else:
        say("no apt-get (or TRACEPOINT_APT=no): guest and oracle tests run with what is here")
    return 0


if __name__ == "__main__":
    sys.exit(main())
