"""Build wheels for this machine's Pythons, both C libraries and two processors: wheels.py FOLDER [PYTHON...].

A C compiler that carries glibc 2.28 and musl (PyPI's `ziglang`) makes them, so they do not depend on the C
library of this machine; auditwheel checks that, and twine the metadata.  Each is built twice with the same
bytes.  A wheel for this machine is installed into an empty environment and tried with tools/smoke.py, any
other where a Python for it is among the PYTHONs: one that was compiled with musl, a script that runs one of
Arm in QEMU.  cibuildwheel builds the same where there are containers (pyproject.toml).
"""

from __future__ import annotations

import io
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from elftools.elf.elffile import ELFFile
from release import digest, fixed_environment, head_epoch, run, unpack_head

#: Wheels need glibc 2.28 at least.
OLDEST_GLIBC = 28


@dataclass(frozen=True)
class Target:
    """What a wheel runs on: the processor, as Python names it, and the C library."""

    machine: str
    library: str

    @property
    def compiler(self) -> str:
        """Return the compiler's name of it, with the oldest glibc that is supported."""
        return f"{self.machine}-linux-{'musl' if self.library == 'musl' else f'gnu.2.{OLDEST_GLIBC}'}"

    @property
    def platform(self) -> str:
        """Return the platform that its wheels are named for."""
        named = "musllinux_1_2" if self.library == "musl" else f"manylinux_2_{OLDEST_GLIBC}"
        return f"{named}_{self.machine}"


TARGETS = [Target(machine, library) for machine in ("x86_64", "aarch64") for library in ("glibc", "musl")]
NAMES = [f"python3.{minor}{kind}" for minor in range(11, 15) for kind in ("", "t") if minor > 12 or not kind]
#: Prints what names the wheels of a Python, and the C library that it runs on.
DESCRIBE = """
import platform, sys, sysconfig
kind = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
library = "musl" if "musl" in sysconfig.get_config_var("EXT_SUFFIX") else "glibc"
print(f"cp3{sys.version_info.minor}{kind}", platform.machine(), library)
"""


@dataclass(frozen=True)
class Python:
    """An interpreter: the tag of its ABI, such as `cp313t`, and what it runs on."""

    path: Path
    abi: str
    target: Target

    @classmethod
    def at(cls, path: Path) -> Python:
        """Ask an interpreter what it is."""
        abi, machine, library = run(path, "-c", DESCRIBE).split()
        return cls(path, abi, Target(machine, library))

    @property
    def is_own(self) -> bool:
        """Return whether it is one of this machine's kind, which has what pip needs."""
        return self.target == OWN

    def suffix(self, target: Target) -> str:
        """Return the ending of C modules for this Python on a target."""
        library = "musl" if target.library == "musl" else "gnu"
        return f".cpython-{self.abi.removeprefix('cp')}-{target.machine}-linux-{library}.so"


#: What the Pythons that build run on.
OWN = Target(platform.machine(), "glibc")


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


def write_compiler(folder: Path, target: Target) -> dict[str, str]:
    """Write a script that compiles for a target; return the environment that has setuptools use it."""
    script = folder / f"cc-{target.platform}"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang cc -target {target.compiler} "$@"\n')
    script.chmod(0o755)
    # setuptools names the wheel for the processor that this says.
    host = f"linux-{target.machine}"
    return {"CC": str(script), "LDSHARED": f"{script} -shared -Wl,-s", "_PYTHON_HOST_PLATFORM": host}


