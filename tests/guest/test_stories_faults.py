"""The page about page faults: its commands do what it says, on both kernels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from guest.pages import ROOT, bring, check_page

if TYPE_CHECKING:
    from tracepoint.lab.guest.machine import Guest

pytestmark = pytest.mark.guest


@pytest.fixture
def faulting(guest: Guest) -> Guest:
    """The guest with what the page's first command line gives it."""
    for name in ("lzo_rle", "zram", "loop"):
        if name in guest.tree:
            guest.insmod(name)
    bring(guest, "faults")
    return guest


def test_the_page_says_what_happens(faulting):
    check_page(ROOT / "docs/explanation/page-faults.md", faulting)
    faulting.run("umount /mnt; losetup -d /dev/loop0; swapoff /dev/zram0; rm /tmp/disk")


def test_the_counters_of_perf_are_those_of_the_process(faulting):
    lines = faulting.run("faults -n 32 anon zero cow stack kernel efault").text.splitlines()
    assert len(lines) == 6
    for line in lines:
        found = {word: int(value) for word, value in re.findall(r"([\w-]+)=(-?\d+)", line)}
        assert (found["perf-minor"], found["perf-major"]) == (found["minflt"], found["majflt"])
