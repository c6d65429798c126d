"""`tracepoint lab build`: kernels from source, with patches, for guests."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tracepoint.cli import numbers
from tracepoint.cli.output import is_terminal, one_line
from tracepoint.cli.status import EXIT_DONE
from tracepoint.lab.build import config as kernel_config
from tracepoint.lab.build import kernel as kernel_build
from tracepoint.lab.build import store as kernel_store

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output

SCHEMA = "tracepoint.lab.build.module/1"
_PERIOD_S = 0.1
_LOG_PERIOD_S = 60.0


def add_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the arguments of `lab build`; `default` is the kernel when none is named."""
    parser.add_argument(
        "--kernel",
        metavar="SERIES|FOLDER",
        help=f"a series (6.1, 6.12: Debian's source is fetched) or a source tree; default: {default}",
    )
    parser.add_argument(
        "--patch",
        action="append",
        default=[],
        metavar="FILE",
        help="apply this patch first; repeatable, in order",
    )
    parser.add_argument(
        "--fragment",
        action="append",
        default=[],
        metavar="FILE",
        help="a file with options of the kernel's configuration",
    )
    parser.add_argument(
        "--config", action="append", default=[], metavar="OPT=y", help="one such option; repeatable"
    )
    parser.add_argument(
        "-j",
        "--jobs",
        type=numbers.whole(1, 1024),
        metavar="N",
        help="compilers to run at once (all processors)",
    )
    parser.add_argument("--json", action="store_true", help=f"print JSON ({SCHEMA})")
    parser.add_argument(
        "--clean", action="store_true", help="delete what was built for --kernel, or everything; no build"
    )


def run(args: argparse.Namespace, out: Output, default: str) -> int:
    """Build, or delete what was built; raises LabError with the compiler's output."""
    if args.clean:
        for folder in kernel_store.clean(args.kernel):
            out.line(str(folder))
        return EXIT_DONE
    options = dict(kernel_config.read_option(word) for word in args.config)
    with _Watch(out) as watch:
        built = kernel_build.build_kernel(
            args.kernel or default,
            [Path(word) for word in args.patch],
            [Path(word) for word in args.fragment],
            options,
            jobs=args.jobs,
            progress=watch.see,
            say=watch.say,
        )
    if args.json:
        names = ("name", "release", "image", "vmlinux", "config", "source", "objects", "seconds", "steps")
        values = {name: getattr(built, name) for name in names}
        out.line(json.dumps({"schema": SCHEMA, **values}, indent=1, default=str))
        return EXIT_DONE
    out.line(f"built:{built.name}  {built.release}  {built.image}")
    work = f"{built.steps} objects compiled" if built.steps else "nothing to compile"
    out.say(
        f"{work}, {built.seconds:.1f} s; `tracepoint lab run --kernel built:{built.name} COMMAND` boots it"
    )
    return EXIT_DONE


class _Watch:
    """The progress line of a build on a terminal; in a log, one line per minute."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._is_terminal = out.verbosity >= 0 and is_terminal(out.stderr)
        self._begin = time.monotonic()
        # A log gets its first line after a minute: most builds are done by then.
        self._last = 0.0 if self._is_terminal else self._begin
        self._stage = ""
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._erase()

    def say(self, text: str) -> None:
        """Write a message above the line."""
        self._erase()
        self._out.say(text)

    def see(self, stage: str, done: int, expected: int) -> None:
        """Show the progress of the build."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage = stage
            if not self._is_terminal:
                self._out.detail(stage)
        if now - self._last < (_PERIOD_S if self._is_terminal else _LOG_PERIOD_S):
            return
        self._last = now
        minutes, seconds = divmod(int(now - self._begin), 60)
        count = f"{done} of about {max(expected, done)} objects" if expected else f"{done} objects"
        text = f"{stage}: {count}, {minutes}:{seconds:02}"
        if not self._is_terminal:
            self._out.say(text)
            return
        self._is_shown = True
        self._out.stderr.write(f"\r\x1b[K{one_line(text, self._out.stderr)}")
        self._out.stderr.flush()

    def _erase(self) -> None:
        if self._is_shown:
            self._is_shown = False
            self._out.stderr.write("\r\x1b[K")
            self._out.stderr.flush()
