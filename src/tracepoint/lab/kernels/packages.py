"""Debian kernel packages, found, downloaded and unpacked without root into the user's cache."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.lab.build.sync import replace_file
from tracepoint.lab.kernels.supported import Kernel, find_kernel, version_key
from tracepoint.tree.cache import cache_folder, keep_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BUILT = "built:"
_DONE = ".complete"
_APT_LISTS = Path("/var/lib/apt/lists")
_APT_SETTINGS = (Path("/etc/apt"), Path("/etc/apt/sources.list.d"), Path("/etc/apt/preferences.d"))
_LISTS = "Dir::State::Lists="
_APT_SECONDS = 120
# Every kernel is smaller; larger files are something else and need not be read completely.
_IMAGE_BYTES = 1 << 29
_DOWNLOAD_SECONDS = 900
# In newer kernels (seen in 7.2) the image's package is empty and needs these, each of exactly one version.
_PART = re.compile(r"(linux-(?:binary|modules|base)-[a-z0-9.+~-]+) \(= ([^)]+)\)")


@dataclass(frozen=True, slots=True)
class KernelImage:
    """An unpacked kernel package.

    `release` is the value of `uname -r`, `image` the file that QEMU boots, `modules` the folder
    `lib/modules/<release>`, `package` and `version` say where it came from.
    """

    release: str
    image: Path
    modules: Path
    package: str
    version: str


def candidates(kernel: Kernel, apt: Sequence[str] = ()) -> list[str]:
    """Return the package names that apt, run with the options `apt`, knows for `kernel`, newest first.

    Raises LabError when apt is missing or fails.
    """
    listing = run_tool(
        ["apt-cache", *apt, "--names-only", "search", f"^{kernel.package_pattern}$"], _APT_SECONDS
    )
    names = {line.split(" ", 1)[0] for line in listing.splitlines()}
    matching = [name for name in names if re.fullmatch(kernel.package_pattern, name)]
    return sorted(matching, key=lambda name: (version_key(name), name), reverse=True)


def newest_version(package: str, apt: Sequence[str] = ()) -> str:
    """Return the version of `package` that apt would download, or raise LabError when there is none."""
    policy = run_tool(["apt-cache", *apt, "policy", package], _APT_SECONDS)
    found = re.search(r"^\s*Candidate:\s*(\S+)$", policy, re.MULTILINE)
    if found is None or found[1] == "(none)":
        raise LabError(f"apt has no version of {package} to download; `apt-get update` may help")
    return found[1]


def known_versions(package: str, apt: Sequence[str] = ()) -> list[str]:
    """Return the versions of `package` that apt can download, newest first; LabError when apt fails."""
    listing = run_tool(["apt-cache", *apt, "madison", package], _APT_SECONDS)
    return [words[1].strip() for line in listing.splitlines() if len(words := line.split("|")) > 2]


def fetch_kernel(name: str = "6.1", apt: Sequence[str] = ()) -> KernelImage:
    """Return the unpacked kernel `name`, downloading it when the cache does not hold it.

    `name` is one of `tracepoint.lab.kernels.supported.KERNELS`, a Debian package name, or `built:NAME` for a
    kernel of `tracepoint lab build`; `apt` are options for apt (`tracepoint.lab.kernels.suites`).  Raises
    LabError when apt, the network or dpkg-deb is missing; a kernel that is already in the cache
    needs none of them.
    """
    if name.startswith(BUILT):
        return built_kernel(name.removeprefix(BUILT))
    kernel = find_kernel(name)
    answer = _answer_path(kernel, apt)
    state = _state_of_apt(apt)
    known = _read_answer(answer, state)
    if known is not None:
        return known
    try:
        names = candidates(kernel, apt)
    except LabError:
        cached = cached_kernels(kernel)
        if cached:
            return cached[-1]
        raise
    if not names:
        cached = cached_kernels(kernel)
        if cached:
            return cached[-1]
        raise LabError(
            f"apt knows no package for kernel {name} ({kernel.package_pattern}); "
            + ("the suites asked for have none" if apt else "run `apt-get update`, or name a suite (--suite)")
        )
    version = newest_version(names[0], apt)
    image = unpack_package(names[0], version, apt=apt)
    with contextlib.suppress(OSError):
        answer.parent.mkdir(parents=True, exist_ok=True)
        replace_file(answer, json.dumps({"state": state, "package": names[0], "version": version}).encode())
    return image


def _answer_path(kernel: Kernel, apt: Sequence[str]) -> Path:
    """Return the file that remembers apt's package for a kernel: asking again takes a second."""
    digest = hashlib.sha256(repr((kernel.package_pattern, tuple(apt))).encode()).hexdigest()[:12]
    return cache_folder() / "apt/answers" / f"{kernel.name}-{digest}.json"


