"""Hist triggers and synthetic events: grammar, tables, variables, actions, errors."""

import errno
import re

import pytest

from tracepoint.model.python.types import s32, u32, u64
from tracepoint.runtime.files.tree import ControlFiles

PLACED = "events/shop/order_placed"
SENT = "events/shop/order_sent"


@pytest.fixture
def shop(runtime):
    @runtime.trace_event(system="shop", printk='"order=%llu by %s total=%u", order_id, customer, total')
    def order_placed(order_id: u64, customer: str, total: u32) -> None: ...

    @runtime.trace_event(system="shop", printk='"order=%llu left=%d", order_id, left')
    def order_sent(order_id: u64, left: s32) -> None: ...

    tree = ControlFiles(runtime.tracing, n_cpus=2)
    tree.placed, tree.sent, tree.tracing = order_placed, order_sent, runtime.tracing
    yield tree
    assert runtime.tracing.faults[0] == 0, runtime.tracing.faults


def trigger(tree, text, event=PLACED):
    tree.write_text(f"{event}/trigger", text, append=True)


def refused(tree, text, path=f"{PLACED}/trigger"):
    with pytest.raises(OSError) as caught:
        tree.write_text(path, text, append=True)
    return errno.errorcode[caught.value.errno]


def rows(tree, event=PLACED):
    return [line for line in tree.read_text(f"{event}/hist").splitlines() if line.startswith("{")]


def bodies(tree):
    lines = tree.read_text("trace").splitlines()
    return [line.split(": ", 1)[-1] for line in lines if not line.startswith("#")]


def fire(tree):
    for order_id, customer, total in ((1, "ada", 10), (2, "bob", 300), (3, "ada", 20)):
        tree.placed(order_id, customer, total)


def test_a_table_counts_and_sums(shop):
    trigger(shop, "hist:keys=customer:vals=total:sort=total.descending if order_id > 0")
    fire(shop)
    canonical = (
        "hist:keys=customer:vals=hitcount,total:sort=total.descending:size=2048 if order_id > 0 [active]"
    )
    assert shop.read_text(f"{PLACED}/trigger") == f"{canonical}\n"
    assert shop.read_text(f"{PLACED}/hist") == (
        f"# event histogram\n#\n# trigger info: {canonical}\n#\n\n"
        f"{{ customer: {'bob':<50} }} hitcount: {1:10}  total: {300:10}\n"
        f"{{ customer: {'ada':<50} }} hitcount: {2:10}  total: {30:10}\n"
        "\nTotals:\n    Hits: 3\n    Entries: 2\n    Dropped: 0\n"
    )
    assert shop.read_text(f"{PLACED}/enable") == "0*\n"


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ("total", ["total:         10", "total:         20", "total:        300"]),
        ("total.hex", ["total: a", "total: 14", "total: 12c"]),
        ("total.log2", ["total: ~ 2^4 ", "total: ~ 2^5 ", "total: ~ 2^9 "]),
        ("total.buckets=100", ["total: ~ 0-99", "total: ~ 300-399"]),
        ("customer,total", None),
    ],
)
def test_keys_are_shown_by_their_modifier(shop, keys, shown):
    trigger(shop, f"hist:keys={keys}:sort=total")
    fire(shop)
    found = [re.match(r"\{ (.*) \} hitcount", row)[1] for row in rows(shop)]
    if shown is None:
        assert len(found) == 3
        assert all(re.fullmatch(r"customer: (ada|bob) +, total: +\d+", text) for text in found)
    else:
        assert found == shown


