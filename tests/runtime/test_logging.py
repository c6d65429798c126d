"""The bridges: a logging handler, and functions that fire when they are entered and left."""

import asyncio
import functools
import inspect
import logging
from types import SimpleNamespace

import pytest

from tracepoint.errors import TracepointError
from tracepoint.model.python.types import u8, u64
from tracepoint.runtime.bridges.log_records import TraceHandler, TraceProcessor, trace_calls
from tracepoint.runtime.files.tree import ControlFiles


@pytest.fixture
def bridge(runtime):
    return SimpleNamespace(
        tree=ControlFiles(runtime.tracing),
        TraceHandler=functools.partial(TraceHandler, tracing=runtime.tracing),
        trace_calls=functools.partial(trace_calls, tracing=runtime.tracing),
    )


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


def test_extra_is_a_field_of_its_own(bridge, logger):
    class Odd:
        def __repr__(self):
            raise LookupError

    bridge.tree.write_text("events/logging/enable", "1")
    bridge.tree.write_text("events/logging/log_record/filter", 'extra ~ "*order=7*"')
    logger.warning("sold", extra={"order": 8})
    logger.warning("sold", extra={"order": 7, "customer": "ada", "odd": Odd()})
    logger.warning("x" * 5000, extra={"order": 7, "long": "y" * 5000})
    first, second = bodies(bridge.tree)
    assert first.endswith(") order=7 customer='ada' odd=<LookupError>")
    assert "x" * 2400 in second
    assert second.endswith("y" * 500 + "...")


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


def outcomes(bridge):
    return [body.split(" took=")[0] for body in bodies(bridge.tree)]


def test_coroutines_are_entered_and_left_where_their_body_is(bridge):
    @bridge.trace_calls(system="shop")
    async def fetch(n):
        await asyncio.sleep(0.02)
        if n < 0:
            raise LookupError
        return n * 2

    assert inspect.iscoroutinefunction(fetch)
    assert asyncio.run(fetch(1)) == 2
    bridge.tree.write_text("set_event", "shop:")

    async def main():
        results = await asyncio.gather(fetch(1), fetch(-1), return_exceptions=True)
        task = asyncio.create_task(fetch(3))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return results

    first, second = asyncio.run(main())
    assert first == 2
    assert isinstance(second, LookupError)
    found = outcomes(bridge)
    assert found[:2] == ["fetch_entry: (1)", "fetch_entry: (-1)"]
    assert sorted(found[2:4]) == ["fetch_exit: raised LookupError", "fetch_exit: returned 2"]
    assert found[4:] == ["fetch_entry: (3)", "fetch_exit: raised CancelledError"]
    times = [
        int(body.split("took=")[1].removesuffix("ns")) for body in bodies(bridge.tree) if "took=" in body
    ]
    assert all(t >= 15_000_000 for t in times[:2]), "the waiting is in it"


def test_a_coroutine_that_nobody_awaits_warns_as_ever(bridge):
    @bridge.trace_calls(system="shop")
    async def fetch(): ...

    fetch().close()
    bridge.tree.write_text("set_event", "shop:")
    fetch().close()
    assert outcomes(bridge) == []


def test_generators_take_and_give_what_they_did(bridge):
    @bridge.trace_calls(system="shop")
    def steps(n):
        got = []
        for i in range(n):
            try:
                got.append((yield i))
            except KeyError:
                got.append("thrown")
        return got

    assert inspect.isgeneratorfunction(steps)

    def use():
        steps_of = steps(3)
        seen = [next(steps_of), steps_of.send("a"), steps_of.throw(KeyError)]
        with pytest.raises(StopIteration) as end:
            steps_of.send("c")
        return seen, end.value.value

    expected = ([0, 1, 2], ["a", "thrown", "c"])
    assert use() == expected
    bridge.tree.write_text("set_event", "shop:")
    assert use() == expected
    closed = steps(3)
    next(closed)
    closed.close()
    steps(3).close()
    assert outcomes(bridge) == [
        "steps_entry: (3)",
        "steps_exit: returned ['a', 'thrown', 'c']",
        "steps_entry: (3)",
        "steps_exit: raised GeneratorExit",
    ]