def _state_of_apt(apt: Sequence[str]) -> dict[str, int]:
    """Return when apt's data has changed: its lists and settings."""
    given = [Path(word.partition("=")[2]) for word in apt if word.startswith(_LISTS)]
    places = [path for folder in (given or [_APT_LISTS]) for path in (folder, *folder.glob("*Packages*"))]
    places += [path for folder in _APT_SETTINGS for path in (folder, *folder.glob("*"))]
    return {str(path): path.stat().st_mtime_ns for path in places if path.exists()}


def _read_answer(path: Path, state: Mapping[str, int]) -> KernelImage | None:
    """Return the kernel that apt named with the same data, if it is still here."""
    try:
        answer = json.loads(path.read_text())
        if answer["state"] != state:
            return None
        package, version = str(answer["package"]), str(answer["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    folder = package_folder(package, version)
    return _describe(folder, package, version) if (folder / _DONE).exists() else None


def cached_kernels(kernel: Kernel) -> list[KernelImage]:
    """Return the unpacked kernels in the cache that match `kernel`, oldest first."""
    images = []
    for done in (cache_folder() / "kernels").glob("*/" + _DONE):
        package, _, version = done.parent.name.rpartition("_")
        if re.fullmatch(kernel.package_pattern, package):
            images.append(_describe(done.parent, package, version))
    return sorted(images, key=lambda image: version_key(image.package))


def built_kernels() -> list[KernelImage]:
    """Return the kernels that `tracepoint lab build` has made, oldest first."""
    found = []
    for path in (cache_folder() / "built").glob("*/built.json"):
        try:
            described = json.loads(path.read_text())
            release, name, digest = (str(described[key]) for key in ("release", "name", "digest"))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        image = KernelImage(
            release, path.parent / "bzImage", path.parent / "modules", BUILT + name, digest[:12]
        )
        found.append((path.stat().st_mtime_ns, image))
    return [image for _, image in sorted(found, key=lambda pair: pair[0])]


def built_kernel(name: str) -> KernelImage:
    """Return the kernel last built under a name, or the one of exactly that folder's name.

    Raises LabError, naming those that there are.
    """
    images = built_kernels()
    for image in reversed(images):
        if name in (image.package.removeprefix(BUILT), image.image.parent.name):
            return image
    names = sorted({image.package.removeprefix(BUILT) for image in images})
    close = get_close_matches(name, names, n=1)
    there = ", ".join(BUILT + one for one in names) or "none was built yet"
    there = f"did you mean {BUILT}{close[0]}?" if close else f"there is {there}"
    raise LabError(f"no kernel {BUILT}{name}: {there}; `tracepoint lab build` makes one")


def image_file(path: Path) -> KernelImage:
    """Return any kernel image (bzImage or vmlinux) as one that a guest can boot.

    Its built-in modules are read from `modules.builtin` next to it or in the build folder above it; without
    one, the drivers of the lab are assumed to be built in.  Raises LabError when it is not a kernel.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_IMAGE_BYTES)
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from None
    found = re.search(rb"Linux version (\S+) ", data)
    if data[0x202:0x206] == b"HdrS":
        start = 0x200 + int.from_bytes(data[0x20E:0x210], "little")
        found = re.match(rb"(\S+)", data[start : start + 200])
    if found is None:
        raise LabError(f"{path}: not a kernel for this kind of machine (bzImage or vmlinux)")
    path = path.resolve()
    places = [folder for folder in path.parents[:4] if (folder / "modules.builtin").is_file()]
    if places:
        modules = places[0]
    else:
        modules = cache_folder() / "built" / "assumed"
        # At once: another process may read it right now.
        replace_file(modules / "modules.builtin", b"virtio_pci.ko\nvirtio_console.ko\n")
    return KernelImage(found[1].decode(errors="replace"), path, modules, str(path), "")


def unpack_package(
    package: str, version: str, archive: Path | None = None, *, apt: Sequence[str] = ()
) -> KernelImage:
    """Return `package` unpacked in the cache; `archive` is a local .deb file, else it is downloaded.

    Two processes may do this at the same time: each unpacks separately and the first rename wins.
    Raises LabError when the download or dpkg-deb fails, or when there is no kernel inside.
    """
    folder = package_folder(package, version)
    if not (folder / _DONE).exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="unpack-", dir=folder.parent) as scratch:
            deb = archive or download(package, version, Path(scratch), apt)
            tree = Path(scratch) / "tree"
            run_tool(["dpkg-deb", "-x", str(deb), str(tree)], _DOWNLOAD_SECONDS)
            _add_parts(deb, tree, apt)
            _describe(tree, package, version)
            (tree / _DONE).touch()
            keep_folder(tree, folder, _DONE)
    return _describe(folder, package, version)


def package_folder(package: str, version: str) -> Path:
    """Return the folder in the cache that an image's package is unpacked into."""
    return cache_folder() / "kernels" / f"{package}_{version.replace(':', '%3a')}"


def _add_parts(deb: Path, tree: Path, apt: Sequence[str]) -> None:
    """Unpack what an image's package is split into beside it: the kernel, its modules, its configuration."""
    depends = run_tool(["dpkg-deb", "-f", str(deb), "Depends"], _APT_SECONDS)
    for name, version in _PART.findall(depends):
        with TemporaryDirectory(prefix="part-", dir=tree.parent) as scratch:
            part = download(name, version, Path(scratch), apt)
            run_tool(["dpkg-deb", "-x", str(part), str(tree)], _DOWNLOAD_SECONDS)


def download(package: str, version: str, folder: Path, apt: Sequence[str] = ()) -> Path:
    """Download one package into `folder` and return its file; raises LabError when apt cannot."""
    run_tool(["apt-get", *apt, "download", f"{package}={version}"], _DOWNLOAD_SECONDS, folder)
    debs = sorted(folder.glob("*.deb"))
    if not debs:
        raise LabError(f"apt-get download {package}={version} left no .deb file behind")
    return debs[0]


def _describe(tree: Path, package: str, version: str) -> KernelImage:
    images = sorted((tree / "boot").glob("vmlinuz-*")) or sorted(tree.glob("usr/lib/modules/*/vmlinuz"))
    if not images:
        raise LabError(
            f"{package} {version} holds no boot/vmlinuz-*, nor usr/lib/modules/*/vmlinuz: not a kernel image"
        )
    image = images[0]
    release = image.parent.name if image.name == "vmlinuz" else image.name.removeprefix("vmlinuz-")
    for modules in (tree / "lib/modules" / release, tree / "usr/lib/modules" / release):
        if modules.is_dir():
            return KernelImage(release, image, modules, package, version)
    raise LabError(f"{package} {version} holds no lib/modules/{release}")


def run_tool(command: list[str], seconds: int, folder: Path | None = None) -> str:
    """Run one Debian tool for at most `seconds` and return its output; LabError says which failed and why."""
    try:
        done = subprocess.run(  # noqa: S603 (a fixed tool and a package name that matched a pattern)
            command,
            cwd=folder,
            capture_output=True,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise LabError(
            f"{command[0]} is not installed: kernels are fetched with Debian's package tools",
            " ".join(command),
        ) from None
    except subprocess.TimeoutExpired:
        raise LabError(f"{command[0]} did not end in {seconds} s (no network?)", " ".join(command)) from None
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        said = output + done.stderr.decode(errors="replace")
        tail = "\n".join(_telling(said.splitlines())[-8:])
        raise LabError(f"{command[0]} failed{_reason(said)}", " ".join(command), done.returncode, tail)
    return output


def _reason(said: str) -> str:
    """Return the explanation of a tool's failure, empty if its own message must do."""
    if "No space left on device" in said:
        advice = "make room, or let XDG_CACHE_HOME name a folder with more"
        return f": no space left on the disk of {cache_folder()}; {advice}"
    if "Temporary failure resolving" in said or "Could not connect" in said or "Could not resolve" in said:
        return ": no network, or the mirror is away; what is in the cache works without"
    return ""


def _telling(lines: Sequence[str]) -> list[str]:
    """Return the lines that say what is wrong, each once: apt repeats itself, tar names every file."""
    kept = [
        line
        for line in lines
        if not line.startswith(("Ign:", "Get:", "W: Download is performed unsandboxed"))
    ]
    full = [line for line in kept if "No space left on device" in line]
    return list(dict.fromkeys(full[:1] or kept))
