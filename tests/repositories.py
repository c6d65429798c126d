"""git repositories for tests: an environment of their own, whatever the machine's settings are."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "T",
    "GIT_AUTHOR_EMAIL": "t@example.org",
    "GIT_COMMITTER_NAME": "C",
    "GIT_COMMITTER_EMAIL": "c@example.org",
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
}
needs_git = pytest.mark.skipif(
    shutil.which("git") is None, reason="git is not installed: apt-get install git"
)


def git(folder: Path, *words: str) -> str:
    """What git prints when run in a folder; it must succeed."""
    done = subprocess.run(["git", *words], cwd=folder, env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def commit_all(folder: Path, message: str = "base") -> Path:
    """Put all that stands in a folder into a repository of its own, in one commit."""
    git(folder, "init", "-q", ".")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return folder
