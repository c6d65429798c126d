"""The first fault of an event is reported, with the place of the call; all of them are counted."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import TYPE_CHECKING

from tracepoint.errors import FaultWarning
from tracepoint.runtime.fire import faults as twin_faults
from tracepoint.runtime.fire import twin

if TYPE_CHECKING:
    from types import FrameType

_WHAT = {
    "call": "was called wrongly",
    "record": "was called with a value that does not fit",
    "assign": "its assign() failed",
    "condition": "its condition failed",
    "probe": "a probe failed",
}
_OURS = frozenset({__file__, twin.__file__, twin_faults.__file__})


def warn_of_fault(event: str, where: str, text: str) -> None:
    """Warn of an event's first fault; where warnings are errors, log it: an event never raises."""
    frame = _caller()
    message = _writable(
        f"{event}: {_WHAT.get(where, where)}: {text}; further faults of this event are only counted"
    )
    try:
        if frame is None:
            warnings.warn(message, FaultWarning, stacklevel=1)
        else:
            module = frame.f_globals.get("__name__", "?")
            warnings.warn_explicit(message, FaultWarning, frame.f_code.co_filename, frame.f_lineno, module)
    except FaultWarning:
        place = "" if frame is None else _writable(f"{frame.f_code.co_filename}:{frame.f_lineno}: ")
        logging.getLogger("tracepoint").warning("%s%s", place, message)


def _writable(text: str) -> str:
    """Escape lone surrogates, with which a handler that writes UTF-8 would lose the whole message."""
    return text.encode(errors="backslashreplace").decode()


def _caller() -> FrameType | None:
    """Return the frame that called the event: the first that is not the mechanism's own."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - how warnings finds it too
    while frame is not None and frame.f_code.co_filename in _OURS:
        frame = frame.f_back
    return frame
