"""Generated LTTng probes built, loaded and recorded with in a guest; babeltrace2 says what was recorded.

The first run fetches Debian's packages and builds the tracer (about 80 CPU seconds); both stay in the cache.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tracepoint
from guest import lttng_lab
from guest.conftest import kernel_or_skip
from tracefile import babeltrace
from tracepoint.errors import LabError
from tracepoint.generate.lttng.probe import lttng_probe
from tracepoint.generate.module import kernel_module
from tracepoint.lab.kernels.headers import fetch_headers

if TYPE_CHECKING:
    from tracepoint.generate import FileSet
    from tracepoint.lab.kernels.packages import KernelImage

pytestmark = [pytest.mark.guest, pytest.mark.oracle]
HERE = Path(__file__).parent / "lttng"
EXAMPLES = Path(__file__).parents[2] / "examples"

#: What goes before the declarations of the modules that fire the examples, and what they fire.
MODULES = {
    "swap": ({"page": "pfn_to_page(4711)"}, ["<linux/mm.h>"]),
    "traps": ({"regs": "(&(struct pt_regs){ .ip = 0xffffffff81234567 })"}, ["<linux/ptrace.h>"]),
}
FIRE = """
echo 1 >/sys/module/lab_fields/parameters/fire
cd /sys/kernel/debug
echo '0x7f0000001000 -12 1' >lab_swap/mm_page_swap_in
echo '-2147483648' >lab_swap/mm_page_swap_out
echo 6 >lab_traps/trap_entry
echo 99 >lab_traps/trap_entry
echo 14 >lab_traps/trap_exit
cd /
"""
EVENTS = ("kmem_mm_page_swap_*", "traps_*", "example_fields_*", "kinds_*")


def array(*values: object) -> str:
    """Return an array as babeltrace2 writes it."""
    return (
        "[ " + ", ".join(f"[{at}] = {value}" for at, value in enumerate(values)) + " ]" if values else "[ ]"
    )


def octets(data: bytes) -> str:
    """Return bytes as babeltrace2 writes an array of them in hexadecimal."""
    return array(*(f"0x{byte:X}" for byte in data))


PEER = bytes([0xFE, 0x80, *[0] * 13, 1])
ADDRESS = bytes([2, 0, 0, 80, 127, 0, 0, 1, *[0] * 8])
FIELDS = {
    "peer": octets(PEER),
    "status": "-5",
    "flags": "5",
    "comm": '"sh"',
    "mac": octets(bytes([2, 0, 0, 0, 0, 1, 0, 0])),
    "_list_length": "3",
    "list": array(1, 2, 65535),
    "text": '"hello"',
    "_name_length": "4",
    "name": '"eth0"',
    "message": '"say 12 twelve"',
    "_ports_length": "1",
    "ports": array("0x8000000000000001"),
    "_cpus_length": "1",
    "cpus": array("0x2"),
    "_address_length": "16",
    "address": octets(ADDRESS),
    "_rel_list_length": "2",
    "rel_list": array(7, 4294967295),
    "rel_text": '"hello"',
    "_rel_name_length": "4",
    "rel_name": '"eth0"',
    "_rel_ports_length": "1",
    "rel_ports": array("0x8000000000000001"),
    "_rel_cpus_length": "1",
    "rel_cpus": array("0x2"),
    "_rel_address_length": "16",
    "rel_address": octets(ADDRESS),
}
VALUE = 0x1122334455667788
EXPECTED = [
    ("kinds_port_open", {"name": '"eth0xyz"', "state": '( "up" : container = 1 )'}),
    ("kinds_port_close", {"name": '"eth0xyz"', "state": '( "\\"lost\\"" : container = -1 )'}),
    (
        "kinds_orders",
        {
            "b16": str(VALUE & 0xFFFF),
            "b32": str(VALUE & 0xFFFFFFFF),
            "b64": str(VALUE),
            "l16": str(VALUE & 0xFFFF),
            "l32": str(VALUE & 0xFFFFFFFF),
            "s8": str(0x88 - 256),
            "u16": str(VALUE & 0xFFFF),
            "word": str(-VALUE),
            "pair": array(1, 258),
            "_list_length": "3",
            "list": array(1, 258, 3),
        },
    ),
    (
        "kinds_code",
        {
            "mode": "1",
            "kind": "10",
            "sum": "0xE",
            "is_odd": "1",
            "name": '"eth0xyz"',
            "squares": array(0, 1, 4, 9),
            "text": '"some"',
            "_buffer_length": "3",
            "buffer": '"abc"',
            "both": octets(bytes([1, 0, 2, 0])),
            "_twice_length": "2",
            "twice": array(1, 2),
        },
    ),
    (
        "kinds_code",
        {
            "mode": "2",
            "kind": "20",
            "sum": "0xE",
            "is_odd": "0",
            "name": '""',
            "squares": array(0, 1, 4, 9),
            "text": '"(null)"',
            "_buffer_length": "0",
            "buffer": '""',
            "both": octets(bytes([2, 0, 2, 0])),
            "_twice_length": "2",
            "twice": array(2, 4),
        },
    ),
    ("kinds_empty", {}),
    ("kmem_mm_page_swap_in", {"pfn": "0x1267", "address": "0x7F0000001000", "ret": "-12", "major": "1"}),
    ("kmem_mm_page_swap_out", {"pfn": "0x1267", "ret": "-2147483648"}),
    ("traps_trap_entry", {"trap": '( "invalid opcode" : container = 6 )', "ip": "0xFFFFFFFF81234567"}),
    ("traps_trap_entry", {"trap": "( <unknown> : container = 99 )", "ip": "0xFFFFFFFF81234567"}),
    ("traps_trap_exit", {"trap": '( "page fault" : container = 14 )'}),
]
# Not known beforehand: when it fired, and where the kernel had put an object.
UNKNOWN = ("stamp", "cookie", "where")


def payload(text: str) -> dict[str, str]:
    """Split babeltrace2's text of an event into fields, leaving out those whose values nobody knows."""
    inside = text.strip().removeprefix("{").removesuffix("}").strip()
    fields: dict[str, str] = {}
    depth, start, is_string = 0, 0, False
    parts = []
    for at, char in enumerate(inside):
        if char == '"' and inside[at - 1] != "\\":
            is_string = not is_string
        if is_string:
            continue
        depth += (char in "[({") - (char in "])}")
        if char == "," and not depth:
            parts.append(inside[start:at])
            start = at + 1
    for part in [*parts, inside[start:]]:
        name, equals, value = part.strip().partition(" = ")
        if equals and name not in UNKNOWN:
            fields[name] = value
    return fields


