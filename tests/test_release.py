"""What is released: packages that are built again, checked by their own tools, installed and tried."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib

import pytest

import tracepoint
from oracles import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def make(target: str) -> str:
    """What `make TARGET` prints for HEAD."""
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=False).stdout:
        pytest.skip("the work tree has changes: commit first")
    done = subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_debian_has_the_version_of_the_package() -> None:
    text = (ROOT / "debian/changelog").read_text(encoding="utf-8")
    assert text.startswith(f"tracepoint ({tracepoint.__version__}) ")


def test_the_smoke_test_of_packages_works_here() -> None:
    command = [sys.executable, "tools/smoke.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"smoke: tracepoint {tracepoint.__version__} in ")


@pytest.mark.slow
def test_release_is_the_same_when_built_again() -> None:
    assert "built twice with the same bytes, twine check passed, installed and tried" in make("release")


@pytest.mark.slow
@pytest.mark.root
def test_debian_packages_have_no_fault_and_work_in_a_clean_system() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("needs root and a Debian mirror: mmdebstrap unpacks a system")
    text = make("deb")
    assert "no error or warning of lintian, installed in a clean system and tried there" in text
