"""Values of every kind and of no kind: the record is right or there is a fault; the program never notices."""

import asyncio
import inspect
import itertools
import signal
import struct
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import examples
from tracepoint.model.python.declare import declare
from tracepoint.model.python.fields import (
    array,
    bitmask,
    dynamic_array,
    scalar,
    sockaddr,
    string,
    string_len,
    struct_field,
)
from tracepoint.model.python.types import char_array, double, float32, s8, s16, s32, s64, u8, u16, u32, u64
from tracepoint.record.page import SIZE_MASK, read_events
from tracepoint.runtime.declare.defaults import task_name
from tracepoint.runtime.declare.plan import FieldKind, FieldPlan
from tracepoint.runtime.files.tree import ControlFiles
from tracepoint.runtime.fire import twin

KINDS = {
    "u8": FieldPlan("f", FieldKind.INT, 0, 8, 1, 1, 0),
    "s16": FieldPlan("f", FieldKind.INT, 1, 8, 2, 1, 0),
    "u32": FieldPlan("f", FieldKind.INT, 0, 8, 4, 1, 0),
    "s64": FieldPlan("f", FieldKind.INT, 1, 8, 8, 1, 0),
    "u64": FieldPlan("f", FieldKind.INT, 0, 8, 8, 1, 0),
    "bool": FieldPlan("f", FieldKind.BOOL, 0, 8, 1, 1, 0),
    "float": FieldPlan("f", FieldKind.FLOAT, 0, 8, 4, 1, 0),
    "double": FieldPlan("f", FieldKind.FLOAT, 0, 8, 8, 1, 0),
    "chars": FieldPlan("f", FieldKind.CHARS, 0, 8, 8, 1, 0),
    "bytes": FieldPlan("f", FieldKind.BYTES, 0, 8, 12, 1, 0),
    "array": FieldPlan("f", FieldKind.ARRAY, 0, 8, 16, 4, 0),
    "string": FieldPlan("f", FieldKind.STRING, 0, 8, 4, 1, 0),
    "dynamic": FieldPlan("f", FieldKind.DYNAMIC, 1, 8, 4, 2, 0),
    "bitmask": FieldPlan("f", FieldKind.BITMASK, 0, 8, 4, 2, 0),
    "rel": FieldPlan("f", FieldKind.STRING, 2, 8, 4, 1, 0),
}


class Strange:
    """An object whose special methods do what a function says."""

    def __init__(self, action):
        self.action = action

    def _do(self, *args):
        return self.action(self)

    __index__ = __int__ = __float__ = __bool__ = __len__ = __str__ = __repr__ = __bytes__ = _do
    __iter__ = __getitem__ = __eq__ = __hash__ = __buffer__ = __fspath__ = _do


class StrangeStr(str):
    __slots__ = ()

    def __str__(self):
        raise ValueError("no text")

    encode = __len__ = __getitem__ = __iter__ = __str__


class StrangeInt(int):
    def __index__(self):
        return 7

    __int__ = __index__

    def __add__(self, other):
        raise ValueError("no sum")

    __lt__ = __gt__ = __le__ = __ge__ = __eq__ = bit_length = to_bytes = __add__
    __hash__ = int.__hash__


class StrangeList(list):
    def __iter__(self):
        return iter((1, 2))

    def __len__(self):
        raise ValueError("no length")


class StrangeBytes(bytes):
    def __bytes__(self):
        raise ValueError("no bytes")

    __len__ = __getitem__ = __bytes__


def fail(error):
    kind, arguments = type(error), error.args

    def action(_):
        # Always a new one: an exception keeps the frames that it passed, and so what is traced.
        raise kind(*arguments)

    return action


def recurse(strange):
    return strange.action(strange)