def tools_or_skip() -> KernelImage:
    """Return the kernel that LTTng is built for; skip, saying what is missing."""
    image = kernel_or_skip("6.1-full")
    try:
        fetch_headers(image)
        lttng_lab.unpack(lttng_lab.TOOLS, "tools")
        lttng_lab.tracer(image)
    except LabError as error:
        if os.environ.get("TRACEPOINT_NEED_GUESTS"):
            raise
        pytest.skip(f"no LTTng: {error}")
    if shutil.which("depmod") is None:
        pytest.skip("depmod is missing (Debian package kmod)")
    return image


def probes_of(folder: Path) -> list[FileSet]:
    """Return the generated probes for the headers below a folder."""
    types = ['"sample_device.h"']
    return [
        lttng_probe(tracepoint.read_header(EXAMPLES / "swap.h"), include='"lab_swap_trace.h"'),
        lttng_probe(tracepoint.read_header(EXAMPLES / "traps.h"), include='"lab_traps_trace.h"'),
        lttng_probe(
            tracepoint.read_header(folder / "every_field.h"), include='"every_field.h"', includes=types
        ),
        lttng_probe(tracepoint.read_header(folder / "kinds.h"), include='"kinds.h"', includes=types),
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[KernelImage, Path, list[Path]]:
    """The kernel, the folder of the modules that fire, and the probes, all built with -Werror."""
    image = tools_or_skip()
    folder = tmp_path_factory.mktemp("lttng")
    extra = folder / "modules-that-fire"
    shutil.copytree(HERE, extra)
    shutil.copy(EXAMPLES / "every_field.h", extra)
    for name, (arguments, includes) in MODULES.items():
        header = tracepoint.read_header(EXAMPLES / f"{name}.h")
        files = kernel_module(header, name=f"lab_{name}", arguments=arguments, includes=includes)
        files.write(extra, overwrite=True)
    names = ["lab_fields", *(f"lab_{name}" for name in MODULES)]
    kbuild = [f"obj-m += {name}.o\n" for name in names]
    (extra / "Kbuild").write_text("ccflags-y := -I$(src)\n" + "".join(kbuild))
    lttng_lab.make(fetch_headers(image), extra, "KCFLAGS=-Werror")
    return image, extra, lttng_lab.build_probes(image, probes_of(extra), folder / "lttng", extra)


def test_probes_build_without_warnings(built: tuple[KernelImage, Path, list[Path]]) -> None:
    names = [path.stem for path in built[2]]
    assert names == [f"lttng-probe-{name}" for name in ("every_field", "kinds", "swap", "traps")]


def test_recorded_values_are_those_that_were_fired(
    built: tuple[KernelImage, Path, list[Path]], tmp_path: Path
) -> None:
    image, extra, probes = built
    modules = sorted(extra.glob("*.ko"))
    trace = lttng_lab.record(image, modules, probes, FIRE, tmp_path, EVENTS)
    events = [(name, payload(text)) for name, text in lttng_lab.babeltrace(trace)]
    assert events == [("example_fields_every_field", FIELDS), *EXPECTED]
    with tracepoint.open_trace(trace) as read:
        assert read.damage == ()
        rows = {name: iter(table) for name, table in read.tables().items()}
        assert [record.event for record in read.records()] == [f"lttng:{name}" for name, _ in events]
        for name, text in lttng_lab.babeltrace(trace):
            row = next(rows[f"lttng:{name}"])
            for field, value in babeltrace.flat(babeltrace.read_line(f"{name}: {text}").parts).items():
                assert field not in row or babeltrace.same(row[field], value), (name, field)
            assert set(payload(text)) <= {*row, *(f"_{name}_length" for name in row)}


def test_every_field_of_the_example_is_recorded(built: tuple[KernelImage, Path, list[Path]]) -> None:
    header = tracepoint.read_header(EXAMPLES / "every_field.h")
    files = probes_of(built[1])[2]
    text = files["include/instrumentation/events/every_field.h"]
    for field in header["every_field"].fields:
        assert re.search(rf"\b{field.name}, ", text), field.name
