"""`tracepoint cut`: a part of a recording as a trace.dat of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.numbers import nanoseconds
from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS
from tracepoint.convert.tracedat import write_cut
from tracepoint.decode.trace import open_trace
from tracepoint.model.patterns import matches

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a trace.dat, or a folder of trace_pipe_raw files")
    parser.add_argument("pattern", nargs="*", metavar="PATTERN", help="only these events: sched, sched:*wak*")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="the file to write")
    parser.add_argument("--from", dest="start", type=nanoseconds, metavar="S", help="from this second on")
    parser.add_argument("--to", dest="stop", type=nanoseconds, metavar="S", help="before this second")
    parser.add_argument("--file-version", type=int, choices=(6, 7), default=7, help="default: 7")
    parser.add_argument("--compression", choices=("none", "zlib", "zstd"), default="none")
    parser.add_argument("--instance", default="", metavar="NAME", help="the buffer of an instance")


def run(args: argparse.Namespace, out: Output) -> int:
    """Write the file; the exit status is 1 when a pattern matches no event of the recording."""
    with open_trace(args.file, instance=args.instance) as whole:
        trace = whole.between(args.start, args.stop)
        missing = [p for p in args.pattern if not any(matches(p, name) for name in whole.events)]
        for pattern in missing:
            out.say(f"tracepoint: no event of {args.file} matches {pattern!r}")
        with out.progress("records", whole.n_records) as progress:
            write_cut(
                trace,
                args.output,
                args.pattern,
                version=args.file_version,
                compression=args.compression,
                progress=progress.step,
            )
        for damage in whole.damage[:10]:
            cpu = "" if damage.cpu is None else f"cpu {damage.cpu}, "
            out.warn(f"{args.file}: {cpu}offset {damage.offset:#x}: {damage.reason}")
    return EXIT_FINDINGS if missing else EXIT_DONE
