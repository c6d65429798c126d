"""One atheris process: fuzz_one.py TARGET [libFuzzer options and corpus folders]."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parent))
with atheris.instrument_imports(include=["tracepoint"]):
    import targets


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    name = sys.argv[1]

    def one_input(data: bytes) -> None:
        targets.run_target(name, data)

    atheris.Setup([sys.argv[0], *sys.argv[2:]], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
