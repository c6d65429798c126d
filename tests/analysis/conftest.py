"""Tests of analyses with the C module, and with its twins."""

import pytest

from tracepoint.analysis import coverage
from tracepoint.analysis.sched import build, sums
from tracepoint.decode import numbers
from tracepoint.record.decode import DECODE

_USERS = (build, coverage, numbers, sums)


def without_c(patch):
    """Let the twins run until a MonkeyPatch is undone."""
    for module in _USERS:
        patch.setattr(module, "DECODE", None)


@pytest.fixture(scope="module", params=["c", "twin"])
def form(request):
    if request.param == "twin":
        with pytest.MonkeyPatch.context() as patch:
            without_c(patch)
            yield request.param
    elif DECODE is None:
        pytest.skip("tracepoint._decode is not built: install gcc and python3-dev")
    else:
        yield request.param
