"""Event probes: definition, what they record and print, switching, triggers, removal.

What a kernel answers to the same texts: tests/guest/test_control_errors.py and test_event_probes.py.
"""

import errno
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.layout.format import EventFormat, FieldFormat
from tracepoint.model.python.types import u64
from tracepoint.runtime.dynamic.probe_args import HEAD, EventProbeError, parse_args
from tracepoint.runtime.dynamic.probe_values import make_probe_record
from tracepoint.runtime.files.tree import ControlFiles
from tracepoint.runtime.fire.mechanism import Mechanism

SOURCE = EventFormat(
    "shop",
    "order",
    (
        FieldFormat("n", "unsigned long", 8, 8, is_signed=False),
        FieldFormat("small", "short", 16, 2, is_signed=True),
        FieldFormat("code", "char[6]", 18, 6, is_signed=True),
        FieldFormat("who", "__data_loc char[]", 24, 4, is_signed=True),
        FieldFormat("rel", "__rel_loc char[]", 28, 4, is_signed=True),
    ),
    "",
    n_common=0,
)
RECORD = (
    bytes(8)
    + (0x1122334455667788).to_bytes(8, "little")
    + (-2).to_bytes(2, "little", signed=True)
    + b"abcdef"
    + (4 << 16 | 32).to_bytes(4, "little")
    + (3 << 16 | 4).to_bytes(4, "little")
    + b"ada\0hi\0\0"
)


@pytest.fixture
def shop(runtime):
    """A control tree and an event `shop:order`."""

    @runtime.trace_event(system="shop", printk='"order=%llu by %s", order_id, customer')
    def order(order_id: u64, customer: str) -> None: ...

    made = ControlFiles(runtime.tracing)
    made.order = order
    yield made
    assert runtime.tracing.faults[0] == 0, runtime.tracing.faults


def define(tree, text):
    tree.write_text("dynamic_events", text, append=True)


def why_not(tree, text):
    """Return the errno and the last entry of the log that a write gives."""
    tree.write_text("error_log", "\n")
    with pytest.raises(OSError) as caught:
        define(tree, text)
    return caught.value.errno, tree.read_text("error_log").partition("] ")[2]


def bodies(tree, path="trace"):
    """Return the lines of records without what stands before the event's name."""
    lines = tree.read_text(path).splitlines()
    return [line.split(": ", 1)[1] for line in lines if not line.startswith("#")]


def switch(tree, value, path="events/eprobes/p"):
    tree.write_text(f"{path}/enable", str(value))


# Values


def fetched(text):
    """Return the value of one argument, from the record above: a number, or the bytes of a text."""
    (arg,) = parse_args([text], SOURCE)
    made = make_probe_record((arg,), RECORD, lambda: b"worker")
    if arg.kind.is_text:
        word = int.from_bytes(made[8:12], "little")
        return made[word & 0xFFFF :][: word >> 16]
    size = arg.kind.n_bytes
    numbers = [
        int.from_bytes(made[at : at + size], "little", signed=arg.kind.is_signed)
        for at in range(8, 8 + arg.n_bytes, size)
    ]
    return numbers if arg.count else numbers[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$n", 0x1122334455667788),
        ("$n:u8", 0x88),
        ("$n:s8", -0x78),
        ("$small", 2**64 - 2),
        ("$small:s32", -2),
        ("$small:u16", 0xFFFE),
        ("$n:b4@4/32", 8),
        ("$n:b3@5/16", 4),
        ("$n:symbol", 0x1122334455667788),
        ("\\5", 5),
        ("\\-1:s16", -1),
        ("\\0x1ff:x8", 0xFF),
        ("$who:string", b"ada\0"),
        ("$rel:string", b"hi\0"),
        # A text without an end goes on in what stands after it, as in the kernel.
        ("$code:string", b"abcdef \0"),
        ("+1($who):string", b"da\0"),
        ("+3($who):string", b"\0"),
        ("-32($who):string", b"\0"),
        ("+8($who):string", b""),
        ("-33($who):string", b""),
        ("+0($who):u16", int.from_bytes(b"ad", "little")),
        ("+2($code):u8[3]", [99, 100, 101]),
        ("+0($who):b4@1/8[2]", [0x61 >> 1 & 15, 0x64 >> 1 & 15]),
        ("+6($who):u32", 0),
        ("-40($who):u64", 0),
        ("+7($rel):u64", 0),
        ("$comm:string", b"worker\0"),
        ("+2($COMM):string", b"rker\0"),
        ("+0($comm):u8[2]", [ord("w"), ord("o")]),
        ('\\"text":string', b"text\0"),
        ('\\"":string', b"\0"),
        # Not in the record: what is printed is (fault).
        ("$who:ustring", b""),
        ("+u0($who):string", b""),
        ("$n:string", b""),
        ("+0($n):ustring", b""),
        ("+0(+0($who)):string", b""),
        ("@0x1000:string", b""),
        ("\\5:string", b""),
    ],
)
def test_what_is_fetched(text, value):
    assert fetched(text) == value


