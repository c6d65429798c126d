"""Names for the values of fields: those that the kernel's text shows, in a column of texts."""

import re

import pytest

import tracepoint as tp
from decode.test_columns import twin
from tracefile.making import GOLDEN
from tracepoint.printk.program import compile_labels
from tracepoint.printk.render import render_record

CUT = GOLDEN / "cut.v6.dat"


def test_labels_are_what_the_text_shows():
    with tp.open_trace(CUT) as trace:
        softirqs = [r for r in trace.records() if r.event == "irq:softirq_raise"]
        expected = [re.search(r"action=(\w+)", r.text)[1] for r in softirqs]
        table = trace["softirq_raise"]
        assert table.labels("vec").tolist() == expected
        switches = [r for r in trace.records() if r.event == "sched:sched_switch"]
        states = [re.search(r"prev_state=(\S+)", r.text)[1] for r in switches]
        assert trace["sched_switch"].labels("prev_state").tolist() == states
        assert trace["sched_switch"].labels("prev_pid") is None
        with pytest.raises(KeyError):
            trace["sched_switch"].labels("nosuch")


@pytest.mark.parametrize("is_quick", [True, False])
def test_a_labeled_table_is_a_table(is_quick):
    with tp.open_trace(CUT) as trace:
        if is_quick:
            table = trace["softirq_raise"].labeled()
        else:
            with twin():
                table = trace["softirq_raise"].labeled("vec")
        assert table.columns == trace["softirq_raise"].columns
        assert table.schema["vec"] == "dictionary<i, U>"
        assert set(table["vec"].words) <= {"RCU", "TIMER", "SCHED", "BLOCK", "HRTIMER", "TASKLET"}
        assert table.to_dicts(0, 1)[0]["common_pid"] == trace["softirq_raise"].to_dicts(0, 1)[0]["common_pid"]
        with pytest.raises(KeyError, match="no names for values of common_pid"):
            table.labeled("common_pid")
        pyarrow = pytest.importorskip("pyarrow")
        assert pyarrow.table(table)["vec"].to_pylist() == table["vec"].tolist()


def test_every_format_of_a_recording_can_be_asked():
    with tp.open_trace(CUT) as trace:
        found = {}
        for name in trace.names:
            form = trace.format(name)
            for field in form.event_fields:
                if (program := compile_labels(form, field.name)) is not None:
                    found[name, field.name] = render_record(program, bytes(form.end)).text
        assert found["sched:sched_switch", "prev_state"] == "R"
        assert found["irq:softirq_entry", "vec"] == "HI"
        assert len(found) > 1
