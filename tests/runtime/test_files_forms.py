"""Options that change what `trace` shows or stops, and the snapshot of one CPU.

The same on a booted kernel: tests/guest/test_trace_forms.py.
"""

import os
import re
import struct
import threading

import pytest

from tracepoint.model.python.types import u64
from tracepoint.runtime.files.tree import ControlFiles


@pytest.fixture
def shop(runtime):
    @runtime.trace_event(system="shop", printk='"order=%llu", order_id')
    def order(order_id: u64) -> None: ...

    tree = ControlFiles(runtime.tracing, n_cpus=2)
    tree.order, tree.tracing = order, runtime.tracing
    tree.write_text("trace_clock", "counter")
    yield tree
    assert runtime.tracing.faults[0] == 0


def fill(tree):
    """Record an event, a text and bytes; returns the event's number, our thread and the CPUs."""
    tree.order.enable()
    tree.order(7)
    tree.write_text("trace_marker", "hello")
    tree.write_text("trace_marker_raw", b"abcdefghi")
    records = tree.tracing.records()
    assert [record.timestamp for record in records] == [1, 2, 3]
    return tree.tracing["shop:order"].id, threading.get_native_id(), [record.cpu for record in records]


def body(tree, path="trace"):
    """Return what stands below the heading, as bytes."""
    text = tree.read_text(path).encode(errors="surrogateescape")
    return re.sub(rb"\A(#.*\n)+?(?=[^#]|# [0-9a-f]+ )", b"", text)


def option(tree, name, value=1):
    tree.write_text(f"options/{name}", str(value))


def test_raw(shop):
    number, tid, cpus = fill(shop)
    option(shop, "raw")
    lines = body(shop).decode().splitlines()
    assert lines[0] == f"{tid} {cpus[0]} 1 type: {number}"
    assert re.fullmatch(rf"{tid} {cpus[1]} 2 # [0-9a-f]+ hello", lines[1])
    assert lines[2].startswith(f"{tid} {cpus[2]} 3 # 64636261 buf: 65 66 67 68 69")
    assert len(lines) == 3
    option(shop, "context-info", 0)
    assert body(shop).decode().splitlines()[0] == f"type: {number}"


def test_hex(shop):
    number, tid, cpus = fill(shop)
    option(shop, "hex")
    expected = "".join(
        f"{tid:08x} {cpu:08x} {time:016x} type: {kind}\n\n"
        for cpu, time, kind in zip(cpus, (1, 2, 3), (number, 5, 18), strict=True)
    )
    assert body(shop).decode() == expected


def test_bin(shop):
    number, tid, cpus = fill(shop)
    option(shop, "bin")
    expected = b"".join(
        struct.pack("<iiQ", tid, cpu, time) + b"type: %d\n" % kind
        for cpu, time, kind in zip(cpus, (1, 2, 3), (number, 5, 18), strict=True)
    )
    assert body(shop).endswith(expected)
    shop.write_text("trace_options", "nobin")
    assert b"order: order=7\n" in body(shop)


def test_the_last_of_them_wins(shop):
    fill(shop)
    for name in ("bin", "hex", "raw"):
        option(shop, name)
    with_all = shop.read_text("trace")
    option(shop, "raw", 0)
    option(shop, "hex", 0)
    assert shop.read_text("trace") == with_all
    option(shop, "hex")
    option(shop, "bin", 0)
    assert re.search(r" 0{15}1 type: \d+\n\n", shop.read_text("trace"))


# pause-on-trace


def is_recorded(tree, number):
    """Fire, and say whether that was recorded."""
    tree.order(number)
    return any(int.from_bytes(r.data[8:16], "little") == number for r in tree.tracing.records())


def test_an_open_trace_stops_recording(shop):
    shop.order.enable()
    option(shop, "pause-on-trace")
    first = shop.open("trace")
    assert shop.read_text("tracing_on") == "0\n"
    assert not is_recorded(shop, 1)
    with pytest.raises(OSError, match="Bad file descriptor"):
        shop.write_text("trace_marker", "lost")
    second = shop.open("per_cpu/cpu1/trace")
    first.close()
    assert not is_recorded(shop, 2)
    second.close()
    assert shop.read_text("tracing_on") == "1\n"
    assert is_recorded(shop, 3)


def test_what_is_switched_meanwhile_counts_afterwards(shop):
    shop.order.enable()
    option(shop, "pause-on-trace")
    for value, is_on in (("1", True), ("0", False), ("1", True)):
        handle = shop.open("trace")
        shop.write_text("tracing_on", value)
        assert not is_recorded(shop, 100)
        handle.close()
        assert is_recorded(shop, 101 + int(value)) is is_on
        shop.write_text("trace", "")


def test_a_trigger_that_switches_on_waits_too(shop):
    shop.write_text("events/shop/order/trigger", "traceon")
    shop.order.enable()
    shop.write_text("tracing_on", "0")
    option(shop, "pause-on-trace")
    handle = shop.open("trace")
    assert not is_recorded(shop, 1)
    handle.close()
    assert shop.read_text("tracing_on") == "1\n"
    shop.write_text("events/shop/order/trigger", "!traceon")


def test_other_files_stop_nothing(shop):
    shop.order.enable()
    option(shop, "pause-on-trace")
    handles = [shop.open("snapshot"), shop.open("trace", os.O_WRONLY | os.O_APPEND)]
    assert is_recorded(shop, 1)
    for handle in handles:
        handle.close()
    held = shop.open("trace")
    option(shop, "pause-on-trace", 0)
    assert not is_recorded(shop, 2)
    held.close()
    assert is_recorded(shop, 3)
    shop.open("trace").close()
    assert is_recorded(shop, 4)


# The snapshot of one CPU


def headings(tree, path):
    return re.search(r"entries-in-buffer/entries-written: (\S+)", tree.read_text(path))[1]


def test_the_snapshot_of_each_cpu(shop):
    shop.order.enable()
    for number in (1, 2):
        thread = threading.Thread(target=shop.order, args=(number,))
        thread.start()
        thread.join()
    paths = [f"per_cpu/cpu{cpu}/snapshot" for cpu in (0, 1)]
    for path in paths:
        assert "* Snapshot is freed *" in shop.read_text(path)
        assert "echo 1 > snapshot : Not supported with this kernel.\n" in shop.read_text(path)
        for value in ("0", "1", "x"):
            with pytest.raises(OSError, match="Invalid argument"):
                shop.write_text(path, value)
        shop.write_text(path, "2")
    assert [headings(shop, f"per_cpu/cpu{cpu}/trace") for cpu in (0, 1)] == ["2/2", "2/2"]
    shop.write_text("snapshot", "1")
    assert sorted(shop.read_text(path).count("order: order=") for path in paths) == [1, 1]
    assert [headings(shop, path) for path in paths] == ["2/2", "2/2"]
    shop.write_text(paths[0], "2")
    assert "* Snapshot is allocated *" in shop.read_text(paths[0])
    assert headings(shop, paths[1]) == headings(shop, "snapshot") == "1/1"
    shop.write_text(paths[1], "2")
    assert "# echo 0 > snapshot : Clears and frees" in shop.read_text("snapshot")
