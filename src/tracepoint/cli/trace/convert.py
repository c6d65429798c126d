"""`tracepoint convert`: a recording in another format."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS, EXIT_IN_PART
from tracepoint.cli.trace.recordings import (
    add_file_argument,
    add_instance_argument,
    add_selection_arguments,
    check_output,
    open_recording,
    report_empty,
    report_unmatched,
    warn_of_damage,
    writing_to,
)
from tracepoint.convert.ctf.write import write_ctf
from tracepoint.convert.parquet import write_parquet
from tracepoint.convert.perfetto.write import write_perfetto
from tracepoint.convert.tables import write_arrow, write_csv, write_json_lines
from tracepoint.errors import TracepointError
from tracepoint.wording import read_seconds

if TYPE_CHECKING:
    from tracepoint.cli.output import Output

_ENDINGS = {
    ".arrow": "arrow",
    ".csv": "csv",
    ".ctf": "ctf",
    ".jsonl": "jsonl",
    ".pftrace": "perfetto",
    ".perfetto-trace": "perfetto",
}
_WRITERS = {
    "arrow": write_arrow,
    "csv": write_csv,
    "ctf": write_ctf,
    "jsonl": write_json_lines,
    "parquet": write_parquet,
    "perfetto": write_perfetto,
}
_FOLDERS, _TEXTS = ("ctf", "parquet"), ("csv", "jsonl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_file_argument(parser)
    parser.add_argument(
        "output",
        type=Path,
        metavar="OUT",
        help="the file to write, which appears when complete; - for stdout",
    )
    add_selection_arguments(parser, "--until")
    parser.add_argument(
        "--to",
        "--format",
        type=_form,
        metavar="FORMAT",
        help=f"{', '.join(sorted(_WRITERS))}; default: by the ending of OUT",
    )
    add_instance_argument(parser)
    parser.add_argument("--strict", action="store_true", help="exit status 3 for damaged or lost data")


def _form(text: str) -> str:
    if text not in _WRITERS:
        hint = "; for a time give --until" if read_seconds(text) is not None else ""
        known = ", ".join(sorted(_WRITERS))
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a format: choose from {known}{hint}")
    return text


def run(args: argparse.Namespace, out: Output) -> int:
    """Write the file; the exit status is 1 when a pattern, or all that is chosen, matches nothing."""
    form = args.to or _ENDINGS.get(args.output.suffix)
    if form is None:
        endings = ", ".join(_ENDINGS)
        raise TracepointError(
            f"{args.output}: no format for this name: give --to, or end the name with {endings}"
        )
    is_stdout = str(args.output) == "-"
    if is_stdout and form in _FOLDERS:
        raise TracepointError(f"{form} is a folder, which stdout cannot be: name one")
    check_output(args.output, [args.file])
    with open_recording(args) as trace:
        is_missing = report_unmatched(args.file, args.pattern, {*trace.names, *trace.events}, out)
        with (
            writing_to(args.output, out, is_text=form in _TEXTS) as path,
            out.progress("records", trace.n_records) as progress,
        ):
            _WRITERS[form](trace, path, progress.step)
        is_empty = report_empty(trace, out)
        warn_of_damage(args.file, trace.damage, out)
        if args.strict and (trace.damage or any(trace.lost.values())):
            return EXIT_IN_PART
    return EXIT_FINDINGS if is_missing or is_empty else EXIT_DONE