def test_asynchronous_generators_take_and_give_what_they_did(bridge):
    closed = []

    @bridge.trace_calls(system="shop")
    async def steps(n):
        try:
            for i in range(n):
                try:
                    got = yield i
                except KeyError:
                    got = "thrown"
                if got == "fail":
                    raise LookupError
        finally:
            closed.append(n)

    assert inspect.isasyncgenfunction(steps)

    async def use():
        found = [i async for i in steps(2)]
        one = steps(4)
        found += [await anext(one), await one.asend("a"), await one.athrow(KeyError), await anext(one)]
        with pytest.raises(StopAsyncIteration):
            await anext(one)
        two = steps(5)
        await anext(two)
        await two.aclose()
        three = steps(6)
        await anext(three)
        with pytest.raises(LookupError):
            await three.asend("fail")
        return found

    assert asyncio.run(use()) == [0, 1, 0, 1, 2, 3]
    bridge.tree.write_text("set_event", "shop:")
    assert asyncio.run(use()) == [0, 1, 0, 1, 2, 3]
    assert closed == [2, 4, 5, 6] * 2
    assert outcomes(bridge) == [
        "steps_entry: (2)",
        "steps_exit: returned None",
        "steps_entry: (4)",
        "steps_exit: returned None",
        "steps_entry: (5)",
        "steps_exit: raised GeneratorExit",
        "steps_entry: (6)",
        "steps_exit: raised LookupError",
    ]


def test_only_the_exit_or_only_the_entry(bridge):
    def costly(value):
        made.append(value)
        return value

    made = []

    @bridge.trace_calls(system="shop", name="price", result=costly)
    def price_of(n):
        return n

    bridge.tree.write_text("set_event", "shop:price_entry")
    price_of(1)
    assert made == [], "nobody listens to the exit"
    bridge.tree.write_text("set_event", "!shop:price_entry")
    bridge.tree.write_text("set_event", "shop:price_exit")
    price_of(2)
    assert made == [2]
    assert outcomes(bridge) == ["price_entry: (1)", "price_exit: returned 2"]


def test_methods_and_defaults_stay_what_they_are(bridge):
    class Shop:
        @bridge.trace_calls(system="shop")
        def sell(self, n: int = 3, *more: int, key: str = "k") -> int:
            """Sell."""
            return n

        @classmethod
        @bridge.trace_calls(system="shop")
        def make(cls):
            return cls

        def __repr__(self):
            return "Shop()"

    assert str(inspect.signature(Shop.sell)) == "(self, n: int = 3, *more: int, key: str = 'k') -> int"
    bridge.tree.write_text("set_event", "shop:")
    assert Shop().sell() == 3
    assert Shop.make() is Shop
    assert outcomes(bridge)[:2] == ["sell_entry: (Shop())", "sell_exit: returned 3"]


@pytest.mark.parametrize("error", [SystemExit, RecursionError, MemoryError, GeneratorExit])
def test_texts_that_end_the_program_do_not(bridge, error):
    class Bad:
        def __repr__(self):
            raise error

    @bridge.trace_calls(system="shop")
    def give(value):
        return value

    bridge.tree.write_text("set_event", "shop:")
    bad = Bad()
    assert give(bad) is bad
    assert outcomes(bridge) == [
        f"give_entry: (<{error.__name__}>)",
        f"give_exit: <{error.__name__}>",
    ]


def test_long_texts_are_cut(bridge, logger, runtime):
    @bridge.trace_calls(system="shop")
    def give(value):
        return value

    bridge.tree.write_text("set_event", "*:*")
    give("ä" * 100_000)
    logger.error("%s", "\ud800" + "ü" * 100_000)
    entry, exit_, logged = bodies(bridge.tree)
    assert entry.startswith("give_entry: ('ää")
    assert exit_.startswith("give_exit: returned 'ää")
    assert logged.startswith("log_record: ERROR shop: \\ud800üü")
    assert all(2900 < len(text.encode(errors="surrogateescape")) < 3200 for text in (entry, exit_, logged))
    assert runtime.tracing.faults == (0, [])


