"""The control files in memory: errno, short writes, truncation, readers, instances."""

import errno
import importlib
import os
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import examples
from tracepoint.layout.format import read_format
from tracepoint.model.python.types import u64
from tracepoint.runtime.files.tree import ControlFiles


@pytest.fixture
def shop(runtime):
    @runtime.trace_event(system="shop", printk='"order=%llu by %s", order_id, customer')
    def order_placed(order_id: u64, customer: str) -> None: ...

    @runtime.trace_event(system="shop", printk='"order=%llu", order_id')
    def order_sent(order_id: u64) -> None: ...

    tree = ControlFiles(runtime.tracing, n_cpus=2)
    tree.placed, tree.sent = order_placed, order_sent
    return tree


def refused(action, *args, **kwargs):
    with pytest.raises(OSError) as caught:
        action(*args, **kwargs)
    return errno.errorcode[caught.value.errno]


def bodies(tree, path="trace"):
    return [line.split(": ", 1)[1] for line in tree.read_text(path).splitlines() if not line.startswith("#")]


def test_echo_1_enables_and_cat_shows(shop):
    shop.write_text("events/shop/order_placed/enable", "1\n")
    shop.placed(7, "ada")
    shop.sent(7)
    assert bodies(shop) == ["order_placed: order=7 by ada"]
    assert shop.read_text("set_event") == "shop:order_placed\n"
    assert [shop.read_text(f"events/{name}enable") for name in ("", "shop/", "shop/order_sent/")] == [
        "X\n",
        "X\n",
        "0\n",
    ]
    shop.write_text("trace", "")
    assert bodies(shop) == []


def test_set_event_takes_one_word_a_write_and_stops_at_the_first_error(shop):
    handle = shop.open("set_event", os.O_WRONLY | os.O_TRUNC)
    data = b"  shop:order_sent nosuch shop:order_placed\n"
    taken = handle.write(data)
    assert data[:taken] == b"  shop:order_sent "
    assert refused(handle.write, data[taken:]) == "EINVAL"
    assert shop.read_text("set_event") == "shop:order_sent\n"
    shop.write_text("set_event", "shop:", append=True)
    assert shop.read_text("set_event") == "shop:order_sent\nshop:order_placed\n"
    shop.write_text("set_event", "!order_sent", append=True)
    assert shop.read_text("set_event") == "shop:order_placed\n"
    shop.write_text("set_event", "\n")
    assert shop.read_text("set_event") == ""


def test_every_format_is_read_back(shop):
    form = read_format(shop.read_text("events/shop/order_placed/format"), system="shop")
    assert [f.name for f in form.event_fields] == ["order_id", "customer"]
    assert shop.read_text("events/shop/order_placed/id") == f"{form.id}\n"
    for name in ("print", "function", "kernel_stack", "raw_data"):
        assert read_format(shop.read_text(f"events/ftrace/{name}/format"), system="ftrace").name == name


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("events/shop/order_placed/enable", "2", "EINVAL"),
        ("events/shop/order_placed/enable", " 1", "EINVAL"),
        ("events/shop/order_placed/enable", "0x1", "EINVAL"),
        ("events/shop/order_placed/filter", "(order_id == 1", "ENOENT"),
        ("events/shop/order_placed/filter", "nosuch == 1", "EINVAL"),
        ("events/shop/order_placed/filter", "order_id == 1)", "EPERM"),
        ("events/shop/order_placed/format", "x", "EACCES"),
        ("events/shop/nosuch/enable", "1", "ENOENT"),
        ("events/ftrace/enable", "1", "ENOENT"),
        ("set_event", "*", "EINVAL"),
        ("set_event", "x" * 128, "EINVAL"),
        ("set_event_pid", "x", "EINVAL"),
        ("set_event_pid", "-1", "EINVAL"),
        ("buffer_size_kb", "0", "EINVAL"),
        ("trace_clock", "[local]", "EINVAL"),
        ("trace_options", "nosuch", "EINVAL"),
        ("options/markers", "2", "EINVAL"),
        ("tracing_cpumask", "7", "EOVERFLOW"),
        ("tracing_cpumask", "g", "EINVAL"),
        ("current_tracer", "function", "EINVAL"),
        ("saved_cmdlines_size", "0", "EINVAL"),
        ("trace_marker_raw", "abc", "EINVAL"),
        ("tracing_on", "x", "EINVAL"),
    ],
)
def test_errors_are_the_kernels(shop, path, text, expected):
    assert refused(shop.write_text, path, text) == expected


