"""A report as a file: what is in it, where its figures come from, and what hostile names cannot do."""

from __future__ import annotations

import base64
import json
import re
import zlib
from hashlib import sha256
from html.parser import HTMLParser

import pytest

import tracepoint as tp
from analysis.making import Schedule
from analysis.test_sched import x1
from report.conftest import HOSTILE, hostile_schedule, page_of
from tracefile.making import GOLDEN
from tracepoint.analysis.coverage import Coverage
from tracepoint.analysis.distribution import Distribution
from tracepoint.analysis.report import Report
from tracepoint.analysis.sections import DistributionSection
from tracepoint.cli.main import main
from tracepoint.decode.column import names_column, number_column
from tracepoint.decode.table import ColumnTable
from tracepoint.errors import TracepointError
from tracepoint.report import make_report
from tracepoint.report.charts import distribution_charts
from tracepoint.report.lanes import lane_groups

CUT = str(GOLDEN / "cut.v6.dat")


class TableReport:
    """As a report that has one table."""

    read_tables = Report.read_tables

    def __init__(self, coverage, table):
        self.coverage = coverage
        self.tables = {table.name: table}


class Elements(HTMLParser):
    """Every element of a page with its attributes and the text directly in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)


def facts_of(html: str):
    return json.loads(re.search(r'id="facts">(.*?)</script>', html, re.DOTALL)[1])


def block_of(html: str) -> bytes:
    return zlib.decompress(base64.b64decode(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1]))


def column(block: bytes, place) -> list[int]:
    """A column as the page's script reads it."""
    kind, at, n, *size = place
    if kind == "v":
        found, value, unit = [], 0, 1
        for byte in block[at : at + size[0]]:
            value += (byte & 127) * unit
            unit *= 128
            if byte < 128:
                found.append(value)
                value, unit = 0, 1
        assert len(found) == n
        return found
    width = {"B": 1, "H": 2, "I": 4}[kind]
    planes = [block[at + byte * n : at + (byte + 1) * n] for byte in range(width)]
    return [sum(plane[i] << 8 * byte for byte, plane in enumerate(planes)) for i in range(n)]


@pytest.fixture(scope="module")
def cut() -> str:
    with tp.open_trace(CUT) as trace:
        return make_report(trace, ["sched"]).html


def test_links_in_the_page_lead_somewhere_and_ids_are_unique(cut):
    elements = Elements(cut).found
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {attributes["href"] for tag, attributes in elements if tag == "a"}
    assert {"#timeline", "#sched", "#events", "#event-sched-sched_switch"} <= targets
    assert {target[1:] for target in targets} <= set(ids)


def test_the_head_says_what_was_recorded(cut):
    texts = Elements(cut).texts
    for text in ("Linux (none) 6.1.0-53-amd64 x86_64", "400, 4,090 a second", "global"):
        assert text in texts
    assert "97.79 ms, from 10.629676 to 10.727468 s" in texts


def test_figures_are_those_of_the_report_in_text(cut):
    texts = Elements(cut).texts
    for text in ("rcu_preempt-15", "19.89 ms", "229.6 us..49.04 ms", "3..5"):
        assert text in texts


