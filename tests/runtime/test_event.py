"""Declaring, firing and recording events; the same for the C core and the twin."""

import copy
import errno
import gc
import inspect
import os
import pickle
import struct
import weakref

import pytest

from tracepoint.filter.error import FilterError
from tracepoint.model.python.declare import declare
from tracepoint.model.python.fields import (
    bitmask,
    dynamic_array,
    scalar,
    sockaddr,
    string,
)
from tracepoint.model.python.types import char_array, float32, s64, u8, u16, u32, u64


def placed(runtime, **options):
    @runtime.trace_event(
        system="shop", printk='"order=%llu customer=%s total=%u", order_id, customer, total', **options
    )
    def order_placed(order_id: u64, customer: str, total: u32 = 5) -> None: ...

    return order_placed


def payloads(runtime):
    return [r.data for r in runtime.tracing.read_records()]


def faults(runtime):
    count, last = runtime.tracing.faults
    assert count == len(last)
    return [(where, text) for _, where, text in last]


def test_off_does_nothing_whatever_the_arguments(runtime):
    event = placed(runtime)
    assert event(1, "x", 2) is None
    assert event() is None
    assert event(object(), nosuch=1) is None
    assert not event
    assert payloads(runtime) == []
    assert faults(runtime) == []


def test_a_record_is_the_kernels(runtime):
    event = placed(runtime)
    event.enable()
    assert event
    event(7, "ada", 300)
    (record,) = payloads(runtime)
    head = struct.pack("<HBBi", event.id, 0, 0, runtime.tracing.buffer.rings()[0][1])
    assert record == head + struct.pack("<QII", 7, 4 << 16 | 24, 300) + b"ada\0"
    assert event.format.splitlines()[8:11] == [
        "\tfield:u64 order_id;\toffset:8;\tsize:8;\tsigned:0;",
        "\tfield:__data_loc char[] customer;\toffset:16;\tsize:4;\tsigned:1;",
        "\tfield:u32 total;\toffset:20;\tsize:4;\tsigned:0;",
    ]
    event.disable()
    event(8, "bob", 1)
    assert payloads(runtime) == []


def test_keywords_and_defaults(runtime):
    event = placed(runtime)
    event.enable()
    event(1, customer="k")
    event(order_id=2, total=9, customer="z")
    event(total=7, customer="y", order_id=3)
    event(4, total=8, customer="x")
    # Names that are equal to the parameters', and not the same objects.
    event(**dict(zip("order_id customer total".split(), (5, "w", 6), strict=True)))
    totals = [struct.unpack_from("<QxxxxI", r, 8) for r in payloads(runtime)]
    assert totals == [(1, 5), (2, 9), (3, 7), (4, 8), (5, 6)]


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "TypeError: argument order_id is missing"),
        ((1, "x", 2, 3), {}, "TypeError: takes 3 arguments, 4 were given"),
        ((1, "x"), {"order_id": 1}, "TypeError: argument order_id is unknown or given twice"),
        ((1, "x"), {"nosuch": 1}, "TypeError: argument nosuch is unknown or given twice"),
    ],
)
def test_wrong_calls_are_faults_not_exceptions(runtime, args, kwargs, text):
    event = placed(runtime)
    event.enable()
    assert event(*args, **kwargs) is None
    assert faults(runtime) == [("call", text)]
    assert event.n_faults == 1
    assert payloads(runtime) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-1, "field order_id: -1 does not fit u64"),
        (1 << 64, "field order_id: 18446744073709551616 does not fit u64"),
        ("1", "field order_id: 'str' object cannot be interpreted as an integer"),
        (1.5, "field order_id: 'float' object cannot be interpreted as an integer"),
    ],
)
def test_wrong_values_are_faults_not_exceptions(runtime, value, text):
    event = placed(runtime)
    event.enable()
    event(value, "x", 2)
    ((where, message),) = faults(runtime)
    assert (where, message.split(": ", 1)[1]) == ("record", text)
    assert payloads(runtime) == []


def test_a_record_longer_than_a_page_is_a_fault(runtime):
    event = placed(runtime)
    event.enable()
    event(1, "x" * 5000, 2)
    ((_, text),) = faults(runtime)
    assert "longer than 4072 bytes" in text
    event(1, "x" * 4000, 2)
    assert len(payloads(runtime)) == 1


ALL_KINDS = {
    "tiny": (u8, 255, b"\xff"),
    "small": (u16, 65535, b"\xff\xff"),
    "long": (s64, -(1 << 63), b"\0\0\0\0\0\0\0\x80"),
    "yes": (bool, [1], b"\1"),
    "single": (float32, 1.5, struct.pack("<f", 1.5)),
    "double": (float, -2.25, struct.pack("<d", -2.25)),
    "comm": (char_array[8], "name too long", b"name to\0"),
}