def test_sizes_are_whole_pages(shop):
    assert shop.read_text("buffer_size_kb") == "7 (expanded: 1408)\n"
    for wanted, shown in ((100, 103), (1, 7), (1408, 1410), (2000, 2000), (8, 11)):
        shop.write_text("buffer_size_kb", f"{wanted}\n")
        assert shop.read_text("buffer_size_kb") == f"{shown}\n"


def test_pages_have_one_size(shop):
    for path in ("buffer_subbuf_size_kb", "instances/a/buffer_subbuf_size_kb"):
        if "/" in path:
            shop.mkdir("instances/a")
        assert shop.read_text(path) == "4\n"
        for text in ("4", "1"):
            shop.write_text(path, text)
        for text, answer in (("0", "EINVAL"), ("513", "EINVAL"), ("x", "EINVAL"), ("8", "ENOMEM")):
            assert refused(shop.write_text, path, text) == answer
        assert shop.read_text(path) == "4\n"


def test_a_resized_buffer_still_records(shop):
    shop.write_text("set_event", "shop:")
    shop.write_text("buffer_size_kb", "8")
    shop.sent(3)
    assert bodies(shop) == ["order_sent: order=3"]


def test_only_wanted_threads_record(shop):
    shop.write_text("set_event", "shop:order_sent")
    shop.write_text("set_event_pid", "1 2\n")
    shop.sent(1)
    shop.write_text("set_event_pid", f"{threading.get_native_id()}", append=True)
    shop.write_text("events/shop/order_sent/filter", "order_id > 1")
    shop.sent(1)
    shop.sent(2)
    assert shop.read_text("set_event_pid").split() == ["1", "2", str(threading.get_native_id())]
    shop.write_text("set_event_pid", "")
    shop.write_text("set_event_notrace_pid", f"{threading.get_native_id()}")
    shop.sent(3)
    assert bodies(shop) == ["order_sent: order=2"]
    assert shop.read_text("events/shop/order_sent/filter") == "order_id > 1\n"


def test_a_reg_that_raises_answers_its_errno_and_leaves_the_event_off(runtime, shop):
    def refuse():
        raise OSError(errno.ENODEV, "no device")

    @runtime.trace_event(system="shop", printk='"n=%llu", n', reg=refuse)
    def order_refused(n: u64) -> None: ...

    folder = "events/shop/order_refused"
    assert refused(shop.write_text, f"{folder}/enable", "1") == "ENODEV"
    assert refused(shop.write_text, f"{folder}/trigger", "traceoff") == "ENODEV"
    assert refused(shop.write_text, "set_event", "shop:order_refused") == "ENODEV"
    assert shop.read_text(f"{folder}/enable") == "0\n"
    assert shop.read_text(f"{folder}/trigger").startswith("# Available triggers:")
    assert refused(shop.write_text, "events/shop/enable", "1") == "ENODEV"
    assert shop.read_text("set_event") == "shop:order_sent\nshop:order_placed\n"


def test_any_number_of_threads_is_a_set(shop):
    me = threading.get_native_id()
    others = [pid for pid in range(100_000, 107_000) if pid != me]
    shop.write_text("set_event", "shop:order_sent")
    shop.write_text("set_event_pid", " ".join(map(str, reversed(others))))
    assert shop.read_text("set_event_pid").split() == [str(pid) for pid in others]
    shop.sent(1)
    shop.write_text("events/shop/order_sent/filter", "order_id > 2")
    shop.write_text("set_event_pid", f" {me}", append=True)
    shop.sent(2)
    shop.sent(3)
    shop.write_text("set_event_notrace_pid", " ".join(map(str, [me, *others])))
    shop.sent(4)
    assert bodies(shop) == ["order_sent: order=3"]


def test_a_write_in_pieces_ends_at_a_word(shop):
    """As a mount hands on a long write: pieces of whole pages, and a short count for the rest of a word."""
    text = " ".join(map(str, range(100_000, 101_000))).encode()
    handle = shop.open("set_event_pid", os.O_WRONLY)
    at = 0
    while at < len(text):
        at += handle.write(text[at : at + 4096])
    handle.close()
    assert len(shop.read_text("set_event_pid").split()) == 1000


