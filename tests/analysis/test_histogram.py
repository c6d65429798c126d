"""Histograms and top lists: what their buckets and counters promise, however they were put together."""

import json
from collections import Counter
from math import ceil

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.analysis.distribution import Distribution
from tracepoint.analysis.histogram import Histogram, bucket_of, edges_of
from tracepoint.analysis.top import TopK
from tracepoint.errors import TracepointError

VALUES = st.integers(-(2**64), 2**64 - 1)
SAMPLES = st.lists(VALUES, max_size=60)
PRECISIONS = st.integers(0, 12)
HIDDEN = st.one_of(st.none(), st.integers(0, 5))


@given(VALUES, PRECISIONS)
def test_a_value_is_in_its_bucket_whose_width_is_the_stated_error(value, p):
    bucket = bucket_of(value, p)
    low, high = edges_of(bucket, p)
    assert low <= value <= high
    assert (bucket_of(low, p), bucket_of(high, p)) == (bucket, bucket)
    # Exactly, as floats of 64 bits would round.
    assert abs(low + high - 2 * value) * 2**p <= abs(value)
    assert (high - low) * 2**p <= abs(value)
    assert bucket_of(high + 1, p) > bucket


def test_the_numbers_of_the_format():
    assert bucket_of(2**64 - 1, 7) + 1 == 7424
    assert [bucket_of(v, 2) for v in (0, 3, 4, 7, 8, 9, 10, 15, 16, 19, 20)] == [
        0, 3, 4, 7, 8, 8, 9, 11, 12, 12, 13,
    ]  # fmt: skip
    assert Histogram([]).error == 1 / 256


@given(st.lists(st.tuples(SAMPLES, PRECISIONS, HIDDEN), min_size=3, max_size=3))
def test_merging_is_associative_and_equals_one_pass(parts):
    a, b, c = (Histogram(values, p, hidden, 10) for values, p, hidden in parts)
    left, right = a.merge(b).merge(c), a.merge(b.merge(c))
    assert left == right
    assert a.merge(b) == b.merge(a)
    lowest = min(p for _, p, _ in parts)
    hidden = [n for _, _, n in parts]
    together = Histogram(
        [v for values, _, _ in parts for v in values],
        lowest,
        None if None in hidden else sum(hidden),
        10 if any(n != 0 for n in hidden) else None,
    )
    assert left == together


@given(SAMPLES, st.integers(1, 12))
def test_one_bit_less_joins_neighbours_as_if_it_had_been_so_from_the_begin(values, p):
    assert Histogram(values, p).coarser(p - 1) == Histogram(values, p - 1)
    with pytest.raises(ValueError, match="bits were kept"):
        Histogram(values, p).coarser(p + 1)


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=60), PRECISIONS, HIDDEN, st.floats(0, 1))
def test_a_quantile_has_the_exact_one_within_its_bounds(values, p, hidden, q):
    """The same rule for both: the histogram only knows less of each value."""
    exact = Distribution(values, hidden, 2**65).quantile(q)
    found = Histogram(values, p, hidden, 2**65).quantile(q)
    if hidden is None:
        assert found is exact is None
        return
    assert found.low <= exact.low <= exact.high <= found.high
    assert (exact.low - found.low) * 2**p <= exact.low
    assert (found.high - exact.high) * 2**p <= exact.high


@given(st.lists(VALUES, min_size=1, max_size=40), st.lists(st.integers(0, 1000), max_size=5), st.floats(0, 1))
def test_hidden_samples_stay_within_the_bounds(values, hidden, q):
    truth = sorted([*values, *hidden])
    found = Histogram(values, 5, len(hidden), 1000)
    true = truth[max(ceil(q * len(truth)), 1) - 1]
    bounds = found.quantile(q)
    assert bounds.low <= true <= bounds.high
    assert found.sum.low <= sum(truth) <= found.sum.high
    assert found.count == (len(values), len(truth))
    assert found.seen().count.is_exact


def test_what_hides_nothing_says_nothing_of_how_long():
    known, lossy = Histogram([5]), Histogram([7], n_hidden=2, longest_hidden=9)
    assert known.merge(lossy).longest_hidden == 9
    assert known.merge(Histogram([7], n_hidden=2)).sum == (12, None)
    assert lossy.merge(Histogram([7], n_hidden=None)).quantile(0.5) is None


@given(SAMPLES, PRECISIONS, HIDDEN)
def test_json_and_arrow_hold_all_of_it(values, p, hidden):
    made = Histogram(values, p, hidden, 7)
    assert Histogram.from_facts(json.loads(json.dumps(made.facts()))) == made
    small = Histogram([v >> 8 for v in values], p)
    rows = pa.table(small.table()).to_pylist()
    assert sum(row["n"] for row in rows) == len(values)
    assert all(any(row["low"] <= v >> 8 <= row["high"] for row in rows) for v in values)


@pytest.mark.parametrize(
    "change",
    [
        {"n": 4},
        {"min": 2},
        {"max": 10**9},
        {"buckets": [[1, 0], [2, 3]]},
        {"buckets": [[1]]},
        {"buckets": 7},
        {"p": 99},
        {"p": None},
    ],
)
def test_other_json_is_refused(change):
    facts = Histogram([1, 2, 3]).facts() | change
    with pytest.raises(TracepointError, match="not a histogram"):
        Histogram.from_facts(facts)


def test_precisions_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="-1 bits"):
        Histogram([], -1)


KEYS = st.lists(st.tuples(st.sampled_from("abcdefghij"), st.integers(0, 20)), max_size=60)


def topped(pairs, capacity):
    made = TopK(capacity)
    for key, n in pairs:
        made.add(key, n)
    return made


@given(st.lists(KEYS, min_size=1, max_size=5), st.integers(1, 12))
def test_each_count_is_within_its_bounds_after_any_merges(parts, capacity):
    found = topped(parts[0], capacity)
    for part in parts[1:]:
        found = found.merge(topped(part, capacity))
    truth = Counter()
    for key, n in (pair for part in parts for pair in part):
        truth[key] += n
    assert found.n == sum(truth.values())
    assert len(found) <= capacity
    assert found.floor <= found.n / capacity
    for key in "abcdefghij":
        low, high = found.count(key)
        assert low <= truth[key] <= high
        assert high - low <= found.floor
    if len(+truth) <= capacity:
        assert found.is_exact


@given(st.lists(KEYS, min_size=3, max_size=3))
def test_exact_counts_merge_in_any_order(parts):
    a, b, c = (topped(part, 10) for part in parts)
    assert a.merge(b).merge(c) == c.merge(a.merge(b)) == topped([p for part in parts for p in part], 10)


@given(KEYS, st.integers(1, 12))
def test_json_holds_all_of_a_top_list(pairs, capacity):
    made = topped(pairs, capacity)
    assert TopK.from_facts(json.loads(json.dumps(made.facts()))) == made


@pytest.mark.parametrize("change", [{"top": [["a", 1, 1]]}, {"top": [["a", 1]]}, {"capacity": 0}, {"n": "x"}])
def test_other_json_of_a_top_list_is_refused(change):
    with pytest.raises(TracepointError, match="not a top list"):
        TopK.from_facts(TopK(4).facts() | change)


def test_a_count_cannot_go_down():
    with pytest.raises(ValueError, match="-1 times"):
        TopK().add("a", -1)
