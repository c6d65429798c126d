import json
import xml.etree.ElementTree as ET

import pytest

from tracepoint.check.engine import check_text
from tracepoint.check.registry import RULES
from tracepoint.check.reports.ci import write_github, write_gitlab, write_junit
from tracepoint.check.reports.json_lines import SCHEMA, write_json, write_jsonl
from tracepoint.check.reports.sarif import write_sarif
from tracepoint.check.reports.text import write_concise, write_full
from tracepoint.check.suppress import apply_baseline, read_baseline, write_baseline
from tracepoint.errors import TracepointError
from tracepoint.source.text import SourceFile

PATH = "include/trace/events/foo bar.h"
TEXT = """TRACE_EVENT(foo,
	TP_PROTO(struct net_device *dev),
	TP_ARGS(dev),
	TP_STRUCT__entry(
		__field( struct net_device *, dev )
	),
	TP_fast_assign(__entry->dev = dev;),
	TP_printk("dev=%d\\n", __entry->dev->ifindex)
);
"""
FOUND = check_text(TEXT, PATH)
SOURCES = {PATH: SourceFile(PATH, TEXT)}


def test_the_text_has_two_findings():
    assert [d.code for d in FOUND] == ["TP305", "TP301"]


def test_concise_is_one_line_a_finding():
    assert write_concise(FOUND).splitlines() == [
        f"{PATH}:8:12: TP305 foo: the print format ends in a newline",
        f"{PATH}:8:24: TP301 foo: pointer dereferenced in TP_printk: __entry->dev->ifindex",
    ]


def test_full_shows_lines_carets_and_advice():
    text = write_full(FOUND[1:], SOURCES)
    assert text == (
        f"{PATH}:8:24: TP301 foo: pointer dereferenced in TP_printk: __entry->dev->ifindex\n"
        "  |\n"
        "5 |                 __field( struct net_device *, dev )\n"
        "  |                 ----------------------------------- the record keeps only this pointer\n"
        ". |\n"
        '8 |         TP_printk("dev=%d\\n", __entry->dev->ifindex)\n'
        "  |                               ^^^^^^^^^^^^^^^^^^^^^ "
        "read when the trace is read; the object may be gone\n"
        "  |\n"
        "event: :foo\n"
        "help: copy the value into a field of its own when the event fires\n"
        "tracepoint explain TP301\n"
    )


@pytest.mark.parametrize(
    "write",
    [write_concise, lambda f: write_full(f, SOURCES), write_sarif, write_github, write_gitlab, write_junit],
)
def test_every_format_names_the_event_before_the_message(write):
    text = write(FOUND)
    assert "foo: the print format ends in a newline" in text
    assert "foo: pointer dereferenced in TP_printk" in text


def test_json_names_the_event_in_a_member_of_its_own():
    assert [f["event"] for f in json.loads(write_json(FOUND))["findings"]] == [":foo", ":foo"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TRACE_EVENT(foo, TP_PROTO(int n)", "TP001 foo: the parenthesis of TRACE_EVENT never closes"),
        ("TRACE_EVENT(foo, TP_PROTO(int n));", "TP002 foo: TRACE_EVENT takes 6 arguments"),
        ("DEFINE_EVENT(bar, foo, TP_PROTO(int n), TP_ARGS(n));", "TP007 foo: no class bar"),
        (TEXT.replace("TP_ARGS(dev)", "TP_PROTO(dev)"), "TP006 foo: the args part is wrapped"),
        (TEXT.replace("__field", "__filed"), "TP009 foo: __filed is not a field macro"),
        (TEXT + TEXT, "TP103 foo: declared twice in this file"),
        (TEXT.replace("TRACE_EVENT(", "DECLARE_EVENT_CLASS("), "TP110 foo: no event uses this class"),
    ],
)
def test_what_reading_finds_names_its_event_or_class_too(text, expected):
    assert any(expected in line for line in write_concise(check_text(text)).splitlines())


