"""One atheris process: fuzz_one.py TARGET FOLDER [libFuzzer options and corpus folders].

FOLDER has the C modules to use, built with sanitizers and coverage; "-" for those that are installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "tools")]
with atheris.instrument_imports(include=["tracepoint"]):
    if sys.argv[2] != "-":
        import build_core

        for module in sorted(Path(sys.argv[2]).glob(f"*{build_core.SUFFIX}")):
            build_core.load(module)
    import targets


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    name = sys.argv[1]

    def one_input(data: bytes) -> None:
        targets.run_target(name, data)

    atheris.Setup([sys.argv[0], *sys.argv[3:]], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
