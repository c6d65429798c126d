"""Try the package that this Python has, as its users start: PYTHON tools/smoke.py [CHECKOUT].

The commands and the program of README.md must print what it shows, a recording is read, and both C modules
must be there, or neither with TRACEPOINT_PURE=1, and leave the GIL off where it is.  Nothing but the package
is needed, and nothing is imported from CHECKOUT/src.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

from doc_blocks import run_page

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("tracepoint._core", "tracepoint._decode")


def modules() -> str:
    """Return what is wrong with the C modules, empty when they are as they should be."""
    wanted = [] if os.environ.get("TRACEPOINT_PURE", "") not in ("", "0") else list(MODULES)
    found = [name for name in MODULES if importlib.util.find_spec(name)]
    if found != wanted:
        return f"C modules: {', '.join(found) or 'none'}, not {wanted or 'none'}"
    for name in found:
        importlib.import_module(name)
    # A module that does not say that it needs no GIL turns it on for the whole process.
    is_free = sysconfig.get_config_var("Py_GIL_DISABLED") and "PYTHON_GIL" not in os.environ
    return f"{', '.join(found)} turned the GIL on" if is_free and sys._is_gil_enabled() else ""  # noqa: SLF001 - its name


def recording(root: Path) -> str:
    """Return what is wrong with a table of a recording, empty when it is right."""
    import tracepoint as tp  # noqa: PLC0415 - what is tried

    with tp.open_trace(root / "tests/tracefile/golden/cut.v6.dat") as trace:
        switches = trace.on_cpus(0).where('prev_comm ~ "sh*"')["sched_switch"]
        count, values = len(switches), switches["next_pid"].tolist()
    return "" if 0 < count == len(values) else f"cut.v6.dat: {count} switches, {len(values)} values"


def readme(root: Path) -> list[str]:
    """Return the commands of README.md that print something else, with what they print."""
    # A folder of a build has no scripts, and a Python may have no `python`: no other one may be found.
    with TemporaryDirectory() as name:
        for program, words in (("tracepoint", "-m tracepoint"), ("python", "")):
            if not (Path(sys.executable).parent / program).exists():
                script = Path(name) / program
                script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
                script.chmod(0o755)
        os.environ["PATH"] = f"{name}:{os.environ['PATH']}"
        steps = run_page(root / "README.md")
    if not steps:
        return ["README.md has no commands"]
    return [f"$ {step.command}\n{step.actual}" for step in steps if not step.is_true]


def main(root: Path) -> int:
    """Try everything, and print what was tried or what is wrong."""
    import tracepoint as tp  # noqa: PLC0415 - what is tried

    problems = [text for text in (modules(), recording(root), *readme(root)) if text]
    for problem in problems:
        print(f"smoke: {problem}")
    if not problems:
        kind = "free-threaded " if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
        python = f"{kind}Python {sys.version.split()[0]}"
        print(f"smoke: tracepoint {tp.__version__} in {Path(tp.__file__).parent} works with {python}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT))
