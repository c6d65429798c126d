"""Fetch what Debian offers for the guest and oracle tests: tools/debian.py tests|bench|spark|release|headers.

`tests`: installs programs, kernel headers and kernel source with apt-get (as root), unpacks the
kernel images into the user's cache.  `bench`: installs what benchmarks measure with, `spark` what Spark
runs on, `release` what releases are made with.  `headers`: prints the folder of a kernel's headers, which is
fetched without root when none is installed.

Image, headers and source of a series are asked for in one version, that of the newest image; where they
cannot be had so, the message says which differ.  As root the package lists are refreshed once, when they are
older than a day or something is not found.  What cannot be had is named, with the reason, and is no
failure: the tests that need it skip.
TRACEPOINT_APT=no forbids all of it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tracepoint.errors import LabError
from tracepoint.lab.build.source import fetch_source
from tracepoint.lab.kernels.packages import candidates, known_versions, newest_version, unpack_package
from tracepoint.lab.kernels.suites import apt_options
from tracepoint.lab.kernels.supported import ANY_KERNEL, find_kernel, version_key
from tracepoint.tree.cache import cache_folder

PROGRAMS = {
    "qemu-system-x86": "the guest tests boot kernels with it",
    "busybox-static": "the guest's programs",
    "kmod": "the guest's module order",
    "zstd": "recorded data is packed with it",
    "git": "patches are applied with git am",
    "perl": "the kernel's checkpatch.pl is written in it",
    "xz-utils": "kernel source and modules are packed with it",
    "fish": "its completions are tried in it",
    "zsh": "its completions are read by it",
    "neovim": "the language server is tested in it",
    "emacs-nox": "the language server is tested in it",
    "elpa-eglot": "the client of the language server for Emacs 28",
    "tmux": "the language server is tested in Helix, which needs a terminal",
    "chromium": "the pages of catalogs, reports and the site are tested in it",
    "trace-cmd": "it judges what we write, and works on the mounted control files",
    "babeltrace2": "it judges the CTF that we write, and what we read of others",
    "libtraceevent-dev": "libtracefs is compiled with its headers",
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
SPARK_PROGRAMS = {"openjdk-17-jre-headless": "Spark, which the tests of fleets use, is written in Java"}
RELEASE_PROGRAMS = {"mmdebstrap": "Debian packages are built and tried in systems that it unpacks"}
#: The series whose headers are installed, and read by `make try`.
HEADERS_SERIES = "6.1"
#: Each supported series with its kernels.
SERIES = {"6.1": ("6.1", "6.1-full"), "6.12": ("6.12",)}
#: The newest kernel of this suite is read and booted too; the system's own lists stay as they are.
NEWEST_SUITE = "sid"
NEWEST_PATTERN = r"linux-image-[0-9.]+[+]deb[0-9]+-cloud-amd64"
USR_SRC = Path("/usr/src")
SECONDS = 1200
LISTS = Path("/var/lib/apt/lists")
STALE_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a series: `kind` says which, `version` is empty when apt has no such package."""

    kind: str
    package: str
    version: str


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


class Lists:
    """The system's package lists, which root refreshes at most once."""

    def __init__(self) -> None:
        self._may_refresh = os.geteuid() == 0
        self._stamp = cache_folder() / "apt" / "system.fetched"

    def refresh_when_old(self) -> None:
        """Refresh lists that are older than a day."""
        times = [path.stat().st_mtime for path in (LISTS, LISTS / "partial", self._stamp) if path.exists()]
        age = time.time() - max(times, default=0)
        if age <= STALE_SECONDS:
            return
        old = f"they are {age / STALE_SECONDS:.0f} days old" if times else "there are none"
        if not self.refresh(old):
            say(f"the package lists are not refreshed: {old}")

    def refresh(self, why: str) -> bool:
        """Refresh the lists if that was not tried yet; return whether they are new now."""
        if not self._may_refresh:
            return False
        self._may_refresh = False
        say(f"refreshing the package lists: {why}")
        problem = apt("update")
        if problem:
            say(f"the package lists could not be refreshed: {problem}")
            return False
        self._stamp.parent.mkdir(parents=True, exist_ok=True)
        self._stamp.touch()
        return True


def installed_version(package: str) -> str:
    """Return the version that dpkg has installed, empty when it has none."""
    command = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    state, _, version = done.stdout.partition(" ")
    return version if state == "installed" else ""


def install(packages: dict[str, str], lists: Lists) -> bool:
    """Install what is not there yet, each on its own, so that one failure costs only that one.

    Returns whether all of it is there.
    """
    is_complete = True
    for name, why in packages.items():
        if installed_version(name):
            continue
        say(f"installing {name} ({why})")
        problem = apt_install(name)
        if problem and lists.refresh(problem):
            problem = apt_install(name)
        if problem:
            say(f"no {name}: {problem}; tests that need it will skip")
            is_complete = False
    return is_complete


def apt_install(package: str) -> str:
    """Install one package (`name` or `name=version`); return an empty string, or what went wrong."""
    return apt("install", "--no-install-recommends", package)


