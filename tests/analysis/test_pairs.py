"""Begins and ends: which belong together, and which a loss hides."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.analysis.coverage import Gap, join_gaps
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


def naive_pairs(order, steps, scope, gaps):
    """The same as the machine, where each loss is looked at again for each begin that is open."""
    opened, made, cut, orphans = [], [], [], []
    for row, (what, ts, cpu) in enumerate(steps):
        for one in opened[:]:
            # What touches is one loss.
            own = join_gaps(gaps.get(one[2], []) if scope is EndScope.CPU else chain(*gaps.values()))
            if any(stop > one[1] and start < ts for start, stop in zip(own.starts, own.stops, strict=True)):
                opened.remove(one)
                cut.append(one[0])
        if what == "b":
            if order is Order.LAST:
                opened.clear()
            opened.append((row, ts, cpu))
        elif opened:
            made.append((opened.pop(0 if order is Order.QUEUE else -1)[0], row))
        else:
            orphans.append(row)
    return made, sorted(cut), orphans


_GAPS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 5)), max_size=4).map(
    lambda found: [Gap(start, start + length, 1) for start, length in found]
)


@given(
    st.sampled_from([Order.STACK, Order.QUEUE, Order.LAST]),
    st.sampled_from(EndScope),
    st.lists(st.tuples(st.sampled_from("bbe"), st.integers(0, 3), st.integers(0, 2)), max_size=40),
    st.dictionaries(st.integers(0, 2), _GAPS),
)
def test_losses_hide_what_they_may_hide(order, scope, steps, gaps):
    now, timed = 0, []
    for what, step, cpu in steps:
        now += step
        timed.append((what, now, cpu))
    made, cut, orphans = naive_pairs(order, timed, scope, gaps)
    found_made, found = pairs_of(order, timed, scope, gaps, stop=now)
    assert (found_made, found.orphans.tolist()) == (made, orphans)
    # What is open at the end is looked at with the time of the end.
    assert set(found.cut) >= set(cut)


@pytest.mark.parametrize("order", [Order.STACK, Order.QUEUE])
def test_many_begins_without_an_end_take_no_longer_each(order):
    n = 100_000
    steps = [("b", 10 + at) for at in range(n)] + [("e", 2 * n + at) for at in range(n)]
    made, _ = pairs_of(order, steps, gaps={0: [Gap(1, 2, 3)]}, stop=4 * n)
    assert len(made) == n
