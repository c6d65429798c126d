"""What git knows: the user's name, uncommitted changes, lines that changed since a revision."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.source.text import decode
from tracepoint.tree.opening import read_input

if TYPE_CHECKING:
    from collections.abc import Iterable

_SECONDS = 60


def git_setting(key: str) -> str:
    """Return a value of git's configuration, empty when there is none or no git."""
    return _git("config", "--get", key).strip()


def uncommitted(root: str, paths: Iterable[str]) -> list[str]:
    """Return the files of a tree with uncommitted changes; none without git."""
    shown = _git("-C", root, "status", "--porcelain", "-z", "--", *paths)
    return [entry[3:] for entry in shown.split("\0") if entry]


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file of a git tree that differs from a revision; `commit` is empty when it is untracked."""

    top: Path
    name: str
    commit: str

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.top / self.name

    def added_lines(self) -> range | frozenset[int]:
        """Return the numbers of the lines that were added or changed since the revision."""
        if not self.commit:
            return range(1, read_input(self.path).count(b"\n") + 2)
        place = f":(top,literal){self.name}"
        diff = _git_or_raise(self.top, "diff", *_PLAIN, "-U0", self.commit, "--", place)
        hunks = filter(None, map(_HUNK.match, diff.split("\n")))
        return frozenset(n for hunk in hunks for n in range(int(hunk[1]), int(hunk[1]) + int(hunk[2] or 1)))


def changed_files(paths: Iterable[Path], revision: str) -> list[ChangedFile]:
    """Return the files at these paths that differ from a revision of their git trees.

    Uncommitted changes and untracked files count; deleted files do not.
    Raises TracepointError without git, outside a git tree, and for a revision that does not exist.
    """
    changed: dict[Path, ChangedFile] = {}
    for path in paths:
        folder = path if path.is_dir() else path.parent
        top = Path(_git_or_raise(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        commit = _git_or_raise(folder, *words, failure=f"{top}: no revision {revision!r}").strip()
        below = path.resolve().relative_to(top.resolve()).as_posix()
        place = ":(top)" if below == "." else f":(top,literal){below}"
        known = _git_or_raise(
            top, "diff", *_PLAIN, "--name-only", "-z", "--diff-filter=d", commit, "--", place
        )
        new = _git_or_raise(top, "ls-files", "--others", "--exclude-standard", "-z", "--", place)
        files = [ChangedFile(top, name, commit) for name in known.split("\0") if name]
        files += [ChangedFile(top, name, "") for name in new.split("\0") if name]
        changed |= {file.path: file for file in files}
    return list(changed.values())


def git_top(folder: Path) -> Path | None:
    """Return the git tree that a folder is in, or None."""
    top = _git("-C", str(folder), "rev-parse", "--show-toplevel").rstrip("\n")
    return Path(top).resolve() if top else None


def introduced_by(root: Path, name: str, line: int) -> str:
    """Return the commit of a line of a file, as `Fixes:` names it; empty when git does not know it."""
    if git_top(root) != root.resolve():
        return ""
    said = _git("-C", str(root), "blame", "--porcelain", "-L", f"{line},{line}", "--", name)
    commit = said.partition(" ")[0]
    summary = re.search(r"^summary (.*)$", said, re.MULTILINE)
    is_known = commit.strip("0") and summary is not None and "\nboundary\n" not in said
    return f'{commit[:12]} ("{summary[1]}")' if is_known and summary is not None else ""


_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules")
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


def _git_or_raise(folder: Path, *words: str, failure: str = "") -> str:
    """Return git's output; raises TracepointError with its message, or with `failure`."""
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, and a revision after --end-of-options
            ["git", "-C", str(folder), *words],  # noqa: S607 - the user's git
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TracepointError(f"git cannot be run: {error}") from error
    if done.returncode:
        said = decode(done.stderr).strip().split("\n")[-1]
        raise TracepointError(failure or f"{folder}: {said or 'git failed'}")
    return decode(done.stdout)


def _git(*words: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, and paths after --
            ["git", *words],  # noqa: S607 - the user's git
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return decode(done.stdout) if done.returncode == 0 else ""
