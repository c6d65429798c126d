"""The page about swapping, and its promise: swap-ins counted within 1 % of what the kernel counts itself."""

from __future__ import annotations

import re

import pytest

from guest.pages import ROOT, bring, check_page

pytestmark = pytest.mark.guest
EVENT = "/sys/kernel/tracing/events/kmem/mm_page_swap_in"
PIDS = "hist:keys=common_pid,major"


@pytest.fixture
def swapping(patched):
    """The guest without a swap area, with the hog, and with every page in memory that a test begins with."""
    bring(patched, "hog")
    yield patched
    patched.run("swapoff /dev/zram0; echo 1 >/sys/block/zram0/reset")


def vmstat(guest) -> dict[str, int]:
    return {
        name: int(value)
        for name, value in re.findall(r"^(\w+) (\d+)$", guest.read("/proc/vmstat"), re.MULTILINE)
    }


def count_swap_ins(
    guest, command: str
) -> tuple[list[dict[str, int]], dict[tuple[int, int], int], dict[str, int]]:
    """Run a hog; return its lines, the event's hits by pid and kind, and what the kernel counted meanwhile."""
    guest.run(f"echo '{PIDS}' >{EVENT}/trigger")
    before = vmstat(guest)
    said = guest.run(command, timeout=300).text
    after = vmstat(guest)
    found = re.findall(r"common_pid: +(\d+), major: +(\d) \} hitcount: +(\d+)", guest.read(f"{EVENT}/hist"))
    guest.run(f"echo '!{PIDS}' >>{EVENT}/trigger")
    lines = [
        {word: int(value) for word, value in re.findall(r"(\w+)=(\d+)(?:\s)", line)}
        for line in said.splitlines()
    ]
    hits = {(int(pid), int(major)): int(count) for pid, major, count in found}
    return lines, hits, {name: after[name] - before[name] for name in after}


def make_swap(guest) -> None:
    guest.run("echo 160M >/sys/block/zram0/disksize && mkswap /dev/zram0 && swapon /dev/zram0")


def test_the_page_says_what_happens(swapping):
    check_page(ROOT / "docs/explanation/swap.md", swapping)


def test_swap_ins_are_those_that_the_kernel_counts(swapping):
    make_swap(swapping)
    lines, hits, counted = count_swap_ins(swapping, "hog -m 80 -r 3")
    total = sum(hits.values())
    major = sum(count for (_, is_major), count in hits.items() if is_major)
    assert counted["pswpin"] > 20_000
    assert abs(total - counted["pswpin"]) <= 0.01 * counted["pswpin"]
    assert abs(major - counted["pgmajfault"]) <= 0.01 * counted["pgmajfault"]
    assert all(line["wrong"] == 0 for line in lines)


def test_swap_outs_are_those_that_the_kernel_counts(swapping):
    make_swap(swapping)
    event = EVENT.replace("_in", "_out")
    swapping.run(f"echo hist:keys=common_type:vals=nr_pages >{event}/trigger")
    before = vmstat(swapping)["pswpout"]
    swapping.run("hog -m 8 -r 1 -o")
    counted = vmstat(swapping)["pswpout"] - before
    (pages,) = re.findall(r"nr_pages: +(\d+)", swapping.read(f"{event}/hist"))
    swapping.run(f"echo '!hist:keys=common_type:vals=nr_pages' >>{event}/trigger")
    assert counted >= 2048 * 0.99
    assert abs(int(pages) - counted) <= 0.01 * counted


def test_minor_and_major_are_what_each_process_counts_itself(swapping):
    make_swap(swapping)
    lines, hits, _counted = count_swap_ins(swapping, "hog -m 8 -p 3 -o")
    children = lines[1:]
    assert len(children) == 3
    assert all(line["minflt"] + line["majflt"] == 2048 for line in children)
    assert children[0]["majflt"] > 100
    for line in children:
        assert hits.get((line["pid"], 1), 0) == line["majflt"]
        assert hits.get((line["pid"], 0), 0) == line["minflt"]