def test_full_names_the_fix_and_its_grade():
    assert "fix available (unsafe: changes the record or what readers see): remove the newline" in write_full(
        FOUND[:1], SOURCES
    )


def test_full_works_without_sources():
    assert "TP301" in write_full(FOUND, {})


def test_json_and_jsonl_agree():
    document = json.loads(write_json(FOUND))
    assert document["schema"] == SCHEMA
    lines = [json.loads(line) for line in write_jsonl(FOUND).splitlines()]
    assert [{k: v for k, v in line.items() if k != "schema"} for line in lines] == document["findings"]
    first = document["findings"][0]
    assert (first["code"], first["line"], first["column"], first["severity"]) == ("TP305", 8, 12, "warning")
    assert first["fix"]["safety"] == "unsafe"
    edit = first["fix"]["edits"][0]
    assert TEXT[edit["start"] : edit["end"]] == '"dev=%d\\n"'


def test_sarif_has_rules_places_and_fixes():
    document = json.loads(write_sarif(FOUND, SOURCES, version="1.2", docs_url="https://example.org/docs/"))
    run = document["runs"][0]
    assert document["version"] == "2.1.0"
    rules = run["tool"]["driver"]["rules"]
    assert [r["id"] for r in rules] == [r.code for r in RULES]
    assert all(
        r["shortDescription"]["text"] and r["fullDescription"]["text"] and r["help"]["text"] for r in rules
    )
    assert rules[0]["helpUri"] == "https://example.org/docs/reference/rules/TP001.html"
    assert run["tool"]["driver"]["informationUri"] == "https://example.org/docs/index.html"
    newline, pointer = run["results"]
    assert rules[newline["ruleIndex"]]["id"] == newline["ruleId"] == "TP305"
    place = pointer["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "include/trace/events/foo%20bar.h"
    assert place["region"] == {"startLine": 8, "startColumn": 24, "endLine": 8, "endColumn": 45}
    assert pointer["relatedLocations"][0]["message"]["text"] == "the record keeps only this pointer"
    replaced = newline["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert replaced["deletedRegion"]["startLine"] == 8
    assert replaced["insertedContent"]["text"] == '"dev=%d"'


def test_github_escapes():
    lines = write_github(FOUND).splitlines()
    assert lines[0].startswith("::warning file=include/trace/events/foo bar.h,line=8,endLine=8,col=12,")
    assert lines[1].startswith("::error ")
    assert "%0A" in lines[1]


def test_gitlab_fingerprints_differ():
    report = json.loads(write_gitlab([*FOUND, *FOUND]))
    assert len({entry["fingerprint"] for entry in report}) == 4
    assert {entry["severity"] for entry in report} == {"minor", "major"}


def test_junit_counts_files():
    suite = ET.fromstring(write_junit(FOUND, ["good.h", PATH]))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [len(case.findall("failure")) for case in suite] == [0, 2]


def test_odd_bytes_do_not_break_any_report():
    text = TEXT.replace("TRACE_EVENT(foo", "/* caf\udce9 \x01 <&> */\nTRACE_EVENT(foo")
    found = check_text(text, "caf\udce9.h")
    sources = {"caf\udce9.h": SourceFile("caf\udce9.h", text)}
    assert write_full(found, sources)
    json.loads(write_json(found))
    json.loads(write_sarif(found, sources))
    ET.fromstring(write_junit(found))
    assert write_gitlab(found)
    assert write_github(found)


def test_a_baseline_survives_moved_lines():
    known = read_baseline(write_baseline(FOUND))
    moved = check_text("\n\n/* more */\n" + TEXT, PATH)
    assert apply_baseline(moved, known) == ([], 2)
    fresh, n_known = apply_baseline([*moved, *moved[:1]], known)
    assert (len(fresh), n_known) == (1, 2)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "x"}', "[" * 100000, '{"schema": null}'])
def test_a_wrong_baseline_is_refused(text):
    with pytest.raises(TracepointError, match="baseline"):
        read_baseline(text)