def test_the_record_is_packed_and_its_texts_follow():
    words = ["a=$small:u8", "b=$who:string", "c=$n:u32", "d=$n:string", "e=$code:string"]
    args = parse_args(words, SOURCE)
    assert [(arg.name, arg.offset) for arg in args] == [("a", 8), ("b", 9), ("c", 13), ("d", 17), ("e", 21)]
    made = make_probe_record(args, RECORD, bytes)
    words = [int.from_bytes(made[at : at + 4], "little") for at in (9, 17, 21)]
    assert [(word & 0xFFFF, word >> 16) for word in words] == [(25, 4), (29, 0), (29, 8)]
    assert made[25:] == b"ada\0abcdef \0"


@pytest.mark.parametrize(
    "text",
    [
        "a=$who",
        "a=$code:u32",
        "a=$comm",
        'a=\\"x"',
        "a=+0($n)",
        "a=+0(+0($who))",
        "a=+u0($who):u8",
        "a=@0x10",
    ],
)
def test_numbers_that_are_not_in_the_record_are_refused_with_the_reason(text):
    with pytest.raises(EventProbeError) as caught:
        parse_args([text], SOURCE)
    ((reason, place),) = caught.value.entries
    assert "address" in reason or "no kernel memory" in reason
    assert place == 2


WORDS = st.lists(
    st.sampled_from([
        "$n", "$who", "$small", "$comm", "a", "=", "a=", "+", "-", "u", "0", "4294967297", "(", ")", ":", "string", "ustring",
        "u8", "x64", "s16", "b", "@", "/", "[", "]", "3", "64", "\\", '"', "%", "$", "symbol", "é", "\udcff",
    ]),
    max_size=12,
)  # fmt: skip


@given(WORDS, st.binary(max_size=64))
def test_no_text_and_no_record_breaks_it(words, record):
    """Only ProbeError comes out, and what is accepted makes a record from any bytes."""
    try:
        args = parse_args("".join(words).split(), SOURCE)
    except EventProbeError:
        return
    made = make_probe_record(args, record, lambda: b"x" * 40)
    assert len(made) >= max((arg.offset + arg.n_bytes for arg in args), default=HEAD)


# Definition


def test_the_file_shows_what_was_defined_in_its_order(shop):
    define(shop, "e:p shop/order a=$order_id $customer:string if order_id > 3")
    define(shop, "s:lat u64 ns")
    define(shop, "e:my/ synthetic.lat ns=$ns\ne shop.order")
    assert shop.read_text("dynamic_events") == (
        "e:eprobes/p shop.order a=$order_id arg2=$customer:string\n"
        "s:synthetic/lat\tu64 ns\n"
        "e:my/lat synthetic.lat ns=$ns\n"
        "e:eprobes/order shop.order\n"
    )
    assert shop.read_text("synthetic_events") == "lat\tu64 ns\n"
    assert "eprobes:p\n" in shop.read_text("available_events")
    assert why_not(shop, "e:lat/x eprobes/p") == (
        errno.ENODEV,
        "event_probe: error: Attached event does not exist\n  Command: e:lat/x eprobes/p\n                   ^\n",
    )


def test_the_format_is_that_of_the_kernel(shop):
    define(shop, r"e:p shop/order a=$order_id:s32 b=$customer:string c=+0($customer):u8[3] d=$order_id:x16")
    text = shop.read_text("events/eprobes/p/format")
    assert text.partition("signed:1;\n\n")[2] == (
        "\tfield:s32 a;\toffset:8;\tsize:4;\tsigned:1;\n"
        "\tfield:__data_loc char[] b;\toffset:12;\tsize:4;\tsigned:1;\n"
        "\tfield:u8 c[];\toffset:16;\tsize:3;\tsigned:0;\n"
        "\tfield:u16 d;\toffset:19;\tsize:2;\tsigned:0;\n"
        "\n"
        r'print fmt: " a=%d b=\"%s\" c={%u,%u,%u} d=0x%x", REC->a, __get_str(b), REC->c[0], REC->c[1], '
        "REC->c[2], REC->d\n"
    )


def test_a_filter_that_is_wrong_is_told_as_that_of_the_event(shop):
    number, log = why_not(shop, "e:p shop/order if nosuch == 3")
    assert number == errno.EINVAL
    assert log.startswith("event filter parse error: error: Field not found\n  Command: nosuch == 3\n  ")
    assert shop.read_text("dynamic_events") == ""


