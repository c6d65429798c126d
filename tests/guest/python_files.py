"""This machine's Python for a guest: the interpreter, what it is linked with, and the modules a script needs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
PYTHON = Path(sys._base_executable).resolve()
_LIST = "import json, sys; {imports}; print(json.dumps([m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)]))"


def python_files(imports: str) -> dict[str, bytes]:
    """Return the files, by their paths here, that `PYTHON` needs to run `imports` (a line of Python).

    Run it in the guest with PYTHONPATH set to `SOURCE`.
    """
    listed = subprocess.run(
        [PYTHON, "-c", _LIST.format(imports=imports)],
        env={"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    paths = {Path(name) for name in json.loads(listed.stdout)}
    # What tells the interpreter where its library is, and what it reads before the first import.
    paths |= {Path(json.__file__).parents[1] / "os.py", Path(json.__file__)}
    objects = [PYTHON, *(path for path in paths if ".so" in path.suffixes)]
    for path in objects:
        paths |= _libraries(path)
    return {str(path): path.read_bytes() for path in (PYTHON, *paths) if path.is_file()}


def _libraries(path: Path) -> set[Path]:
    shown = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return {Path(name) for name in re.findall(r"(/\S+) \(0x", shown)}
