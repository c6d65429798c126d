"""Nothing of these tests may reach this machine's own tracefs."""

from __future__ import annotations

import pytest

from tracepoint.control import files


@pytest.fixture(autouse=True)
def _no_tracefs_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("machine")
    mounts = folder / "mounts"
    mounts.write_text("proc /proc proc rw 0 0\n")
    monkeypatch.setattr(files, "MOUNTS", mounts)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