@pytest.mark.parametrize("name", ALL_KINDS)
def test_kinds(runtime, name):
    annotation, value, expected = ALL_KINDS[name]

    def kinds(x) -> None: ...

    kinds.__annotations__ = {"x": annotation}
    event = runtime.trace_event(system="t", printk='"x"')(kinds)
    event.enable()
    event(value)
    assert faults(runtime) == []
    (record,) = payloads(runtime)
    assert record[8 : 8 + len(expected)] == expected


@pytest.mark.parametrize(
    ("annotation", "low", "high"),
    [
        (u8, 0, 255),
        (u16, 0, 65535),
        (u32, 0, (1 << 32) - 1),
        (u64, 0, (1 << 64) - 1),
        (s64, -(1 << 63), (1 << 63) - 1),
    ],
)
def test_the_ends_of_integer_ranges(runtime, annotation, low, high):
    def edges(x) -> None: ...

    edges.__annotations__ = {"x": annotation}
    event = runtime.trace_event(system="t", printk='"%d", x')(edges)
    event.enable()
    for value in (low, high, low - 1, high + 1):
        event(value)
    size = event.layout["x"].size
    assert [int.from_bytes(r[8 : 8 + size], "little", signed=low < 0) for r in payloads(runtime)] == [
        low,
        high,
    ]
    assert len(faults(runtime)) == 2


def test_arrays_masks_and_addresses(runtime):
    event = runtime.make_tracepoint(
        declare(
            "wide",
            system="t",
            proto="int n, void *list, void *mask, void *peer, const char *text",
            struct=[
                scalar("int", "n"),
                dynamic_array("u16", "list", "n"),
                bitmask("mask", 12),
                sockaddr("peer", 16),
                string("text", rel=True),
            ],
            assign="",
            printk='"%d", n',
        )
    )
    event.enable()
    event(3, [1, 2, 65535], 0b101, b"\x02\0" + bytes(14), "rel")
    event(3, b"\1\0", b"\5" + bytes(7), b"", None)
    assert faults(runtime) == []
    first, second = payloads(runtime)
    words = struct.unpack_from("<iIIII", first, 8)
    assert words == (3, 6 << 16 | 28, 8 << 16 | 34, 16 << 16 | 42, 4 << 16 | (58 - 28))
    assert first[28:62] == b"\1\0\2\0\xff\xff" + b"\5" + bytes(7) + b"\2\0" + bytes(14) + b"rel\0"
    assert second[28:].rstrip(b"\0") == b"\1\0" + b"\5" + bytes(7) + b"(null)"
    event(1, [70000], 0, b"", "")
    event(1, b"\1", 0, b"", "")
    assert [t.split(": ", 1)[1] for _, t in faults(runtime)] == [
        "field list: 70000 does not fit u16",
        "field list: 1 bytes are not whole elements of 2",
    ]


def test_file_names_that_are_no_text(runtime):
    event = placed(runtime)
    event.enable()
    event(1, b"caf\xe9".decode(errors="surrogateescape"), 1)
    assert payloads(runtime)[0][24:29] == b"caf\xe9\0"


def test_a_class_with_the_five_parts(runtime):
    class OrderPaid(runtime.TraceEvent, system="shop"):
        order_id: u64
        total: u32
        printk = '"order=%llu total=%u", order_id, total'

        def assign(self, order, fee):
            self.order_id, self.total = order["id"], order["total"] + fee

    assert OrderPaid.full_name == "shop:order_paid"
    OrderPaid.enable()
    OrderPaid({"id": 4, "total": 10}, 2)
    OrderPaid({"id": 4}, 2)
    (record,) = payloads(runtime)
    assert struct.unpack_from("<QI", record, 8) == (4, 12)
    assert faults(runtime) == [("assign", "KeyError: 'total'")]


def test_a_class_without_assign_takes_its_fields(runtime):
    class Tick(runtime.TraceEvent, system="shop"):
        n: u32
        printk = '"%u", n'

    Tick.enable()
    Tick(n=3)
    assert struct.unpack_from("<I", payloads(runtime)[0], 8) == (3,)


def test_a_class_with_a_name_of_its_own(runtime):
    class Tock(runtime.TraceEvent, system="shop", name="clock_tock"):
        n: u32
        printk = '"%u", n'

    assert Tock.full_name == "shop:clock_tock"