def test_pause_continue_clear_and_removal(shop):
    trigger(shop, "hist:keys=customer")
    fire(shop)
    assert refused(shop, "hist:keys=customer") == "EEXIST"
    assert "Hist trigger already exists" in shop.read_text("error_log")
    trigger(shop, "hist:keys=customer:pause")
    assert "[paused]" in shop.read_text(f"{PLACED}/trigger")
    fire(shop)
    assert rows(shop)[-1].endswith(f"hitcount: {2:10}")
    trigger(shop, "hist:keys=customer:cont")
    fire(shop)
    assert rows(shop)[-1].endswith(f"hitcount: {4:10}")
    trigger(shop, "hist:keys=customer:clear")
    assert rows(shop) == []
    trigger(shop, "!hist:keys=total")
    assert "keys=customer" in shop.read_text(f"{PLACED}/trigger")
    trigger(shop, "!hist:keys=customer")
    assert shop.read_text(f"{PLACED}/trigger").startswith("# Available triggers:")
    assert shop.read_text(f"{PLACED}/hist") == ""


def test_hists_are_listed_oldest_first_after_the_simple_triggers(shop):
    for text in ("hist:keys=customer", "traceon", "hist:keys=total", "stacktrace"):
        trigger(shop, text)
    assert [line.split(" ")[0] for line in shop.read_text(f"{PLACED}/trigger").splitlines()] == [
        "stacktrace:unlimited",
        "traceon:unlimited",
        "hist:keys=customer:vals=hitcount:sort=hitcount:size=2048",
        "hist:keys=total:vals=hitcount:sort=hitcount:size=2048",
    ]
    table = shop.read_text(f"{PLACED}/hist")
    assert re.findall(r"info: hist:keys=(\w+)", table) == ["customer", "total"]


def test_nothing_is_truncated_while_a_variable_is_read(shop):
    trigger(shop, "hist:keys=customer:v=total")
    trigger(shop, "hist:keys=customer,total:w=$v")
    shop.truncate(f"{PLACED}/trigger")
    assert len(shop.read_text(f"{PLACED}/trigger").splitlines()) == 2
    trigger(shop, "!hist:keys=customer,total:w=$v")
    shop.truncate(f"{PLACED}/trigger")
    assert shop.read_text(f"{PLACED}/trigger").startswith("# Available triggers:")


# What a 6.12 shows for the same words about its fields: tracepoint lab run --kernel 6.12.
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("keys=total.log2:sort=total", "keys=total.log2:vals=hitcount:sort=total.log2:size=2048"),
        (
            "keys=order_id.hex,total.buckets=10:vals=total:sort=total,order_id.descending",
            "keys=order_id.hex,total.buckets=10:vals=hitcount,total:sort=total,order_id.hex.descending:size=2048",
        ),
        (
            "keys=common_timestamp.usecs:sort=common_timestamp",
            "keys=common_timestamp.usecs:vals=hitcount:sort=common_timestamp.usecs:size=2048:clock=global",
        ),
        (
            "keys=customer:vals=total.percentage,hitcount.graph:sort=total",
            "keys=customer:vals=hitcount,total.percent,hitcount.graph:sort=total.percent:size=2048",
        ),
        (
            "keys=customer:nohitcount:vals=total.graph",
            "keys=customer:vals=total.graph:sort=hitcount:size=2048:nohitcount",
        ),
        ("keys=customer:NOHC:vals=total", "keys=customer:vals=total:sort=hitcount:size=2048:nohitcount"),
        (
            "keys=customer:vals=hitcount,hitcount",
            "keys=customer:vals=hitcount,hitcount:sort=hitcount:size=2048",
        ),
        (
            "keys=customer:vals=total,order_id,hitcount",
            "keys=customer:vals=hitcount,total,order_id:sort=hitcount:size=2048",
        ),
        (
            "keys=total:z=$y,y=total:x=-(total+0x10):v=cpu:s=stacktrace",
            "keys=total:vals=hitcount:z=total,y=total,x=-(total+16),v=common_cpu,s=common_stacktrace:sort=hitcount:size=2048",
        ),
        ("keys=stacktrace,CPU", "keys=common_stacktrace,common_cpu:vals=hitcount:sort=hitcount:size=2048"),
        ("keys=common_stacktrace", "keys=common_stacktrace:vals=hitcount:sort=hitcount:size=2048"),
    ],
)
def test_a_trigger_is_shown_as_a_kernel_shows_it(shop, text, shown):
    trigger(shop, f"hist:{text}")
    assert shop.read_text(f"{PLACED}/trigger") == f"hist:{shown} [active]\n"


