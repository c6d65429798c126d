"""The kernels we support: the single list for the lab, the documentation and CI."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tracepoint.errors import LabError


@dataclass(frozen=True, slots=True)
class Kernel:
    """One supported kernel and how its Debian package is found.

    `name` is what users type, `package_pattern` a regular expression over whole package names
    (the newest match is taken), `flavour` says which drivers it has (`cloud`: few, small to
    download; `full`: nearly all modules), `suite` the Debian suite that normally carries it.
    """

    name: str
    package_pattern: str
    flavour: str
    suite: str = "bookworm"


KERNELS = (
    Kernel("6.1", r"linux-image-6\.1\.0-[0-9]+-cloud-amd64", "cloud"),
    Kernel("6.1-full", r"linux-image-6\.1\.0-[0-9]+-amd64", "full"),
    Kernel("6.12", r"linux-image-6\.12\.[0-9]+[+]deb[0-9]+-cloud-amd64", "cloud"),
    Kernel("6.12-full", r"linux-image-6\.12\.[0-9]+[+]deb[0-9]+-amd64", "full"),
)

# Every kernel of a suite: no metapackages, debugging symbols or unsigned twins.
ANY_KERNEL = Kernel("any", r"linux-image-[0-9][a-z0-9.+~-]*-amd64", "full", suite="")


def find_kernel(name: str) -> Kernel:
    """Return the kernel called `name`, or one for the Debian package of exactly that name.

    Raises LabError, naming all, for anything else.

    >>> find_kernel("6.1").flavour
    'cloud'
    >>> find_kernel("linux-image-6.1.0-53-amd64").flavour
    'full'
    """
    for kernel in KERNELS:
        if kernel.name == name:
            return kernel
    if re.fullmatch(r"linux-image-[a-z0-9.+~-]+", name):
        flavour = "cloud" if "-cloud-" in name else "full"
        return Kernel(name, re.escape(name), flavour, suite="")
    known = ", ".join(kernel.name for kernel in KERNELS)
    raise LabError(f"unknown kernel {name!r}: use one of {known}, or the name of a linux-image package")


def version_key(package: str) -> tuple[int, ...]:
    """Return a key that sorts package names of one pattern from old to new.

    >>> version_key("linux-image-6.1.0-9-amd64") < version_key("linux-image-6.1.0-53-amd64")
    True
    """
    return tuple(int(number) for number in re.findall(r"[0-9]+", package))
