"""Everything that ever broke us, run again."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def load_targets():
    spec = importlib.util.spec_from_file_location("fuzz_targets", HERE / "targets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_targets"] = module
    spec.loader.exec_module(module)
    return module


targets = load_targets()
CORPUS = sorted(path for path in (HERE / "corpus").glob("*/*") if path.name != ".keep")


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_broke_us(path: Path) -> None:
    targets.run_target(path.parent.name, path.read_bytes())


def test_corpus_folders_are_targets() -> None:
    assert {path.parent.name for path in CORPUS} <= set(targets.TARGETS)
