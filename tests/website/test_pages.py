"""The documentation site builds without a warning, and has a page for each command, rule and public name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tracepoint
from oracles import ROOT
from tracepoint.check.registry import RULES
from tracepoint.cli.commands import COMMANDS
from tracepoint.cli.parsers import read_commands
from tracepoint.lab.kernels.supported import KERNELS
from website.conftest import broken_links, build, reached_files

pytestmark = pytest.mark.programs


def test_every_page_of_docs_is_there(site: Path) -> None:
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if not (site / page).exists()] == []


def test_a_page_is_described_by_its_first_sentences(site: Path) -> None:
    described = '<meta name="description" content="{}'
    rule = (site / "reference/rules/TP305.html").read_text(encoding="utf-8")
    first = (ROOT / "docs/howto/editor.md").read_text(encoding="utf-8").split("\n\n")[1].replace("`", "")
    page = (site / "howto/editor.html").read_text(encoding="utf-8")
    assert described.format(" ".join(first.split())) in page
    assert described.format("warning, on by default") not in rule
    assert described.format("") in rule


def test_every_option_of_every_command_is_shown(site: Path) -> None:
    for command in read_commands():
        text = (site / f"reference/cli/{command.words[0]}.html").read_text(encoding="utf-8")
        flags = [flag for one in (command, *command.verbs) for a in one.arguments for flag in a.flags]
        assert [flag for flag in flags if flag not in text] == []
    assert len(list((site / "reference/cli").glob("*.html"))) == len(COMMANDS)


def test_every_public_name_has_its_signature_types_and_examples(site: Path) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (site / "reference/api").glob("*.html"))
    assert [name for name in tracepoint.__all__ if f"<h2>{name}<" not in text] == []
    assert re.search(r'id="tracepoint.open_trace".*?</dt>', text, re.DOTALL)[0].count("Trace") > 0
    assert "&gt;&gt;&gt; " in text


def test_rules_and_support_are_shown(site: Path) -> None:
    rules = (site / "reference/rules/index.html").read_text(encoding="utf-8")
    assert [rule.code for rule in RULES if f'href="{rule.code}.html"' not in rules] == []
    support = (site / "reference/support.html").read_text(encoding="utf-8")
    assert [kernel.name for kernel in KERNELS if f">{kernel.name}<" not in support] == []


def test_a_link_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="Sphinx is not installed: make setup")
    source = tmp_path / "source"
    source.mkdir()
    (source / "conf.py").write_bytes((ROOT / "docs/conf.py").read_bytes())
    (source / "index.md").write_text("# Page\n\n[There](gone.md) and [section](#no-such-section).\n")
    done = build(tmp_path, source)
    assert done.returncode != 0
    assert "gone.md" in done.stderr
    assert "no-such-section" in done.stderr


def test_every_address_leads_somewhere(site: Path) -> None:
    assert broken_links(site) == []
    assert "How the code is laid out" in (site / "architecture.html").read_text(encoding="utf-8")


def test_addresses_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="sub/">x</a><a href="sub#there">x</a><a href="sub/index.html#gone">x</a><a href="#top">x</a>'
        '<a href="missing.html">x</a><img src="../out.png"><a href="https://example.org/x">x</a>'
    )
    (tmp_path / "sub/index.html").write_text('<p id="there"><a href="../index.html#/search/x">x</a>')
    assert broken_links(tmp_path) == [
        "index.html: #top: index.html has no place of this name",
        "index.html: ../out.png: there is no such file",
        "index.html: missing.html: there is no such file",
        "index.html: sub/index.html#gone: sub/index.html has no place of this name",
    ]


def test_modules_for_the_live_page_are_those_that_are_imported() -> None:
    names = {path.name for path in reached_files("tracepoint.layout.compute")}
    assert {"compute.py", "sizes.py", "wording.py", "__init__.py"} <= names
    rooms = {path.parent.name for path in reached_files("tracepoint.cli.declare.try_")}
    assert "simulate" in rooms
    assert rooms.isdisjoint({"lsp", "report", "fleet", "analysis", "runtime"})
