"""The C core for these tests: the installed one, or one compiled here when there is a compiler."""

import hashlib
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


def build_core(tmp_path_factory):
    """Compile the core, unless the same sources were compiled in an earlier run."""
    command = [find_compiler(), *FLAGS, "-fPIC", "-shared", "-pthread", f"-I{sysconfig.get_path('include')}"]
    texts = [p.read_bytes() for p in sorted((ROOT / "csrc").glob("*.[ch]"))]
    key = hashlib.sha256(b"\0".join([repr(command).encode(), sys.version.encode(), *texts])).hexdigest()[:16]
    # Beside this session's temporary folders, so that it goes when they go.
    folder = tmp_path_factory.getbasetemp().parent / f"tracepoint-core-{key}"
    target = folder / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not target.exists():
        folder.mkdir(exist_ok=True)
        made = tmp_path_factory.mktemp("core") / target.name
        subprocess.run([*command, *map(str, SOURCES), "-o", str(made)], check=True)
        made.replace(target)
    return target


def load_core(tmp_path_factory):
    """Return `tracepoint._core`; a process can load it once."""
    if "core" not in _loaded:
        if importlib.util.find_spec("tracepoint._core") is not None:
            _loaded["core"] = importlib.import_module("tracepoint._core")
            return _loaded["core"]
        target = build_core(tmp_path_factory)
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


RUNTIME = ("core", "probes", "hierarchy", "event")


@pytest.fixture(params=["c", "twin"])
def runtime(request, monkeypatch):
    """The runtime's modules, imported anew over the C core or the twin: an own hierarchy for each test."""
    if request.param == "c":
        request.getfixturevalue("c_core")
        monkeypatch.delenv("TRACEPOINT_PURE", raising=False)
    else:
        monkeypatch.setenv("TRACEPOINT_PURE", "1")
    for name in RUNTIME:
        monkeypatch.delitem(sys.modules, f"tracepoint.runtime.{name}", raising=False)
    event = importlib.import_module("tracepoint.runtime.event")
    assert event.Tracepoint is sys.modules["tracepoint.runtime.core"].Tracepoint
    assert sys.modules["tracepoint.runtime.core"].IS_PURE is (request.param == "twin")
    event.tracing.clear_faults()
    yield event
    event.tracing.disable_all()
    event.tracing.clear_faults()
