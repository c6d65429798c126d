"""What `repr()` of the public objects shows: one short line without addresses."""

import inspect
import re
from pathlib import Path

import pytest

import tracepoint as tp
from tracepoint.filter.parse import parse_filter
from tracepoint.filter.program import compile_filter
from tracepoint.layout.format import FieldFormat
from tracepoint.record.raw import RawRecord
from tracepoint.runtime.rings.mapped import MappedRecord, MappedRings
from tracepoint.tracefile.buffers import TraceBuffer
from tracepoint.tracefile.cpudata import CpuData
from tracepoint.tracefile.ringfiles import MappedRing
from tracepoint.tracefile.tracedat import open_tracedat

EXAMPLES = sorted(Path(inspect.getfile(tp)).parent.glob("examples/*.h"))
LONG = "a_name_that_is_much_longer_than_a_line " * 20


def public_objects(folder):
    """Make one object of each kind, with names and texts that are long where they can be."""
    span = tp.diagnostics.Span(LONG, 1, 2, 3, 4)
    edit, related = tp.diagnostics.Edit(LONG, 1, 2, LONG), tp.diagnostics.Related(span, LONG)
    fix = tp.diagnostics.Fix(LONG, (edit,) * 100)
    yield from (span, edit, related, fix, tp.Diagnostic("TP201", "a-name", LONG, span, help=(LONG,), fix=fix))
    name = LONG.replace(" ", "_")
    fields = [tp.fields.scalar("int", f"{name}{n}") for n in range(5)]
    proto = ", ".join(f"int {name}{n}" for n in range(5))
    shown = f'"{"%d " * 5}", {", ".join(f"{name}{n}" for n in range(5))}'
    event = tp.declare(name, system=LONG.strip().replace(" ", "_"), proto=proto, struct=fields, printk=shown)
    layout = tp.compute_layout(event, tp.Abi.X86_64)
    form = tp.compute_layout(
        tp.declare(
            "short", system="s", proto="int n", struct=[tp.fields.scalar("int", "n")], printk='"%d", n'
        )
    )
    header = tp.TraceHeader(LONG, (event,) * 50, (event.event_class,), path=LONG)
    yield from (
        event,
        event.event_class,
        event.proto,
        event.printk,
        header,
        header.form,
        layout,
        layout.fields[-1],
    )
    yield from (tp.compile_print(layout), *tp.Abi, *tp.compare_formats(form, layout))
    parsed = parse_filter("n == 1 || " * 15 + "n == 2", form)
    yield from (parsed, compile_filter(parsed))
    yield from (
        tp.tracing,
        tp.tracing.make_instance("repr"),
        tp.load(EXAMPLES[0]),
        tp.TraceHandler(),
        tp.EventCounts([]),
        tp.TraceProcessor(dict.fromkeys(map(str, range(50)), print)),
        tp.TraceSpanProcessor(),
        tp.SpanPair(LONG, LONG, LONG),
    )
    tp.tracing.remove_instance("repr")
    raw = RawRecord(1, 2, bytes(4000))
    yield from (raw, MappedRecord(1, LONG, layout, raw), MappedRings(folder))
    yield MappedRing(folder, 1, 2, LONG, "local", False, dict.fromkeys(LONG, 1), ())
    yield tp.save(folder / "x.dat")
    with open_tracedat(folder / "x.dat") as trace:
        cpu = CpuData(1, 2, 3, trace.layout, b"")
        yield from (trace, trace.buffers[0], cpu, TraceBuffer(LONG, LONG, (cpu,) * 64))
    place = folder / "events" / "s" / "short" / "format"
    place.parent.mkdir(parents=True)
    place.write_text(tp.write_format(form))
    yield tp.open_tree(folder)


def test_one_short_line_without_addresses(tmp_path):
    seen = set()
    for item in public_objects(tmp_path):
        text = repr(item)
        seen.add(type(item).__name__)
        assert len(text) <= 130, text
        assert "\n" not in text
        assert not re.search(r"\bat 0x[0-9a-f]{6}", text), text
    public = {name: getattr(tp, name) for name in tp.__all__} | vars(tp.diagnostics)
    wanted = {n for n, t in public.items() if inspect.isclass(t) and t.__module__.startswith("tracepoint.")}
    missing = {n for n in wanted - seen if not issubclass(public[n], (Exception, str))}
    # UserEvents needs a kernel that has them, TraceEvent makes other objects.
    assert missing == {"UserEvents", "TraceEvent"}


def test_they_say_what_it_is():
    header = tp.read_header(EXAMPLES[-1])
    event = header.events[0]
    layout = tp.compute_layout(event, tp.Abi.X86_64)
    n_fields = len(event.fields)
    assert repr(event).startswith(f"<Event {event.full_name}, {n_fields} field")
    assert repr(layout).startswith(f"<EventFormat {event.full_name}, {n_fields} field")
    assert repr(layout["common_pid"]) == "<FieldFormat int common_pid, offset 4, size 4>"
    assert repr(header).endswith(
        f"{EXAMPLES[-1].name}, {len(header.events)} event{'s' * (len(header.events) > 1)}>"
    )


def test_tables_for_notebooks():
    header = tp.read_header(EXAMPLES[-1])
    layout = tp.compute_layout(header.events[0], tp.Abi.X86_64)
    table = layout._repr_html_()
    assert table.count("<tr>") == len(layout.fields) + 1
    assert "<td>4</td><td>4</td><td>int</td><td>common_pid</td>" in table
    assert header._repr_html_().count("<tr>") == len(header.events) + 1
    assert header.events[0].full_name in header._repr_html_()


@pytest.mark.parametrize("text", ["<script>", "a & b"])
def test_tables_escape(text):
    layout = tp.EventFormat("s", "e", (FieldFormat(text, text, 0, 4, False),), "")
    assert text not in layout._repr_html_()
