"""What a process counted as the text of a scrape: names, labels, escapes, histograms, limits."""

import threading

import pytest

from tracepoint.model.python.types import u32, u64
from tracepoint.runtime.bridges.prometheus import CONTENT_TYPE, EventCounts, prometheus_app, prometheus_text
from tracepoint.runtime.files.tree import ControlFiles

PLACED = "events/shop/order_placed"


@pytest.fixture
def shop(runtime):
    @runtime.trace_event(system="shop", printk='"order=%llu by %s total=%u", order_id, customer, total')
    def order_placed(order_id: u64, customer: str, total: u32) -> None: ...

    tree = ControlFiles(runtime.tracing, n_cpus=2)
    tree.placed = order_placed
    return tree


def trigger(tree, text, folder=""):
    tree.write_text(f"{folder}{PLACED}/trigger", text, append=True)


def samples(text, name):
    """The samples of one metric as {labels: value}."""
    lines = [line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
    return {line.rpartition(" ")[0].removeprefix(name): int(line.rpartition(" ")[2]) for line in lines}


def test_events_are_counted_by_all_threads_only_while_it_is_open(shop):
    shop.placed(0, "ada", 1)
    with EventCounts([shop.placed]) as counts:
        threads = [
            threading.Thread(target=lambda: [shop.placed(i, "ada", 1) for i in range(500)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not shop.placed
    shop.placed(0, "ada", 1)
    assert samples(prometheus_text(counts, files=shop), "tracepoint_event_hits_total") == {
        '{event="shop:order_placed"}': 2000
    }


def test_a_hist_is_a_counter_with_its_keys_as_labels(shop):
    trigger(shop, "hist:keys=customer:vals=total")
    for customer, total in (("ada", 10), ('a"\\b\n', 300), ("ada", 20)):
        shop.placed(1, customer, total)
    text = prometheus_text(files=shop)
    head = '{event="shop:order_placed",hist="keys=customer:vals=hitcount,total:sort=hitcount:size=2048"'
    assert samples(text, "tracepoint_hist_hits_total") == {
        f'{head},key_customer="ada"}}': 2,
        f'{head},key_customer="a\\"\\\\b\\n"}}': 1,
    }
    assert samples(text, "tracepoint_hist_sum_total") == {
        f'{head},key_customer="ada",value="total"}}': 30,
        f'{head},key_customer="a\\"\\\\b\\n",value="total"}}': 300,
    }


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("total.log2", {"1": 2, "2": 3, "16": 4, "512": 5, "+Inf": 5}),
        ("total.buckets=10", {"9": 3, "19": 4, "309": 5, "+Inf": 5}),
    ],
)
def test_a_key_in_steps_is_a_histogram(shop, key, expected):
    trigger(shop, f"hist:name=totals:keys={key},customer")
    for total in (0, 1, 2, 16, 300):
        shop.placed(1, "ada", total)
    text = prometheus_text(files=shop)
    head = '{event="shop:order_placed",hist="totals",key_customer="ada"'
    assert samples(text, "tracepoint_hist_bucket") == {
        f'{head},le="{bound}"}}': total for bound, total in expected.items()
    }
    assert samples(text, "tracepoint_hist_count") == {f"{head}}}": 5}
    assert not samples(text, "tracepoint_hist_hits_total")


def test_rows_and_labels_have_limits(shop):
    trigger(shop, "hist:name=all:keys=customer")
    for letter in "abc":
        shop.placed(1, letter * 300, 1)
    shop.placed(1, "c" * 300, 1)
    text = prometheus_text(files=shop, max_series=1)
    own = '{event="shop:order_placed",hist="all"'
    assert samples(text, "tracepoint_hist_rows_left_out") == {f"{own}}}": 2}
    assert samples(text, "tracepoint_hist_hits_total") == {f'{own},key_customer="{"c" * 197}..."}}': 2}


def test_long_keys_that_are_cut_to_the_same_text_add_up(shop):
    trigger(shop, "hist:name=all:keys=customer")
    shop.placed(1, "a" * 300 + "1", 1)
    shop.placed(1, "a" * 300 + "2", 1)
    assert list(samples(prometheus_text(files=shop), "tracepoint_hist_hits_total").values()) == [2]


def test_hists_that_share_a_table_are_shown_once(shop, runtime):
    @runtime.trace_event(system="shop", printk='"%s", customer')
    def seen(customer: str) -> None: ...

    trigger(shop, "hist:name=all:keys=customer")
    shop.write_text("events/shop/seen/trigger", "hist:name=all:keys=customer", append=True)
    seen("ada")
    shop.placed(1, "ada", 1)
    assert list(samples(prometheus_text(files=shop), "tracepoint_hist_hits_total").values()) == [2]


def test_losses_and_faults_of_all_instances(shop):
    shop.mkdir("instances/small")
    shop.write_text("instances/small/buffer_size_kb", "8")
    shop.write_text(f"instances/small/{PLACED}/enable", "1")
    for number in range(3000):
        shop.placed(number, "ada", 1)
    with pytest.warns(match="does not fit"):
        shop.placed("no number", "ada", 1)
    text = prometheus_text(files=shop)
    lost = samples(text, "tracepoint_records_lost_total")
    assert (
        lost['{trace_instance="small",reason="overrun"}']
        == shop.tracing.instances["small"].stats["overrun"]
        > 0
    )
    assert lost['{reason="overrun"}'] == 0
    assert samples(text, "tracepoint_faults_total") == {"": 1}


def test_a_parser_of_the_format_reads_it(shop):
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus_client is not installed")
    trigger(shop, "hist:keys=customer")
    trigger(shop, "hist:keys=total.log2")
    names = ['a"\\b\n', "é", "}, x", ""]
    for name in names:
        shop.placed(1, name, 7)
    families = {f.name: f for f in parser.text_string_to_metric_families(prometheus_text(files=shop))}
    assert families["tracepoint_hist"].type == "histogram"
    hits = families["tracepoint_hist_hits"]
    assert hits.type == "counter"
    assert {sample.labels.get("key_customer", "") for sample in hits.samples} == set(names)


def test_the_application_answers_with_the_text(shop):
    answered = []
    data = prometheus_app(files=shop)({}, lambda *answer: answered.append(answer))
    assert b"".join(data).decode() == prometheus_text(files=shop)
    assert answered == [
        ("200 OK", [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(b"".join(data))))])
    ]
