"""The options of analyses, as arguments of the commands that run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.analysis.registry import ANALYSES, OPTIONS
from tracepoint.errors import TracepointError
from tracepoint.wording import no_such

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Mapping

    from tracepoint.analysis.registry import AnalysisOption


def add_analysis_options(
    parser: argparse.ArgumentParser, options: Mapping[str, tuple[AnalysisOption, ...]] = OPTIONS
) -> None:
    """Add the options of analyses, a group for those that take the same ones."""
    for own in dict.fromkeys(options.values()):
        takers = " and ".join(name for name, taken in options.items() if taken == own)
        group = parser.add_argument_group(f"of {takers}")
        for option in own:
            group.add_argument(
                f"--{option.name}", metavar=option.metavar, help=option.help, choices=option.choices or None
            )


def options_of(args: argparse.Namespace, analyses: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the options that were given, by the analyses that take them.

    Raises TracepointError for an unknown analysis, and for an option that none of them has.
    """
    for name in analyses:
        if name not in ANALYSES:
            raise TracepointError(no_such("analysis", name, ANALYSES))
    taken = {name: {option.name for option in OPTIONS.get(name, ())} for name in analyses}
    given: dict[str, str] = {}
    for name in sorted({option.name for options in OPTIONS.values() for option in options}):
        if (value := getattr(args, name)) is None:
            continue
        if not any(name in own for own in taken.values()):
            raise TracepointError(
                f"{' and '.join(analyses)} {'has' if len(taken) == 1 else 'have'} no --{name}: "
                "tracepoint analyse --help says which have"
            )
        given[name] = value
    return {one: {name: given[name] for name in given if name in own} for one, own in taken.items()}
