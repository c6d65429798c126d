"""Rules as readable pages: every C or Python block of a Markdown file is one test.

A comment `/* error: TP301 */`, or `# error: TP401`, must stand on the line of each finding, several codes with commas
between them; a finding without such a comment fails too.  Rules that are off by default run when the
page's title names them.
"""

import re

import pytest

from tracepoint.check.engine import check_text
from tracepoint.check.engine_python import check_python_text
from tracepoint.tree.tracing_macros import TreeFacts

EXPECT = re.compile(r"(?:/\*|#)\s*error:\s*([\w, ]+?)\s*(?:\*/|$)")
PARTS = re.compile(r"^#+ +([^\n]+)$|^```(?:c|python)(?: +([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"\bTP\d{3}\b")


class Section(pytest.Item):
    def __init__(self, *, source: str, line: int, codes: list[str], facts: TreeFacts, is_python: bool, **kw):
        super().__init__(**kw)
        self.source, self.line, self.codes, self.facts = source, line, codes, facts
        self.is_python = is_python

    def runtest(self) -> None:
        expected = sorted(
            (n, code.strip())
            for n, text in enumerate(self.source.splitlines(), 1)
            for m in EXPECT.finditer(text)
            for code in m[1].split(",")
        )
        select = ["DEFAULT", *self.codes]
        if self.is_python:
            found = check_python_text(self.source, select=select)
        else:
            found = check_text(self.source, select=select, facts=self.facts)
        got = sorted((f.span.line, f.code) for f in found)
        if got != expected:
            told = "\n".join(f"  line {f.span.line}: {f.code} {f.message}" for f in found)
            raise MismatchError(f"{self.path}:{self.line}: expected {expected}, got {got}\n{told}")

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, MismatchError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, self.line, self.name


class MismatchError(AssertionError):
    """The findings are not those that the page marks."""


class Page(pytest.File):
    def collect(self):
        text, heading, number = self.path.read_text(encoding="utf-8"), self.path.stem, 0
        codes = CODE.findall(text.splitlines()[0])
        for m in PARTS.finditer(text):
            if m[1]:
                heading, number = m[1], 0
                continue
            number += 1
            name = heading if number == 1 else f"{heading} {number}"
            line = text.count("\n", 0, m.start(3))
            facts = _facts(m[2] or "")
            is_python = m[0].startswith("```python")
            yield Section.from_parent(
                self, name=name, source=m[3], line=line, codes=codes, facts=facts, is_python=is_python
            )


def _facts(words: str) -> TreeFacts:
    """Read `assign_str=1` and `tp_suffix=no` after the opening fence."""
    given = dict(word.split("=") for word in words.split())
    arity = int(given["assign_str"]) if "assign_str" in given else None
    suffix = given["tp_suffix"] == "yes" if "tp_suffix" in given else None
    return TreeFacts(assign_str_arity=arity, has_tp_suffix=suffix)


def pytest_collect_file(parent, file_path):
    if file_path.suffix == ".md":
        return Page.from_parent(parent, path=file_path)
    return None
