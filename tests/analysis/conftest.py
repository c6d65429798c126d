"""Tests of analyses with the C module, and with its twins."""

from functools import partial

import pytest

import tracepoint as tp
from tracepoint.analysis import coverage
from tracepoint.analysis import sums as added
from tracepoint.analysis.sched import build, sums, waits
from tracepoint.analysis.sections import Choice
from tracepoint.analysis.text import report_facts
from tracepoint.decode import numbers
from tracepoint.record.decode import DECODE


@pytest.fixture
def run(run_command):
    """Run `tracepoint analyse`; returns its status, stdout and stderr."""
    return partial(run_command, "analyse")


@pytest.fixture
def analyse_made(made):
    """Analyse a recording that a test made; returns the report, with the values of its JSON as `facts`."""

    def run(analyse, recording):
        with tp.open_trace(made(recording)) as trace:
            report = analyse(trace)
        report.facts = report_facts(report, Choice(most=None))
        return report

    return run


_USERS = (added, build, coverage, numbers, sums, waits)


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
