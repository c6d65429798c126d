"""The `tracepoint` program: finds the command, runs it and returns an exit status.

A command is a module with `add_arguments(parser)` and `run(args, out) -> int`; only the one that
is called is imported.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import os
import sys
from importlib import import_module

from tracepoint import __version__
from tracepoint.cli import streams
from tracepoint.cli.commands import COMMANDS
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any, NoReturn

    from _typeshed import SupportsWrite

    from tracepoint.cli.commands import Command


_MEANWHILE = """after the options:
  -- COMMAND [WORD ...]  run a command, and keep the change until it ends

"""


class UsageError(Exception):
    """An invalid command line."""


class HelpText(argparse.RawDescriptionHelpFormatter):
    """argparse's, which imports `shutil` (2 ms) to find the terminal's width for each argument."""

    def __init__(self, prog: str, **settings: Any) -> None:
        super().__init__(prog, width=_help_width(), **settings)


@functools.cache
def _help_width() -> int:
    """Return how wide a help text may be: less than COLUMNS, else than the terminal, else than 80."""
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isascii() and columns.isdigit() else 0
    if not width:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            width = os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    return (width or 80) - 2


class Parser(argparse.ArgumentParser):
    """argparse, raising instead of exiting, so that errors look alike everywhere."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=HelpText, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise the error that argparse would print before it exits."""
        raise UsageError(f"{message}\ntry: {self.prog} --help")

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action:
        """Add an argument; argparse itself would report words that may be left out as required."""
        action = super().add_argument(*names, **settings)
        if action.nargs == "*":
            action.required = False
        return action

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
    if argv is None:
        # The last collection would look at all of them once more.
        gc.freeze()
    return status


def make_parser(words: Sequence[str]) -> Parser:
    """Build the parser; only the command named in `words` gets its own arguments."""
    parser = Parser(
        prog="tracepoint",
        description="Trace events, checked, laid out and simulated from their TRACE_EVENT() declaration.",
        epilog=example_text(tuple(COMMANDS[name].examples[0] for name in ("try", "check", "show")))
        + "\n\ntracepoint help COMMAND explains one command.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "-V",
        "--version",
        action="store_true",
        help="print the version, with -v the C modules in use, and exit",
    )
    add_output_arguments(parser)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=Parser, prog=parser.prog
    )
    chosen = _command_word(words)
    # Those of all commands take more time than many a command: they are for the help of the program.
    for name, command in COMMANDS.items() if chosen not in COMMANDS else [(chosen, COMMANDS[chosen])]:
        sub = commands.add_parser(
            name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=(_MEANWHILE if command.meanwhile else "") + example_text(command.examples),
            allow_abbrev=False,
            # A command can have a --help of its own.
            conflict_handler="resolve",
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


def _with_late_words(args: argparse.Namespace, unknown: list[str]) -> list[str]:
    """Give the arguments of a command the words that stand after an option; return those left over.

    argparse adds no words after an option to a list of words before it.
    """
    if any(word.startswith("-") for word in unknown):
        return unknown
    for name in ("pattern", "analysis"):
        words = getattr(args, name, None)
        if isinstance(words, list):
            setattr(args, name, words + unknown)
            return []
    for name in ("file", "query", "analysis"):
        if len(unknown) == 1 and getattr(args, name, "") is None:
            setattr(args, name, unknown[0])
            return []
    return unknown


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
    unknown = _with_late_words(args, unknown)
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