def test_shares_of_the_sum_and_of_the_largest(shop):
    trigger(shop, "hist:keys=order_id:vals=total.percent,total.graph:nohitcount:sort=order_id")
    assert rows(shop) == []
    fire(shop)
    shop.placed(4, "eve", 0)
    assert rows(shop) == [
        f"{{ order_id: {1:10} }}  total (%):   3.03  total: {'':20}",
        f"{{ order_id: {2:10} }}  total (%):  90.90  total: {'#' * 20}",
        f"{{ order_id: {3:10} }}  total (%):   6.06  total: {'#':20}",
        f"{{ order_id: {4:10} }}  total (%):   0.00  total: {'':20}",
    ]
    trigger(shop, "!hist:keys=order_id:vals=total.percent,total.graph:sort=order_id")
    trigger(shop, "hist:keys=order_id:vals=hitcount.percent,total.hex:sort=order_id")
    shop.placed(1, "ada", 255)
    assert rows(shop) == [f"{{ order_id: {1:10} }} hitcount: {1:10}  hitcount (%): 100.00  total: {255:10x}"]


def test_truncation_removes_hists_and_keeps_simple_triggers(shop):
    trigger(shop, "traceon")
    trigger(shop, "hist:keys=customer")
    shop.truncate(f"{PLACED}/trigger")
    assert shop.read_text(f"{PLACED}/trigger") == "traceon:unlimited\n"


def test_a_full_table_drops(shop):
    trigger(shop, "hist:keys=order_id:size=128")
    assert ":size=128 " in shop.read_text(f"{PLACED}/trigger")
    for number in range(130):
        shop.placed(number, "x", 1)
    assert "    Entries: 128\n    Dropped: 2\n" in shop.read_text(f"{PLACED}/hist")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hist:vals=total", ""),
        ("hist", ""),
        ("hist:keys=customer:size=64", ""),
        ("hist:keys=order_id,customer,total,common_pid", ""),
        ("hist:keys=nosuch", "Couldn't find field"),
        ("hist:keys=total.nosuch", "Invalid field modifier"),
        ("hist:keys=total.execname", "Invalid field modifier"),
        ("hist:keys=customer:sort=total", "Sort field must be a key or a val"),
        ("hist:keys=customer:sort=customer.up", "Invalid sort modifier"),
        ("hist:keys=customer:x=total/0", "Division by zero"),
        ("hist:keys=customer:x=total+1+2+3+4", "Too many subexpressions (3 max)"),
        ("hist:keys=customer:x=customer+1", "String type can not be an operand in expression"),
        ("hist:keys=customer:x=", "Empty assignment"),
        ("hist:keys=customer:vals=total,order_id,common_pid", ""),
        ("hist:keys=customer:nohc:vals=total", ""),
        ("hist:keys=total.percent", "Invalid field modifier"),
        ("hist:keys=customer:x=total.graph", "Invalid field modifier"),
        ("hist:keys=customer:vals=common_stacktrace", "Invalid field modifier"),
        ("hist:keys=total.stacktrace", "Invalid field modifier"),
        ("hist:keys=stacktrace:sort=stacktrace", "Sort field must be a key or a val"),
        ("hist:keys=customer:sort=customer.log2", "Invalid sort modifier"),
        ("hist:keys=customer:y=$nosuch", "Couldn't find variable"),
        ("hist:keys=customer:clear", "Can't clear or continue a nonexistent hist trigger"),
        ("hist:keys=customer:onmax(total).save(total)", "For onmax(x) or onchange(x), x must be a variable"),
        ("hist:keys=customer:onmatch(shop.order_sent).save(total)", "Handler doesn't support action"),
        ("hist:keys=customer:onmatch(shop.order_sent).trace(nosuch,total)", "Couldn't find synthetic event"),
    ],
)
def test_errors_have_the_kernels_words_and_a_caret(shop, text, message):
    assert refused(shop, text) == ("EDOM" if "/0" in text else "ENOENT" if "clear" in text else "EINVAL")
    log = shop.read_text("error_log")
    if not message:
        assert log == ""
    else:
        assert f"hist:shop:order_placed: error: {message}\n  Command: {text}\n" in log
        assert log.splitlines()[-1].strip() == "^"