def test_a_whole_record_from_assign(runtime):
    event = declare(
        "raw", system="t", proto="void *x", struct=[scalar("u64", "n")], assign="", printk='"%d", n'
    )
    made = runtime.make_tracepoint(event, assign=lambda x: bytes(8) + x)
    made.enable()
    made(b"\1" * 8)
    made(b"short")
    (record,) = payloads(runtime)
    assert record[:2] == made.id.to_bytes(2, "little")
    assert record[8:] == b"\1" * 8
    assert faults(runtime) == [("record", "ValueError: a record of 13 bytes")]


def test_a_condition_decides(runtime):
    event = placed(runtime, condition=lambda order_id, customer, total: order_id > 5)
    event.enable()
    event(5, "x", 1)
    event(6, "x", 1)
    event("x", "x", 1)
    assert len(payloads(runtime)) == 1
    assert [where for where, _ in faults(runtime)] == ["condition"]


def test_defined_once(runtime):
    placed(runtime)

    with pytest.raises(
        Exception, match=r"shop:order_placed is declared twice: at .*:\d+ and at .*:\d+"
    ) as caught:

        @runtime.trace_event(system="shop", printk='"%llu", other')
        def order_placed(other: u64) -> None: ...

    assert caught.value.errno == 17


def test_the_same_text_again_is_the_same_event(runtime):
    assert placed(runtime) is placed(runtime)


def test_ids_count_from_twenty(runtime):
    first = placed(runtime)

    @runtime.trace_event(system="shop", printk='"x"')
    def second(n: u8) -> None: ...

    assert (first.id, second.id) == (20, 21)


class TestFilter:
    def test_only_what_passes(self, runtime):
        event = placed(runtime)
        event.filter = "total > 100 && customer ~ 'a*'"
        event.enable()
        for total, customer in ((1, "ada"), (101, "ada"), (101, "bob")):
            event(total, customer, total)
        assert [struct.unpack_from("<Q", r, 8)[0] for r in payloads(runtime)] == [101]
        assert event.filter == "total > 100 && customer ~ 'a*'"
        assert runtime.tracing.stats["dropped"] == 0
        event.filter = "0"
        event(1, "bob", 1)
        assert len(payloads(runtime)) == 1
        assert event.filter == "none"

    def test_a_bad_one_is_shown_logged_and_off(self, runtime):
        event = placed(runtime)
        event.filter = "total > 100"
        event.enable()
        with pytest.raises(FilterError):
            event.filter = "totl > 1"
        assert event.filter == "totl > 1\n     ^\nparse_error: Field not found\n"
        event(1, "x", 1)
        assert len(payloads(runtime)) == 1
        log = runtime.tracing.error_log.splitlines()
        assert log[0].endswith("] event filter parse error: error: Field not found")
        assert log[1:] == ["  Command: totl > 1", " " * 16 + "^"]

    def test_names_and_cpus_of_this_thread(self, runtime):
        event = placed(runtime)
        event.enable()
        event(1, "x", 1)
        comm = runtime.tracing.buffer.rings()[0][3].decode()
        event.filter = f"comm == '{comm}' && CPU >= 0"
        event(2, "x", 1)
        event.filter = f"comm != '{comm}'"
        event(3, "x", 1)
        assert [struct.unpack_from("<Q", r, 8)[0] for r in payloads(runtime)] == [1, 2]

    def test_for_a_system(self, runtime):
        event = placed(runtime)

        @runtime.trace_event(system="shop", printk='"x"')
        def other(n: u8) -> None: ...

        runtime.tracing["shop"].set_filter("total > 3")
        assert event.filter == "total > 3"
        assert other.filter == (
            "total > 3\n^\nparse_error: Couldn't find or set field in one of a subsystem's events\n"
        )
        runtime.tracing["shop"].set_filter("0")
        assert other.filter == "none"


