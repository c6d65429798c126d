"""The reference pages of the rules, generated from the list of rules and their docstrings."""

from __future__ import annotations

from tracepoint.check.registry import RULES, rule_of
from tracepoint.errors import TracepointError

_PARTS = {
    "TP0": "Text and form of the header",
    "TP1": "Declaration",
    "TP2": "Record and assignment",
    "TP3": "Print format",
    "TP4": "Call sites",
    "TP5": "Compatibility",
}


def explain(word: str) -> str:
    """Return the page of one rule, by code or name; TracepointError when there is no such rule.

    >>> explain("TP305").splitlines()[0]
    '# `trailing-newline-in-printk` (TP305)'
    """
    rule = rule_of(word)
    if rule is None:
        raise TracepointError(f"no rule {word!r}; `tracepoint explain --list` shows them")
    return rule.page


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
