"""Declared events in booted kernels: what they show is what was simulated, byte for byte."""

from __future__ import annotations

import functools
import json
import random
import zlib
from dataclasses import replace

import pytest

from guest.conftest import kernel_or_skip
from guest.declarations import KINDS, draw_events, header_text
from guest.here import differences
from tracepoint.cli.main import main
from tracepoint.errors import LabError
from tracepoint.lab.kernels.headers import has_unsigned_char
from tracepoint.lab.simulate.event import simulate_event
from tracepoint.lab.verify.event import KernelAtHand, fetch_kernel_at_hand, plain_simulator, verify_events
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


def fitting(input_, layout):
    """Numbers at the edges of an input's type; of the place where it is stored when nothing declares it."""
    if input_.ctype:
        return NUMBERS
    if input_.field in layout and layout[input_.field].ctype == "bool":
        return [0, 1]
    return [number for number in NUMBERS if 0 <= number < 1 << 8 * (input_.size or 1) - 1]


def wild_simulator(number: int):
    """Simulate with values at the edges of all types, the same for a number."""

    def simulate(header, event, layout, facts, btf):
        uses = plain_simulator()(header, event, layout, facts, btf).uses
        chosen = {}
        for input_ in uses:
            source = random.Random(zlib.crc32(f"{number} {event.name} {input_.text}".encode()))
            if input_.role == "string":
                chosen[input_.text] = source.choice(WORDS)
            elif input_.role == "bytes" and input_.element == 1 and input_.length:
                chosen[input_.text] = source.randbytes(input_.length)
            elif input_.role == "int" and "[" not in input_.text:
                chosen[input_.text] = source.choice(fitting(input_, layout))
        return simulate_event(
            event, set_values=chosen, count=2, environment=header.environment, btf=btf, facts=facts,
            format=layout, enums=header.exported_enums,
        )  # fmt: skip

    return simulate


@pytest.mark.parametrize("number", [1, 2, 3])
def test_fifty_declarations_are_as_simulated(kernel, tmp_path, number):
    """All kinds of fields, conditions and print formats; format text, record bytes and rendering."""
    events = draw_events(N_EVENTS, number)
    path = tmp_path / "verified.h"
    path.write_text(header_text(events, "verified"))
    header = kernel.reader().read(path)
    assert len(header.events) == N_EVENTS
    assert max(50, 2 * len(KINDS)) <= N_EVENTS
    simulate = plain_simulator(count=3) if number == 1 else wild_simulator(number)
    sighting = verify_events([(header, event) for event in header.events], kernel, simulate=simulate)
    assert sighting.log == ()
    different = {w.event.name: w.differences or w.reason for w in sighting.verifications if not w.is_equal}
    assert different == {}
    unsure = {
        w.event.name: w.simulation.reason for w in sighting.verifications if not w.simulation.is_complete
    }
    assert unsure == {}
    fired = sum(len(w.answer.records) for w in sighting.verifications)
    assert fired > N_EVENTS
    assert all(w.answer.count == len(w.answer.records) for w in sighting.verifications)
    assert all(w.answer.format == write_format(w.simulation.layout) for w in sighting.verifications)
    is_signed = not has_unsigned_char(kernel.headers)
    here = differences(header, sighting.verifications, is_char_signed=is_signed)
    assert here == {}, "fired in this process with the same values"


HEADER = """\
#undef TRACE_SYSTEM
#define TRACE_SYSTEM @SYSTEM@
#if !defined(_TRACE_BAD_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_BAD_H
#include <linux/tracepoint.h>
TRACE_EVENT(@NAME@,
	TP_PROTO(int n),
	TP_ARGS(n),
	TP_STRUCT__entry(
		__field(int, n)
	),
	TP_fast_assign(
		@ASSIGN@
	),
	TP_printk("n=%d", @PRINT@)
);
#endif
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE bad
#include <trace/define_trace.h>
"""


def write(tmp_path, system="bad", name="an_event", assign="__entry->n = n;", shown="__entry->n"):
    text = HEADER.replace("@SYSTEM@", system).replace("@NAME@", name)
    path = tmp_path / "bad.h"
    path.write_text(text.replace("@ASSIGN@", assign).replace("@PRINT@", shown))
    return path


def verified(kernel, path, simulate=None):
    header = kernel.reader().read(path)
    return verify_events([(header, event) for event in header.events], kernel, simulate=simulate)


@pytest.fixture(scope="module")
def old_kernel() -> KernelAtHand:
    """The kernel for what needs one only."""
    return kernel_at_hand("6.1")


def test_a_header_that_does_not_compile_names_its_own_line(old_kernel, tmp_path):
    path = write(tmp_path, shown="no_such_thing")
    with pytest.raises(LabError, match="its events do not compile for this kernel") as caught:
        verified(old_kernel, path)
    assert f"{path}:15: " in str(caught.value)
    assert "no_such_thing" in str(caught.value)


