"""The C modules, built when there is a C compiler; everything else about the package is in pyproject.toml.

`TRACEPOINT_PURE=1` leaves them out.  Why setuptools: docs/decisions/0015-build-of-the-core.md.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import Extension, setup

#: The extension modules and the folder of each one's own files; headers of all stand in `csrc`.
# Filters are run where records are written, and where they are read.
SOURCES = {"tracepoint._core": ["csrc/*.c"], "tracepoint._decode": ["csrc/decode/*.c", "csrc/filter.c"]}
HEADERS = sorted(str(path) for path in Path("csrc").rglob("*.h"))
FLAGS = ["-std=gnu11", "-O2", "-fvisibility=hidden", "-pthread", "-Wno-missing-field-initializers"]


def extensions() -> list[Extension]:
    """Return the extension modules; where one cannot be compiled, the package is installed without it."""
    if os.environ.get("TRACEPOINT_PURE", "") not in ("", "0"):
        return []
    return [
        Extension(
            name,
            sorted(str(path) for pattern in patterns for path in Path().glob(pattern)),
            depends=HEADERS,
            extra_compile_args=FLAGS,
            extra_link_args=["-pthread"],
            optional=True,
        )
        for name, patterns in SOURCES.items()
    ]


setup(ext_modules=extensions())
