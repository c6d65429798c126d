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


def test_a_colon_in_the_name_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "x:y.h").touch()
    assert split_event(f"{tmp_path}/x:y.h") == (f"{tmp_path}/x:y.h", "")
    assert split_event(f"{tmp_path}/x:y.h:tick") == (f"{tmp_path}/x:y.h", "tick")
    assert split_event(f"{tmp_path}/x:y.h:demo:tick") == (f"{tmp_path}/x:y.h", "demo:tick")