def test_a_name_is_given_once(shop):
    define(shop, "e:g/p shop/order")
    for text in ("e:g/p shop/order", "e:shop/order shop/order", "e:ftrace/print shop/order"):
        number, log = why_not(shop, text)
        assert (number, "already used" in log) == (errno.EEXIST, True)


# Firing


def test_it_records_what_the_event_recorded(shop):
    define(
        shop, 'e:p shop/order id=$order_id:u32 who=$customer:string up=+0($customer):ustring t=\\"x":string'
    )
    shop.order(1, "unheard")
    switch(shop, 1)
    shop.order(7, "ada")
    shop.order(8, "")
    assert bodies(shop) == [
        'p: (shop.order) id=7 who="ada" up=(fault) t="x"',
        'p: (shop.order) id=8 who="" up=(fault) t="x"',
    ]
    shop.order.enable()
    shop.order(9, "bob")
    switch(shop, 0)
    shop.order(10, "eve")
    assert bodies(shop)[2:] == [
        "order: order=9 by bob",
        'p: (shop.order) id=9 who="bob" up=(fault) t="x"',
        "order: order=10 by eve",
    ]


def test_its_rule_and_its_filter_both_decide(shop):
    define(shop, 'e:p shop/order id=$order_id:u32 if order_id > 3 && customer ~ "a*"')
    shop.write_text("events/eprobes/p/filter", "id < 9")
    switch(shop, 1)
    for number, name in ((3, "ada"), (4, "ada"), (5, "bob"), (9, "ada")):
        shop.order(number, name)
    assert bodies(shop) == ["p: (shop.order) id=4"]


def test_triggers_and_hist_work_on_it(shop):
    define(shop, "e:p shop/order id=$order_id:u32 who=$customer:string")
    shop.write_text("events/eprobes/p/trigger", "hist:keys=who:vals=id")
    assert shop.read_text("events/eprobes/p/enable") == "0*\n"
    assert shop.read_text("events/shop/order/enable") == "0*\n"
    for number in (1, 2, 3):
        shop.order(number, "ada")
    assert "who: ada" in shop.read_text("events/eprobes/p/hist")
    assert "hitcount:          3  id:          6" in shop.read_text("events/eprobes/p/hist")
    assert bodies(shop) == []
    shop.write_text("events/eprobes/p/trigger", "!hist:keys=who:vals=id")
    shop.write_text("events/eprobes/p/trigger", "traceoff if id == 5")
    switch(shop, 1)
    for number in (4, 5, 6):
        shop.order(number, "ada")
    assert bodies(shop) == ['p: (shop.order) id=4 who="ada"', 'p: (shop.order) id=5 who="ada"']
    shop.write_text("events/eprobes/p/trigger", "!traceoff")


def test_one_on_a_synthetic_event_sees_what_hist_fires(shop):
    define(shop, "s:seen u64 n; char name[]")
    define(shop, "e:p synthetic/seen n=$n:u8 name=$name:string")
    switch(shop, 1)
    shop.write_text(
        "events/shop/order/trigger",
        "hist:keys=order_id:a=order_id:onmatch(shop.order).trace(seen,order_id,customer)",
    )
    shop.order(3, "ada")
    assert bodies(shop) == ['p: (synthetic.seen) n=3 name="ada"']


def test_each_instance_records_for_itself(shop):
    define(shop, "e:p shop/order id=$order_id:u32")
    shop.mkdir("instances/one")
    one = "instances/one/events/eprobes/p"
    switch(shop, 1, one)
    shop.write_text(f"{one}/filter", "id != 2")
    assert shop.read_text("instances/one/events/shop/order/enable") == "0*\n"
    assert shop.read_text("events/shop/order/enable") == "0\n"
    shop.order(1, "a")
    switch(shop, 1)
    shop.order(2, "a")
    assert (bodies(shop), bodies(shop, "instances/one/trace")) == (
        ["p: (shop.order) id=2"],
        ["p: (shop.order) id=1"],
    )
    with pytest.raises(OSError, match="busy"):
        define(shop, "-:p")
    switch(shop, 0)
    shop.rmdir("instances/one")
    define(shop, "-:p")
    assert not shop.order


def test_every_thread_records_its_own(shop):
    define(shop, "e:p shop/order id=$order_id:u32 who=$customer:string")
    define(shop, "e:q shop/order who=$customer:string")
    switch(shop, 1)
    switch(shop, 1, "events/eprobes/q")

    def work(name):
        for number in range(50):
            shop.order(number, name)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ada", "bob", "eve")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = bodies(shop)
    for name in ("ada", "bob", "eve"):
        mine = [line for line in found if line.endswith(f'"{name}"')]
        first = [line for line in mine if line.startswith("p")]
        assert first == [f'p: (shop.order) id={number} who="{name}"' for number in range(50)]
        assert len(mine) == 100


