"""Build wheels for each Python of this machine and both C libraries: tools/wheels.py FOLDER [PYTHON...].

A C compiler that carries glibc 2.28 and musl (PyPI's `ziglang`) makes them, so they do not depend on the
C library of this machine; auditwheel checks it.  Each is built twice with the same bytes.  A wheel for glibc
is installed into an empty environment and tried with tools/smoke.py, one for musl where a Python for musl is
among the PYTHONs.  cibuildwheel builds the same, and for other processors, where there are containers
(pyproject.toml).
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from elftools.elf.elffile import ELFFile
from release import digest, fixed_environment, head_epoch, run, unpack_head

#: A C library's target of the compiler, and the platform that its wheels are for.
LIBRARIES = {
    "glibc": ("x86_64-linux-gnu.2.28", "manylinux_2_28_x86_64"),
    "musl": ("x86_64-linux-musl", "musllinux_1_2_x86_64"),
}
NAMES = [f"python3.{minor}{kind}" for minor in range(11, 15) for kind in ("", "t") if minor > 12 or not kind]
#: Prints what names the wheels of a Python, and the C library that it runs on.
DESCRIBE = """
import platform, sys, sysconfig
kind = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
suffix = sysconfig.get_config_var("EXT_SUFFIX")
print(f"cp3{sys.version_info.minor}{kind}", "musl" if "musl" in suffix else "glibc", suffix)
"""


@dataclass(frozen=True)
class Python:
    """An interpreter: the tag of its ABI, such as `cp313t`, its C library, the ending of its modules."""

    path: Path
    abi: str
    library: str
    suffix: str

    @classmethod
    def at(cls, path: Path) -> Python:
        """Ask an interpreter what it is."""
        return cls(path, *run(path, "-c", DESCRIBE).split())


def starts(path: Path) -> bool:
    """Return whether a Python starts: version managers leave programs that only say "not active"."""
    command = [path, "-c", "import zlib"]
    return subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode == 0


def find_pythons() -> list[Python]:
    """Return one interpreter of each name that is on PATH or that a version manager has, if it starts."""
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for name in NAMES:
        paths = [Path(path) for path in [shutil.which(name)] if path] + sorted(managed.glob(f"*/bin/{name}"))
        usable = [path for path in paths if starts(path)]
        found += [Python.at(path) for path in usable[:1]]
    return found


def write_compiler(folder: Path, library: str) -> dict[str, str]:
    """Write a script that compiles for a C library; return the environment that has setuptools use it."""
    target, _ = LIBRARIES[library]
    script = folder / f"cc-{library}"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang cc -target {target} "$@"\n')
    script.chmod(0o755)
    return {"CC": str(script), "LDSHARED": f"{script} -shared -Wl,-s"}


def tag_wheel(built: Path, library: str, environment: dict[str, str]) -> None:
    """Write a wheel into the folder above it, named for what it runs on; end when it needs more than that."""
    platform = LIBRARIES[library][1]
    environment = environment | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    if library == "glibc":
        repair = (sys.executable, "-m", "auditwheel", "repair", "--plat", platform, "--only-plat")
        run(*repair, "-w", built.parent.parent, built, **environment)
        return
    # auditwheel knows musl only by the name that Alpine gives it.
    needed = needed_libraries(built)
    if needed != {"libc.so"}:
        sys.exit(f"wheels: {built.name} needs {', '.join(sorted(needed))}, and not musl's libc.so alone")
    run(sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", platform, built, **environment)
    (tagged,) = built.parent.glob("*.whl")
    tagged.rename(built.parent.parent / tagged.name)


def needed_libraries(wheel: Path) -> set[str]:
    """Return the libraries that the modules of a wheel are linked with."""
    needed = set()
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if name.endswith(".so"):
                section = ELFFile(io.BytesIO(files.read(name))).get_section_by_name(".dynamic")
                needed |= {tag.needed for tag in section.iter_tags("DT_NEEDED")}
    return needed


def build(python: Python, library: str, folder: Path, epoch: str) -> Path:
    """Build HEAD in `folder` for a Python and a C library; return the wheel, named for what it runs on."""
    unpack_head(folder)
    environment = fixed_environment(epoch) | write_compiler(folder, library)
    environment["SETUPTOOLS_EXT_SUFFIX"] = python.suffix.replace(
        "gnu.so", "musl.so" if library == "musl" else "gnu.so"
    )
    venv, out = folder / "venv", folder / "out"
    run("sh", "tools/make-venv", python.path, venv)
    run(
        venv / "bin/python",
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-w",
        out / "as-built",
        folder,
        **environment,
    )
    (built,) = (out / "as-built").glob("*.whl")
    tag_wheel(built, library, environment)
    (wheel,) = out.glob("*.whl")
    return wheel


def try_wheel(python: Python, wheel: Path, folder: Path) -> None:
    """Install a wheel where nothing else is, without an index, and try it."""
    if python.library == "glibc":
        run("sh", "tools/make-venv", python.path, folder)
        run(folder / "bin/python", "-m", "pip", "install", "-q", "--no-index", wheel)
        print(run(folder / "bin/python", "tools/smoke.py"), end="")
        return
    # A Python for musl need not have what pip needs: pip of this one chooses the wheel by its name.
    version, abi = python.abi.removeprefix("cp").rstrip("t"), python.abi
    chosen = ("--platform", LIBRARIES["musl"][1], "--python-version", version, "--abi", abi)
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        *chosen,
        "--no-deps",
        "--target",
        folder,
        wheel,
    )
    print(run(python.path, "tools/smoke.py", PYTHONPATH=str(folder)), end="")


def main(target: Path, pythons: list[Python]) -> None:
    """Build, compare and try all wheels, and keep them in `target`."""
    epoch = head_epoch()
    builders = {python.abi: python for python in pythons if python.library == "glibc"}
    trying = {(python.abi, python.library): python for python in pythons}
    untried = []
    target.mkdir(exist_ok=True)
    for abi, python in builders.items():
        for library in LIBRARIES:
            with TemporaryDirectory() as name:
                wheel = build(python, library, Path(name) / "one", epoch)
                if digest(wheel) != digest(build(python, library, Path(name) / "two/longer", epoch)):
                    sys.exit(f"wheels: {wheel.name} is not the same when built again")
                if tester := trying.get((abi, library)):
                    try_wheel(tester, wheel, Path(name) / "try")
                else:
                    untried.append(wheel.name)
                shutil.copyfile(wheel, target / wheel.name)
                print(f"{digest(wheel)}  {target / wheel.name}", flush=True)
    for name in untried:
        print(f"wheels: {name} is not tried: no such Python is here")
    count = len(LIBRARIES) * len(builders)
    print(f"wheels: {count} built twice with the same bytes, {count - len(untried)} tried")


if __name__ == "__main__":
    named = [Python.at(Path(word)) for word in sys.argv[2:]]
    main(Path(sys.argv[1]).resolve(), find_pythons() + named)
