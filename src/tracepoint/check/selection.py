"""Which rules run: `--select` and `--ignore` combined into one set of codes."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracepoint.check.registry import Rule

#: Words that select many rules.
ALL = "ALL"
DEFAULT = "DEFAULT"


def select_rules(
    rules: Sequence[Rule], select: Iterable[str] = (), ignore: Iterable[str] = ()
) -> frozenset[str]:
    """Return the codes of the rules that run.

    A selector is a code (`TP301`), the beginning of codes (`TP3`), a rule's name, `ALL` or
    `DEFAULT`.  `select` replaces the default choice.  Where both match a rule, the more exact
    one wins, and `ignore` wins a tie.  Raises TracepointError for a selector that matches no rule.
    """
    chosen = tuple(_known(word, rules) for word in select) or (DEFAULT,)
    refused = tuple(_known(word, rules) for word in ignore)
    codes = set()
    for rule in rules:
        wanted = max((_weight(word, rule) for word in chosen), default=0)
        unwanted = max((_weight(word, rule) for word in refused), default=0)
        if wanted > unwanted:
            codes.add(rule.code)
    return frozenset(codes)


def _known(word: str, rules: Sequence[Rule]) -> str:
    word = word.strip()
    if word and (word in {ALL, DEFAULT} or any(_weight(word, rule) for rule in rules)):
        return word
    names = [name for rule in rules for name in (rule.code, rule.name)]
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]}?" if close else "; `tracepoint explain --list` shows the rules"
    raise TracepointError(f"no rule matches {word!r}{hint}")


def _weight(word: str, rule: Rule) -> int:
    """Return how exactly a selector names a rule: 0 when it does not."""
    if word == rule.name:
        return 100
    if word == ALL:
        return 1
    if word == DEFAULT:
        return int(rule.is_default_on)
    if word.upper().startswith("TP") and rule.code.startswith(word.upper()):
        return len(word)
    return 0
