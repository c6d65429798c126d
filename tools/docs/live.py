"""The live page: a pasted TRACE_EVENT is checked and simulated in the browser, by the package itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from npm import NpmError, fetch_package

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = Path(__file__).resolve().parent / "live"
#: What Pyodide loads; its other files are for consoles and compilers.
_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
_MISSING = """
```{{warning}}
This copy of the site was built without Python for the browser ({reason}). On your machine,
`tracepoint try header.h` shows the same.
```
"""


def live_form() -> str:
    """Return what docs/live.md goes on with: the form, or where there is no Pyodide, that and why."""
    try:
        fetch_package("pyodide")
    except NpmError as error:
        return _MISSING.format(reason=error)
    form = (PARTS / "form.html").read_text(encoding="utf-8")
    return f"\n```{{raw}} html\n{form}```\n"


def add_live_files(site: Path) -> None:
    """Write what the live page loads below `site`/_live: scripts, Pyodide, and the package as a wheel."""
    try:
        pyodide = fetch_package("pyodide")
    except NpmError as error:
        print(f"docs: the live page is built without Pyodide: {error}")
        return
    folder = site / "_live"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for part in ("live.css", "live.js", "worker.js", "pasted.py"):
        shutil.copyfile(PARTS / part, folder / part)
    for name in _PYODIDE:
        shutil.copyfile(pyodide / name, folder / name)
    shutil.copyfile(build_wheel(folder / "wheel"), folder / "tracepoint.whl")
    shutil.rmtree(folder / "wheel")


def build_wheel(folder: Path) -> Path:
    """Build the package without C modules as a wheel in `folder`; return its path.

    Raises SystemExit with the messages of setuptools when it fails.
    """
    with TemporaryDirectory() as place:
        for name in ("info", "build", "wheel"):
            (Path(place) / name).mkdir()
        # Nothing is left in the tree: its own build folder may hold files that are gone by now.
        command = [sys.executable, "setup.py", "-q", "egg_info", "-e", f"{place}/info"]
        command += ["build", "-b", f"{place}/build"]
        command += ["bdist_wheel", "-b", f"{place}/wheel", "-d", str(folder)]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {"TRACEPOINT_PURE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"docs: the wheel for the live page cannot be built:\n{done.stdout}{done.stderr}")
    return next(folder.glob("*.whl"))