def test_an_event_declared_later_is_for_the_same_threads(runtime, shop):
    shop.write_text("set_event_pid", "1")

    @runtime.trace_event(system="shop", printk='"n=%u", n')
    def order_late(n: u64) -> None: ...

    shop.write_text("set_event", "shop:order_late")
    order_late(1)
    shop.write_text("set_event_pid", "")
    order_late(2)
    assert bodies(shop) == ["order_late: n=2"]


def test_markers_are_records_and_refused_when_off(shop):
    shop.write_text("trace_marker", "hello\n")
    shop.write_text("trace_marker", "x" * 2500)
    shop.write_text("trace_marker_raw", b"\x2a\0\0\0ab\0\0")
    found = bodies(shop)
    assert found[0] == "tracing_mark_write: hello"
    assert [len(body) - len("tracing_mark_write: ") for body in found[1:4]] == [1024, 1024, 452]
    assert found[4] == "# 2a buf: 61 62 00 00"
    shop.write_text("tracing_on", "0")
    assert refused(shop.write_text, "trace_marker", "x") == "EBADF"
    shop.write_text("tracing_on", "1")
    shop.write_text("options/markers", "0")
    assert refused(shop.write_text, "trace_marker", "x") == "EINVAL"


def test_the_pipe_takes_out_and_ends_when_tracing_is_off(shop):
    pipe = shop.open("trace_pipe")
    assert refused(shop.open, "trace_pipe") == "EBUSY"
    assert refused(shop.open, "per_cpu/cpu0/trace_pipe") == "EBUSY"
    shop.write_text("trace_marker", "one")
    assert pipe.read(4096, 0).endswith(b"tracing_mark_write: one\n")
    shop.write_text("tracing_on", "0")
    assert pipe.read(4096, 0) == b""
    pipe.close()
    waiting = shop.open("trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert refused(waiting.read, 10, 0) == "EAGAIN"
    waiting.close()


@pytest.mark.parametrize("name", ["trace_pipe", "per_cpu/cpu0/trace_pipe_raw"])
def test_what_comes_before_tracing_is_off_is_read_before_the_end(shop, name):
    """Also when both happen after the reader found nothing, and before it looks whether more may come."""
    shop.write_text("trace_marker", "one")
    pipe, found = shop.open(name), []
    more = pipe._more

    def look():
        pages = more()
        if not pages and not found:
            found.append("nothing")
            shop.write_text("trace_marker", "last")
            shop.write_text("tracing_on", "0")
        return pages

    pipe._more = look
    read = b"".join(iter(lambda: pipe.read(4096, 0), b""))
    assert found
    assert b"last\n" in read
    pipe.close()


def test_a_pipe_waits_for_the_next_record(shop):
    pipe = shop.open("trace_pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read(4096, 0)))
    reader.start()
    shop.write_text("trace_marker", "late")
    reader.join(10)
    assert not reader.is_alive()
    assert b"late" in found[0]
    pipe.close()


def test_raw_pages_come_whole_and_continue_when_read_in_parts(shop):
    shop.write_text("trace_marker", "raw")
    raw = shop.open("per_cpu/cpu0/trace_pipe_raw")
    page = raw.read(100, 0) + raw.read(4096, 100)
    assert len(page) == 4096
    assert b"raw\n" in page
    assert "read events: 1\n" in shop.read_text("per_cpu/cpu0/stats")


def test_instances_have_their_own_events_and_go_when_unused(shop):
    shop.mkdir("instances/a")
    assert refused(shop.mkdir, "instances/a") == "EEXIST"
    assert refused(shop.mkdir, "instances/b/c") == "ENOENT"
    assert refused(shop.mkdir, "b") == "EPERM"
    assert refused(shop.rmdir, "instances/b") == "ENOENT"
    shop.write_text("instances/a/events/shop/enable", "1")
    shop.sent(5)
    assert bodies(shop) == []
    assert bodies(shop, "instances/a/trace") == ["order_sent: order=5"]
    assert "README" not in shop.folder("instances/a").names()
    handle = shop.open("instances/a/trace")
    assert refused(shop.rmdir, "instances/a") == "EBUSY"
    handle.close()
    shop.rmdir("instances/a")
    assert shop.folder("instances").names() == []
    assert not shop.sent


def test_a_snapshot_moves_what_was_recorded(shop):
    assert "* Snapshot is freed *" in shop.read_text("snapshot")
    shop.write_text("trace_marker", "kept")
    shop.write_text("snapshot", "1")
    assert bodies(shop, "snapshot") == ["tracing_mark_write: kept"]
    assert bodies(shop) == []
    shop.write_text("snapshot", "2")
    assert "* Snapshot is allocated *" in shop.read_text("snapshot")
    shop.write_text("snapshot", "0")
    assert "* Snapshot is freed *" in shop.read_text("snapshot")


def test_options_change_the_text(shop):
    shop.write_text("trace_marker", "x")
    assert "norecord-tgid\n" in shop.read_text("trace_options")
    shop.write_text("trace_options", "record-tgid\n")
    assert f"({os.getpid():7d})" in shop.read_text("trace")
    assert shop.read_text("options/record-tgid") == "1\n"
    shop.write_text("trace_options", "nocontext-info")
    assert shop.read_text("trace") == "# tracer: nop\n#\ntracing_mark_write: x\n"


def test_an_instance_begins_with_the_options_of_the_top_but_those_about_forks(shop):
    """kernel/trace/trace.c: trace_array_create_systems() leaves ZEROED_TRACE_FLAGS out."""
    shop.write_text("trace_options", "record-tgid")
    shop.write_text("trace_options", "event-fork")
    shop.mkdir("instances/a")
    assert shop.read_text("instances/a/options/record-tgid") == "1\n"
    assert shop.read_text("instances/a/options/event-fork") == "0\n"
    shop.write_text("trace_options", "norecord-tgid")
    shop.write_text("instances/a/trace_marker", "x")
    assert f"({os.getpid():7d})" in shop.read_text("instances/a/trace")
    assert f"{os.getpid()} {os.getpid()}\n" in shop.read_text("saved_tgids")


NAMES = ("order_placed", "order_sent")
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("set_event"), st.sampled_from(["shop", "order_sent", "!shop:", "!order_placed", "x"])
        ),
        st.tuples(st.sampled_from(["order_placed", "order_sent", "all"]), st.sampled_from(["0", "1", "2"])),
        st.tuples(st.just("truncate"), st.just("")),
    ),
    max_size=12,
)


