"""Declared events in booted kernels: what they show is what was rehearsed, byte for byte."""

from __future__ import annotations

import functools
import random
import zlib

import pytest

from guest.conftest import kernel_or_skip
from guest.declarations import KINDS, draw_events, header_text
from tracepoint.errors import LabError
from tracepoint.lab.rehearse import rehearse_event
from tracepoint.lab.witness import KernelAtHand, fetch_kernel_at_hand, plain_rehearser, witness_events
from tracepoint.layout.format import write_format

pytestmark = pytest.mark.guest
N_EVENTS = 54  # three that begin with each of the 18 kinds of fields
WORDS = ["", "x", "100 %d %s", "a\tb", "gr\u00fc\u00dfe", "word " * 50]
NUMBERS = [
    0,
    1,
    -1,
    255,
    256,
    -129,
    1 << 15,
    (1 << 31) - 1,
    -(1 << 31),
    1 << 32,
    (1 << 63) - 1,
    (1 << 64) - 1,
]


@pytest.fixture(scope="module", params=["6.1", "6.12"])
def kernel(request) -> KernelAtHand:
    """A kernel with its headers; skips, saying why, where it cannot be had."""
    return kernel_at_hand(request.param)


@functools.cache
def kernel_at_hand(name: str) -> KernelAtHand:
    kernel_or_skip(name)
    try:
        return fetch_kernel_at_hand(name)
    except LabError as error:
        pytest.skip(f"no headers to build modules with: {error}")


def fitting(leaf, layout):
    """Numbers at the edges of a leaf's type; of the place where it is stored when nothing declares it."""
    if leaf.ctype:
        return NUMBERS
    if leaf.field in layout and layout[leaf.field].ctype == "bool":
        return [0, 1]
    return [number for number in NUMBERS if 0 <= number < 1 << 8 * (leaf.size or 1) - 1]


def wild_rehearser(number: int):
    """Rehearse with values at the edges of all types, the same for a number."""

    def rehearse(header, event, layout, facts, btf):
        uses = plain_rehearser()(header, event, layout, facts, btf).uses
        chosen = {}
        for leaf in uses:
            source = random.Random(zlib.crc32(f"{number} {event.name} {leaf.text}".encode()))
            if leaf.role == "string":
                chosen[leaf.text] = source.choice(WORDS)
            elif leaf.role == "bytes" and leaf.element == 1 and leaf.length:
                chosen[leaf.text] = source.randbytes(leaf.length)
            elif leaf.role == "int" and "[" not in leaf.text:
                chosen[leaf.text] = source.choice(fitting(leaf, layout))
        return rehearse_event(
            event, set_values=chosen, count=2, environment=header.environment, btf=btf, facts=facts,
            format=layout, enums=header.exported_enums,
        )  # fmt: skip

    return rehearse


@pytest.mark.parametrize("number", [1, 2, 3])
def test_fifty_declarations_are_as_rehearsed(kernel, tmp_path, number):
    """All kinds of fields, conditions and print formats; format text, record bytes and rendering."""
    events = draw_events(N_EVENTS, number)
    path = tmp_path / "witnessed.h"
    path.write_text(header_text(events, "witnessed"))
    header = kernel.reader().read(path)
    assert len(header.events) == N_EVENTS
    assert max(50, 2 * len(KINDS)) <= N_EVENTS
    rehearse = plain_rehearser(count=3) if number == 1 else wild_rehearser(number)
    sighting = witness_events([(header, event) for event in header.events], kernel, rehearse=rehearse)
    assert sighting.log == ()
    different = {w.event.name: w.differences or w.reason for w in sighting.witnesses if not w.is_equal}
    assert different == {}
    unsure = {w.event.name: w.rehearsal.reason for w in sighting.witnesses if not w.rehearsal.is_complete}
    assert unsure == {}
    fired = sum(len(w.answer.records) for w in sighting.witnesses)
    assert fired > N_EVENTS
    assert all(w.answer.count == len(w.answer.records) for w in sighting.witnesses)
    assert all(w.answer.format == write_format(w.rehearsal.layout) for w in sighting.witnesses)
