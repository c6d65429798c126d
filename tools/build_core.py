"""Compile the C modules of a checkout without a build system: for tests, benchmarks and trying things.

`python tools/build_core.py FOLDER [CFLAGS...]` leaves `_core.*.so` in FOLDER, the core of the runtime.
Installing the package builds all modules with setuptools instead (setup.py).
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

HERE = Path(__file__).resolve().parent.parent / "csrc"
# As in setup.py.
SOURCES = {"_core": ["*.c"], "_decode": ["decode/*.c", "filter.c"]}
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
FLAGS = ["-std=gnu11", "-O2", "-g", "-fvisibility=hidden", *WARNINGS]
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


def find_compiler() -> str | None:
    """Return the path of a C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def why_not() -> str:
    """Return the reason why the core cannot be compiled here, or an empty string."""
    if find_compiler() is None:
        return "no C compiler: install gcc"
    header = Path(sysconfig.get_path("include")) / "Python.h"
    return "" if header.exists() else f"{header} is missing: install Python's headers"


def build(folder: Path, *flags: str, name: str = "_core") -> Path:
    """Compile a module into `folder` and return the extension's path."""
    target = folder / f"{name}{SUFFIX}"
    include = f"-I{sysconfig.get_path('include')}"
    command = [str(find_compiler()), *FLAGS, *flags, "-fPIC", "-shared", "-pthread", include]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / target.name
        sources = sorted(str(path) for pattern in SOURCES[name] for path in HERE.glob(pattern))
        subprocess.run([*command, *sources, "-o", str(made)], check=True)
        made.replace(target)
    return target


def build_once(cache: Path, *flags: str, name: str = "_core") -> Path:
    """Return the extension for these sources and flags, compiled now or in an earlier run."""
    texts = [path.read_bytes() for path in sorted(HERE.rglob("*.[ch]"))]
    parts = [repr((name, FLAGS, flags)).encode(), sys.version.encode(), *texts]
    folder = cache / f"tracepoint-core-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:16]}"
    target = folder / f"{name}{SUFFIX}"
    return target if target.exists() else build(folder, *flags, name=name)


def load(path: Path) -> ModuleType:
    """Load the extension as `tracepoint._core` or `tracepoint._decode`; a process can load the first once."""
    name = f"tracepoint.{path.name.removesuffix(SUFFIX)}"
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    if spec is None:
        raise ImportError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[name] = module
    return module


if __name__ == "__main__":
    sys.stdout.write(f"{build(Path(sys.argv[1]), *sys.argv[2:])}\n")
