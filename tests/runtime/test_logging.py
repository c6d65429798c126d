"""The bridges: a logging handler, and functions that fire when they are entered and left."""

import importlib
import logging

import pytest

from runtime import control_tree


@pytest.fixture
def bridge(runtime, monkeypatch):
    files = control_tree.load(monkeypatch)
    module = importlib.import_module("tracepoint.runtime.bridge_logging")
    module.tree = files.ControlFiles(runtime.tracing)
    return module


@pytest.fixture
def logger(bridge):
    made = logging.getLogger("shop")
    made.setLevel(logging.INFO)
    made.propagate = False
    made.addHandler(bridge.TraceHandler())
    yield made
    made.handlers.clear()


def bodies(tree):
    lines = tree.read_text("trace").splitlines()
    return [line.split(": ", 1)[1] for line in lines if not line.startswith("#")]


def test_log_records_become_events(bridge, logger):
    logger.info("not %s", "seen")
    bridge.tree.write_text("events/logging/enable", "1")
    bridge.tree.write_text("events/logging/log_record/filter", "level >= 30")
    logger.info("too low")
    logger.warning("stock of %s is low", "tea")
    (body,) = bodies(bridge.tree)
    assert body.startswith("log_record: WARNING shop: stock of tea is low (test_logging.py:")


def test_messages_are_not_made_while_off(bridge):
    class Costly:
        def __str__(self):
            raise AssertionError("made")

    bridge.TraceHandler().handle(logging.makeLogRecord({"msg": "%s", "args": (Costly(),)}))


def test_two_handlers_share_the_event(bridge, logger):
    logger.addHandler(bridge.TraceHandler())
    bridge.tree.write_text("events/logging/enable", "1")
    logger.error("x")
    assert len(bodies(bridge.tree)) == 2


def test_functions_fire_at_entry_and_exit(bridge):
    @bridge.trace_calls(system="shop")
    def price_of(item, pieces=1):
        """Return a price."""
        return {"tea": 350}[item] * pieces

    assert price_of("tea") == 350
    assert price_of.__name__ == "price_of"
    bridge.tree.write_text("set_event", "shop:")
    assert price_of("tea", pieces=2) == 700
    with pytest.raises(KeyError):
        price_of("soap")
    found = [body.split(" took=")[0] for body in bodies(bridge.tree)]
    assert found == [
        "price_of_entry: ('tea', pieces=2)",
        "price_of_exit: returned 700",
        "price_of_entry: ('soap')",
        "price_of_exit: raised KeyError",
    ]


def test_a_value_without_a_text_does_not_harm_the_program(bridge):
    class Bad:
        def __repr__(self):
            raise ValueError

    @bridge.trace_calls(system="shop")
    def give(value):
        return value

    bridge.tree.write_text("set_event", "shop:")
    bad = Bad()
    assert give(bad) is bad
    assert bodies(bridge.tree)[0] == "give_entry: (<ValueError>)"
