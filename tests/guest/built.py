"""What tests need that build kernels of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from guest.conftest import kernel_or_skip
from tracepoint.errors import LabError
from tracepoint.lab.build.make import check_tools
from tracepoint.lab.build.source import fetch_source

#: The version on which what does not depend on the version is tested.
KERNEL = "6.12"


def source_or_skip(kernel: str = KERNEL) -> Path:
    """Return the source of a kernel; skip, saying what is missing, where none can be built and booted.

    With TRACEPOINT_NEED_GUESTS set nothing is skipped.
    """
    kernel_or_skip(kernel)
    try:
        check_tools()
        return fetch_source(kernel)
    except LabError as error:
        if os.environ.get("TRACEPOINT_NEED_GUESTS"):
            raise
        pytest.skip(f"no kernel can be built: {error}")