def actions():
    return st.one_of(
        st.sampled_from(
            [ValueError("x"), AttributeError(), MemoryError(), SystemExit(2), StopIteration(1)]
        ).map(fail),
        st.sampled_from(
            [
                GeneratorExit(),
                OverflowError("\ud800"),
                type("Odd", (Exception,), {"__str__": fail(OSError())})(),
            ]
        ).map(fail),
        st.just(recurse),
        st.sampled_from([0, 5, -1, 1.5, "x", b"y", None, [], NotImplemented, True, 1 << 70]).map(
            lambda v: lambda _: v
        ),
    )


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-300, 70_000),
    st.sampled_from(
        [1 << 63, (1 << 63) - 1, -(1 << 63), 1 << 64, (1 << 64) - 1, 10**5000, -(10**5000), 1 << 40000]
    ),
    st.floats(),
    st.sampled_from([1e300, -1e39, 3.4e38, 3.5e38]),
    st.complex_numbers(),
    st.text(),
    st.text(st.characters(categories=["Cs", "L", "Cc"])),
    st.binary(),
    st.binary(max_size=40).map(bytearray),
    st.binary(max_size=64).map(memoryview),
    st.integers(0, 40).map(lambda n: memoryview(bytes(2 * n))[::2]),
    st.text(max_size=5).map(StrangeStr),
    st.integers(-5, 300).map(StrangeInt),
    st.lists(st.integers(0, 9)).map(StrangeList),
    st.binary(max_size=9).map(StrangeBytes),
    st.sampled_from(
        [object(), object, int, len, Ellipsis, range(3), range(10**12), {1: 2}, {3}, sys, "x" * 5000]
    ),
    st.builds(Strange, actions()),
)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=6),
    st.lists(SCALARS, max_size=6).map(tuple),
    st.lists(st.integers(-5, 70_000), max_size=9),
)


class Twin:
    """A record of one field by the core in Python, or the text of the fault."""

    def __init__(self, plan):
        size = plan.offset + plan.size
        size += -size % 4
        self.event = twin.Tracepoint("v:v", ("f",), (plan.packed,), size, plan.offset + plan.size)
        self.buffer = twin.Buffer(2)
        self.module = twin

    def __call__(self, value):
        self.module.clear_faults()
        self.event.set_entries((("record", self.buffer, 1, None),))
        assert self.event(value) is None
        count, last = self.module.faults()
        serials = [ring[0] for ring in self.buffer.rings()]
        page = self.buffer.read(serials[0]) if serials else None
        self.buffer.clear()
        if page is None:
            assert count == 1, "neither a record nor a fault"
            return [fault[1:] for fault in last]
        assert count == 0
        # The record alone: a thread that has moved to another CPU says so before it.
        size = int.from_bytes(page[8:16], sys.byteorder) & SIZE_MASK
        (place,) = read_events(page, 16, size, 0, is_big_endian=sys.byteorder == "big").records
        return page[place[1] : place[1] + place[2]]


class Core(Twin):
    def __init__(self, plan, core):
        super().__init__(plan)
        size = plan.offset + plan.size
        size += -size % 4
        self.event = core.Tracepoint("v:v", ("f",), (plan.packed,), size, plan.offset + plan.size)
        self.buffer = core.Buffer(2)
        self.module = core


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(value=VALUES)
def test_both_cores_make_the_same_of_any_value(c_core, kind, value):
    plan = KINDS[kind]
    before = sys.exc_info()
    by_core, by_twin = Core(plan, c_core)(value), Twin(plan)(value)
    assert sys.exc_info() == before
    if isinstance(by_twin, list) or isinstance(by_core, list):
        assert isinstance(by_twin, list) == isinstance(by_core, list), (by_core, by_twin)
        assert by_core[0][0] == by_twin[0][0]
    else:
        assert by_core == by_twin


@pytest.mark.parametrize("kind", ["array", "dynamic", "bytes", "string", "chars", "bitmask", "u32"])
def test_iterators_are_left_to_the_program(c_core, kind):
    """They are not used up, and one without an end does no harm."""
    for use in (Core(KINDS[kind], c_core), Twin(KINDS[kind])):
        numbers = iter([1, 2, 3])
        assert isinstance(use(numbers), list)
        assert list(numbers) == [1, 2, 3]
        endless = type("Endless", (), {"__iter__": lambda self: itertools.count()})()
        assert isinstance(use(endless), list)


def test_what_is_too_large_for_a_float_is_a_fault(c_core):
    for use in (Core(KINDS["float"], c_core), Twin(KINDS["float"])):
        (fault,) = use(1e39)
        assert "too large for a float" in fault[1]
        assert isinstance(use(float("inf")), bytes)
        assert isinstance(use("1.5"), list), "texts are not numbers"


class FaultTextError(Exception):
    def __str__(self):
        return "x" * 10_000_000