def test_a_latency_becomes_a_synthetic_event(shop):
    shop.write_text("synthetic_events", "latency u64 order_id; u64 ns; s32 left\n", append=True)
    assert shop.read_text("synthetic_events") == "latency\tu64 order_id; u64 ns; s32 left\n"
    shop.write_text("events/synthetic/latency/enable", "1")
    trigger(shop, "hist:keys=order_id:t0=common_timestamp")
    trigger(
        shop,
        "hist:keys=order_id:ns=common_timestamp-$t0:onmatch(shop.order_placed).latency(order_id,$ns,left)",
        SENT,
    )
    assert ":clock=global" in shop.read_text(f"{PLACED}/trigger")
    fire(shop)
    shop.sent(2, -5)
    shop.sent(99, 1)
    shop.sent(2, -6)
    (body,) = bodies(shop)
    assert re.fullmatch(r"latency: order_id=2 ns=[1-9]\d* left=-5", body)
    assert refused(shop, "!latency", "synthetic_events") == "EBUSY"
    assert refused(shop, "!hist:keys=order_id:t0=common_timestamp") == "EBUSY"
    shop.truncate(f"{SENT}/trigger")
    trigger(shop, "!hist:keys=order_id:t0=common_timestamp")
    shop.write_text("events/synthetic/latency/enable", "0")
    shop.write_text("synthetic_events", "!latency", append=True)
    assert "synthetic" not in shop.folder("events").names()


def test_onmax_saves_and_onchange_fires(shop):
    trigger(shop, "hist:keys=customer:m=total:onmax($m).save(order_id)")
    fire(shop)
    shop.placed(4, "ada", 5)
    text = shop.read_text(f"{PLACED}/hist")
    assert f"\n\tmax: {20:10}  order_id: {3:>10}\n" in text
    shop.write_text("synthetic_events", "moved s32 left; int twice; char who[]\n", append=True)
    shop.write_text("events/synthetic/enable", "1")
    assert refused(shop, "hist:keys=order_id:v=left:onchange($v).trace(moved,$v,left,left)") == "EINVAL"
    trigger(shop, "hist:keys=total:v=total:onchange($v).save(customer)")
    shop.placed(1, "ada", 7)
    assert f"changed: {7:10}  customer: {'ada':<32}\n" in shop.read_text(f"{PLACED}/hist")
    shop.write_text("synthetic_events", "lost s32 left; int twice\n", append=True)
    shop.write_text("events/synthetic/lost/enable", "1")
    trigger(shop, "hist:keys=order_id:v=left:onchange($v).trace(lost,$v,left)", SENT)
    for left in (3, 3, -4):
        shop.sent(1, left)
    assert bodies(shop) == ["lost: left=3 twice=3", "lost: left=-4 twice=-4"]


def test_enable_hist_and_disable_hist_switch_another_events_table(shop):
    trigger(shop, "hist:keys=left:pause", SENT)
    trigger(shop, "enable_hist:shop:order_sent if order_id == 1")
    shop.sent(1, 1)
    fire(shop)
    shop.sent(1, 2)
    assert len(rows(shop, SENT)) == 1


def test_the_key_may_be_the_python_stack(shop):
    trigger(shop, "hist:keys=stacktrace")
    fire(shop)
    text = shop.read_text(f"{PLACED}/hist")
    assert "\n{ common_stacktrace:\n" in text
    assert "\n         fire@test_hist.py:" in text
    assert f"\n}} hitcount: {3:10}\n" in text