def test_the_page_asks_for_nothing_and_runs_only_its_own_script(cut):
    elements = Elements(cut).found
    for _, attributes in elements:
        assert not {"src", "style", "srcset", "action"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
    policy = next(a["content"] for _, a in elements if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    for tag in ("script", "style"):
        text = re.findall(rf"<{tag}>(.*?)</{tag}>", cut, re.DOTALL)
        assert len(text) == 1
        assert f"{tag}-src 'sha256-{base64.b64encode(sha256(text[0].encode()).digest()).decode()}'" in policy


def test_slices_are_those_of_the_tables(tmp_path):
    html = page_of(x1(), tmp_path).read_text()
    timeline, block = facts_of(html)["timeline"], block_of(html)
    cpus, tasks = timeline["groups"]
    assert [cpus["key"], tasks["key"]] == ["sched", "thread_state"]
    lane = tasks["lanes"][[lane["name"] for lane in tasks["lanes"]].index("t10-10")]
    words = [tasks["words"][word] for word in column(block, lane["words"])]
    lengths = column(block, lane["lengths"])
    running = sum(ns for ns, word in zip(lengths, words, strict=True) if word == "Running")
    assert running == 360_000
    assert sum(ns for ns, word in zip(lengths, words, strict=True) if word == "S") == 100_000
    assert sum(column(block, lane["counts"])) == words.count("Running") == 4


@pytest.mark.thorough
def test_cells_hold_as_much_as_the_slices(tmp_path):
    html = page_of(x1(), tmp_path).read_text()
    timeline, block = facts_of(html)["timeline"], block_of(html)
    for group in timeline["groups"]:
        for lane in group["lanes"]:
            columns = lane.get("bands") or [lane["totals"]]
            shares = sum(sum(column(block, place)) for place in columns)
            assert shares / 65535 * group["width"] == pytest.approx(
                sum(column(block, lane["lengths"])), rel=1e-3
            )


def test_rows_without_any_end_are_points_and_tasks_have_names():
    table = ColumnTable(
        "page_fault",
        lambda: [
            number_column("ts", [5, 7, 9, 6], "q"),
            number_column("dur", [-1] * 4, "q"),
            number_column("tid", [8, 8, 8, 9], "i"),
        ],
    )
    report = TableReport(Coverage(0, 20, {}), table)
    (group,) = lane_groups(report, (), {8: "sh"})
    assert [(lane.name, list(lane.starts), list(lane.stops)) for lane in group.lanes] == [
        ("sh-8", [5, 7, 9], [5, 7, 9]),
        ("task 9", [6], [6]),
    ]


def test_heat_maps_count_every_sample(tmp_path):
    html = page_of(x1(), tmp_path).read_text()
    heat = facts_of(html)["heats"][0]
    assert sum(column(block_of(html), heat["counts"])) == heat["n"] == 3


@pytest.mark.thorough
def test_the_flame_graph_sums_time_off_the_cpus(tmp_path):
    flame = facts_of(page_of(x1(), tmp_path).read_text())["flame"]
    assert flame["v"] == sum(child["v"] for child in flame["c"])
    with tp.open_trace(str(tmp_path / "made.dat")) as trace:
        rows = tp.analysis.analyse_sched(trace).thread_state.to_dicts()
    assert flame["v"] == sum(row["dur"] for row in rows if row["state"] != "Running" and row["dur"] > 0)


def test_names_of_tasks_are_text_and_nothing_else(tmp_path):
    html = page_of(hostile_schedule(), tmp_path, title="</title><script>alert(1)</script>").read_text()
    elements = Elements(html)
    assert [tag for tag, _ in elements.found].count("script") == 3
    assert "b" not in {tag for tag, _ in elements.found}
    assert html.count("<!--") == 0
    assert "\u202e" not in html
    words = facts_of(html)["timeline"]["groups"][0]["words"]
    assert {f"{HOSTILE[0]}-{pid}" for pid in (10, 11, 12)} & set(words)


@pytest.mark.thorough
def test_losses_are_never_hidden(tmp_path):
    html = page_of(hostile_schedule(), tmp_path).read_text()
    assert "5 events were lost while recording" in html
    assert [gap[0] for gap in facts_of(html)["timeline"]["losses"]] == [1]
    with tp.open_trace(CUT) as trace:
        assert "reports no losses" in make_report(trace, ["sched"]).html


@pytest.mark.parametrize("catalog", ["../catalog", "https://example.org/c/", "c"])
def test_events_lead_to_their_pages_of_a_catalog(tmp_path, catalog):
    html = page_of(x1(), tmp_path, catalog=catalog).read_text()
    assert f'href="{catalog.rstrip("/")}/index.html#/event/sched:sched_switch"' in html


@pytest.mark.parametrize("catalog", ["javascript:alert(1)//", "data:text/html,x", "JaVaScript:x"])
def test_a_catalog_is_no_script(tmp_path, catalog):
    with pytest.raises(TracepointError, match="begins with https://"):
        page_of(x1(), tmp_path, catalog=catalog)


def test_a_recording_of_one_record_has_a_page(tmp_path):
    schedule = Schedule()
    schedule.switch(10, 0, 0, "R", 7)
    assert "Nothing to show" in page_of(schedule, tmp_path).read_text()


@pytest.mark.thorough
def test_equal_recordings_make_equal_pages(tmp_path):
    assert page_of(x1(), tmp_path).read_bytes() == page_of(x1(), tmp_path, "again.html").read_bytes()


def test_no_analysis_and_unknown_ones_are_refused():
    with tp.open_trace(CUT) as trace:
        with pytest.raises(ValueError, match="no analysis"):
            make_report(trace, [])
        with pytest.raises(KeyError, match="sched"):
            make_report(trace, ["schde"])


def test_the_command_writes_the_file(tmp_path, run_command):
    def run(*words):
        return run_command("report", *words)[::2]

    path = tmp_path / "web.html"
    assert run(CUT, "sched", "-o", path)[0] == 0
    assert path.read_text().startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["web.html"]
    status, err = run(CUT, "sched")
    assert status == 2
    assert "-o/--output" in err
    status, err = run(CUT, "schde", "-o", path)
    assert status == 2
    assert "sched" in err
    own = tmp_path / "own.dat"
    own.write_bytes(x1().data())
    status, err = run(own, "sched", "-o", own)
    assert status == 2
    assert "write to another file" in err


@pytest.mark.thorough
def test_analyses_may_stand_after_options_and_unknown_ones_are_named(tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["report", CUT, "-o", str(page), "sched", "nope"]) == 2
    said = capsys.readouterr().err
    assert "no analysis 'nope'; there are: sched" in said
    assert "[]" not in said
    assert main(["report", CUT, "-o", str(page), "irq", "traps"]) == 0
    html = page.read_text("utf-8")
    assert all(f'id="{name}"' in html for name in ("irq", "traps"))


@pytest.mark.thorough
def test_a_page_that_cannot_be_written_is_named(tmp_path, capsys):
    page = tmp_path / "none" / "page.html"
    assert main(["report", CUT, "irq", "-o", str(page)]) == 2
    assert f"{page}: No such file" in capsys.readouterr().err


def test_a_time_without_records_has_no_page(tmp_path, capsys):
    page = tmp_path / "none.html"
    assert main(["report", CUT, "--from", "100", "-o", str(page)]) == 1
    assert "no page is written" in capsys.readouterr().err
    assert not page.exists()


def _served() -> Schedule:
    """Two requests of a service, and what its thread did."""
    schedule = Schedule()
    for at, (begin, end) in enumerate([(110, 190), (310, 400)]):
        schedule.switch(begin - 10, 0, 0, "R", 7)
        schedule.add(begin, 0, "irq:softirq_raise", {"vec": at}, 7)
        schedule.switch(begin + 20, 0, 7, "S", 0)
        schedule.waking(begin + 50, 0, 7)
        schedule.switch(begin + 60, 0, 0, "R", 7)
        schedule.add(end, 0, "irq:softirq_entry", {"vec": at}, 7)
        schedule.switch(end + 10, 0, 7, "S", 0)
    return schedule


def test_options_of_an_analysis_make_a_page_of_it(tmp_path, made, run_command):
    page = tmp_path / "page.html"
    between = ["--begin", "irq:softirq_raise", "--end", "irq:softirq_entry", "--key", "vec"]
    path = made(_served())
    status, _, err = run_command("report", path, "sched", "service", *between, "-o", page)
    assert status == 0, err
    groups = {group["title"]: group for group in facts_of(page.read_text("utf-8"))["timeline"]["groups"]}
    # The colours are those of the states of tasks.
    assert groups["What the threads of requests did"]["words"] == ["running", "sleeping", "runnable"]
    assert groups["What the threads of requests did"]["bands"] == [0, 3, 1]
    assert groups["Requests"]["legend"] == [["vec=0", "vec=…"]]
    status, _, err = run_command("report", path, "service", "-o", page)
    assert (status, "service needs --begin and --end" in err) == (2, True)
    status, _, err = run_command("report", path, "irq", "traps", *between, "-o", page)
    assert (status, "irq and traps have no --begin" in err) == (2, True)


def test_figures_name_recorded_events_only(tmp_path, made):
    with tp.open_trace(made(x1())) as trace:
        html = make_report(trace, ["sched"]).html
    shown = re.findall(r'<p class="from">From (.*?)</p>', html)
    assert shown
    assert not any("sched_wakeup_new" in text for text in shown)
    with tp.open_trace(CUT) as trace:
        html = make_report(trace, ["traps"]).html
    signals = re.search(r'<section id="traps-signals">.*?</section>', html)[0]
    assert "Not recorded: <a" in signals
    assert "signal:signal_generate" in signals


def test_what_has_no_end_is_a_point_among_others_that_have_one():
    columns = lambda: [  # noqa: E731
        number_column("ts", [0, 10, 20], "q"),
        number_column("dur", [5, -1, -1], "q"),
        number_column("tid", [1, 1, 2], "q"),
        names_column("what", ["timer", "fault", "timer"]),
    ]
    report = TableReport(Coverage(0, 100, {}), ColumnTable("trap", columns))
    (group,) = lane_groups(report, [])
    assert [list(lane.stops) for lane in group.lanes] == [[5, 10], [100]]


def test_labels_of_quantiles_that_lie_together_are_one():
    section = DistributionSection(
        "a", "A", {"one": Distribution([7]), "many": Distribution([1] * 90 + [9000] * 10)}
    )
    one, many = re.findall(r"<svg.*?</svg>", distribution_charts(section))
    assert re.findall(r"<text[^>]*>(p50[^<]*|p99[^<]*|max[^<]*|)</text>", one) == ["", "", "p50, p99, max"]
    assert re.findall(r"<text[^>]*>(p50[^<]*|p99[^<]*|max[^<]*|)</text>", many) == ["p50", "", "p99, max"]


def test_points_in_time_have_a_colour_in_the_legend(tmp_path):
    schedule = Schedule()
    for at in range(1, 50):
        schedule.add(at, 0, "exceptions:page_fault_user", {"address": 4096, "ip": 1, "error_code": 6}, 7)
    recording = tmp_path / "made.dat"
    recording.write_bytes(schedule.data())
    with tp.open_trace(str(recording)) as trace:
        (group,) = facts_of(make_report(trace, ["faults"]).html)["timeline"]["groups"]
    assert group["legend"] == [["page_fault", "page_fault"]]
