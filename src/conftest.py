"""What the examples of docstrings share: one that imports what is not installed is skipped."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from doctest import DocTest


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip an example whose extra is missing; the package's own modules never are."""
    if isinstance(item, pytest.DoctestItem):
        for name in _imported(item.dtest):
            if name.partition(".")[0] != "tracepoint":
                pytest.importorskip(name, reason=f"{name} is not installed: make setup")


def _imported(test: DocTest) -> Iterator[str]:
    for example in test.examples:
        for node in ast.walk(ast.parse(example.source)) if "import" in example.source else ():
            if isinstance(node, ast.Import):
                yield from (one.name for one in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module or ""
