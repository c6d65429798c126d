"""Fields that have another sign than in the kernel: a recording may say so, and no figure is an error."""

import pytest

import tracepoint as tp
from analysis.making import FORMATS, Schedule
from tracepoint.analysis.registry import analyse
from tracepoint.analysis.sections import Choice
from tracepoint.analysis.text import report_facts

FAULT, ALLOCATION, TIMER = "exceptions:page_fault_user", "kmem:kmalloc", "irq_vectors:local_timer_entry"
MOST = (1 << 64) - 1


def with_other_sign(event, field):
    """The formats of a recording in which a field of an event has the other sign."""
    lines = []
    for line in FORMATS[event].splitlines():
        if f" {field};" in line:
            unsigned = line.replace("signed:1", "signed:0").replace("int ", "unsigned int ")
            signed = line.replace("signed:0", "signed:1").replace("void *", "long ").replace("unsigned ", "")
            lines.append(unsigned if "signed:1" in line else signed.replace("size_t", "long"))
        else:
            lines.append(line)
    return FORMATS | {event: "\n".join(lines) + "\n"}


@pytest.mark.parametrize("has_state", [False, True])
@pytest.mark.parametrize(
    ("analysis", "event", "field", "column", "shown"),
    [
        ("faults", FAULT, "address", "address", MOST),
        ("faults", FAULT, "error_code", "error_code", MOST),
        ("faults", FAULT, "common_pid", "tid", -7),
        ("memory", ALLOCATION, "call_site", "call_site", MOST),
        ("memory", ALLOCATION, "bytes_req", "bytes_req", MOST),
        ("memory", ALLOCATION, "common_pid", "tid", -7),
        ("traps", FAULT, "common_pid", "tid", -7),
        ("traps", TIMER, "vector", "vector", (1 << 32) - 1),
    ],
)
def test_numbers_keep_their_low_bits(tmp_path, analysis, event, field, column, shown, has_state):
    made = Schedule(formats=with_other_sign(event, field))
    names = ("address", "ip", "error_code", "call_site", "bytes_req", "vector")
    made.add(1, 0, event, dict.fromkeys(names, MOST) | {"ptr": 1 << 40}, -7)
    if has_state:
        made.switch(2, 0, 1, "S", 2)
        made.add(3, 0, FAULT, {"address": 1}, 1)
    path = tmp_path / "made.dat"
    path.write_bytes(made.data())
    with tp.open_trace(path) as trace:
        kind = [found.is_signed for found in trace.format(event).fields if found.name == field]
        assert kind == [field not in ("common_pid", "vector")]
        report = analyse(trace, analysis)
        assert report_facts(report, Choice(most=None))
        assert next(iter(next(iter(report.tables.values()))))[column] == shown
