"""Whatever objects the events of a header are fired with: a record, or a fault, and never an exception."""

import sys
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import examples
from runtime.test_event_values import SCALARS, Strange

HEADER = """
#undef TRACE_SYSTEM
#define TRACE_SYSTEM anyv
#include <linux/tracepoint.h>
TRACE_EVENT(anyv_one,
	TP_PROTO(struct thing *thing, unsigned long n, const char *name),
	TP_ARGS(thing, n, name),
	TP_STRUCT__entry(
		__field(unsigned long, n) __field(u8, sum) __field(void *, thing) __field(bool, big)
		__array(char, comm, 16) __array(u8, mac, 6) __string(name, name) __dynamic_array(u16, list, thing->n)
	),
	TP_fast_assign(
		__entry->n = n << thing->shift;
		__entry->sum = thing->a * thing->b + n;
		__entry->thing = thing;
		__entry->big = thing->a > 5 && thing->inner->flag;
		strscpy(__entry->comm, thing->comm, 16);
		memcpy(__entry->mac, thing->mac, 6);
		__assign_str(name);
		memcpy(__get_dynamic_array(list), thing->list, thing->n * sizeof(u16));
	),
	TP_printk("%lu", __entry->n)
);
#include <trace/define_trace.h>
"""
NAMES = ["shift", "a", "b", "inner", "comm", "mac", "n", "list"]
GOOD = {
    "shift": 1,
    "a": 6,
    "b": 2,
    "inner": {"flag": 1},
    "comm": "x",
    "mac": bytes(6),
    "n": 2,
    "list": [1, 2],
}


class Stranger:
    """An object whose attributes do what a function says."""

    def __init__(self, action):
        object.__setattr__(self, "action", action)

    def __getattr__(self, name):
        return self.action(self)


THINGS = st.one_of(
    SCALARS,
    st.fixed_dictionaries(dict.fromkeys(NAMES, SCALARS)),
    st.fixed_dictionaries({name: st.one_of(st.just(GOOD[name]), SCALARS) for name in NAMES}).map(
        lambda d: SimpleNamespace(**d)
    ),
    st.sampled_from([ValueError(), AttributeError(), RecursionError(), SystemExit(), MemoryError()]).map(
        lambda e: Stranger(lambda _: (_ for _ in ()).throw(e))
    ),
    st.just(Stranger(lambda self: self.anything)),
    st.just(Stranger(lambda self: self)),
)


@pytest.fixture
def event(runtime, tmp_path):
    path = tmp_path / "anyv.h"
    path.write_text(HEADER)
    header = runtime.load(path)
    assert header.problems == {}
    made = header.trace_anyv_one
    made.enable()
    return SimpleNamespace(fire=made, tracing=runtime.tracing)


def outcome(event, *args):
    """Whether there is a record; a fault otherwise, and never both or none."""
    event.tracing.clear_faults()
    before = sys.exc_info()
    assert event.fire(*args) is None
    assert sys.exc_info() == before
    n_records, n_faults = len(event.tracing.read_records()), event.tracing.faults[0]
    assert n_records + n_faults == 1, event.tracing.faults
    return n_records == 1


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(thing=THINGS, n=SCALARS, name=SCALARS)
def test_any_objects(event, thing, n, name):
    outcome(event, thing, n, name)


def test_good_ones(event):
    assert outcome(event, GOOD, 1, "x")
    assert outcome(event, SimpleNamespace(**GOOD), 1, b"x")


@pytest.mark.parametrize(
    ("changes", "n"),
    [
        ({"a": "x" * 10, "b": 1 << 40}, 1),
        ({"a": 1 << 100_000}, 1),
        ({"a": 1 << 64}, 1),
        ({"a": -(1 << 63) - 1}, 1),
        ({"b": [1, 2]}, 1),
        ({}, 1 << 64),
        ({}, [1]),
    ],
)
def test_what_is_no_number_of_c_is_a_fault(event, changes, n):
    assert not outcome(event, GOOD | changes, n, "x")


def test_a_property_is_asked_once(event):
    asked = []

    class Thing(SimpleNamespace):
        @property
        def comm(self):
            asked.append(1)
            return "x"

    values = {k: v for k, v in GOOD.items() if k != "comm"}
    assert outcome(event, Thing(**values), 1, "x")
    assert len(asked) == 1


def test_strange_numbers(event):
    assert outcome(event, GOOD, Strange(lambda _: 5), "x")
    assert not outcome(event, GOOD, Strange(lambda _: "five"), "x")
