"""`tracepoint restore`: restore what an interrupted run changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.status import EXIT_DONE, EXIT_IN_PART
from tracepoint.control.files import find_files
from tracepoint.control.journal import journal_folder
from tracepoint.control.restore import restore_journals

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--journals",
        metavar="DIR",
        default="",
        help="where the journals are (default: $XDG_STATE_HOME/tracepoint, or /run/tracepoint for root)",
    )
    parser.add_argument(
        "--forget", action="store_true", help="delete the journals and leave everything as it is"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Restore everything; the exit status is 3 when something could not be restored."""
    folder = Path(args.journals or journal_folder())
    if args.forget:
        journals = sorted(folder.glob("*.journal"))
        for journal in journals:
            journal.unlink(missing_ok=True)
        out.say(f"dropped {len(journals)} journals in {folder}")
        return EXIT_DONE
    reports = restore_journals(folder, find_files)
    if not reports:
        out.say(f"nothing to restore: no journal in {folder}")
    problems = 0
    for report in reports:
        out.say(f"{report.path.name}: {report.message}")
        for path in report.restored.changed if report.restored else ():
            out.detail(f"  {path}")
        for note in report.restored.notes if report.restored else ():
            out.warn(note)
        for problem in report.restored.problems if report.restored else ():
            problems += 1
            out.error(problem)
    return EXIT_IN_PART if problems else EXIT_DONE
