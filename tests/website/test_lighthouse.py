"""Lighthouse gives the pages of the site full scores, and finds that they need no other server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from website.lighthouse import check, judge

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.oracle, pytest.mark.programs, pytest.mark.slow]
PAGES = ("index", "howto/sched", "howto/editor", "reference/rules/index", "live")


@pytest.mark.parametrize("name", PAGES)
def test_pages_have_full_scores(served: str, tmp_path: Path, name: str) -> None:
    check(f"{served}/{name}.html", tmp_path)


def test_a_page_with_faults_has_complaints(site: Path, served: str, tmp_path: Path) -> None:
    (site / "faults.html").write_text("<title>x</title><img src='https://example.invalid/x.png'>")
    judgement = judge(f"{served}/faults.html", tmp_path)
    assert [text for text in judgement.complaints if "alt" in text]
    assert "https://example.invalid/x.png" in judgement.requests
    (site / "faults.html").unlink()
