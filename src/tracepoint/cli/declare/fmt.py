"""`tracepoint fmt`: format the lines that break the style of their trace header."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli import settings
from tracepoint.cli.files import read_text, unified_diff, write_text
from tracepoint.cli.status import EXIT_CANNOT_RUN, EXIT_DONE, EXIT_FINDINGS
from tracepoint.model.fmt.text import format_text
from tracepoint.tree.scan import find_headers

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "paths",
        nargs="*",
        default=["."],
        metavar="PATH",
        help="headers, folders, or - for stdin (default: .)",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit status 1 when a file would change"
    )
    parser.add_argument("--diff", action="store_true", help="write nothing; print what would change")
    settings.add_arguments(parser, "exclude")


def run(args: argparse.Namespace, out: Output) -> int:
    """Format the files; the exit status is 1 when `--check` or `--diff` finds one to change."""
    chosen = settings.read_settings(args)
    if settings.shows_settings(args, chosen, out):
        return EXIT_DONE
    paths = find_headers(args.paths, chosen.exclude)
    if not paths:
        out.warn(f"no trace headers in {', '.join(args.paths)}")
    n_changed = n_failed = 0
    with out.progress("formatting", len(paths)) as progress:
        for path in progress.over(paths):
            is_changed, is_whole = _format_one(path, args, out)
            n_changed += is_changed
            n_failed += not is_whole
    is_dry = args.check or args.diff
    out.say(f"{n_changed} of {len(paths)} files {'would change' if is_dry else 'changed'}")
    if n_failed:
        return EXIT_CANNOT_RUN
    return EXIT_FINDINGS if is_dry and n_changed else EXIT_DONE


def _format_one(path: Path, args: argparse.Namespace, out: Output) -> tuple[bool, bool]:
    """Format one file; return whether it changes, and whether all of it could be formatted."""
    old = read_text(path)
    result = format_text(old, str(path))
    for diagnostic in result.diagnostics:
        out.error(str(diagnostic))
    is_changed = result.text != old
    if args.diff:
        out.diff(unified_diff(old, result.text, str(path)))
    elif args.check:
        if is_changed:
            out.line(str(path))
    elif path == Path("-"):
        out.write(result.text)
    elif is_changed:
        write_text(path, result.text)
        out.detail(f"formatted {path}")
    return is_changed, not result.diagnostics
