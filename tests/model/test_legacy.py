"""The form of the documentation of 2008: read, explained, written as today's."""

from __future__ import annotations

import pytest

from tracepoint.diagnostics import Severity
from tracepoint.errors import SourceError
from tracepoint.model.legacy.read import read_legacy_text
from tracepoint.model.legacy.write import skeleton, write_today
from tracepoint.model.python.declare import declare_tracepoint
from tracepoint.model.read import read_header_text
from tracepoint.source.text import apply_edits

DOCUMENT = """\
DEFINE_TRACE(subsys_eventname,
       TPPTOTO(int firstarg, struct task_struct *p),
       TPARGS(firstarg, p));
"""


def test_both_spellings_are_read():
    for text in (DOCUMENT, DOCUMENT.replace("TPPTOTO", "TPPROTO"), DOCUMENT.replace("DEFINE_", "DECLARE_")):
        (tracepoint,) = read_header_text(text).tracepoints
        assert tracepoint.name == "subsys_eventname"
        assert str(tracepoint.proto) == "int firstarg, struct task_struct *p"
        assert tracepoint.args == ("firstarg", "p")


def test_each_word_is_explained():
    (finding,) = read_header_text(DOCUMENT, "a.h").diagnostics
    assert (finding.code, finding.severity) == ("TP150", Severity.NOTE)
    assert (finding.span.line, finding.span.end_line) == (1, 3)
    assert "DECLARE_TRACE(subsys_eventname, TP_PROTO(int firstarg, struct task_struct *p)" in finding.message
    assert [sentence.partition(":")[0] for sentence in finding.help] == [
        "DEFINE_TRACE became DECLARE_TRACE",
        "TPPTOTO became TP_PROTO",
        "TPARGS became TP_ARGS",
    ]
    new = apply_edits(DOCUMENT, finding.fix.edits)
    assert new == DOCUMENT.replace("DEFINE", "DECLARE").replace("TPPTOTO", "TP_PROTO").replace(
        "TPARGS", "TP_ARGS"
    )
    assert read_header_text(new).diagnostics == ()


def test_no_edit_where_a_macro_wrote_it():
    text = "#define OLD(n) DEFINE_TRACE(n, TPPROTO(int a), TPARGS(a))\nOLD(tick);\n"
    (finding,) = read_header_text(text).diagnostics
    assert finding.fix is None
    assert finding.span.line == 2


def test_text_out_of_a_patch_or_a_web_page():
    patch = "".join(f"+{line}\n" for line in DOCUMENT.replace("       ", "\u00a0" * 7).splitlines())
    header = read_legacy_text("--- /dev/null\n" + patch)
    assert str(header.tracepoints[0].proto) == "int firstarg, struct task_struct *p"
    assert header.diagnostics[0].span.column == 2
    assert header.diagnostics[0].span.line == 2


def test_written_as_a_proper_header():
    text = write_today(read_header_text(DOCUMENT))
    for line in (
        "#define TRACE_SYSTEM subsys",
        "#if !defined(_TRACE_SUBSYS_H) || defined(TRACE_HEADER_MULTI_READ)",
        "DECLARE_TRACE(subsys_eventname,",
        "\tTP_PROTO(int firstarg, struct task_struct *p),",
        "#include <trace/define_trace.h>",
    ):
        assert line in text.splitlines()
    header = read_header_text(text)
    assert header.diagnostics == ()
    assert header.tracepoints[0].macro == "DECLARE_TRACE"


def test_written_as_an_event_that_records_its_arguments():
    header = read_header_text(write_today(read_header_text(DOCUMENT), system="old", as_events=True))
    event = header["old:subsys_eventname"]
    assert header.tracepoints == ()
    assert event.printk.text == '"firstarg=%d p=%p", __entry->firstarg, __entry->p'
    assert event.assign.text == "__entry->firstarg = firstarg; __entry->p = p;"
    assert [(f.macro, f.ctype) for f in event.fields] == [("__field", "int"), ("__field", "const void *")]


@pytest.mark.parametrize(
    ("proto", "macro", "printk"),
    [
        ("const char *s", "__string", '"s=%s", __get_str(s)'),
        ("u64 x", "__field", '"x=%llu", (unsigned long long)__entry->x'),
        ("u32 x", "__field", '"x=%u", __entry->x'),
        ("some_t x", "__field", '"x=%lld", (long long)__entry->x'),
        ("enum e x", "__field", '"x=%d", __entry->x'),
        ("struct a x", "__field_struct", '""'),
        ("void (*fn)(int)", "__field", '"fn=%p", __entry->fn'),
    ],
)
def test_skeleton_of_each_type(proto, macro, printk):
    event = skeleton(declare_tracepoint("t", proto=proto), "demo")
    assert (event.fields[0].macro, event.printk.text) == (macro, printk)


def test_skeleton_without_arguments_and_with_a_condition():
    event = skeleton(declare_tracepoint("t", condition="a > 1"), "demo")
    assert (event.fields, event.printk.text, event.macro) == ((), '""', "TRACE_EVENT_CONDITION")


def test_a_parameter_without_name_cannot_be_recorded():
    (tracepoint,) = read_header_text("DEFINE_TRACE(t, TPPROTO(int), TPARGS(a));").tracepoints
    with pytest.raises(SourceError):
        skeleton(tracepoint, "demo")
