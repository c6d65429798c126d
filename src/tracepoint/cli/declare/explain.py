"""`tracepoint explain`: the page of one rule, or the list of all."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from tracepoint.check.registry import RULES, rule_of
from tracepoint.cli.status import EXIT_DONE
from tracepoint.errors import TracepointError

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("rule", nargs="*", metavar="RULE", help="a code (TP301) or a name")
    parser.add_argument("--list", action="store_true", help="list all rules, one per line")


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the requested pages as Markdown."""
    if not args.rule and not args.list:
        raise TracepointError("which rule? `tracepoint explain TP301`, or --list for all of them")
    if args.list:
        for rule in RULES:
            state = "" if rule.is_default_on else " (off by default)"
            out.line(f"{rule.code} {rule.name}{state}: {rule.summary}")
    for number, word in enumerate(args.rule):
        found = rule_of(word) or rule_of(word.upper())
        if found is None:
            raise TracepointError(_unknown(word))
        if number or args.list:
            out.line()
        out.write(found.page)
    return EXIT_DONE


def _unknown(word: str) -> str:
    names = [name for rule in RULES for name in (rule.code, rule.name)]
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f"no rule {word!r}" + (f"; did you mean {close[0]}?" if close else "; --list shows all")
