"""The `tracepoint` program: finds the command, runs it and returns an exit status.

A command is a module with `add_arguments(parser)` and `run(args, out) -> int`; only the one that
is called is imported.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from tracepoint import __version__
from tracepoint.cli import streams
from tracepoint.cli.output import Output, add_output_arguments, example_text
from tracepoint.cli.signals import Ended, ended_by_signal
from tracepoint.cli.status import (
    EXIT_CANNOT_RUN,
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_PIPE_CLOSED,
    EXIT_REFUSED,
    EXIT_TOOL_FAILED,
)
from tracepoint.errors import LabError, TracefsError, TracepointError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from _typeshed import SupportsWrite


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand: its module in `tracepoint.cli`, one line of help, and examples.

    Every example is run by the tests in the root of the repository; `#` begins a comment.  Commands
    that are `is_live` work on a running kernel, so their examples run in a guest;
    commands with `meanwhile` run the command after `--`.
    """

    module: str
    summary: str
    examples: tuple[str, ...]
    is_live: bool = False
    meanwhile: bool = False


COMMANDS = {
    "try": Command(
        "declare.try_",
        "show what a declared event does: findings, format, inputs, record, trace lines",
        (
            "tracepoint try --example swap",
            "tracepoint try examples/swap.h:mm_page_swap_in --set 'address=0x7f00' --count 2",
        ),
    ),
    "check": Command(
        "declare.check",
        "find what is wrong with trace headers, and fix it",
        (
            "tracepoint check examples/",
            "tracepoint check examples/swap.h --select TP3 --output-format concise",
            "tracepoint check examples/ --fix --diff",
        ),
    ),
    "explain": Command(
        "declare.explain",
        "print the page of one rule",
        ("tracepoint explain TP301", "tracepoint explain --list"),
    ),
    "fmt": Command(
        "declare.fmt",
        "format the lines that break the style of their trace header",
        ("tracepoint fmt --check examples/", "tracepoint fmt --diff examples/swap.h"),
    ),
    "show": Command(
        "declare.show",
        "print a header, event, object or format file in another form",
        (
            "tracepoint show examples/swap.h --as format",
            "tracepoint show examples/swap.h:mm_page_swap_in --as layout --abi i386",
        ),
    ),
    "generate": Command(
        "declare.generate",
        "generate source code: module, probe, header, lttng, bpf, bpftrace, commands, markdown",
        (
            "tracepoint generate module examples/swap.h --name swap_events",
            "tracepoint generate bpftrace examples/swap.h:mm_page_swap_in --by comm --measure hist:address",
            "tracepoint generate markdown examples/swap.h",
        ),
    ),
    "diff": Command(
        "tree.diff",
        "show what changed between two sets of events, and which readers break",
        (
            "tracepoint diff examples/swap.h examples/traps.h",
            "tracepoint diff --breaking examples/swap.h examples/swap.h",
        ),
    ),
    "read": Command(
        "trace.read",
        "show the records of a recording as the kernel's trace file does, or as JSON lines, CSV or tables",
        (
            "tracepoint read tests/tracefile/golden/cut.v6.dat",
            "tracepoint read tests/tracefile/golden/cut.v6.dat 'sched:*wak*' irq --format jsonl",
        ),
    ),
    "stat": Command(
        "trace.stat",
        "show what is in a recording: its span, its losses, its records by event, CPU and task",
        (
            "tracepoint stat tests/tracefile/golden/cut.v6.dat",
            "tracepoint stat tests/tracefile/golden/cut.v6.dat --json --quick",
        ),
    ),
    "convert": Command(
        "trace.convert",
        "write a recording as Perfetto, CTF, Parquet, Arrow, CSV or JSON lines",
        (
            "tracepoint convert tests/tracefile/golden/cut.v6.dat /tmp/cut.pftrace",
            "tracepoint convert tests/tracefile/golden/cut.v6.dat /tmp/sched.out sched --to perfetto",
        ),
    ),
    "cut": Command(
        "trace.cut",
        "write some events, or a range of times, of a recording as a trace.dat of its own",
        (
            "tracepoint cut tests/tracefile/golden/cut.v6.dat sched -o /tmp/sched.dat",
            "tracepoint cut tests/tracefile/golden/cut.v6.dat --from 10.63 --to 10.65 -o /tmp/window.dat",
        ),
    ),
    "merge": Command(
        "trace.merge",
        "write several recordings as one trace.dat, by time",
        (
            "tracepoint merge tests/tracefile/golden/cut.v6.dat tests/tracefile/golden/cut.v6.dat -o /tmp/a",
            "tracepoint merge tests/tracefile/golden/cut.v6.dat --from 10.63 --to 10.65 -o /tmp/a.dat",
        ),
    ),
    "sql": Command(
        "trace.sql",
        "run SQL over the events of a recording, by DuckDB",
        (
            "tracepoint sql tests/tracefile/golden/cut.v6.dat 'select count(*) from sched.sched_switch'",
            "tracepoint sql tests/tracefile/golden/cut.v6.dat 'from sched_waking limit 2' --format csv",
        ),
    ),
    "analyse": Command(
        "trace.analyse",
        "answer what a recording was taken for: sched (who ran, who waited for a CPU and how long)",
        (
            "tracepoint analyse sched tests/tracefile/golden/cut.v6.dat",
            "tracepoint analyse sched tests/tracefile/golden/cut.v6.dat --cpu 0 --format json",
        ),
    ),
    "index": Command(
        "tree.index",
        "index a kernel tree: its events, call sites, exports",
        ("tracepoint index tests/tree/small", "tracepoint index tests/tree/small --json"),
    ),
    "find": Command(
        "tree.find",
        "find events of an indexed tree, their callers, or those without any",
        (
            "tracepoint find 'swap_*' --tree tests/tree/small --callers",
            "tracepoint find --unused --tree tests/tree/small",
        ),
    ),
    "place": Command(
        "tree.place",
        "add events to the source of a kernel tree, as patches for git am",
        (
            (
                "tracepoint place --tree tests/tree/small --at mm/swap.c:read_back --entry"
                " --call 'swap_never(\"in\")' --why 'See what is read.' --author 'Me <me@example.org>'"
            ),
            "tracepoint place --tree tests/tree/small --plan tests/place/small.toml",
        ),
    ),
    "catalog": Command(
        "tree.catalog",
        "generate a searchable site of all tracepoints of one or more kernel trees",
        (
            "tracepoint catalog tests/tree/small -o /tmp/tracepoint-catalog",
            "tracepoint catalog old=tests/tree/small new=tests/tree/small -o /tmp/tracepoint-catalog",
        ),
    ),
    "lab": Command(
        "lab.lab",
        "boot kernels (Debian's, or built with your patches) and run commands and modules in them",
        ("tracepoint lab kernels", "tracepoint lab kernels --json"),
    ),
    "list": Command(
        "kernel.list_",
        "list the events of the running kernel",
        ("tracepoint list 'sched:*wak*'", "tracepoint list --state sched"),
        is_live=True,
    ),
    "enable": Command(
        "kernel.enable",
        "enable events of the running kernel, permanently or while a command runs",
        ("tracepoint enable sched 'irq:softirq_*'", "tracepoint enable 'sched:sched_process_*' -- ls /"),
        is_live=True,
        meanwhile=True,
    ),
    "disable": Command(
        "kernel.disable",
        "disable events of the running kernel",
        ("tracepoint disable 'irq:*'", "tracepoint disable --remove"),
        is_live=True,
        meanwhile=True,
    ),
    "filter": Command(
        "kernel.filter_",
        "set, clear or show the filter of an event of the running kernel",
        (
            "tracepoint filter sched:sched_switch 'prev_comm == \"sh\" && next_pid != 0'",
            "tracepoint filter sched",
            "tracepoint filter sched:sched_switch 0",
        ),
        is_live=True,
        meanwhile=True,
    ),
    "trigger": Command(
        "kernel.trigger",
        "set, remove or show what happens when an event of the running kernel fires",
        (
            "tracepoint trigger sched:sched_process_fork 'traceoff:1 if child_pid > 1000'",
            "tracepoint trigger sched:sched_process_fork '!traceoff'",
        ),
        is_live=True,
        meanwhile=True,
    ),
    "hist": Command(
        "kernel.hist",
        "count an event of the running kernel by its fields and show the table",
        (
            "tracepoint hist sched:sched_switch next_comm --sort hitcount.descending --seconds 1",
            "tracepoint hist raw_syscalls:sys_enter id.syscall --where 'id < 3' -- ls /",
        ),
        is_live=True,
        meanwhile=True,
    ),
    "record": Command(
        "kernel.record",
        "record events of the running kernel to a trace.dat",
        (
            "tracepoint record sched 'irq:softirq_*' --seconds 1 -o sched.dat",
            "tracepoint record 'sched:sched_process_*' --clock mono -o ls.dat -- ls /",
        ),
        is_live=True,
        meanwhile=True,
    ),
    "mount": Command(
        "process.mount",
        "show the events of a running Python process as a directory like tracefs",
        ("tracepoint mount /tmp/shop --pid 4711", "tracepoint mount ./trace"),
        is_live=True,
    ),
    "ps": Command(
        "process.ps",
        "list the Python processes that can be traced, and control one of them",
        (
            "tracepoint ps",
            "tracepoint ps --pid 4711 --enable shop:",
            "tracepoint ps --pid 4711 --record shop.dat --seconds 1",
        ),
        is_live=True,
    ),
    "restore": Command(
        "kernel.restore",
        "restore what an interrupted run changed in the running kernel",
        ("tracepoint restore", "tracepoint restore --journals /run/tracepoint"),
        is_live=True,
    ),
}


