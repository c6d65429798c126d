"""`tracepoint convert`: a recording in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.status import EXIT_DONE, EXIT_FINDINGS, EXIT_IN_PART
from tracepoint.convert.parquet import write_parquet
from tracepoint.convert.perfetto.write import write_perfetto
from tracepoint.decode.trace import open_trace
from tracepoint.errors import TracepointError
from tracepoint.model.patterns import matches

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output

_ENDINGS = {
    ".pftrace": "perfetto",
    ".perfetto-trace": "perfetto",
}
_WRITERS = {"parquet": write_parquet, "perfetto": write_perfetto}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a trace.dat, or a folder of trace_pipe_raw files")
    parser.add_argument(
        "output", type=Path, metavar="OUT", help="the file to write; it appears when complete"
    )
    parser.add_argument(
        "pattern", nargs="*", metavar="PATTERN", help="only these events: sched, sched:*_switch"
    )
    parser.add_argument("--to", choices=sorted(_WRITERS), help="default: by the ending of OUT")
    parser.add_argument("--instance", default="", metavar="NAME", help="the buffer of an instance")
    parser.add_argument("--strict", action="store_true", help="exit status 3 for damaged or lost data")


def run(args: argparse.Namespace, out: Output) -> int:
    """Write the file; the exit status is 1 when a pattern matches no event of the recording."""
    form = args.to or _ENDINGS.get(args.output.suffix)
    if form is None:
        endings = ", ".join(_ENDINGS)
        raise TracepointError(
            f"{args.output}: which format? name it with --to, or end the name with {endings}"
        )
    with open_trace(args.file, instance=args.instance) as trace:
        missing = [p for p in args.pattern if not any(matches(p, name) for name in trace.events)]
        for pattern in missing:
            out.say(f"tracepoint: no event of {args.file} matches {pattern!r}")
        with out.progress("records", trace.n_records) as progress:
            _WRITERS[form](trace, args.output, args.pattern, progress.step)
        for damage in trace.damage[:10]:
            cpu = "" if damage.cpu is None else f"cpu {damage.cpu}, "
            out.warn(f"{args.file}: {cpu}offset {damage.offset:#x}: {damage.reason}")
        if args.strict and (trace.damage or any(trace.lost.values())):
            return EXIT_IN_PART
    return EXIT_FINDINGS if missing else EXIT_DONE
