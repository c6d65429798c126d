"""The reference page of a rule, which is its docstring."""

from __future__ import annotations

from tracepoint.check.registry import rule_of
from tracepoint.errors import TracepointError


def explain(word: str) -> str:
    """Return the page of one rule, by code or name; TracepointError when there is no such rule.

    >>> explain("TP305").splitlines()[0]
    '# `trailing-newline-in-printk` (TP305)'
    """
    rule = rule_of(word)
    if rule is None:
        raise TracepointError(f"no rule {word!r}; `tracepoint explain --list` shows them")
    return rule.page
