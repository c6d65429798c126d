"""The newest kernel that Debian has: its source is indexed, its own formats are the judge."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from oracles import kernel_sources
from tracepoint.lab.kernels.packages import cached_kernels
from tracepoint.lab.kernels.supported import ANY_KERNEL
from tracepoint.layout.format import EventFormat
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.index.build import build_index
from tracepoint.tree.query.diff import tree_formats
from tracepoint.tree.query.tree import Tree
from tree.booted import booted_formats

pytestmark = [pytest.mark.oracle, pytest.mark.guest]

#: `__percpu` is a keyword of newer compilers there.
OTHER_FIELDS = {"percpu:percpu_alloc_percpu", "percpu:percpu_free_percpu"}


def newest_source() -> tuple[Path, str]:
    """A source tree newer than the supported series, and its version."""
    for name in reversed(kernel_sources()):
        tree = cache_folder() / "sources" / name
        words = re.findall(
            r"^(?:VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", (tree / "Makefile").read_text(), re.MULTILINE
        )
        if int(words[0]) > 6:
            return tree, ".".join(words)
    pytest.skip("no kernel source newer than 6.x: `make test` as root fetches one where the mirror has it")


@pytest.fixture(scope="module")
def newest() -> tuple[Tree, dict[str, EventFormat]]:
    """The index of the newest source, and the formats of the same kernel, booted."""
    tree, version = newest_source()
    pattern = rf"linux-image-{re.escape(version)}[+.-].*cloud-amd64"
    images = cached_kernels(replace(ANY_KERNEL, package_pattern=pattern))
    if not images:
        pytest.skip(f"no image of kernel {version} in the cache: `make test` as root fetches it")
    formats, _ = booted_formats(images[-1].package)
    return Tree.of(build_index(str(tree.resolve()))[0]), formats


def test_every_event_of_the_booted_kernel_is_in_the_index(
    newest: tuple[Tree, dict[str, EventFormat]],
) -> None:
    tree, formats = newest
    assert len(formats) > 1500
    assert formats.keys() - {event.full_name for event in tree.events()} == set()


def test_records_are_those_of_the_booted_kernel(newest: tuple[Tree, dict[str, EventFormat]]) -> None:
    tree, formats = newest
    ours, _ = tree_formats(tree)
    different = {
        name
        for name, theirs in formats.items()
        if name not in ours or ours[name].event_fields != theirs.event_fields
    }
    assert different == OTHER_FIELDS


def test_copied_text_of_system_calls_is_printed_alike(newest: tuple[Tree, dict[str, EventFormat]]) -> None:
    tree, formats = newest
    ours, _ = tree_formats(tree)
    calls = {name for name in formats if name.startswith("syscalls:")}
    copying = {name for name in calls if "__data_loc char[]" in str(formats[name].event_fields)}
    assert len(copying) > 50
    different = {name for name in calls if ours[name].print_fmt != formats[name].print_fmt}
    # trace_syscalls.c: sys_enter_openat_print() names the flags of this one call.
    assert different == {"syscalls:sys_enter_openat"}