def test_log_records_of_an_exception(bridge, logger):
    bridge.tree.write_text("events/logging/enable", "1")
    try:
        {}["x"]
    except KeyError:
        logger.exception("no %s", "x")
    text = bridge.tree.read_text("trace")
    assert "log_record: ERROR shop: no x\nTraceback" in text
    assert "KeyError: 'x'" in text


def test_a_record_that_cannot_be_formatted_is_reported_as_ever(bridge, capsys):
    handler = bridge.TraceHandler()
    bridge.tree.write_text("events/logging/enable", "1")
    handler.handle(logging.makeLogRecord({"msg": "%d", "args": ("no number",)}))
    assert "TypeError" in capsys.readouterr().err
    assert bodies(bridge.tree) == []


def test_methods_of_classes_stay_what_they_are(bridge, runtime):
    """In either order of the decorators; a classmethod was called as if it were a function."""

    class Shop:
        @bridge.trace_calls(system="shop", name="made")
        @classmethod
        def make(cls, item):
            return cls, item

        @classmethod
        @bridge.trace_calls(system="shop", name="made_too")
        def make_too(cls, item):
            return cls, item

        @bridge.trace_calls(system="shop", name="priced")
        @staticmethod
        def price(item):
            return len(item)

    runtime.tracing.set_event("shop:*")
    assert Shop.make("tea") == Shop().make("tea") == Shop.make_too("tea") == (Shop, "tea")
    assert Shop.price("tea") == Shop().price("tea") == 3
    assert len(runtime.tracing.records()) == 10


@pytest.mark.parametrize("thing", [int, property(), "text", None])
def test_what_is_no_function_is_refused(bridge, thing):
    """A class would be one no more."""
    with pytest.raises(TracepointError, match=r"trace_calls\(\) is for functions"):
        bridge.trace_calls(system="shop", name="thing")(thing)


@pytest.fixture
def sold(bridge, runtime):
    @runtime.trace_event(system="shop", printk='"order=%llu by %s", order, customer')
    def sold(order: u64, customer: str, express: u8 = 0) -> None: ...

    return sold


def test_an_entry_of_structlog_fires_its_event(bridge, sold):
    processor = TraceProcessor({"sold": sold})
    entry = {"event": "sold", "order": 7, "customer": "ada", "level": "info"}
    assert processor(None, "info", entry) is entry
    bridge.tree.write_text("events/shop/sold/enable", "1")
    assert processor(None, "info", entry) == {"event": "sold", "order": 7, "customer": "ada", "level": "info"}
    processor(None, "info", {"event": "returned", "order": 8})
    processor(None, "info", {"event": ["sold"]})
    processor(None, "info", {})
    assert bodies(bridge.tree) == ["sold: order=7 by ada"]


def test_an_entry_that_lacks_a_parameter_is_a_counted_fault(bridge, sold, runtime):
    bridge.tree.write_text("events/shop/sold/enable", "1")
    with pytest.warns(match="argument customer is missing"):
        TraceProcessor({"sold": sold})(None, "info", {"event": "sold", "order": 7})
    assert runtime.tracing.faults[0] == 1
    assert bodies(bridge.tree) == []


def test_structlog_itself_takes_the_processor(bridge, sold):
    structlog = pytest.importorskip("structlog", reason="structlog is not installed: pip install structlog")
    bridge.tree.write_text("events/shop/sold/enable", "1")
    chain = [TraceProcessor({"sold": sold}), structlog.processors.KeyValueRenderer(sort_keys=True)]
    logger = structlog.wrap_logger(structlog.testing.CapturingLogger(), processors=chain)
    logger.info("sold", order=7, customer="ada")
    assert bodies(bridge.tree) == ["sold: order=7 by ada"]
