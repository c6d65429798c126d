"""What processes that start in a ring directory are asked to record: the file `followed` there.

`tracepoint record --py` writes it beside the rings of the process that it follows, so that workers that are
started and not forked (`spawn`, `forkserver`) record the same events with the same clock, also those that a
fork server forks which is older than the recording.  It counts as long as its writer holds a lock on it: what
a killed recorder left has no effect.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import warnings
from typing import TYPE_CHECKING, Self

from tracepoint.named import NamedTuple
from tracepoint.runtime.rings.options import DIRECTORY_VARIABLE
from tracepoint.runtime.shallow_json import read_shallow_json

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = "followed"
_MOST_BYTES = 1 << 20


class FollowedEvents(NamedTuple):
    """The clock of the recording, and the filter of each event by `system:event`, empty for none."""

    clock: str
    filters: Mapping[str, str]


class FollowedFolder:
    """Asks processes that start in a ring directory to record, until it is closed; raises OSError."""

    def __init__(self, directory: str, followed: FollowedEvents) -> None:
        self._path = f"{directory}/{_NAME}"
        new = f"{directory}/.{_NAME}-{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(new, flags, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            os.write(self._file, json.dumps(followed._asdict()).encode())
            os.replace(new, self._path)  # noqa: PTH105 - two names, no paths
        except OSError:
            os.unlink(new)  # noqa: PTH108 - as above
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Another recorder may have replaced it.
        with contextlib.suppress(OSError):
            if os.stat(self._path).st_ino == os.fstat(self._file).st_ino:  # noqa: PTH116 - as above
                os.unlink(self._path)  # noqa: PTH108 - as above
        os.close(self._file)


def read_followed(directory: str) -> FollowedEvents | None:
    """Return what a recorder asks processes of a ring directory for now, None where there is none.

    A file of another user, and one that no recorder wrote, is a warning and has no effect.
    """
    try:
        file = os.open(f"{directory}/{_NAME}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        _check_owner(os.fstat(file))
        return _parsed(os.read(file, _MOST_BYTES)) if _is_locked(file) else None
    except (OSError, ValueError) as error:
        warnings.warn(f"{directory}/{_NAME}: no effect: {error}", RuntimeWarning, stacklevel=2)
        return None
    finally:
        os.close(file)


def _check_owner(facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode) or facts.st_uid not in (0, os.geteuid()):
        raise ValueError("not a file of this user")


def _is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _parsed(data: bytes) -> FollowedEvents:
    match read_shallow_json(data):
        case {"clock": str(clock), "filters": dict(filters)}:
            if all(isinstance(text, str) for text in filters.values()):
                return FollowedEvents(clock, filters)
    raise ValueError("not what `tracepoint record` writes")


def asked_now() -> FollowedEvents | None:
    """Return what a recorder asks for now in the ring directory of this process, None where there is none."""
    directory = os.environ.get(DIRECTORY_VARIABLE)
    return read_followed(directory) if directory else None


#: What this process was asked for when it started.
FOLLOWED = asked_now()
