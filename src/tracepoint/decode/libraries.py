"""Libraries that only some uses need, imported at their first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tracepoint.errors import TracepointError


def import_library(name: str, extra: str = "") -> Any:
    """Import a library; raises TracepointError that says how to install it, as an extra where it is one."""
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        what = f"'tracepoint[{extra}]'" if extra else package
        raise TracepointError(f"{package} is not installed: pip install {what}") from None
