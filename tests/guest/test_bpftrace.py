"""Generated bpftrace scripts run in a guest; what they print equals what the event's trace lines say.

The first run fetches Debian's bpftrace with LLVM (60 MB), which stays in the cache.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import tracepoint
from guest import lttng_lab
from guest.conftest import kernel_or_skip
from tracepoint.errors import LabError
from tracepoint.generate import bpftrace_script, kernel_module, read_facts
from tracepoint.lab.build.module import build_modules
from tracepoint.lab.guest import machine as lab_guest
from tracepoint.lab.kernels.headers import fetch_headers
from tracepoint.layout.compute import compute_layout
from tracepoint.tree.kernel_files import read_kernel_files
from tracepoint.tree.tracing_macros import FACT_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracepoint.lab.guest.machine import Guest

pytestmark = [pytest.mark.guest, pytest.mark.oracle]
TOOLS = (
    "bpftrace libbpf1 libbpfcc libclang1-14 libllvm14 libdw1 libelf1 libstdc++6 libgcc-s1 libc6 zlib1g liblzma5 "
    "libbz2-1.0 libffi8 libedit2 libz3-4 libtinfo6 libxml2 libbsd0 libicu72 libmd0"
).split()
# A mapped library is read in small pieces, each of them a message of 9p: copied first, it is read at once.
SETUP = """
set -e
mkdir -p /lib64 /usr/lib /lib
cp -a /bpftrace/usr/lib/x86_64-linux-gnu /usr/lib/
cp -a /bpftrace/lib/x86_64-linux-gnu /lib/
cp -a /bpftrace/lib64/ld-linux-x86-64.so.2 /lib64/
cp -a /bpftrace/usr/bin/bpftrace /bin/
echo 1 >/sys/kernel/tracing/events/parcels/parcel_sent/enable
"""
HEADER = """
#undef TRACE_SYSTEM
#define TRACE_SYSTEM parcels
#if !defined(_TRACE_PARCELS_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_PARCELS_H
#include <linux/tracepoint.h>
TRACE_EVENT(parcel_sent,
	TP_PROTO(const char *city, const char *by, u64 grams, int error, bool fragile),
	TP_ARGS(city, by, grams, error, fragile),
	TP_STRUCT__entry(__string(city, city) __array(char, by, 8) __field(u64, grams)
		__field(short, error) __field(bool, fragile)),
	TP_fast_assign(
		__assign_str(city, city);
		strscpy(__entry->by, by, sizeof(__entry->by));
		__entry->grams = grams;
		__entry->error = error;
		__entry->fragile = fragile;
	),
	TP_printk("city=%s by=%s grams=%llu error=%d fragile=%d", __get_str(city), __entry->by,
		__entry->grams, __entry->error, __entry->fragile)
);
#endif
#include <trace/define_trace.h>
"""
FIRE = """#!/bin/sh
cd /sys/kernel/debug/fired
for n in 1 2 3 4 5; do echo "Oslo train $((n * 1000)) -2 1" >parcel_sent; done
echo '"Los Angeles" airplane 5000000000 7 0' >parcel_sent
echo 'Oslo truck 30 0 0' >parcel_sent
"""
Lines = list[dict[str, str]]


@pytest.fixture(scope="module")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Guest, tracepoint.EventFormat]]:
    """A guest with bpftrace and a module that fires the event, and the event's layout."""
    image = kernel_or_skip("6.1-full")
    try:
        headers = fetch_headers(image)
        tools = lttng_lab.unpack(TOOLS, "bpftrace")
    except LabError as error:
        if os.environ.get("TRACEPOINT_NEED_GUESTS"):
            raise
        pytest.skip(f"no bpftrace: {error}")
    path: Path = tmp_path_factory.mktemp("bpftrace") / "parcels.h"
    path.write_text(HEADER)
    header = tracepoint.read_header(path)
    facts = read_facts(read_kernel_files(headers, FACT_FILES))
    built = build_modules(kernel_module(header, name="fired", facts=facts), headers)
    with lab_guest.boot(image.package, memory_mb=1024, shares={"/bpftrace": tools}) as guest:
        for module in built:
            guest.insmod(module)
        guest.run(SETUP)
        guest.put("/tmp/fire", FIRE.encode())
        yield guest, compute_layout(header["parcel_sent"], environment=header.environment)


def counted(lines: Lines, *names: str) -> dict[str, int]:
    return dict(Counter(",".join(line[name] for name in names) for line in lines))


def added(lines: Lines, name: str, what: str) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for line in lines:
        sums[line[name]] += int(line[what])
    return dict(sums)


@pytest.mark.parametrize(
    ("by", "measure", "expect"),
    [
        ("fragile", "count", lambda lines: counted(lines, "fragile")),
        ("fragile", "sum:grams", lambda lines: added(lines, "fragile", "grams")),
        ("city,by", "count", lambda lines: counted(lines, "city", "by")),
        ("comm,error", "count", lambda lines: {f"sh,{k}": n for k, n in counted(lines, "error").items()}),
        ("", "max:grams", lambda lines: max(int(line["grams"]) for line in lines)),
        ("", "min:error", lambda lines: min(int(line["error"]) for line in lines)),
    ],
)
def test_a_script_measures_what_the_trace_lines_say(by, measure, expect, booted) -> None:
    guest, layout = booted
    (script,) = bpftrace_script(layout, by=by, measure=measure).values()
    guest.put("/tmp/script.bt", script.encode())
    guest.run("echo >/sys/kernel/tracing/trace")
    said = guest.run("bpftrace -f json -c '/bin/sh /tmp/fire' /tmp/script.bt", timeout=120).text
    trace = guest.read("/sys/kernel/tracing/trace")
    pattern = r"parcel_sent: city=(?P<city>.+) by=(?P<by>\S+) grams=(?P<grams>\d+) error=(?P<error>-?\d+) "
    lines = [found.groupdict() for found in re.finditer(pattern + r"fragile=(?P<fragile>\d)", trace)]
    assert len(lines) == 7
    answers = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    values = [answer["data"]["@"] for answer in answers if answer["type"] == "map"]
    assert values == [expect(lines)], said
