"""Kernel headers to build modules against: the machine's own, or Debian's unpacked without root."""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.lab.kernels.packages import BUILT, download, known_versions, newest_version, run_tool
from tracepoint.tree.cache import cache_folder, keep_folder
from tracepoint.tree.loader import source_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tracepoint.lab.kernels.packages import KernelImage

_DONE = ".complete"
_SECONDS = 300
# What a headers package needs of its own kind; the compiler is the machine's.
_NEEDED = re.compile(
    r"(linux-headers-[a-z0-9.+~-]+-common|linux-kbuild-[a-z0-9.+~-]+)(?: \([<>=]+ ([^)]+)\))?"
)
# How the Makefile of a headers package names the other half, and since 6.19 itself.
_INCLUDED = re.compile(r"^include /usr/src/", re.MULTILINE)
_OUTPUT = re.compile(r"^KBUILD_OUTPUT *:?= */usr/src/.*$", re.MULTILINE)
_HERE = "$(dir $(lastword $(MAKEFILE_LIST)))"
_SOURCES = Path("/usr/src")
_RELEASES = Path("/lib/modules")


def find_headers(image: KernelImage) -> Path | None:
    """Return the folder of headers for exactly this kernel: installed, else in the cache, else None."""
    if image.package.startswith(BUILT):
        return _built(image)
    cached = _cached(image)
    for folder in (
        _RELEASES / image.release / "build",
        _SOURCES / f"linux-headers-{image.release}",
        cached / "usr/src" / f"linux-headers-{image.release}",
    ):
        is_cached = cached in folder.parents
        if _is_usable(folder) and (not is_cached or (cached / _DONE).exists()):
            return folder
    return None


def fetch_headers(
    image: KernelImage, say: Callable[[str], None] = lambda _words: None, apt: Sequence[str] = ()
) -> Path:
    """Return the folder of headers for exactly this kernel, downloading Debian's when there are none.

    `say` is called with what is being fetched, `apt` are options for apt (`tracepoint.lab.kernels.suites`).
    Raises LabError when apt no longer has them or fails; nothing of them is then cached.
    """
    found = find_headers(image)
    if found is not None:
        return found
    if image.package.startswith(BUILT):
        raise LabError(
            f"the build folder of {image.package} holds another build by now: its headers are gone; "
            "repeat `tracepoint lab build` with the patches of this one"
        )
    package = f"linux-headers-{image.release}"
    version = _version_like(package, image, apt)
    folder = _cached(image)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="unpack-", dir=folder.parent) as scratch:
        tree = Path(scratch) / "tree"
        for name, wanted in [(package, version), *_needed(package, version, apt)]:
            say(f"fetching {name} {wanted}")
            run_tool(["dpkg-deb", "-x", str(download(name, wanted, Path(scratch), apt)), str(tree)], _SECONDS)
            for deb in Path(scratch).glob("*.deb"):
                deb.unlink()
        _relocate(tree)
        if not _is_usable(tree / "usr/src" / package):
            raise LabError(f"{package} {version} is not a headers package of this layout")
        (tree / _DONE).touch()
        keep_folder(tree, folder, _DONE)
    return folder / "usr/src" / package


def has_unsigned_char(headers: Path) -> bool:
    """Return whether a kernel's Makefile makes plain `char` unsigned, as since 6.2."""
    makefiles = [folder / "Makefile" for folder in source_folders(headers)]
    return any("-funsigned-char" in _text(path) for path in makefiles)


def read_texts(headers: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the texts of the named files (`include/...`) that exist in the headers."""
    found = {}
    for name in names:
        path = next((p for folder in source_folders(headers) if (p := folder / name).is_file()), None)
        if path is not None:
            found[name] = _text(path)
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else ""


def _cached(image: KernelImage) -> Path:
    return cache_folder() / "headers" / f"{image.release}_{image.version.replace(':', '%3a')}"


def _built(image: KernelImage) -> Path | None:
    """Return the objects of one of our kernels, unless something else was built there since."""
    described = json.loads((image.image.parent / "built.json").read_text())
    folder = cache_folder() / "built" / "trees" / str(described["tree"])
    try:
        state = json.loads((folder / "state.json").read_text())
    except (OSError, ValueError):
        return None
    objects = folder / "objects"
    is_same = str(state.get("digest", "")).startswith(image.version)
    return objects if is_same and _is_usable(objects) else None


def _is_usable(folder: Path) -> bool:
    return (folder / "include/generated/autoconf.h").is_file() and (folder / "Makefile").is_file()


def _version_like(package: str, image: KernelImage, apt: Sequence[str]) -> str:
    """Return the version of the headers package that fits the kernel; LabError when there is none."""
    versions = known_versions(package, apt)
    if image.version in versions:
        return image.version
    if not versions:
        raise LabError(
            f"there are no headers for kernel {image.release}: {package} is neither installed nor known to "
            "apt; run `apt-get update`, or take another kernel (`tracepoint lab kernels`)"
        )
    raise LabError(
        f"the headers of kernel {image.release} {image.version} are gone: apt has {package} "
        f"{', '.join(versions)}; fetch the newer kernel (`tracepoint lab get`)"
    )


def _needed(package: str, version: str, apt: Sequence[str]) -> list[tuple[str, str]]:
    """Return name and version of the packages that a headers package includes files of."""
    shown = run_tool(["apt-cache", *apt, "show", f"{package}={version}"], _SECONDS)
    depends = re.search(r"^Depends: (.*)$", shown, re.MULTILINE)
    found = [_NEEDED.fullmatch(item.strip()) for item in (depends[1].split(",") if depends else ())]
    return [(m[1], m[2] if "(= " in m[0] else newest_version(m[1], apt)) for m in found if m]


def _relocate(tree: Path) -> None:
    """Make the Makefiles of an unpacked headers package find each other wherever they are."""
    for makefile in tree.glob("usr/src/linux-headers-*/Makefile"):
        text = makefile.read_text(errors="surrogateescape")
        moved = _INCLUDED.sub(f"include {_HERE}../", _OUTPUT.sub(f"KBUILD_OUTPUT := {_HERE}", text))
        if moved != text:
            makefile.write_text(moved, errors="surrogateescape")