@pytest.mark.parametrize(
    ("text", "answer", "message"),
    [
        ("x nosuch y", "EINVAL", "Invalid type"),
        ("x", "EINVAL", "Command must be of the form: <name> field[;field] ..."),
        ("x u64 y[3]", "EINVAL", "Invalid type"),
        ("x char y[999]", "EINVAL", "Invalid array specification"),
        ("a-b u64 y", "EINVAL", "Illegal name"),
        ("!nosuch", "ENOENT", ""),
    ],
)
def test_bad_synthetic_events(shop, text, answer, message):
    assert refused(shop, text, "synthetic_events") == answer
    assert message in shop.read_text("error_log")


@pytest.mark.parametrize(
    ("text", "number"),
    [("16-8-4-2", 2), ("64/8/4/2", 1), ("4*3/2*2", 12), ("4+6/2-2", 5), ("0x10+1", 17), ("-(3+1)+0", None)],
)
def test_expressions_are_done_from_the_left(shop, text, number):
    if number is None:
        assert refused(shop, f"hist:keys=customer:x={text}") == "EINVAL"
        assert "Unary minus not supported in sub-expressions" in shop.read_text("error_log")
    else:
        trigger(shop, f"hist:keys=customer:x={text}")
        assert f":x={number}:" in shop.read_text(f"{PLACED}/trigger")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x=32+^10*3/20-4", "Too many subexpressions (3 max)"),
        ("x=^1+2+3+4+5", "Too many subexpressions (3 max)"),
        ("x=-(^1)+2", "Unary minus not supported in sub-expressions"),
        ("x=3/^0", "Division by zero"),
        ("x=^customer+1", "String type can not be an operand in expression"),
        ("x=total+$^nosuch", "Couldn't find variable"),
        ("^x=1,x=2", "Variable already defined"),
        ("y=$^nosuch", "Couldn't find variable"),
        ("vals=^order_id.log2", "Invalid field modifier"),
        ("^x=", "Empty assignment"),
        ("x=1:onmax(^price).save(total)", "For onmax(x) or onchange(x), x must be a variable"),
        ("onmatch(^shop).save(total)", "Missing subsystem"),
        ("onmatch(shop.^nosuch).save(total)", "Invalid subsystem or event name"),
        ("onmatch(shop.order_sent).^save(total)", "Handler doesn't support action"),
        ("x=1:onmax($x).save(^q)", "Invalid action param"),
        ("x=total:onmax($^price).save(total)", "Couldn't find onmax or onchange variable"),
    ],
)
def test_the_caret_stands_where_the_kernels_does(shop, text, message):
    command = f"hist:keys=total:{text}"
    refused(shop, command.replace("^", ""))
    entry = shop.read_text("error_log").splitlines()[:3]
    assert entry[0].endswith(f"hist:shop:order_placed: error: {message}")
    assert entry[2].index("^") == len("  Command: ") + command.index("^")


def test_a_field_of_the_matched_event_is_kept_for_it(shop):
    shop.write_text(
        "synthetic_events", "left_late u64 ns; u32 total; char[] who\n".replace("[] who", " who[]")
    )
    shop.write_text("events/synthetic/left_late/enable", "1")
    trigger(shop, "hist:keys=order_id:t0=common_timestamp if total > 0")
    late = (
        "hist:keys=order_id:ns=common_timestamp-$t0:onmatch(shop.order_placed).left_late($ns,total,customer)"
    )
    trigger(shop, late, SENT)
    assert "keys=order_id:vals=hitcount:synthetic_total=total:" in shop.read_text(f"{PLACED}/hist")
    fire(shop)
    shop.sent(2, 1)
    (body,) = bodies(shop)
    assert re.fullmatch(r"left_late: ns=\d+ total=300 who=bob", body)
    trigger(shop, f"!{late}", SENT)
    assert "synthetic_" not in shop.read_text(f"{PLACED}/hist")


