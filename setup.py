"""The C core, built when there is a C compiler; everything else about the package is in pyproject.toml.

`TRACEPOINT_PURE=1` leaves it out.  Why setuptools: docs/decisions/0015-build-of-the-core.md.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import Extension, setup

SOURCES = sorted(str(path) for path in Path("csrc").glob("*.c"))
HEADERS = sorted(str(path) for path in Path("csrc").glob("*.h"))
FLAGS = ["-std=gnu11", "-O2", "-fvisibility=hidden", "-pthread", "-Wno-missing-field-initializers"]


def extensions() -> list[Extension]:
    """Return the core; where it cannot be compiled, the package is installed without it."""
    if os.environ.get("TRACEPOINT_PURE", "") not in ("", "0"):
        return []
    core = Extension(
        "tracepoint._core",
        SOURCES,
        depends=HEADERS,
        extra_compile_args=FLAGS,
        extra_link_args=["-pthread"],
        optional=True,
    )
    return [core]


setup(ext_modules=extensions())
