"""Findings while typing: after any change inside a declaration they are those of the whole text."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tracepoint.check.engine import Checker
from tracepoint.diagnostics import Diagnostic
from tracepoint.lsp.incremental import BETWEEN_DECLARATIONS, after_change, checked_text, find_change
from tracepoint.model.event import TraceHeader
from tracepoint.model.read import read_header_text
from tracepoint.tree.tracing_macros import TreeFacts

EXAMPLES = Path(__file__).resolve().parents[2] / "src/tracepoint/examples"
TEXT = (EXAMPLES / "block_class.h").read_text() + (EXAMPLES / "swap.h").read_text()


def check(text: str) -> tuple[TraceHeader, list[Diagnostic]]:
    header = read_header_text(text, "t.h")
    checker = Checker(facts=TreeFacts())
    checker.add(header)
    return header, checker.findings()


def keys(findings: tuple[Diagnostic, ...] | list[Diagnostic]) -> set[object]:
    return {(d.code, d.span, d.text, d.fix) for d in findings if d.code not in BETWEEN_DECLARATIONS}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("a", ""),
        ("", "a"),
        ("aaa", "aa"),
        ("aa", "aaa"),
        ("abc", "axc"),
        ("abab", "ab"),
        ("x\n", "y\nx\n"),
    ],
)
def test_change_leads_from_old_to_new(old: str, new: str) -> None:
    change = find_change(old, new)
    assert old[: change.start] + new[change.start : change.new_end] + old[change.old_end :] == new
    assert 0 <= change.start <= min(change.old_end, change.new_end)


@pytest.mark.parametrize("seed", range(25))
def test_change_inside_a_declaration_is_found_without_reading_the_others(seed: int) -> None:
    chance = random.Random(seed)
    known = checked_text(*check(TEXT))
    text = TEXT
    for _ in range(3):
        block = chance.choice(known.blocks)
        at = chance.randrange(block.start + 1, block.end - 2)
        n_gone = chance.choice((0, 0, 0, 1, 3))
        text = text[:at] + chance.choice(("x", ")", ",", "%d", "")) + text[min(at + n_gone, block.end - 1) :]
        known = after_change(known, text, check)
        assert keys(known.findings) == keys(check(text)[1])


def test_only_the_family_of_a_changed_declaration_is_read() -> None:
    read: list[str] = []

    def noted(text: str) -> tuple[TraceHeader, list[Diagnostic]]:
        read.append(text)
        return check(text)

    at = TEXT.index("__entry->", TEXT.index("TRACE_EVENT(")) + len("__entry->")
    after_change(checked_text(*check(TEXT)), TEXT[:at] + "x" + TEXT[at:], noted)
    assert [len(text) for text in read] == [len(TEXT) + 1]
    assert read[0].count("\n") == TEXT.count("\n")
    assert "TRACE_EVENT(" in read[0]
    assert "DECLARE_EVENT_CLASS(" in TEXT
    assert "DECLARE_EVENT_CLASS(" not in read[0]


def test_change_between_declarations_moves_findings_and_reads_nothing() -> None:
    text = TEXT.replace("__entry->", "__entry->x", 1)
    known = checked_text(*check(text))
    assert known.findings
    moved = after_change(known, "\n\n" + text, check=lambda _: pytest.fail("nothing is to be read"))
    assert [d.span.line for d in moved.findings] == [d.span.line + 2 for d in known.findings]
    assert [d.span.start for d in moved.findings] == [d.span.start + 2 for d in known.findings]