_MEANWHILE = """after the options:
  -- COMMAND [WORD ...]  run a command, and keep the change until it ends

"""


class UsageError(Exception):
    """An invalid command line."""


class Parser(argparse.ArgumentParser):
    """argparse, raising instead of exiting, so that errors look alike everywhere."""

    def error(self, message: str) -> NoReturn:
        """Raise the error that argparse would print before it exits."""
        raise UsageError(f"{message}\ntry: {self.prog} --help")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help; argparse itself does not report a failure to write it."""
        if file is None:
            Output().write(self.format_help())
        else:
            file.write(self.format_help())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with `argv` (default: the process's arguments) and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        # Modules, formats and symbols stay until the end: to look at them every 700 objects finds nothing.
        gc.set_threshold(100_000)
    streams.prepare()
    try:
        with ended_by_signal():
            status = _guarded(words)
        streams.flush_stdout()
    except BrokenPipeError:
        streams.discard_stdout()
        status = EXIT_PIPE_CLOSED
    except Ended as ended:
        streams.discard_stdout()
        status = 128 + ended.number
    except streams.StreamError as error:
        streams.discard_stdout()
        Output().error(str(error))
        status = EXIT_CANNOT_RUN
    return status


def make_parser(words: Sequence[str]) -> Parser:
    """Build the parser; only the command named in `words` gets its own arguments."""
    parser = Parser(
        prog="tracepoint",
        description="Trace events, checked, laid out and simulated from their TRACE_EVENT() declaration.",
        epilog=example_text(tuple(COMMANDS[name].examples[0] for name in ("try", "check", "show")))
        + "\n\ntracepoint help COMMAND explains one command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "-V",
        "--version",
        action="store_true",
        help="print the version, with -v the C modules in use, and exit",
    )
    add_output_arguments(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    chosen = _command_word(words)
    for name, command in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=(_MEANWHILE if command.meanwhile else "") + example_text(command.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if name == chosen:
            _load(command).add_arguments(sub)
            add_output_arguments(sub)
    return parser


def _guarded(words: list[str]) -> int:
    out = Output()
    try:
        return _dispatch(words, out)
    except UsageError as error:
        out.error(str(error))
        return EXIT_CANNOT_RUN
    except (BrokenPipeError, streams.StreamError):
        raise
    except KeyboardInterrupt:
        out.say("interrupted")
        return EXIT_INTERRUPTED
    except Exception as error:
        if os.environ.get("TRACEPOINT_DEBUG"):
            raise
        out.error(_explain(error))
        return _status_of(error)


def _status_of(error: Exception) -> int:
    match error:
        case LabError():
            return EXIT_TOOL_FAILED
        case TracefsError():
            return EXIT_REFUSED
        case _:
            return EXIT_CANNOT_RUN


def _dispatch(words: list[str], out: Output) -> int:
    words = _help_as_option(words)
    chosen = _command_word(words)
    if chosen and chosen not in COMMANDS:
        raise UsageError(_unknown_command(chosen))
    parser = make_parser(words)
    after: list[str] = []
    if chosen and COMMANDS[chosen].meanwhile and "--" in words:
        cut = words.index("--")
        words, after = words[:cut], words[cut + 1 :]
    try:
        args, unknown = parser.parse_known_args(words)
    except SystemExit:  # --help has printed its text
        return EXIT_DONE
    # argparse adds no words after an option to a list of words before it.
    more = getattr(args, "pattern", None)
    if isinstance(more, list) and not any(word.startswith("-") for word in unknown):
        more += unknown
        unknown = []
    if len(unknown) == 1 and getattr(args, "file", "") is None and not unknown[0].startswith("-"):
        args.file = unknown.pop()
    if unknown:
        verb = " ".join(word for word in (chosen, getattr(args, "verb", "")) if word)
        hint = f"try: tracepoint {verb} --help" if verb else "try: tracepoint --help"
        raise UsageError(f"unrecognized arguments: {' '.join(unknown)}\n{hint}")
    args.words_after = after
    if args.version:
        out.line(f"tracepoint {__version__}")
        if getattr(args, "verbose", False):
            from tracepoint.cli.modules import show_modules  # noqa: PLC0415 - loads the C modules

            show_modules(out)
        return EXIT_DONE
    if args.command is None:
        parser.print_help(sys.stderr)
        return EXIT_CANNOT_RUN
    verbosity = -1 if getattr(args, "quiet", False) else getattr(args, "verbose", 0)
    out.configure(verbosity=verbosity, color=getattr(args, "color", "auto"))
    return int(_load(COMMANDS[args.command]).run(args, out))


def _help_as_option(words: list[str]) -> list[str]:
    """Return `help COMMAND VERB` as `COMMAND VERB --help`, and other words unchanged.

    >>> _help_as_option(["help", "check"])
    ['check', '--help']
    """
    if _command_word(words) != "help":
        return words
    at = words.index("help")
    return [*words[:at], *words[at + 1 :], "--help"]


def _load(command: Command) -> ModuleType:
    return import_module(f"tracepoint.cli.{command.module}")


def _command_word(words: Sequence[str]) -> str:
    """Return the first word that is not an option of the program itself."""
    takes_value = False
    for word in words:
        if takes_value:
            takes_value = False
        elif word == "--color":
            takes_value = True
        elif not word.startswith("-"):
            return word
    return ""


def _unknown_command(word: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - costs 5 ms, and only a typing error needs it

    close = get_close_matches(word, COMMANDS, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}?" if close else f"commands: {', '.join(COMMANDS)}"
    return f"no command {word!r}; {hint}"


def _explain(error: Exception) -> str:
    match error:
        case TracepointError():
            return str(error)
        case OSError() if error.strerror:
            if error.filename is not None:
                return f"{error.filename}: {error.strerror}"
            return "the current folder no longer exists" if _is_lost() else error.strerror
        case MemoryError():
            return "out of memory"
        case _:
            kind = type(error).__name__
            return f"internal error: {kind}: {error}\nTRACEPOINT_DEBUG=1 shows where; please report it"


def _is_lost() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - pathlib is not needed for more here
    except FileNotFoundError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
