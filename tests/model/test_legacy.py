"""The form of the documentation of 2008: read and explained."""

from __future__ import annotations

from tracepoint.diagnostics import Severity
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
