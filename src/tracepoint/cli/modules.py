"""`tracepoint --version -v`: which Python runs, and which C modules."""

from __future__ import annotations

import platform
import sys
import warnings
from typing import TYPE_CHECKING

from tracepoint.record.extension import EXTENSIONS, load_extension

if TYPE_CHECKING:
    from tracepoint.cli.output import Output


def show_modules(out: Output) -> None:
    """Print which Python runs, and which C modules are in use or replaced by their twins."""
    out.line(f"Python {platform.python_version()}, {sys.executable}")
    for name in EXTENSIONS:
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            module = load_extension(name, "its twin in Python is used")
        why = "TRACEPOINT_PURE is set: its twin in Python is used"
        if raised:
            why = str(raised[0].message).removeprefix(f"the C module tracepoint.{name} ")
        out.line(f"tracepoint.{name}: {module.__file__ if module else why}")