def test_a_kernel_that_breaks_says_how(old_kernel, tmp_path):
    """Reading the trace follows a pointer that leads nowhere."""
    path = write(tmp_path, shown="*(int *)16 + __entry->n")
    with pytest.raises(LabError, match="the guest is gone") as caught:
        verified(old_kernel, path)
    assert "BUG: kernel NULL pointer dereference" in caught.value.log_tail
    assert "RIP: 0010:trace_raw_output_an_event" in caught.value.log_tail
    assert caught.value.log_path


def test_a_guest_that_hangs_is_ended(old_kernel, tmp_path, monkeypatch):
    """Reading the trace never ends, and nothing else runs on the one processor."""
    path = write(tmp_path, shown="({ local_irq_disable(); while (1) cpu_relax(); 0; })")
    monkeypatch.setattr("tracepoint.lab.verify.event._SECONDS", 3)
    monkeypatch.setattr("tracepoint.lab.guest.machine._GRACE_SECONDS", 3)
    with pytest.raises(LabError, match="the guest hangs: no answer in time"):
        verified(old_kernel, path)


def test_an_event_that_the_kernel_has_is_shown_under_another_system(old_kernel, tmp_path):
    (one,) = verified(old_kernel, write(tmp_path, system="sched", name="sched_waking")).verifications
    assert one.is_equal
    assert one.system == "tp_sched"
    assert one.notes[0] == "sched:sched_waking is the kernel's own: verified as tp_sched:sched_waking"


def test_a_difference_is_found(old_kernel, tmp_path):
    """A simulation that is wrong about everything is contradicted in everything."""

    def wrong(header, event, layout, facts, btf):
        right = plain_simulator({"n": "7"})(header, event, layout, facts, btf)
        (shot,) = right.shots
        record = shot.record[:8] + b"\x63\0\0\0"
        other = replace(shot, record=record, line=shot.line.replace("n=7", "n=99"))
        return replace(right, shots=(other,), layout=replace(layout, print_fmt='"n=%u", REC->n'))

    (one,) = verified(old_kernel, write(tmp_path), wrong).verifications
    assert [d.what for d in one.differences] == ["format", "record", "text"]
    record, text = one.differences[-2:]
    assert record.places == (8,)
    assert (text.simulated, text.recorded) == ("n=99", "n=7")


def test_try_shows_kernel_and_simulation(old_kernel, capsys):
    assert main(["try", "examples/swap.h", "--kernel", "6.1", "--count", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["summary"] == {"verified": 2, "total": 2}
    for event in document["events"]:
        seen = event["kernel"]
        assert seen["is_equal"]
        assert seen["is_listed"]
        assert seen["enable"] == "1"
        assert seen["probe_count"] == len(seen["shots"]) == 2
        assert seen["filter"]["written"] == seen["filter"]["read"]
        assert f"ID: {seen['id']}\n" in seen["format"] == event["format"]
    assert main(["try", "examples/swap.h:mm_page_swap_out", "--kernel", "6.1"]) == 0
    text = capsys.readouterr().out
    assert "record  24 bytes, as simulated" in text
    assert "1 of 1 events as simulated on 6.1." in text


def test_try_compiles_the_header_as_it_is_written(old_kernel, tmp_path, capsys):
    """Before, what is not a parameter was a variable, and all of this was as simulated."""
    path = write(tmp_path, assign="__entry->n = no_such_function(n);")
    assert main(["try", str(path), "--kernel", "6.1"]) == 5
    assert f"{path}:13:" in (said := capsys.readouterr().err)
    assert "implicit declaration of function 'no_such_function'" in said
    path = write(tmp_path, assign="WARN_ON_ONCE(n > 5); __entry->n = n + jiffies;")
    assert main(["try", str(path), "--kernel", "6.1"]) == 0
    said = capsys.readouterr().out
    assert "note: variables stand for: jiffies" in said
    assert "note: left out to fire it: WARN_ON_ONCE(n > 5)" in said


def test_an_event_that_no_module_can_declare_does_not_stop_the_others(old_kernel, tmp_path):
    text = write(tmp_path).read_text()
    start, end = text.index("TRACE_EVENT("), text.index("#endif\n")
    other = text[start:end].replace("an_event", "other_event").replace("= n;", "= table[1][2] + n;")
    (tmp_path / "bad.h").write_text(text[:end] + other + text[end:])
    good, refused = verified(old_kernel, tmp_path / "bad.h").verifications
    assert good.is_equal
    assert refused.event.name == "other_event"
    assert refused.answer is None
    assert "table[*][*]" in refused.reason
