"""Guests and recordings that the tests share: one boot serves many tests."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from guest import patched as patched_kernels
from guest import recording
from tracepoint.errors import LabError
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.lab.guest import qemu
from tracepoint.lab.kernels import packages
from tracepoint.tree.cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

# Enough for hundreds of kinds of events in two minutes; the other parts of the workload need
# programs that are not on every machine.
PARTS = "^(01|10|11|12|20)"


def kernel_or_skip(name: str) -> packages.KernelImage:
    """Return kernel `name`; skip, saying what is missing, where guests cannot be had.

    With TRACEPOINT_NEED_GUESTS set (CI sets it where the packages are installed) nothing is skipped.
    """
    try:
        qemu.find_program()
        lab_guest.static_busybox()
        return packages.fetch_kernel(name)
    except LabError as error:
        if os.environ.get("TRACEPOINT_NEED_GUESTS"):
            raise
        pytest.skip(f"no guest: {error}")


@pytest.fixture(scope="session", params=["6.1", "6.12"])
def guest(request: pytest.FixtureRequest) -> Iterator[lab_guest.Guest]:
    """A booted cloud kernel, one for all tests of the session."""
    kernel_or_skip(request.param)
    with lab_guest.boot(request.param) as one:
        yield one


@pytest.fixture(
    scope="session", params=[pytest.param(name, marks=pytest.mark.slow) for name in ("6.1", "6.12")]
)
def patched(request: pytest.FixtureRequest) -> Iterator[lab_guest.Guest]:
    """A booted kernel of ours with the swap and trap events, one for all tests of the session.

    Built when the cache has none: some minutes for the first of a version.
    """
    kernel_or_skip(request.param)
    name = patched_kernels.build(request.param)
    with lab_guest.boot(name, memory_mb=patched_kernels.MEMORY_MB) as one:
        yield one


@pytest.fixture(scope="session", params=[pytest.param("6.1-full", marks=pytest.mark.slow)])
def recorded(request: pytest.FixtureRequest) -> Path:
    """A recording of the full 6.1 kernel: taken from the cache, or made now (about three minutes).

    A recording in the cache counts when it was made from the same kernel package by the same workload.
    """
    image = kernel_or_skip(request.param)
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the guest's programs")
    package = f"{image.package}_{image.version}"
    folder = cache_folder() / "recordings" / f"{package}-{recording.workload_hash()}"
    if not (folder / "info.json").exists():
        recording.record(request.param, folder, PARTS)
    return folder


@pytest.fixture
def show_figure():
    """Print a figure that others count too beside ours, as tables of pages have them: `pytest -s` shows it."""

    def show(name: str, counted: object, analysed: object) -> None:
        sys.stdout.write(f"\n{name}: counted {counted}, analysis {analysed}")

    return show