@given(STEPS)
@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_states_follow_a_model(shop, steps):
    """Whatever is written, enable, set_event and the aggregate agree with a set of names."""
    shop.write_text("events/enable", "0")
    model = set()
    for kind, text in steps:
        if kind == "truncate":
            shop.write_text("set_event", "")
            shop.open("set_event", os.O_WRONLY | os.O_TRUNC).close()
            model = set()
        elif kind == "set_event":
            if text == "x":
                assert refused(shop.write_text, "set_event", text, append=True) == "EINVAL"
                continue
            shop.write_text("set_event", text, append=True)
            named = {n for n in NAMES if text.strip("!:") in ("shop", n)}
            model = model - named if text.startswith("!") else model | named
        else:
            path = "events/enable" if kind == "all" else f"events/shop/{kind}/enable"
            if text == "2":
                assert refused(shop.write_text, path, text) == "EINVAL"
                continue
            shop.write_text(path, text)
            named = set(NAMES) if kind == "all" else {kind}
            model = model | named if text == "1" else model - named
        assert {line.split(":")[1] for line in shop.read_text("set_event").split()} == model
        expected = {0: "0", 1: "X", 2: "1"}[len(model)]
        assert shop.read_text("events/shop/enable") == f"{expected}\n"


def test_a_long_content_is_made_while_it_is_read():
    files = importlib.import_module("tracepoint.runtime.files.file")
    made = []

    def pieces():
        for number in range(1000):
            made.append(number)
            yield f"{number:9}\n"

    handle = files.StreamHandle(files.File(lambda: ""), pieces)
    whole = "".join(f"{number:9}\n" for number in range(1000)).encode()
    assert handle.read(25, 0) == whole[:25]
    assert len(made) == 3
    assert handle.read(25, 25) == whole[25:50]
    assert handle.read(10, 500) == whole[500:510], "forward"
    assert handle.read(10, 20) == whole[20:30], "and back"
    assert handle.read(100_000, 30) == whole[30:]
    assert handle.read(100, len(whole)) == b""
    assert handle.read(100, len(whole) + 5) == b""
    assert handle.read(5, 0) == whole[:5]


def test_the_trace_read_in_parts_is_the_trace(shop):
    shop.write_text("events/enable", "1")
    for number in range(500):
        shop.placed(number, "ada")
    whole = shop.read_text("trace").encode()
    handle = shop.open("trace")
    parts, offset = [], 0
    while part := handle.read(1000, offset):
        parts.append(part)
        offset += len(part)
    assert b"".join(parts) == whole
    assert whole.count(b"\n") > 500
