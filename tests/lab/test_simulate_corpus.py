"""How many events of include/trace/events can be simulated: in a source tree, and with headers alone.

`pytest -m oracle -s tests/lab/test_simulate_corpus.py` prints the counts.
"""

import sys
from pathlib import Path

import pytest

from oracles import kernel_source
from tracepoint.errors import TracepointError
from tracepoint.lab.simulate.event import simulate_event
from tracepoint.tree.headers import HeaderReader


def simulate_all(root: Path) -> tuple[int, dict[str, str]]:
    """Return how many events were simulated completely, and why the others were not."""
    reader = HeaderReader()
    done, others = 0, {}
    for path in sorted((root / "include/trace/events").glob("*.h")):
        header = reader.read(path)
        for event in header.events:
            try:
                found = simulate_event(event, environment=header.environment, enums=header.exported_enums)
            except TracepointError as error:
                others[event.full_name] = str(error)
                continue
            assert found.lines, event.full_name
            if found.is_complete:
                done += 1
            else:
                assert found.reason
                others[event.full_name] = found.reason
    sys.stdout.write(f"\n{root.name}: {done} of {done + len(others)} events simulated\n")
    return done, others


@pytest.mark.oracle
def test_events_of_a_source_tree():
    done, others = simulate_all(kernel_source())
    assert done >= 1585, others


@pytest.mark.oracle
def test_events_with_the_headers_package_alone():
    """Private types and enums are missing there, and every event of RCU's tracing is declared _NOP."""
    packages = sorted(Path("/usr/src").glob("linux-headers-6.1.*-common"))
    if not packages:
        pytest.skip("no linux-headers of 6.1 are installed: apt-get install linux-headers-amd64")
    done, others = simulate_all(packages[-1])
    assert done >= 1480, others
