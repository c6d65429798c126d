"""The documentation is true: its commands run, its outputs are real, its links lead somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tracepoint.analysis.registry import ANALYSES

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from doc_blocks import run_page  # noqa: E402 - found through the line above

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SHOWN = [page for page in PAGES if "```console\n" in page.read_text(encoding="utf-8")]
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


@pytest.mark.programs
@pytest.mark.parametrize("page", SHOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_print_what_the_page_shows(page: Path) -> None:
    steps = run_page(page)
    assert steps
    for step in steps:
        assert step.is_true, f"$ {step.command}\n{step.actual}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = [
        link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()
    ]
    assert missing == []


def test_architecture_names_every_room() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = [p.name for p in (ROOT / "src/tracepoint").iterdir() if (p / "__init__.py").exists()]
    assert [room for room in rooms if f"`{room}`" not in text] == []


def test_commands_have_every_analysis() -> None:
    text = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert [name for name in ANALYSES if f"| `analyse {name} FILE" not in text] == []


def test_first_screen_of_the_readme_holds_real_output() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.index("```console\n$ tracepoint try ") < text.index("make try") < text.index("make test")
