"""Python for a guest: the interpreter, the modules that are used, and our package, as files of a ram disk."""

from __future__ import annotations

import importlib.util
import json
import py_compile
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SITE = "/py/site"
# What the driver and the command line load, also what they load only when it is needed.
LOAD = """
import sys, json, pkgutil
sys.path[:0] = [{tests!r}, {src!r}]
import control.in_guest, concurrent.futures.thread, concurrent.futures.process, decimal, difflib, platform, encodings.idna, encodings.ascii, encodings.latin_1, runpy, subprocess, tarfile, traceback
import tracepoint.cli.main as main, tracepoint.cli.kernel.flight, tracepoint.cli.kernel.rotating, tracepoint.cli.trace.follow
import tracepoint.control as control, tracepoint.decode as decode, tracepoint.tracefile as tracefile
import tracepoint.cli.kernel.dataset
for room in (control, decode, tracefile):
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        __import__(module.name)
for name in "list enable disable filter trigger hist record stream top restore read".split():
    main._load(main.COMMANDS[name])
import site
modules = sorted({{m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None)}})
print(json.dumps({{"site": site.getsitepackages()[0], "modules": modules}}))
"""
COMMAND = "import sys\nfrom tracepoint.cli.main import main\nsys.exit(main())\n"


def python_files() -> dict[str, bytes]:
    """Return path -> content of everything that `python -m control.in_guest` needs; 10 to 20 MB."""
    program = str(Path(sys._base_executable).resolve())
    script = LOAD.format(tests=str(ROOT / "tests"), src=str(ROOT / "src"))
    done = subprocess.run(
        [program, "-I", "-S", "-B", "-c", script], capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    modules = [Path(name) for name in told["modules"]] + [ROOT / "src/tracepoint/__main__.py"]
    files = {program: Path(program).read_bytes()}
    for path in modules:
        files.update(_module(path))
    shared = [program, *(str(path) for path in modules if path.suffix == ".so")]
    for library in libraries(shared):
        files[library] = Path(library).read_bytes()
    stdlib = sysconfig.get_path("stdlib")
    # Where these are missing the interpreter says that it cannot find itself.
    files[f"{stdlib}/lib-dynload/.keep"] = b""
    files["/bin/python3"] = (
        f'#!/bin/sh\nPYTHONPATH={SITE} PYTHONDONTWRITEBYTECODE=1 exec {program} "$@"\n'.encode()
    )
    # As pip installs a command: the interpreter without a shell before it, and the module by its path.
    files["/bin/tracepoint"] = f"#!{program}\n{COMMAND}".encode()
    files[f"{told['site']}/tracepoint.pth"] = f"{SITE}\n".encode()
    return files


def package_files(name: str) -> dict[str, bytes]:
    """Return the files of an installed package with compiled modules, none where it is not installed."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return {}
    folder = Path(spec.origin).parent
    files = {f"{SITE}/{name}/{path.name}": path.read_bytes() for path in folder.iterdir() if path.is_file()}
    shared = [str(path) for path in folder.glob("*.so")]
    return files | {library: Path(library).read_bytes() for library in libraries(shared)}


# Without what it would use if it were there.
IMPORTED = """
import sys, json
sys.modules["numpy"] = None
import {name}
print(json.dumps(sorted({{m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None)}})))
"""


def imported_files(name: str) -> dict[str, bytes]:
    """Return the files that importing a module reads, with its libraries; none where it is not installed."""
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        return {}
    program = [sys.executable, "-B", "-c", IMPORTED.format(name=name)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    packages = sysconfig.get_path("platlib")
    modules = json.loads(done.stdout)
    paths = {*modules, *libraries([path for path in modules if path.endswith(".so")])}
    return {path.replace(packages, SITE): Path(path).read_bytes() for path in paths}


def _module(path: Path) -> dict[str, bytes]:
    target = str(path)
    for folder in (ROOT / "src", ROOT / "tests"):
        if path.is_relative_to(folder):
            target = f"{SITE}/{path.relative_to(folder)}"
    found = {target: path.read_bytes()}
    if path.suffix == ".py":
        # Ready-made byte code saves seconds of an emulated processor.
        with tempfile.NamedTemporaryFile(suffix=".pyc") as made:
            py_compile.compile(
                str(path),
                made.name,
                dfile=target,
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
            found[importlib.util.cache_from_source(target)] = Path(made.name).read_bytes()
    return found


def libraries(programs: list[str]) -> set[str]:
    """Return the shared libraries that programs and modules load."""
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(?:=> |^\s+)(/\S+) \(0x", listed, re.MULTILINE))
