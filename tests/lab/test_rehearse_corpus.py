"""How many events of a kernel's include/trace/events can be rehearsed."""

import pytest

from oracles import kernel_source
from tracepoint.errors import TracepointError
from tracepoint.lab.rehearse import rehearse_event
from tracepoint.tree.headers import HeaderReader


@pytest.mark.oracle
def test_nine_of_ten_events_rehearse_completely():
    reader = HeaderReader()
    done, others = 0, {}
    for path in sorted((kernel_source() / "include/trace/events").glob("*.h")):
        header = reader.read(path)
        for event in header.events:
            try:
                rehearsal = rehearse_event(event, environment=header.environment, enums=header.exported_enums)
            except TracepointError as error:
                others[event.full_name] = str(error)
                continue
            assert rehearsal.lines, event.full_name
            if rehearsal.is_complete:
                done += 1
            else:
                assert rehearsal.reason
                others[event.full_name] = rehearsal.reason
    assert done + len(others) > 1500
    assert done / (done + len(others)) >= 0.9, others
