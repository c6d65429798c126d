"""The C modules, where there is a C compiler, manual pages, completions, and the page of a package index.

The rest is in pyproject.toml.

`TRACEPOINT_PURE=1` leaves the modules out, and with `TRACEPOINT_PURE=0` it is an error where one cannot be
compiled: a package that others install has them.  Why setuptools: docs/decisions/0015-build-of-the-core.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup  # it brings distutils, which Python has no more

from distutils.command.install_data import install_data  # isort: skip

#: The extension modules and the folder of each one's own files; headers of all stand in `csrc`.
# Filters are run where records are written, and where they are read.
SOURCES = {"tracepoint._core": ["csrc/*.c"], "tracepoint._decode": ["csrc/decode/*.c", "csrc/filter.c"]}
HEADERS = sorted(str(path) for path in Path("csrc").rglob("*.h"))
FLAGS = [
    "-std=gnu11",
    "-O2",
    "-fvisibility=hidden",
    "-pthread",
    f"-ffile-prefix-map={Path.cwd()}=.",
    "-Wno-missing-field-initializers",
]


def extensions() -> list[Extension]:
    """Return the extension modules; where one cannot be compiled, the package is installed without it."""
    wanted = os.environ.get("TRACEPOINT_PURE", "")
    if wanted not in ("", "0"):
        return []
    return [
        Extension(
            name,
            sorted(str(path) for pattern in patterns for path in Path().glob(pattern)),
            depends=HEADERS,
            extra_compile_args=FLAGS,
            extra_link_args=["-pthread", "-ldl"],  # a library of its own before glibc 2.34
            optional=not wanted,
        )
        for name, patterns in SOURCES.items()
    ]


class InstallCommandFiles(install_data):
    """Makes manual pages and completions from the parsers, and installs them below the prefix."""

    def run(self) -> None:
        """Make the files in the build folder; they need nothing but the package's own modules."""
        folder = Path(self.get_finalized_command("build").build_base).resolve() / "command-files"
        subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "tools/command_files.py", str(folder)],
            env=os.environ | {"PYTHONPATH": "src"},
            check=True,
        )
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        self.data_files = [(str(file.parent.relative_to(folder)), [str(file)]) for file in files]
        super().run()


def description() -> str:
    """Return README.md without links to files: a package index has none, and they have no public address."""
    return re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", Path("README.md").read_text(encoding="utf-8"))


# The list of files is made at installation; setuptools asks for it only when there is some entry.
setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    ext_modules=extensions(),
    cmdclass={"install_data": InstallCommandFiles},
    data_files=[("share/man/man1", [])],
)
