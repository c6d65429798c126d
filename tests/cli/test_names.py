"""Names of events and files as the command line takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracepoint.cli.names import split_event


def test_split_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd:name.h").touch()
    assert split_event("a.h:b") == ("a.h", "b")
    assert split_event("a.h") == ("a.h", "")
    assert split_event("odd:name.h") == ("odd:name.h", "")
