"""What the tests of this room share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

SMALL = Path(__file__).parent / "small"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the small kernel tree, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "linux"
    shutil.copytree(SMALL, root)
    return root
