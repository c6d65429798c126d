"""Samples fit their type, look sensible and never change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.assign.values import Input
from tracepoint.lab.simulate.hints import FieldHint
from tracepoint.lab.simulate.samples import Sampler, task_of
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.types import IntType


def input_(text, **more):
    return Input(text, parse_expression(text), **more)


def sample(text, hints=None, index=0, **more):
    return Sampler("demo:one", hints or {}, index=index).sample(input_(text, **more))


def test_names():
    assert sample("p->comm", role="string").startswith("worker-")
    assert 1000 <= sample("p->pid", size=4) < 10000
    assert sample("ret", ctype="int", size=4) == 0
    assert sample("p->size", size=8) % 4096 == 0
    assert 0 <= sample("p->cpu", size=4) < 4
    assert sample("dev_name(dev)", role="string").startswith("eth")
    assert len(sample("p->mac", role="bytes", length=6)) == 6


def test_pointers_are_kernel_addresses():
    assert 0xFFFF_8880_0000_0000 <= sample("page", role="pointer") < 0xFFFF_8881_0000_0000
    hints = {"f": FieldHint(conversion="pS")}
    assert 0xFFFF_FFFF_8100_0000 <= sample("x", hints, role="pointer", field="f") < 0xFFFF_FFFF_8300_0000
    small = Sampler("demo:one", {}, long_size=4).sample(input_("page", role="pointer"))
    assert 0xC000_0000 <= small < 1 << 32


def test_the_current_task_is_that_of_the_line():
    task = task_of("demo:one", 0)
    assert sample("current->pid", size=4) == task.pid
    assert sample("smp_processor_id()", size=4) == task.cpu


def test_samples_depend_on_event_input_and_index_only():
    assert sample("p->x", size=4) == sample("p->x", size=4)
    assert len({sample("p->x", index=i, size=4) for i in range(20)}) > 5


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@given(
    name=st.from_regex(r"[a-z]{1,3}->[a-z_]{1,12}", fullmatch=True),
    is_signed=st.booleans(),
    is_swapped=st.booleans(),
    index=st.integers(0, 50),
)
def test_integers_fit_their_type(size, name, is_signed, is_swapped, index):
    made = sample(name, index=index, size=size, is_signed=is_signed, is_swapped=is_swapped)
    assert IntType(size, is_signed).wrap(made) == made
