"""Print the requirements of a dependency group of pyproject.toml, one a line (default: dev)."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(group: str) -> list[str]:
    """Return the group's requirements, those of the groups it includes among them."""
    groups = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["dependency-groups"]
    found: list[str] = []
    for item in groups[group]:
        found += [item] if isinstance(item, str) else requirements(item["include-group"])
    return found


if __name__ == "__main__":
    sys.stdout.write("\n".join(requirements(sys.argv[1] if len(sys.argv) > 1 else "dev")) + "\n")
