"""The live page: a pasted TRACE_EVENT is checked and simulated in the browser, by the package itself."""

from __future__ import annotations

import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from npm import NpmError, fetch_package
from reached import SOURCES, reached_files

PARTS = Path(__file__).resolve().parent / "live"
#: What Pyodide loads; its other files are for consoles and compilers.
_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json")
#: What neither Pyodide nor the package imports.
_LEFT_OUT = (
    "_pyrepl curses dbm doctest ensurepip ftplib idlelib imaplib mailbox multiprocessing pdb poplib profile "
    "pydoc pydoc_data smtplib sqlite3 tkinter turtle turtledemo unittest venv wsgiref xml xmlrpc"
)
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
    """Write what the live page loads below `site`/_live: scripts, Pyodide, and the modules of the package.

    Modules are bytecode of Pyodide's own Python, so that no browser has to compile them.
    """
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
    shutil.copyfile(standard_library(pyodide), folder / "python_stdlib.zip")
    with TemporaryDirectory() as place:
        sources = Path(place) / "tracepoint.zip"
        write_sources(sources)
        compile_modules(pyodide, sources, folder / "tracepoint.zip")


def write_sources(target: Path) -> None:
    """Write an archive of the modules that `tracepoint try` can import; rules are imported by their names."""
    rules = (SOURCES / "tracepoint/check/rules").glob("[!_]*.py")
    roots = [f"tracepoint.check.rules.{path.stem}" for path in rules]
    with ZipFile(target, "w") as archive:
        for path in reached_files("tracepoint.cli.main", "tracepoint.cli.declare.try_", *roots):
            archive.write(path, path.relative_to(SOURCES))


def standard_library(pyodide: Path) -> Path:
    """Return Python's own modules as bytecode, compiled once and kept beside the package."""
    compiled = pyodide.with_name(f"{pyodide.name}-{_digest()}.zip")
    if not compiled.exists():
        with TemporaryDirectory(dir=pyodide.parent) as place:
            compile_modules(pyodide, pyodide / "python_stdlib.zip", Path(place) / "new.zip", _LEFT_OUT)
            (Path(place) / "new.zip").replace(compiled)
    return compiled


def _digest() -> str:
    """Return what a kept archive depends on besides the version of Pyodide."""
    return sha256((PARTS / "bytecode.py").read_bytes() + _LEFT_OUT.encode()).hexdigest()[:12]


def compile_modules(pyodide: Path, archive: Path, target: Path, left_out: str = "") -> None:
    """Write `target`: the archive's modules as bytecode of Pyodide's Python, or as they are without Node.

    Raises SystemExit with Node's messages when that fails.
    """
    node = shutil.which("node")
    if node is None:
        print(f"docs: {target.name} is not compiled, so the live page starts slower: no node")
        shutil.copyfile(archive, target)
        return
    command = [node, str(PARTS / "bytecode.mjs"), str(pyodide), str(archive), str(target), left_out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"docs: {archive.name} cannot be compiled for the live page:\n{done.stderr[-2000:]}")