def find_parts(series: str) -> list[Part]:
    """Return the parts of a series as apt has them now, in the version of the first one where it can.

    Images come first: the newest decides.  Raises LabError when apt is missing or knows no image.
    """
    packages = []
    for name in SERIES[series]:
        names = candidates(find_kernel(name))
        if not names:
            raise LabError(f"apt knows no kernel {name}")
        packages.append(("image", names[0]))
    if series == HEADERS_SERIES:
        packages.append(("headers", packages[-1][1].replace("linux-image-", "linux-headers-")))
    packages.append(("source", f"linux-source-{series}"))
    wanted = newest_version(packages[0][1])
    parts = []
    for kind, package in packages:
        versions = known_versions(package)
        parts.append(Part(kind, package, wanted if wanted in versions else "".join(versions[:1])))
    return parts


def prepare_kernels(lists: Lists) -> bool:
    """Fetch every series, each in one version; return whether all of it is there so."""
    found: dict[str, list[Part]] = {}
    problems = []
    for series in SERIES:
        try:
            found[series] = find_parts(series)
        except LabError as error:
            problems.append(f"{series}: {error}")
        else:
            problems += differing(series, found[series])
    if problems and lists.refresh(problems[0]):
        return prepare_kernels(lists)
    failed = [text for series, parts in found.items() for part in parts if (text := fetch_part(series, part))]
    if failed and lists.refresh(failed[0]):
        return prepare_kernels(lists)
    for text in problems + failed:
        say(f"{text}; tests that need it will skip, or use what the cache has")
    return not problems + failed


def differing(series: str, parts: list[Part]) -> list[str]:
    """Return a sentence that says which parts of a series have another version than its image."""
    if len({part.version for part in parts}) == 1:
        return []
    words = ", ".join(f"{part.kind} {part.package} {part.version or 'none'}" for part in parts)
    return [f"{series} cannot be had in one version: {words}"]


def fetch_part(series: str, part: Part) -> str:
    """Fetch one part in its version; return an empty string, or what went wrong."""
    what = f"{part.package}={part.version}"
    if not part.version:
        return ""
    try:
        if part.kind == "source":
            fetch_source(series, say, version=part.version)
        elif part.kind == "image":
            unpack_package(part.package, part.version)
        elif os.geteuid() == 0 and installed_version(part.package) != part.version:
            problem = apt_install(what)
            if problem:
                return f"no {what}: {problem}"
    except (LabError, OSError) as error:
        return f"no {what}: {error}"
    say(f"{part.kind} of {series}: {what}")
    return ""


def prepare_tests() -> bool:
    """Bring everything that the guest and oracle tests need; return whether all of it is there."""
    is_root = os.geteuid() == 0
    if not is_root:
        say("not root: nothing is installed; tests that need QEMU, busybox or kernel headers may skip")
    lists = Lists()
    lists.refresh_when_old()
    is_complete = install(PROGRAMS, lists) if is_root else all(map(installed_version, PROGRAMS))
    is_complete &= prepare_kernels(lists)
    fetch_newest()
    return is_complete


def header_packages_or_none() -> list[str]:
    """Return the header packages of the newest kernel that apt knows, or none when it cannot say."""
    try:
        images = candidates(find_kernel(f"{HEADERS_SERIES}-full"))
    except LabError:
        return []
    return [images[0].replace("linux-image-", "linux-headers-")] if images else []


def fetch_newest() -> None:
    """Fetch the newest kernel that Debian has, image and source of one version, if the mirror offers it."""
    try:
        options = apt_options([NEWEST_SUITE], say)
        names = candidates(replace(ANY_KERNEL, package_pattern=NEWEST_PATTERN), options)
        if not names:
            return
        version = newest_version(names[0], options)
        release = unpack_package(names[0], version, apt=options).release
        series = re.match(r"[0-9]+\.[0-9]+", release)
        say(f"kernel of {NEWEST_SUITE}: {release}")
        if series and version in known_versions(f"linux-source-{series[0]}", options):
            fetch_source(series[0], say, options, version)
        else:
            say(f"the source of {release} {version} is not in {NEWEST_SUITE}: it is not compared with it")
    except (LabError, OSError) as error:
        say(f"no kernel of {NEWEST_SUITE}: {error}; it is not compared with its source")


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
    lists = Lists()
    lists.refresh_when_old()
    names = header_packages_or_none()
    if not names and lists.refresh("apt knows no kernel headers"):
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
    asked = {"bench": BENCH_PROGRAMS, "spark": SPARK_PROGRAMS, "release": RELEASE_PROGRAMS}.get(
        " ".join(sys.argv[1:])
    )
    if asked is not None:
        if is_allowed and os.geteuid() == 0:
            install(asked, Lists())
        return 0
    if sys.argv[1:] != ["tests"]:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    stamp = Path(sys.prefix) / ".debian"
    since = max(Path(__file__).stat().st_mtime, time.time() - STALE_SECONDS)
    if stamp.exists() and stamp.stat().st_mtime > since:
        return 0
    if is_allowed:
        if prepare_tests():
            stamp.touch()
    else:
        say("no apt-get (or TRACEPOINT_APT=no): guest and oracle tests run with what is here")
    return 0


if __name__ == "__main__":
    sys.exit(main())
