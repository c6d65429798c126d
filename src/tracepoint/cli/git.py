"""What git knows: the user's name, and changes of a tree that are not committed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tracepoint.source.text import decode

if TYPE_CHECKING:
    from collections.abc import Iterable

_SECONDS = 60


def git_setting(key: str) -> str:
    """Return a value of git's configuration, empty when there is none or no git."""
    return _git("config", "--get", key).strip()


def uncommitted(root: str, paths: Iterable[str]) -> list[str]:
    """Return which files of a tree have changes that are not committed; none without git."""
    shown = _git("-C", root, "status", "--porcelain", "-z", "--", *paths)
    return [entry[3:] for entry in shown.split("\0") if entry]


def _git(*words: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, and paths behind --
            ["git", *words],  # noqa: S607 - the user's git
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return decode(done.stdout) if done.returncode == 0 else ""