def tag_wheel(built: Path, target: Target, environment: dict[str, str]) -> Path:
    """Return a wheel as it is named for what it runs on; end when it needs more than that."""
    environment = environment | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    if target.library == "glibc":
        # Of other processors auditwheel takes no platform: it says the oldest one that a wheel runs on.
        repaired = built.parent / "repaired"
        repair = (sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", "--only-plat")
        run(*repair, "-w", repaired, built, **environment)
        (built,) = repaired.glob("*.whl")
        oldest = re.search(rf"-manylinux_2_(\d+)_{target.machine}\.whl", built.name)
        if not oldest or int(oldest[1]) > OLDEST_GLIBC:
            sys.exit(f"wheels: {built.name} needs a glibc later than 2.{OLDEST_GLIBC}")
    elif (needed := needed_libraries(built)) != {"libc.so"}:
        # auditwheel knows musl only by the name that Alpine gives it.
        sys.exit(f"wheels: {built.name} needs {', '.join(sorted(needed))}, and not musl's libc.so alone")
    tags = (sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", target.platform)
    run(*tags, built, **environment)
    (tagged,) = built.parent.glob("*.whl")
    return tagged


def needed_libraries(wheel: Path) -> set[str]:
    """Return the libraries that the modules of a wheel are linked with."""
    needed = set()
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if name.endswith(".so"):
                section = ELFFile(io.BytesIO(files.read(name))).get_section_by_name(".dynamic")
                needed |= {tag.needed for tag in section.iter_tags("DT_NEEDED")}
    return needed


def build(python: Python, target: Target, venv: Path, folder: Path, epoch: str) -> Path:
    """Build HEAD in `folder` with a Python's `venv`; return the wheel, named for what it runs on."""
    unpack_head(folder)
    environment = fixed_environment(epoch) | write_compiler(folder, target)
    environment["SETUPTOOLS_EXT_SUFFIX"] = python.suffix(target)
    out = folder / "out"
    wheel = (venv / "bin/python", "-m", "pip", "wheel", "-q", "--no-deps")
    run(*wheel, "-w", out, folder, **environment)
    (built,) = out.glob("*.whl")
    return tag_wheel(built, target, environment)


def try_wheel(python: Python, wheel: Path, folder: Path) -> None:
    """Install a wheel where nothing else is, without an index, and try it."""
    if python.is_own:
        run("sh", "tools/make-venv", python.path, folder)
        run(folder / "bin/python", "-m", "pip", "install", "-q", "--no-index", wheel)
        print(run(folder / "bin/python", "tools/smoke.py"), end="")
        return
    # Another Python need not have what pip needs: pip of this one chooses the wheel by its name.
    version, abi = python.abi.removeprefix("cp").rstrip("t"), python.abi
    chosen = ("--platform", python.target.platform, "--python-version", version, "--abi", abi)
    install = (sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps")
    run(*install, *chosen, "--target", folder, wheel)
    print(run(python.path, "tools/smoke.py", PYTHONPATH=str(folder)), end="")


def main(target: Path, pythons: list[Python]) -> None:
    """Build, compare and try all wheels, and keep them in `target`."""
    epoch = head_epoch()
    builders = {python.abi: python for python in pythons if python.is_own}
    trying = {(python.abi, python.target): python for python in pythons}
    untried = []
    target.mkdir(exist_ok=True)
    for abi, python in builders.items():
        with TemporaryDirectory() as name:
            venv = Path(name) / "venv"
            run("sh", "tools/make-venv", python.path, venv)
            for wanted in TARGETS:
                folders = [Path(name) / wanted.platform, Path(name) / "again/longer" / wanted.platform]
                with ThreadPoolExecutor() as pool:
                    made = [pool.submit(build, python, wanted, venv, folder, epoch) for folder in folders]
                wheel, again = (future.result() for future in made)
                if digest(wheel) != digest(again):
                    sys.exit(f"wheels: {wheel.name} is not the same when built again")
                run(sys.executable, "-m", "twine", "check", "--strict", wheel)
                if tester := trying.get((abi, wanted)):
                    try_wheel(tester, wheel, Path(name) / f"try-{wanted.platform}")
                else:
                    untried.append(wheel.name)
                shutil.copyfile(wheel, target / wheel.name)
                print(f"{digest(wheel)}  {target / wheel.name}", flush=True)
    for name in untried:
        print(f"wheels: {name} is not tried: no such Python is here")
    count = len(TARGETS) * len(builders)
    tried = count - len(untried)
    print(f"wheels: {count} built twice with the same bytes, twine check passed, {tried} tried")


if __name__ == "__main__":
    named = [Python.at(Path(word)) for word in sys.argv[2:]]
    main(Path(sys.argv[1]).resolve(), find_pythons() + named)
