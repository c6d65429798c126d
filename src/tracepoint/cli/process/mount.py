"""`tracepoint mount`: the events of a running Python process as a directory."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli.process.ps import add_pid_argument, the_process
from tracepoint.cli.signals import left_to_others
from tracepoint.cli.status import EXIT_CANNOT_RUN, EXIT_DONE
from tracepoint.runtime.remote.client import RemoteFiles
from tracepoint.runtime.remote.mount import why_not

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="the mount point; created if missing")
    add_pid_argument(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Serve the directory until it is unmounted (`fusermount3 -u DIR`), Ctrl-C, or the process ends."""
    reason = why_not()
    if reason:
        out.error(reason)
        return EXIT_CANNOT_RUN
    from tracepoint.runtime.remote.fuse import serve  # noqa: PLC0415 - needs mfusepy, which is an extra

    process = the_process(args.pid)
    directory = args.directory.absolute()
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "not a folder to mount on", str(args.directory))
    directory.mkdir(parents=True, exist_ok=True)
    with RemoteFiles(process.pid) as files:
        out.detail(f"process {process.pid} on {directory}; unmount with: fusermount3 -u {directory}")
        with left_to_others():
            serve(files, directory)
    return EXIT_DONE