def test_a_record_without_the_value_of_a_variable_is_not_counted(shop):
    trigger(shop, "hist:keys=order_id:n=total")
    trigger(shop, "hist:keys=order_id,left:twice=$n+$n", SENT)
    shop.sent(1, 1)
    fire(shop)
    for _ in range(2):
        shop.sent(1, 1)
    assert "    Hits: 1\n" in shop.read_text(f"{SENT}/hist"), "an expression reads a variable once"


def test_triggers_of_one_name_share_a_table(shop):
    trigger(shop, "hist:name=both:keys=order_id")
    trigger(shop, "hist:name=both:keys=order_id", SENT)
    assert refused(shop, "hist:name=both:keys=left") == "EINVAL"
    fire(shop)
    shop.sent(1, 1)
    assert shop.read_text(f"{PLACED}/hist") == shop.read_text(f"{SENT}/hist")
    assert "    Hits: 4\n    Entries: 3\n" in shop.read_text(f"{SENT}/hist")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x ^chr arg", "Invalid type"),
        ("x ^unsigned arg", "Incomplete type"),
        ("x char ^str]; int v", "Illegal name"),
        ("^x-y char str[]", "Illegal name"),
        ("x char str;^[]", "Invalid field"),
        ("x char str; ^int", "Invalid field"),
        ("x char ^str[; int v", "Invalid array specification"),
        ("x char ^str[257]", "Invalid array specification"),
        ("^x;y char str[]", "Command must be of the form: <name> field[;field] ..."),
        ("^; char str[]", "Command must be of the form: <name> field[;field] ..."),
    ],
)
def test_the_caret_of_bad_synthetic_events(shop, text, message):
    refused(shop, text.replace("^", ""), "synthetic_events")
    entry = shop.read_text("error_log").splitlines()[-3:]
    assert entry[0].endswith(f"synthetic_events: error: {message}")
    assert entry[2].index("^") == len("  Command: ") + text.index("^")


def test_a_variable_is_defined_once_for_an_event(shop):
    trigger(shop, "hist:keys=customer:v=total")
    trigger(shop, "hist:keys=order_id:v=left", SENT)
    for command in ("hist:keys=customer:v=total", "hist:keys=total:v=1", "hist:keys=customer:v=total:pause"):
        assert refused(shop, command) == "EINVAL"
        assert "error: Variable already defined\n" in shop.read_text("error_log")
        shop.write_text("error_log", "")
    trigger(shop, "!hist:keys=customer:v=total")
    trigger(shop, "hist:keys=total:v=1")


def test_no_hitcount_needs_another_value(shop):
    for text in ("hist:keys=total:nohitcount", "hist:keys=total:vals=hitcount:NOHC"):
        assert refused(shop, text) == "ENOENT"
    assert "error: Non-hitcount value is required for 'nohitcount'\n" in shop.read_text("error_log")
    trigger(shop, "hist:keys=total:vals=order_id:nohitcount")
    assert refused(shop, "hist:keys=total:vals=order_id") == "EEXIST"


def test_dynamic_events_are_the_synthetic_ones(shop):
    shop.write_text("dynamic_events", "s:one u64 lat; pid_t pid\n", append=True)
    shop.write_text("dynamic_events", "s:synthetic/two u64 lat; char who[16]\n", append=True)
    assert (
        shop.read_text("dynamic_events")
        == "s:synthetic/one\tu64 lat; pid_t pid\ns:synthetic/two\tu64 lat; char[16] who\n"
    )
    shop.write_text("dynamic_events", "!s:one u64 lat\n", append=True)
    shop.write_text("dynamic_events", "-:synthetic/two", append=True)
    assert shop.read_text("synthetic_events") == ""
    assert refused(shop, "s:junk/x char str[", "dynamic_events") == "EINVAL"
    assert "s or -:[synthetic/]<name>" in shop.read_text("error_log")
    for text, answer in (("-:none", "ENOENT"), ("-none", "EINVAL"), ("p:x f", "EINVAL"), ("-:a/b", "ENOENT")):
        assert refused(shop, text, "dynamic_events") == answer