def test_long_texts_of_faults_are_cut(c_core):
    for use in (Core(KINDS["u8"], c_core), Twin(KINDS["u8"])):
        use.module.clear_faults()
        use.event.set_entries((("probe", fail(FaultTextError())),))
        use.event(1)
        ((_, _, text),) = use.module.faults()[1]
        assert len(text) == len("FaultTextError: ") + 1000
        use.module.clear_faults()


@pytest.mark.parametrize("method", ["__index__", "__str__ of the error"])
def test_ctrl_c_in_a_value_reaches_the_program(runtime, method):
    @runtime.trace_event(system="v", printk='"%u", n')
    def number(n: u32) -> None: ...

    class InterruptedTextError(Exception):
        def __str__(self):
            raise KeyboardInterrupt

    def interrupted(_):
        raise KeyboardInterrupt if method == "__index__" else InterruptedTextError

    def program():
        number(Strange(interrupted))
        for _ in range(1000):
            time.sleep(0.001)

    number.enable()
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            program()
    finally:
        signal.signal(signal.SIGINT, old)


def test_at_the_limit_of_recursion(runtime):
    """A program that runs at the very limit is not the one that is told."""

    @runtime.trace_event(system="v", printk='"%u", n')
    def number(n: u32) -> None: ...

    reached = []

    def dive(n):
        reached[:] = [n]
        number(n)
        dive(n + 1)

    def depth():
        with pytest.raises(RecursionError):
            dive(0)
        return reached[0]

    off = depth()
    number.enable()
    number.register(lambda n: None)
    assert depth() >= off - 20
    number(1)
    assert number.n_nested == 0, "the level is free again"


WIDE = {
    "tiny": (u8, 255), "short": (u16, 65535), "word": (u32, 7), "long": (u64, (1 << 64) - 1),
    "stiny": (s8, -128), "sshort": (s16, -3), "sword": (s32, -(1 << 31)), "slong": (s64, -1),
    "yes": (bool, True), "single": (float32, 0.5), "wide": (double, -2.25), "plain": (int, -5),
    "number": (float, 1e9), "name": (str, "größer"), "comm": (char_array[8], "python"),
}  # fmt: skip


def test_every_annotation_there_and_back(runtime):
    """Fired, recorded, decoded: the values come back."""
    shown = {"single", "wide", "number"}

    def all_of(**_): ...

    all_of.__signature__ = inspect.Signature(
        [inspect.Parameter(n, 1, annotation=a) for n, (a, _) in WIDE.items()]
    )
    all_of.__annotations__ = {n: a for n, (a, _) in WIDE.items()}
    text = " ".join("%s" if v[0] is str or n == "comm" else "%lld" for n, v in WIDE.items() if n not in shown)
    names = ", ".join(n for n in WIDE if n not in shown)
    event = runtime.trace_event(system="v", printk=f'"{text}", {names}')(all_of)
    event.enable()
    event(*(value for _, value in WIDE.values()))
    assert runtime.tracing.faults == (0, [])
    (record,) = runtime.tracing.records()
    for name, (annotation, value) in WIDE.items():
        place = event.layout[name]
        raw = record.data[place.offset : place.offset + place.size]
        if name in shown:
            assert struct.unpack("<f" if place.size == 4 else "<d", raw) == (value,)
        elif name == "name":
            word = int.from_bytes(raw, "little")
            assert record.data[word & 0xFFFF :][: word >> 16] == b"gr\xc3\xb6\xc3\x9fer\0"
        elif name == "comm":
            assert raw == b"python\0\0"
        else:
            assert int.from_bytes(raw, "little", signed=place.is_signed) == value
            assert place.is_signed == (annotation in (s8, s16, s32, s64, int))