def test_a_probe_in_python_gets_the_bytes(shop):
    define(shop, "e:p shop/order id=$order_id:u32")
    tracing = shop.tracing
    seen = []
    with tracing["eprobes:p"].register(seen.append):
        shop.order(7, "ada")
        with pytest.raises(OSError, match="busy"):
            define(shop, "-:p")
    assert len(seen) == 1
    assert int.from_bytes(seen[0][8:16], "little") == 7
    assert not shop.order


def test_one_more_buffer_than_there_can_be_is_enomem(shop, monkeypatch):

    def none_left(_):
        raise OSError(errno.ENOMEM, "too many of them")

    core = SimpleNamespace(**vars(shop.tracing.mechanism.core) | {"Buffer": none_left})
    monkeypatch.setattr(shop.tracing, "mechanism", Mechanism(core, None))
    define(shop, "e:p shop/order id=$order_id:u32")
    with pytest.raises(OSError) as caught:
        switch(shop, 1)
    assert caught.value.errno == errno.ENOMEM
    assert shop.read_text("events/eprobes/p/enable") == "0\n"
    assert shop.read_text("events/shop/order/enable") == "0\n"


# Removal


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("-:p", 0), ("-:g/p", 0), ("-:g/", 0), ("!e:p", 0), ("-:p shop/order", 0), ("-:p shop.order a=$order_id", 0),
        ("-:p shop/order a=$order_id b=$customer:string", 0), ("-:", errno.EINVAL), ("-p", errno.EINVAL), ("!p", errno.EINVAL),
        ("-x:p", errno.EINVAL), (" -:p", errno.EINVAL), ("-:q", errno.ENOENT), ("-:q/p", errno.ENOENT), ("-:/p", errno.ENOENT),
        ("-:p shop", errno.ENOENT), ("-:p shop/other", errno.ENOENT), ("-:p shop/order b=$customer:string", errno.ENOENT),
    ],
)  # fmt: skip
def test_removal_by_name_and_by_what_it_is(shop, text, number):
    define(shop, "e:g/p shop/order a=$order_id b=$customer:string")
    if number:
        with pytest.raises(OSError) as caught:
            define(shop, text)
        assert caught.value.errno == number
    else:
        define(shop, text)
    assert (shop.read_text("dynamic_events") == "") is (number == 0)
    assert ("g" in shop.folder("events").names()) is (number != 0)


def test_what_is_used_stays(shop):
    define(shop, "s:lat u64 ns\ne:p synthetic/lat n=$ns\ne:q shop/order n=$order_id")
    for text in ("-:lat", "-:synthetic/lat"):
        with pytest.raises(OSError, match="busy"):
            define(shop, text)
    with pytest.raises(OSError, match="busy"):
        shop.write_text("synthetic_events", "!lat", append=True)
    switch(shop, 1, "events/eprobes/q")
    before = shop.read_text("dynamic_events")
    with pytest.raises(OSError, match="busy"):
        shop.write_text("dynamic_events", "")
    assert shop.read_text("dynamic_events") == before
    switch(shop, 0, "events/eprobes/q")
    define(shop, "-:p\n-:lat")
    shop.write_text("dynamic_events", "")
    assert shop.read_text("dynamic_events") == ""


def test_records_of_what_was_removed_go_too(shop):
    shop.mkdir("instances/one")
    define(shop, "e:p shop/order id=$order_id:u32")
    switch(shop, 1)
    shop.order.enable()
    shop.order(7, "ada")
    shop.write_text("instances/one/trace_marker", "stays")
    switch(shop, 0)
    assert len(bodies(shop)) == 2
    define(shop, "-:p")
    assert bodies(shop) == []
    assert len(bodies(shop, "instances/one/trace")) == 1
    define(shop, "e:p shop/order who=$customer:string")
    switch(shop, 1)
    shop.order(8, "bob")
    assert bodies(shop) == ["order: order=8 by bob", 'p: (shop.order) who="bob"']


def test_a_trigger_with_its_name_does_not_outlive_it(shop):
    define(shop, "e:p shop/order id=$order_id:u32")
    assert shop.read_text("events/eprobes/p/trigger").startswith("# Available triggers")
    define(shop, "-:p\ne:p shop/order who=$customer:string")
    shop.write_text("events/eprobes/p/trigger", "hist:keys=who")
    shop.order(1, "ada")
    assert "who: ada" in shop.read_text("events/eprobes/p/hist")
