"""Programs of this machine that are run to their end: compilers, and grep in kernel trees."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.errors import LabError
from tracepoint.source.text import decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TIMEOUT_S = 180


def run_program(
    command: Sequence[str], failure: str, folder: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program, its messages in English, and return what it said, whatever its exit status.

    Raises LabError, which begins with `failure`, when it is not installed or takes too long.
    """
    # The kernel's Makefile takes LC_ALL away.
    environment = {**os.environ, "LC_ALL": "C", "LC_MESSAGES": "C", "LANG": "C"}
    try:
        return subprocess.run(  # noqa: S603  the compiler of a kernel's own Kbuild, or grep in given folders
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise LabError(f"{failure}: {command[0]} is not installed", shlex.join(command)) from None
    except subprocess.TimeoutExpired:
        raise LabError(f"{failure}: it takes longer than {_TIMEOUT_S} s", shlex.join(command)) from None


def grep(options: str, files: str, words: Iterable[str], folders: Iterable[Path]) -> list[Path]:
    """Return the files below folders that contain one of some words or patterns.

    `options` are letters of grep such as `F` and `E`, `files` is a pattern of file names.
    """
    patterns = [part for word in words for part in ("-e", word)]
    command = ["grep", f"-rl{options}", f"--include={files}", *patterns, *map(str, folders)]
    done = run_program(command, "kernel files cannot be searched")
    return [Path(decode(line)) for line in done.stdout.splitlines()]