class TestHierarchy:
    def test_set_event(self, runtime):
        tracing = runtime.tracing
        event = placed(runtime)

        @runtime.trace_event(system="shop", printk='"x"')
        def other(n: u8) -> None: ...

        assert (tracing.state, tracing["shop"].state) == ("0", "0")
        tracing.set_event("shop:order_placed")
        assert (tracing["shop"].state, event.enabled, other.enabled) == ("X", True, False)
        tracing.set_event("other")
        assert tracing.enabled_events == ["shop:other", "shop:order_placed"]
        assert tracing.state == "1"
        tracing.set_event("!shop:*")
        assert tracing.enabled_events == []
        tracing.set_event("*:*")
        tracing.set_event("!shop")
        for word in ("sho*", "*", "shop:o*", "nosuch", "!nosuch", "nosuch:other"):
            with pytest.raises(Exception, match="nothing matches"):
                tracing.set_event(word)
        with pytest.raises(KeyError):
            tracing["nosuch"]

    def test_instances_record_apart(self, runtime):
        event = placed(runtime)
        mine = runtime.tracing.make_instance("mine", n_pages=4)
        event.enable(mine)
        event.set_filter("total == 1", mine)
        event(1, "x", 1)
        event(2, "x", 2)
        event.enable()
        event(3, "x", 1)
        assert [struct.unpack_from("<Q", r.data, 8)[0] for r in mine.records()] == [1, 3]
        assert len(payloads(runtime)) == 1
        runtime.tracing.remove_instance("mine")
        event(4, "x", 1)
        assert len(payloads(runtime)) == 1

    def test_the_signature_is_the_declared_one(self, runtime):
        @runtime.trace_event(system="shop", printk='"%s %u", item, left')
        def stock_low(item: str, left: u32 = 3) -> None: ...

        parameters = inspect.signature(stock_low).parameters
        assert [(p.name, p.default) for p in parameters.values()] == [
            ("item", inspect.Parameter.empty),
            ("left", 3),
        ]

    def test_a_word_misspelt_is_no_filter(self, runtime):
        event = placed(runtime)
        with pytest.raises(AttributeError, match="fliter"):
            event.fliter = "total > 1"
        event.filter = "total > 1"
        assert event.filter == "total > 1"

    def test_too_many_instances(self, runtime):
        """As where a kernel has no memory for one; those that are there go on."""
        if runtime.is_pure:
            pytest.skip("the twin has no limit")
        made = []
        with pytest.raises(OSError, match="too many") as caught:
            made.extend(runtime.tracing.make_instance(f"i{n}", n_pages=2) for n in range(2000))
        assert caught.value.errno == errno.ENOMEM
        event = placed(runtime)
        event.enable(made[-1])
        event(1, "x", 1)
        assert len(made[-1].records()) == 1

    def test_tracing_off(self, runtime):
        event = placed(runtime)
        event.enable()
        runtime.tracing.is_on = False
        event(1, "x", 1)
        runtime.tracing.is_on = True
        event(2, "x", 1)
        assert len(payloads(runtime)) == 1
        assert not runtime.tracing.buffer.rings()[0][4]["dropped"]

    @pytest.mark.parametrize("clock", ["global", "counter", "uptime", "mono", "mono_raw", "boot", "tai"])
    def test_clocks(self, runtime, clock):
        event = placed(runtime)
        event.enable()
        event(1, "x", 1)
        runtime.tracing.clock = clock
        assert runtime.tracing.records() == [], "times of two clocks do not mix"
        event(1, "x", 1)
        event(2, "x", 1)
        first, second = runtime.tracing.records()
        assert first.timestamp <= second.timestamp <= runtime.tracing.buffer.now()
        if clock == "counter":
            assert (first.timestamp, second.timestamp) == (1, 2)
        with pytest.raises(ValueError, match="no clock"):
            runtime.tracing.clock = "sundial"


def test_attributes_go_to_the_control(runtime):
    event = placed(runtime)
    assert event.full_name == "shop:order_placed"
    with pytest.raises(AttributeError):
        _ = event.nosuch
    assert "order_placed" in repr(event)


def test_copies_and_pickles_are_the_event_itself(runtime):
    event = placed(runtime)
    assert copy.copy(event) is event
    assert copy.deepcopy([event]) == [event]
    assert pickle.loads(pickle.dumps(event)) is event
    with pytest.raises(AttributeError, match="shop:order_missed"):
        pickle.loads(pickle.dumps(event).replace(b"shop:order_placed", b"shop:order_missed"))


def test_an_event_is_no_class_to_build_on(runtime):
    event = placed(runtime)
    with pytest.raises(TypeError):
        type("Sub", (event,), {})


def test_events_that_nobody_holds_go(c_core):
    def make():
        event = c_core.Tracepoint("a:b", ("x",), (("x", 0, 1, 8, 4, 0, 0),), 16, 16)
        event.set_entries((("probe", lambda x: event),))
        return weakref.ref(event)

    found = make()
    gc.collect()
    assert found() is None


def test_the_cpu_of_a_record(runtime):
    event = placed(runtime)
    event.enable()
    allowed = os.sched_getaffinity(0)
    try:
        for cpu in sorted(allowed):
            os.sched_setaffinity(0, {cpu})
            event(cpu, "x")
            runtime.tracing.records()
            event(cpu, "y")
    finally:
        os.sched_setaffinity(0, allowed)
    records = runtime.tracing.records()
    assert [r.cpu for r in records] == [struct.unpack_from("<Q", r.data, 8)[0] for r in records]
