"""Triggers: grammar, errno, counts, filters, and what they do."""

import errno

import pytest

from tracepoint.model.python.types import u64
from tracepoint.runtime.files.tree import ControlFiles

NONE = (
    "# Available triggers:\n"
    "# traceon traceoff snapshot stacktrace enable_event disable_event enable_hist disable_hist hist\n"
)
PLACED = "events/shop/order_placed"


@pytest.fixture
def shop(runtime):
    @runtime.trace_event(system="shop", printk='"order=%llu", order_id')
    def order_placed(order_id: u64) -> None: ...

    @runtime.trace_event(system="shop", printk='"order=%llu", order_id')
    def order_sent(order_id: u64) -> None: ...

    tree = ControlFiles(runtime.tracing, n_cpus=2)
    tree.placed, tree.sent, tree.tracing = order_placed, order_sent, runtime.tracing
    yield tree
    assert runtime.tracing.faults[0] == 0, runtime.tracing.faults


def trigger(tree, text, event=PLACED):
    tree.write_text(f"{event}/trigger", text, append=True)


def refused(tree, text):
    with pytest.raises(OSError) as caught:
        trigger(tree, text)
    return errno.errorcode[caught.value.errno]


def shown(tree, event=PLACED):
    return tree.read_text(f"{event}/trigger")


def bodies(tree):
    lines = tree.read_text("trace").splitlines()
    return [line.split(": ", 1)[-1] for line in lines if not line.startswith("#")]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("traceoff\n", "traceoff:unlimited"),
        ("traceon:3", "traceon:count=3"),
        ("traceoff:0x10:rest", "traceoff:count=16"),
        ("stacktrace if order_id == 3 ", "stacktrace:unlimited if order_id == 3"),
        ("snapshot:1 if order_id > 2", "snapshot:count=1 if order_id > 2"),
        ("enable_event:shop:order_sent", "enable_event:shop:order_sent:unlimited"),
        ("disable_event:shop:order_sent:2", "disable_event:shop:order_sent:count=2"),
    ],
)
def test_a_trigger_is_shown_in_canonical_form_and_removed(shop, text, canonical):
    assert shown(shop) == NONE
    trigger(shop, text)
    assert shown(shop) == f"{canonical}\n"
    assert shop.read_text(f"{PLACED}/enable") == "0*\n"
    assert refused(shop, text) == "EEXIST"
    trigger(shop, "!" + text)
    assert shown(shop) == NONE
    assert shop.read_text(f"{PLACED}/enable") == "0\n"
    trigger(shop, "!" + text)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "nosuch", "!nosuch", "traceoff:x", "traceoff:-1", "traceoff :3", "traceoff if", "traceoff x",
     "traceoff if nosuch == 1", "enable_event", "enable_event:shop", "enable_event:shop:nosuch",
     "enable_event:shop:order_sent:x", "!enable_event"],
)  # fmt: skip
def test_bad_triggers_are_refused_and_not_logged(shop, text):
    assert refused(shop, text) == "EINVAL"
    assert shop.read_text("error_log") == ""
    assert shown(shop) == NONE


def test_traceon_and_traceoff_are_one_type(shop):
    trigger(shop, "traceoff")
    assert refused(shop, "traceon") == "EEXIST"


def test_traceoff_runs_after_the_record_and_counts_what_it_changed(shop):
    shop.write_text("set_event", "shop:order_placed")
    trigger(shop, "traceoff:1 if order_id == 2")
    for order in (1, 2, 3):
        shop.placed(order)
    assert bodies(shop) == ["order_placed: order=1", "order_placed: order=2"]
    assert shop.read_text("tracing_on") == "0\n"
    assert shown(shop) == "traceoff:count=0 if order_id == 2\n"
    shop.write_text("tracing_on", "1")
    shop.placed(2)
    assert shop.read_text("tracing_on") == "1\n"


def test_enable_event_holds_its_target(shop):
    trigger(shop, "enable_event:shop:order_sent:1")
    sent = "events/shop/order_sent/enable"
    assert shop.read_text(sent) == "0*\n"
    assert shop.read_text("set_event") == "shop:order_sent\nshop:order_placed\n"
    assert shop.read_text("events/shop/enable") == "1\n"
    shop.sent(1)
    shop.placed(1)
    shop.sent(2)
    assert shop.read_text(sent) == "1*\n"
    assert bodies(shop) == ["order_sent: order=2"]
    trigger(shop, "!enable_event:shop:order_sent")
    assert shop.read_text(sent) == "1\n"


def test_the_stack_is_pythons(shop):
    def inner():
        shop.placed(1)

    trigger(shop, "stacktrace")
    inner()
    lines = bodies(shop)
    assert lines[0] == "<stack trace>"
    assert lines[1].startswith(" => test_the_stack_is_pythons.<locals>.inner@test_triggers.py:")
    assert lines[2].startswith(" => test_the_stack_is_pythons@test_triggers.py:")


def test_a_snapshot_is_taken_before_the_record(shop):
    shop.write_text("set_event", "shop:order_placed")
    trigger(shop, "snapshot if order_id == 2")
    shop.placed(1)
    shop.placed(2)
    assert "order=1" in shop.read_text("snapshot")
    assert bodies(shop) == ["order_placed: order=2"]


def test_markers_fire_the_triggers_of_print(shop):
    trigger(shop, 'traceoff if buf == "x"', "events/ftrace/print")
    shop.write_text("trace_marker", "stop")
    assert shop.read_text("tracing_on") == "1\n"
    trigger(shop, "!traceoff", "events/ftrace/print")
    trigger(shop, "traceoff", "events/ftrace/print")
    shop.write_text("trace_marker", "stop")
    assert shop.read_text("tracing_on") == "0\n"


def test_every_event_may_have_triggers(shop, runtime):
    """Each has small rings of its own; there were 64 of all rings once."""

    def fired(n: u64) -> None: ...

    for number in range(150):
        event = runtime.trace_event(system="many", name=f"e{number}", printk='"%llu", n')(fired)
        trigger(shop, "hist:keys=n", f"events/many/e{number}")
        event(number)
    assert "{ n:        149 } hitcount:          1" in shop.read_text("events/many/e149/hist")


def test_a_trigger_in_an_instance_goes_with_it(shop):
    shop.mkdir("instances/a")
    trigger(shop, "traceoff", f"instances/a/{PLACED}")
    shop.placed(1)
    assert shop.read_text("instances/a/tracing_on") == "0\n"
    assert shop.read_text("tracing_on") == "1\n"
    shop.rmdir("instances/a")
    assert not shop.placed