def test_fields_of_c_there_and_back(runtime):
    tree = ControlFiles(runtime.tracing)
    event = runtime.make_tracepoint(
        declare(
            "all_kinds",
            system="v",
            proto="int n, u16 *list, void *mask, void *peer, const char *text, const char *part, "
            "struct in6_addr *addr, u8 *mac, long *pair",
            struct=[
                scalar("int", "n"),
                dynamic_array("u16", "list", "n"),
                bitmask("mask", 70),
                sockaddr("peer", 16),
                string("text", rel=True),
                string_len("part", "part", 3),
                struct_field("struct in6_addr", "addr"),
                array("u8", "mac", 6),
                array("long", "pair", 2),
            ],
            assign="",
            printk='"%d %s %s mask=%s peer=%pISpc addr=%pI6c mac=%pM list=%s pair=%s", n, text, part, '
            "__get_bitmask(mask), __get_sockaddr(peer), &__entry->addr, __entry->mac, "
            "__print_array(__get_dynamic_array(list), __get_dynamic_array_len(list) / 2, 2), "
            "__print_array(__entry->pair, 2, 8)",
        )
    )
    event.enable()
    peer = struct.pack("<HH4s8x", 2, 0x5000, bytes([127, 0, 0, 1]))
    values = (
        2,
        [1, 65535],
        1 << 69 | 1,
        peer,
        "rel",
        "par",
        bytes(range(16)),
        b"\1\2\3\4\5\6",
        [-1, 1 << 62],
    )
    event(*values)
    assert runtime.tracing.faults == (0, [])
    (record,) = runtime.tracing.records()
    shown = tree.read_text("trace").split("all_kinds: ", 1)[1]
    assert shown == (
        "2 rel par mask=00000000,00000020,00000000,00000001 peer=127.0.0.1:80 "
        "addr=1:203:405:607:809:a0b:c0d:e0f mac=01:02:03:04:05:06 list={0x1,0xffff} "
        "pair={0xffffffffffffffff,0x4000000000000000}\n"
    )

    def data(name):
        place = event.layout[name]
        if not place.ctype.startswith(("__data_loc", "__rel_loc")):
            return record.data[place.offset : place.offset + place.size]
        word = int.from_bytes(record.data[place.offset :][:4], "little")
        start = (word & 0xFFFF) + (place.offset + 4 if place.ctype.startswith("__rel") else 0)
        return record.data[start : start + (word >> 16)]

    assert data("list") == struct.pack("<2H", 1, 65535)
    assert data("mask") == struct.pack("<2Q", 1, 1 << 5)
    assert data("peer") == peer
    assert data("text") == b"rel\0"
    assert data("part") == b"par\0"
    assert data("addr") == bytes(range(16))
    assert data("mac") == b"\1\2\3\4\5\6"
    assert data("pair") == struct.pack("<2q", -1, 1 << 62)


def test_a_default_that_is_called_when_the_event_fires(runtime):
    numbers = itertools.count()

    @runtime.trace_event(system="v", printk='"%u %u", n, at')
    def counted(n: u32, at: u32 = numbers.__next__) -> None: ...

    counted(1)
    seen = []
    counted.register(lambda n, at: seen.append(at))
    counted.enable()
    counted(1)
    counted(n=2)
    counted(3, 77)
    assert seen == [0, 1, 77]
    assert [struct.unpack_from("<I", r.data, 12)[0] for r in runtime.tracing.records()] == [0, 1, 77]


def test_a_default_that_fails_is_a_fault(runtime):
    def fails():
        raise OSError("no value")

    @runtime.trace_event(system="v", printk='"%u %u", n, at')
    def counted(n: u32, at: u32 = fails) -> None: ...

    counted.enable()
    counted(1)
    assert runtime.tracing.faults[1] == [("v:counted", "call", "OSError: no value")]
    assert runtime.tracing.records() == []


def test_the_name_of_the_task(runtime):
    @runtime.trace_event(system="v", printk='"%s %u", task, n')
    def step(n: u32, task: str = task_name) -> None: ...

    async def work(n):
        await asyncio.sleep(0)
        step(n)

    async def main():
        await asyncio.gather(*(asyncio.create_task(work(n), name=f"worker {n}") for n in range(3)))

    step.enable()
    asyncio.run(main())
    step(9)
    step(9, "given")
    assert runtime.tracing.faults == (0, [])
    texts = [r.data[16:].rstrip(b"\0").decode() for r in runtime.tracing.records()]
    assert texts == ["worker 0", "worker 1", "worker 2", "", "given"]


class MuteError(Exception):
    def __str__(self):
        raise ValueError


@pytest.mark.parametrize("error", [MemoryError(), KeyError(), ValueError(""), MuteError()], ids=repr)
def test_a_fault_without_words_tells_its_type(runtime, error):
    """The least that helps: "field n: MemoryError", not "field n: None"."""

    @runtime.trace_event(system="shop", printk='"%u", n')
    def fired(n: u32): ...

    class Number:
        def __index__(self):
            raise error

    fired.enable()
    fired(Number())
    count, ((event, where, text),) = runtime.tracing.faults
    assert (count, event, where) == (1, "shop:fired", "record")
    assert text.endswith(f"field n: {type(error).__name__}")
