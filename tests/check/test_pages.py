import os
import re
from pathlib import Path

import pytest

from tracepoint.check import rules
from tracepoint.check.engine import check_text
from tracepoint.check.engine_python import check_python_text
from tracepoint.check.pages import explain
from tracepoint.check.registry import RULES
from tracepoint.errors import TracepointError
from tracepoint.tree.tracing_macros import TreeFacts

FOLDER = Path(__file__).parents[2] / "docs/reference/rules"
HEADINGS = ["What it does", "Why it is bad", "Example", "Use instead", "Fix safety"]
EXPECT = re.compile(r"(?:/\*|#)\s*error:\s*([\w, ]+?)\s*(?:\*/|$)")
BY_CODE = pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)


_PARTS = {
    "TP0": "Text and form of the header",
    "TP1": "Declaration",
    "TP2": "Record and assignment",
    "TP3": "Print format",
    "TP4": "Call sites",
    "TP5": "Compatibility",
}


def make_pages() -> dict[str, str]:
    """Return file name to text of `docs/reference/rules/`: one page per rule, and the index."""
    pages = {f"{rule.code}.md": rule.page for rule in RULES}
    pages["index.md"] = _index()
    return pages


def _index() -> str:
    lines = [
        "# Rules\n",
        "Generated from the rules themselves; `tracepoint explain CODE` prints the same pages.\n",
    ]
    for prefix, title in _PARTS.items():
        rules = [r for r in RULES if r.code.startswith(prefix)]
        if not rules:
            continue
        lines += [
            f"## {title}\n",
            "| code | name | what it finds | severity | default | fix |",
            "|---|---|---|---|---|---|",
        ]
        for rule in rules:
            state = "on" if rule.is_default_on else "off"
            lines.append(
                f"| [{rule.code}]({rule.code}.md) | `{rule.name}` | {rule.summary} | {rule.severity} "
                f"| {state} | {rule.fix or 'none'} |"
            )
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def test_reference_pages_are_up_to_date():
    """TRACEPOINT_WRITE_PAGES=1 writes them instead."""
    pages = make_pages()
    if os.environ.get("TRACEPOINT_WRITE_PAGES"):
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
    assert {p.name: p.read_text("utf-8") for p in FOLDER.glob("*.md")} == pages


def test_every_rule_has_its_file_and_every_file_its_rule():
    files = {p.stem for p in Path(rules.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == {rule.name.replace("-", "_") for rule in RULES}


def test_codes_and_names_are_unique_and_in_order():
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in RULES}) == len(RULES)


@BY_CODE
def test_page_has_the_five_headings(rule):
    assert re.findall(r"^## (.+)$", rule.page, re.MULTILINE) == HEADINGS
    assert rule.summary.endswith(".")
    assert rule.section("Why it is bad")


@BY_CODE
@pytest.mark.parametrize("heading", ["Example", "Use instead"])
def test_code_of_the_page_is_judged_as_it_says(rule, heading):
    text = re.search(rf"^## {heading}\n\n(.*?)(?=^## )", rule.page, re.MULTILINE | re.DOTALL)[1]
    kind = "c" if rule.check_python is None else "python"
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        expected = sorted(
            (n, code.strip())
            for n, line in enumerate(block.splitlines(), 1)
            for m in EXPECT.finditer(line)
            for code in m[1].split(",")
        )
        path = "drivers/demo/demo_trace.h" if rule.code == "TP017" else "<text>"
        if rule.code == "TP017" and heading == "Example":
            line = block.splitlines().index("#include <trace/define_trace.h>") + 1
            expected = [(line, "TP017"), (line, "TP017")]  # the page cannot say where it is saved
        judge = check_text if rule.check_python is None else check_python_text
        facts = {"facts": TreeFacts(string_callers={":stage": False})} if rule.code == "TP326" else {}
        found = judge(block, path, select=["DEFAULT", rule.code], **facts)
        assert sorted((d.span.line, d.code) for d in found) == expected
        if (rule.check or rule.check_python) and heading == "Example":
            assert rule.code in {d.code for d in found}


@BY_CODE
def test_fix_grade_is_the_one_the_list_states(rule):
    text = re.search(r"^## Fix safety\n\n(\w+)", rule.page, re.MULTILINE)[1]
    assert text.lower() in {"safe", "unsafe", "none", "shown"}
    if rule.fix == "safe":
        assert text == "Safe"
    if rule.fix == "unsafe":
        assert text == "Unsafe"


def test_explain_takes_codes_and_names():
    assert explain("tp301") == explain("pointer-dereference-in-printk")
    with pytest.raises(TracepointError, match="no rule"):
        explain("TP999")


def test_false_positives_are_added_up_and_rules_that_are_often_wrong_are_off():
    text = (FOLDER.parents[1] / "explanation/false-positives.md").read_text("utf-8")
    rows = re.findall(r"^\| (TP\d+) ([\w-]+) \| (\d+) \| (\d+) \| (\d+) \| (on|off) \|", text, re.MULTILINE)
    by_code = {rule.code: rule for rule in RULES}
    totals = {"on": [0, 0], "off": [0, 0]}
    for code, name, found, read, false, default in rows:
        assert by_code[code].name == name
        assert by_code[code].is_default_on == (default == "on")
        assert int(false) <= int(read) <= int(found)
        assert default == "off" or int(false) * 10 <= int(read)
        totals[default][0] += int(read)
        totals[default][1] += int(false)
    said = re.search(r"together: (\d+) read, (\d+) false. Those on by default: (\d+) read, (\d+) false", text)
    both = [sum(pair) for pair in zip(*totals.values(), strict=True)]
    assert [int(n) for n in said.groups()] == [*both, *totals["on"]]
