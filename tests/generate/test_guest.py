"""Generated modules, probes and programs in booted kernels: one boot a kernel, everything in it."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from generate.samples import TICK, header_of_text, inputs_of, one_event
from guest.conftest import kernel_or_skip
from tracepoint.errors import LabError
from tracepoint.generate import bpf_counter, kernel_module, plan_inputs, probe_module, read_facts
from tracepoint.lab.build.module import build_modules
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.lab.kernels.headers import fetch_headers
from tracepoint.lab.simulate.event import simulate_event
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.format import read_format
from tracepoint.tree.headers import read_header
from tracepoint.tree.kernel_files import read_kernel_files
from tracepoint.tree.tracing_macros import FACT_FILES, TreeFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.guest
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TRACING = "/sys/kernel/tracing"
DEBUG = "/sys/kernel/debug"
TAINT = re.compile(r"loading out-of-tree module taints kernel|module verification failed: signature")
# What it says of its clocks: it ends its own start seconds after the first answer of the guest, and on a busy
# machine it sees at any time that its processors did not run for a while.
CLOCKS = re.compile(
    r"\] (?:clocksource: |tsc: |TSC found unstable|sched_clock: Marking unstable|hrtimer: interrupt took "
    r"|workqueue: \w+ hogged CPU )"
)
STOOD_STILL = re.compile(
    r"^\[[ .\d]+\] (?:watchdog: BUG: soft lockup|rcu: INFO: ).*?</TASK>\n", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Lab:
    """A booted kernel, the headers it was built with, and what they say."""

    guest: lab_guest.Guest
    headers: Path
    facts: TreeFacts

    def load(self, files) -> None:
        for module in build_modules(files, self.headers):
            self.guest.insmod(module)

    def lines(self) -> list[str]:
        """The lines of the trace without task and time."""
        text = self.guest.read(f"{TRACING}/trace")
        return [line.split(": ", 1)[1] for line in text.splitlines() if not line.startswith("#")]

    def clean(self, *modules: str) -> None:
        """Unload; nothing but the taint may have been said, and of time."""
        for name in modules:
            self.guest.rmmod(name)
        said = STOOD_STILL.sub("", self.guest.run("dmesg -c").text).splitlines()
        assert [line for line in said if line and not TAINT.search(line) and not CLOCKS.search(line)] == []


@pytest.fixture(scope="module", params=["6.1", "6.12"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    image = kernel_or_skip(request.param)
    try:
        headers = fetch_headers(image)
    except LabError as error:
        pytest.skip(f"no kernel headers: {error}")
    facts = read_facts(read_kernel_files(headers, FACT_FILES))
    with lab_guest.boot(request.param) as guest:
        guest.run("dmesg -c >/dev/null")
        yield Lab(guest, headers, facts)


def test_a_module_fires_and_a_probe_counts_the_same(lab: Lab) -> None:
    header = header_of_text(TICK)
    files = kernel_module(header, name="demo", facts=lab.facts, export=True)
    lab.load(
        files.joined(probe_module(header["tick"], name="watch", header='"demo_trace.h"', facts=lab.facts))
    )
    event = f"{TRACING}/events/demo/tick"
    layout = compute_layout(header["tick"], environment=header.environment, enums=header.enums)
    shown = read_format(lab.guest.read(f"{event}/format"), "demo")
    assert shown.print_fmt == layout.print_fmt
    assert [(f.name, f.offset, f.size) for f in shown.fields] == [
        (f.name, f.offset, f.size) for f in layout.fields
    ]
    fire = f"{DEBUG}/demo/tick"
    lab.guest.run(f"echo >{TRACING}/trace; echo 1 >{event}/enable")
    lab.guest.run(f"""echo '-5 1 "two words" 1,2,0x10' >{fire}; echo 7 >{fire}; printf '8 0 NULL' >{fire}""")
    lab.guest.run(f"echo >{fire}; for i in $(seq 100); do echo $i; done >{fire}; echo 0 >{event}/enable")
    lines = lab.lines()
    assert [re.sub("where=[0-9a-f]*|where=\\(null\\)", "where=", line) for line in lines[:4]] == [
        "tick: n=-5 kind=hot where= name=two words list={0x1,0x2,0x10,0x0}",
        "tick: n=7 kind=0x0 where= name= list={0x0,0x0,0x0,0x0}",
        "tick: n=8 kind=0x0 where= name=(null) list={0x0,0x0,0x0,0x0}",
        "tick: n=0 kind=0x0 where= name= list={0x0,0x0,0x0,0x0}",
    ]
    assert len(lines) == 104
    assert lab.guest.read(f"{DEBUG}/watch/count").splitlines()[-1] == "all 104"
    lab.guest.run(f"echo >{DEBUG}/watch/reset")
    assert lab.guest.read(f"{DEBUG}/watch/count") == "all 0\n"
    for words in ("x", "1 300", "1 -1", "2147483648", "1 1 a 1,2,y", "1 1 a 1 0 too-many"):
        assert lab.guest.run(f"echo '{words}' >{fire}", check=False).status != 0, words
    assert lab.guest.read(f"{DEBUG}/watch/count") == "all 0\n"
    lab.clean("watch", "demo")
    assert lab.guest.run(f"ls {TRACING}/events/demo {DEBUG}/demo", check=False).status != 0


def test_bytes_are_recorded_as_they_were_given(lab: Lab) -> None:
    header = one_event(
        "__dynamic_array(u8, data, len)",
        "memcpy(__get_dynamic_array(data), data, len);",
        proto="const void *data, size_t len",
        args="data, len",
        printk='"%s", __print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data))',
    )
    lab.load(kernel_module(header, name="bytes", facts=lab.facts))
    fire = f"{DEBUG}/bytes/one"
    lab.guest.run(f"echo >{TRACING}/trace; echo 1 >{TRACING}/events/demo/one/enable")
    lab.guest.run(f"echo 00ff10 3 >{fire}; echo dead 4 >{fire}; echo >{fire}")
    assert lab.lines() == ["one: 00 ff 10", "one: de ad 00 00", "one: "]
    for words in ("0 1", "0x10 1", "zz 1"):
        assert lab.guest.run(f"echo '{words}' >{fire}", check=False).status != 0, words
    lab.clean("bytes")


def test_the_example_of_the_documentation(lab: Lab) -> None:
    header = read_header(EXAMPLES / "swap.h")
    lab.load(kernel_module(header, name="swap_events", facts=lab.facts, system="swap_demo"))
    lab.guest.run(
        f"echo >{TRACING}/trace; echo 1 >{TRACING}/events/swap_demo/enable;"
        f"echo '0x7f001000 0 1' >{DEBUG}/swap_events/mm_page_swap_in; echo 0 >{TRACING}/events/swap_demo/enable"
    )
    (line,) = lab.lines()
    assert line.startswith("mm_page_swap_in: ")
    assert "7f001000" in line
    lab.clean("swap_events")


def test_a_probe_found_by_name_counts_with_the_ring_buffer(lab: Lab) -> None:
    header = read_header(EXAMPLES / "sched_switch.h")
    lab.load(probe_module(header.events[0], name="switches", by_name=True, facts=lab.facts))
    before = int(lab.guest.read(f"{DEBUG}/switches/count").split()[-1])
    lab.guest.run("sleep 0.2")
    assert int(lab.guest.read(f"{DEBUG}/switches/count").split()[-1]) > before
    lab.clean("switches")


@pytest.mark.parametrize("name", ["swap", "traps", "sched_switch", "block_class", "every_field"])
def test_input_mode_modules_show_what_the_simulation_showed(lab: Lab, name: str) -> None:
    header = read_header(EXAMPLES / f"{name}.h")
    inputs = inputs_of(header)
    plan = plan_inputs(header.events, inputs)
    lab.load(
        kernel_module(
            header,
            name=f"input_mode_{name}",
            inputs=inputs,
            facts=lab.facts,
            system=f"mine_{name}",
            prefix="t_",
            includes=["<linux/blkdev.h>"],
        )
    )
    for event in header.events:
        simulation = simulate_event(event, environment=header.environment, enums=header.enums)
        assert simulation.is_complete
        values = {input_.text: input_.value for input_ in simulation.inputs if input_.is_used}
        enable = f"{TRACING}/events/mine_{name}/t_{event.name}/enable"
        fire = f"echo '{plan.line(event.name, values)}' >{DEBUG}/input_mode_{name}/t_{event.name}"
        lab.guest.run(f"echo >{TRACING}/trace; echo 1 >{enable}; {fire}; echo 0 >{enable}")
        expected = ["t_" + line.split(": ", 1)[1] for line in simulation.lines]
        # A guest hashes addresses with a key of its own.
        hashed = re.compile(r"cookie=\w+")
        assert [hashed.sub("", line) for line in lab.lines()] == [hashed.sub("", line) for line in expected]
    lab.clean(f"input_mode_{name}")


def test_an_ebpf_program_counts_with_the_ring_buffer(lab: Lab, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    header = header_of_text(TICK)
    (source,) = bpf_counter(header["tick"], name="counter").write(tmp_path)
    done = subprocess.run(
        ["gcc", "-static", "-O1", "-o", tmp_path / "counter", source], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no static program can be built here: {done.stderr.decode()[-200:]}")
    lab.load(kernel_module(header, name="demo", facts=lab.facts))
    lab.guest.put("/tmp/counter", (tmp_path / "counter").read_bytes())
    event = f"{TRACING}/events/demo/tick"
    lab.guest.put("/tmp/load", f"for i in $(seq 74); do echo $i >{DEBUG}/demo/tick; done\n".encode())
    lab.guest.run(f"chmod +x /tmp/counter; echo >{TRACING}/trace; echo 1 >{event}/enable")
    output = lab.guest.run("/tmp/counter sh /tmp/load").text
    lab.guest.run(f"echo 0 >{event}/enable; rm /tmp/counter")
    assert output == "event 74\ntracepoint 74\n"
    assert len(lab.lines()) == 74
    lab.clean("demo")
