"""The bridge to the kernel's user_events: what it says to the kernel, with a kernel of our own making."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import functools
import os
import re
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.errors import TracefsError, TracefsNotFound, TracefsPermission
from tracepoint.model.python.types import event_from_function, s16, string_t, u8, u32, u64
from tracepoint.runtime.bridges.user_events import UserEvents, describe_event
from tracepoint.runtime.declare.plan import make_plan

SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
REGISTER, UNREGISTER = 0xC0082A00, 0x40082A02


def packed(text: str) -> list[tuple[str, int, int]]:
    """Lay a description out as user_event_parse_fields() does: name, offset and size of each field, no gaps."""
    _, _, fields = text.partition(" ")
    at = 8
    found = []
    for field in fields.split("; ") if fields else ():
        words = field.split(" ")
        if words[0] == "struct":
            _, _, name, size = words
            bytes_ = int(size)
        elif words[0] in ("__data_loc", "__rel_loc"):
            assert re.fullmatch(r"char\[\]|u8\[\]", words[1])
            _, _, name = words
            bytes_ = 4
        elif array := re.fullmatch(r"char\[(\d+)\]", words[0]):
            name, bytes_ = words[1], int(array[1])
            assert bytes_ <= 1024
        else:
            kind, name = words
            bytes_ = SIZES[re.fullmatch(r"[su](8|16|32|64)", kind)[1]]
        found.append((name, at, bytes_))
        at += bytes_
    return found


TYPES = [u8, s16, u32, u64, bool, str, float]


@given(st.lists(st.sampled_from(TYPES), max_size=12))
def test_the_kernels_layout_is_ours(types: list[type]):
    names = [f"f{number}" for number in range(len(types))]
    scope: dict[str, object] = {}
    exec(f"def order({', '.join(names)}): ...", scope)
    scope["order"].__annotations__ = dict(zip(names, types, strict=True))
    plan = make_plan(event_from_function(scope["order"], system="shop", printk='"x"'), names)
    ours = [(f.name, f.offset, f.size) for f in plan.format.fields[4:]]
    theirs = packed(describe_event("shop_order", plan))
    assert [place for place in theirs if not place[0].startswith("__pad")] == ours


def test_a_description_that_is_too_long_is_refused():
    names = [f"a_very_long_name_of_a_field_{number}" for number in range(20)]
    scope: dict[str, object] = {}
    exec(f"def order({', '.join(names)}): ...", scope)
    scope["order"].__annotations__ = dict.fromkeys(names, u64)
    plan = make_plan(event_from_function(scope["order"], system="shop", printk='"x"'), names)
    with pytest.raises(
        TracefsError, match=r"its description has [67][0-9][0-9] bytes, and the kernel takes 511"
    ):
        describe_event("shop_order", plan)


class Kernel:
    """Answers the two requests as the kernel does, and lets a test listen."""

    def __init__(self) -> None:
        self.registered: dict[int, str] = {}
        self.words: list[ctypes.c_uint32] = []
        self.refuses = 0

    def ioctl(self, _file: int, request: int, data: bytearray) -> int:
        if request == UNREGISTER:
            size, bit, _, _, address = struct.unpack("<IBBHQ", data)
            assert (size, bit) == (16, 0)
            del self.registered[address]
            return 0
        assert request == REGISTER
        size, bit, width, flags, address, name, _ = struct.unpack("<IBBHQQI", data)
        assert (size, bit, width, flags, address % 4) == (28, 0, 4, 0, 0)
        if self.refuses and len(self.words) == self.refuses:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self.registered[address] = ctypes.string_at(name).decode()
        self.words.append(ctypes.c_uint32.from_address(address))
        data[-4:] = struct.pack("<I", len(self.words) - 1)
        return 0


@pytest.fixture
def kernel(monkeypatch):
    made = Kernel()
    monkeypatch.setattr(fcntl, "ioctl", made.ioctl)
    return made


@pytest.fixture
def shop(runtime, tmp_path):
    """Two events of a fresh runtime, the bridge over it, and a file that takes what is written."""

    @runtime.trace_event(system="shop", printk='"order=%llu by %s", order_id, customer')
    def order_placed(count: u8, order_id: u64, customer: string_t) -> None: ...

    @runtime.trace_event(system="shop", printk='"%u", n')
    def restocked(n: u32) -> None: ...

    path = tmp_path / "user_events_data"
    path.touch()
    return functools.partial(UserEvents, tracing=runtime.tracing), order_placed, restocked, path


def test_what_is_fired_while_somebody_listens_is_written(shop, kernel):
    bridge, order_placed, restocked, path = shop
    with bridge([order_placed, "shop:restocked"], path=str(path)) as events:
        assert events.names == {"shop:order_placed": "shop_order_placed", "shop:restocked": "shop_restocked"}
        assert list(kernel.registered.values()) == [
            "shop_order_placed u8 count; char[7] __pad9; u64 order_id; __data_loc char[] customer",
            "shop_restocked u32 n",
        ]
        order_placed(1, 7, "nobody listens")
        restocked(1)
        kernel.words[1].value = 1
        assert not events.is_enabled("shop:order_placed")
        assert events.is_enabled("shop:restocked")
        order_placed(1, 7, "nobody listens")
        restocked(258)
        kernel.words[0].value = 1
        order_placed(count=3, order_id=9, customer="ada")
        restocked("no number")
        kernel.words[0].value = 0
        order_placed(1, 7, "nobody listens")
    assert path.read_bytes() == (
        struct.pack("<II", 1, 258) + struct.pack("<IB7xQI", 0, 3, 9, 4 << 16 | 28) + b"ada\0\0\0\0\0"
    )
    assert kernel.registered == {}
    assert not order_placed
    restocked(1)
    events.close()


def test_an_event_with_assignments_is_written_as_it_is_recorded(runtime, kernel, shop):
    bridge, *_, path = shop
    event = event_from_function(_sum, system="shop", printk='"%u", total')
    made = runtime.make_tracepoint(event, assign=lambda total: (2 * total,))
    with bridge([made], path=str(path)):
        kernel.words[0].value = 1
        made(21)
    assert path.read_bytes() == struct.pack("<II", 0, 42)


def _sum(total: u32) -> None: ...


def test_all_events_of_the_process_are_taken_when_none_is_named(shop, kernel):
    bridge, *_, path = shop
    with bridge(path=str(path)) as events:
        assert {"shop:order_placed", "shop:restocked"} <= events.names.keys()
        assert len(kernel.registered) == len(events.names)


def test_when_one_is_refused_none_stays(shop, kernel):
    bridge, order_placed, restocked, path = shop
    kernel.refuses = 1
    with pytest.raises(
        TracefsError, match="shop:restocked: another process has an event of that name"
    ) as caught:
        bridge([order_placed, restocked], path=str(path))
    assert caught.value.errno == errno.EADDRINUSE
    assert caught.value.wrote == "shop_restocked u32 n"
    assert kernel.registered == {}
    assert not order_placed


def test_records_that_the_kernel_does_not_take_are_counted(shop, kernel, monkeypatch):
    bridge, order_placed, _, path = shop
    number = errno.EBADF

    def refuse(*_: object) -> int:
        raise OSError(number, "no")

    with bridge([order_placed], path=str(path)) as events:
        kernel.words[0].value = 1
        monkeypatch.setattr(os, "writev", refuse)
        order_placed(1, 2, "a")
        assert events.n_refused == 0
        number = errno.EFAULT
        order_placed(1, 2, "a")
        assert events.n_refused == 1


def test_a_record_that_is_being_written_is_waited_for(shop, kernel, monkeypatch):
    """Else it would go to whatever file has the number by then."""
    bridge, order_placed, _, path = shop
    events = bridge([order_placed], path=str(path))
    kernel.words[0].value = 1
    closing = threading.Thread(target=events.close)
    write, was_closed = os.writev, []

    def slowly(file: int, parts: tuple[bytes, ...]) -> int:
        closing.start()
        closing.join(0.2)
        was_closed.append(not closing.is_alive())
        return write(file, parts)

    monkeypatch.setattr(os, "writev", slowly)
    order_placed(1, 2, "a")
    closing.join()
    assert was_closed == [False]
    assert path.read_bytes()
    assert kernel.registered == {}


def test_in_a_probe_it_stays_open(shop, kernel):
    bridge, order_placed, restocked, path = shop
    events, refused = bridge([order_placed], path=str(path)), []

    def close(_: int) -> None:
        try:
            events.close()
        except RuntimeError as error:
            refused.append(str(error))

    with restocked.register(close):
        restocked(1)
    assert refused == ["synchronize() in a probe would wait for itself"]
    assert len(kernel.registered) == 1
    events.close()
    assert kernel.registered == {}


def test_no_user_events_here(tmp_path, shop):
    bridge = shop[0]
    with pytest.raises(TracefsNotFound, match=r"there are no user events here: a kernel since 6.4"):
        bridge(path=str(tmp_path / "nosuch"))
    with pytest.raises(TracefsPermission, match="cannot be opened: Is a directory"):
        bridge(path=str(tmp_path))
