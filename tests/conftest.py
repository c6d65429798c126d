"""What all tests share: reproducible hypothesis runs, and a clean environment for the program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TRACEPOINT_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def root() -> Path:
    """The root of the repository."""
    return ROOT


# Programs beside the tests, which `make fuzz` runs with their own folder in the path.
collect_ignore_glob = ["fuzz/run.py", "fuzz/fuzz_one.py"]
