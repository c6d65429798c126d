"""Begins and ends: which belong together, and which a loss hides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.analysis.coverage import Gap
from tracepoint.analysis.pairs import NO_ROW, EndScope, Order, PairMachine


def pairs_of(order, steps, scope=EndScope.ALL, gaps=None, stop=1000):
    """Give `b` and `e` at times to a machine; rows are the places in the list, a third item is the CPU."""
    machine = PairMachine(order, scope, gaps)
    for row, (what, ts, *cpu) in enumerate(steps):
        if what == "b":
            machine.begin("key", row, ts, *(cpu or [0]))
        else:
            machine.end("key", row, ts)
    found = machine.finish(stop)
    return list(zip(found.begins, found.ends, strict=True)), found


@pytest.mark.parametrize(
    ("order", "pairs", "opens", "orphans", "n_inner"),
    [
        (Order.STACK, [(1, 2), (0, 3)], [], [4], 0),
        (Order.QUEUE, [(0, 2), (1, 3)], [], [4], 0),
        (Order.LAST, [(1, 2)], [0], [3, 4], 0),
        (Order.FIRST, [(0, 2)], [], [3, 4], 1),
    ],
)
def test_orders(order, pairs, opens, orphans, n_inner):
    made, found = pairs_of(order, [("b", 1), ("b", 2), ("e", 3), ("e", 4), ("e", 5)])
    assert made == pairs
    assert (found.opens, found.orphans.tolist(), found.n_inner) == (opens, orphans, n_inner)


def test_a_loss_hides_the_end_of_what_is_open():
    gaps = {1: [Gap(10, 20, 3)]}
    steps = [("b", 5, 0), ("e", 30, 0)]
    assert pairs_of(Order.LAST, steps, EndScope.CPU, gaps)[0] == [(0, 1)]
    made, found = pairs_of(Order.LAST, steps, EndScope.ALL, gaps)
    assert (made, found.cut, found.orphans.tolist()) == ([], [0], [1])
    assert pairs_of(Order.LAST, [("b", 5, 1), ("e", 30, 1)], EndScope.CPU, gaps)[1].cut == [0]
    assert pairs_of(Order.LAST, [("b", 20, 1), ("e", 30, 1)], EndScope.CPU, gaps)[0] == [(0, 1)]


def test_what_is_open_at_the_end_of_the_trace():
    found = pairs_of(Order.STACK, [("b", 5), ("b", 6)], gaps={0: [Gap(10, 20, 3)]})[1]
    assert (found.opens, found.cut) == ([0, 1], [0, 1])
    found = pairs_of(Order.STACK, [("b", 5), ("b", 6)])[1]
    assert (found.opens, found.cut) == ([0, 1], [])


def test_what_is_gone_has_no_end():
    machine = PairMachine(Order.LAST)
    machine.begin(7, 0, 1, 0)
    machine.drop(7)
    assert machine.end(7, 1, 2) == NO_ROW
    assert machine.finish(3).opens == [0]


@given(st.sampled_from(Order), st.lists(st.tuples(st.sampled_from("be"), st.just(0))))
def test_every_record_is_counted_once(order, steps):
    made, found = pairs_of(order, [(what, at) for at, (what, _) in enumerate(steps)])
    n_begins = sum(what == "b" for what, _ in steps)
    assert n_begins == len(made) + len(found.opens) + found.n_inner
    assert len(steps) - n_begins == len(made) + len(found.orphans)
    assert all(begin < end for begin, end in made)
