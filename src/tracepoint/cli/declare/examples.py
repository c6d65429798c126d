"""The example headers that come with the package."""

from __future__ import annotations

from pathlib import Path

from tracepoint.errors import TracepointError

_FOLDER = Path(__file__).resolve().parents[2] / "examples"


def example_names() -> list[str]:
    """Return the names that `--example` takes."""
    return sorted(path.stem for path in _FOLDER.glob("*.h"))


def example_path(name: str) -> Path:
    """Return the header of an example; raises TracepointError, naming all, for an unknown one."""
    if name not in example_names():
        raise TracepointError(f"no example {name!r}; there are {', '.join(example_names())}")
    return _FOLDER / f"{name}.h"
