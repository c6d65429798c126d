"""Writer, JSON, Python and formatter over whole kernel trees."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from oracles import kernel_source, lend_headers
from tracepoint.model.fmt.text import format_text
from tracepoint.model.python.write import write_python
from tracepoint.model.read import read_header_text
from tracepoint.model.schema import read_json, write_json
from tracepoint.model.write import write_header
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.model.event import TraceHeader

pytestmark = pytest.mark.oracle

#: What clang-format changes in well-kept headers of 6.1 is 536, 2407 and 311 lines; see docs/howto/format.md.
MOST_CHANGED = {"sched.h": 0, "ext4.h": 20, "kmem.h": 2, "irq.h": 0, "vmscan.h": 0, "timer.h": 0}
#: How many of 100 headers stay as they are.
LEAST_UNCHANGED = 86


def modernise(header: TraceHeader) -> TraceHeader:
    """Return the header with tracepoints of the form of 2008 as today's DECLARE_TRACE."""
    changed = (
        replace(t, macro="DECLARE_TRACE") if t.macro == "DEFINE_TRACE" else t for t in header.tracepoints
    )
    return replace(header, tracepoints=tuple(changed))


@pytest.fixture(scope="module", params=["linux-source-6.1", "linux-source-6.12"])
def headers(request: pytest.FixtureRequest) -> Iterator[list[TraceHeader]]:
    """All headers of one source at a time, in today's spelling."""
    for headers in lend_headers(kernel_source(request.param)):
        headers[:] = map(modernise, headers)
        yield headers


def test_headers_read_back(headers):
    for header in headers:
        own = {cls.name for cls in header.classes}
        foreign = [
            e.event_class for e in header.events if e.event_class.macro and e.event_class.name not in own
        ]
        again = read_header_text(write_header(header), header.path, foreign_classes=foreign)
        assert again == header, header.path


def test_json_reads_back(headers):
    for header in headers:
        assert read_json(write_json(header)) == header, header.path


def test_python_declares_the_same(headers):
    for header in headers:
        names: dict[str, object] = {}
        exec(compile(write_python(header), header.path, "exec"), names)
        assert names["header"] == header, header.path


def test_formatting_keeps_tokens_and_is_done_after_once(headers):
    few = dict(MOST_CHANGED)
    n_unchanged = 0
    for header in headers:
        text = header.source.text
        result = format_text(text, header.path)
        assert result.diagnostics == ()
        assert words(result.text) == words(text), header.path
        assert format_text(result.text).text == result.text, header.path
        n_unchanged += result.text == text
        name = header.path.rpartition("/")[2]
        if "include/trace/events/" in header.path and name in few:
            assert n_changed(text, result.text) <= few.pop(name), header.path
    assert not few
    assert n_unchanged * 100 >= LEAST_UNCHANGED * len(headers)


def words(text: str) -> list[str]:
    """Tokens and comments in order; a comment's lines without their indentation."""
    out = []
    for token in lex(SourceFile("", text)):
        trivia = text[token.lead : token.start]
        comments = re.findall(r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/", trivia) if "/" in trivia else ()
        out += ["\n".join(line.strip() for line in comment.splitlines()) for comment in comments]
        out.append(token.text)
    return out


def n_changed(old: str, new: str) -> int:
    """Lines of the old text that are not in the new one, counted with multiplicity."""
    counts: dict[str, int] = {}
    for line in new.splitlines():
        counts[line] = counts.get(line, 0) + 1
    missing = 0
    for line in old.splitlines():
        counts[line] = counts.get(line, 0) - 1
        missing += counts[line] < 0
    return missing
