"""The C core for these tests: the installed one, or one compiled here when there is a compiler."""

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "csrc").glob("*.c"))
FLAGS = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]

_loaded = {}


def find_compiler():
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def why_no_core():
    """Return a reason why there is no C core here, or an empty string."""
    if importlib.util.find_spec("tracepoint._core") is not None:
        return ""
    if not SOURCES:
        return "csrc/ is not here: run the tests from a checkout"
    if find_compiler() is None:
        return "no C compiler: install gcc to test the C core"
    include = Path(sysconfig.get_path("include")) / "Python.h"
    return "" if include.exists() else f"{include} is missing: install the Python headers"


def load_core(tmp_path_factory):
    """Return `tracepoint._core`; a process can load it once."""
    if "core" not in _loaded:
        if importlib.util.find_spec("tracepoint._core") is not None:
            _loaded["core"] = importlib.import_module("tracepoint._core")
            return _loaded["core"]
        target = tmp_path_factory.mktemp("core") / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
        command = [
            find_compiler(),
            *FLAGS,
            "-fPIC",
            "-shared",
            "-pthread",
            f"-I{sysconfig.get_path('include')}",
        ]
        subprocess.run([*command, *map(str, SOURCES), "-o", str(target)], check=True)
        loader = importlib.machinery.ExtensionFileLoader("tracepoint._core", str(target))
        spec = importlib.util.spec_from_loader("tracepoint._core", loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules["tracepoint._core"] = module
        loader.exec_module(module)
        _loaded["core"] = module
    return _loaded["core"]


@pytest.fixture(scope="session")
def c_core(tmp_path_factory):
    reason = why_no_core()
    if reason:
        pytest.skip(reason)
    return load_core(tmp_path_factory)
