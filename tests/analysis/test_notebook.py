"""What a notebook shows of a report."""

from __future__ import annotations

import tracepoint as tp
from report.conftest import hostile_schedule


def test_a_report_shows_its_tables_and_what_limits_them(tmp_path):
    path = tmp_path / "made.dat"
    path.write_bytes(hostile_schedule().data())
    with tp.open_trace(str(path)) as trace:
        text = tp.analysis.analyse_sched(trace)._repr_html_()
    assert text.count("<table>") == 4
    assert "&lt;/script&gt;&lt;b&gt;x-1" in text
    assert "5 events were lost" in text
    assert "<b>" not in text
