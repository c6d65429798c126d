"""What the parsers of the commands take, as plain values: for manual pages, completions, documentation."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracepoint.cli.commands import COMMANDS
from tracepoint.cli.main import make_parser

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class CommandArgument:
    """One option, or one word by its place (which has no `flags`).

    `metavar` is what stands for its value, empty for an option without one; `choices` are the values, empty
    where any is taken; `usage` is how the help text shows it.
    """

    flags: tuple[str, ...]
    metavar: str
    choices: tuple[str, ...]
    help: str
    usage: str


@dataclass(frozen=True, slots=True)
class CommandArguments:
    """What one command, or one verb of a command, takes; `groups` are titles with their arguments."""

    words: tuple[str, ...]
    summary: str
    usage: str
    groups: tuple[tuple[str, tuple[CommandArgument, ...]], ...]
    examples: tuple[str, ...]
    verbs: tuple[CommandArguments, ...]

    @property
    def arguments(self) -> tuple[CommandArgument, ...]:
        """All arguments, in the order of the help text."""
        return tuple(argument for _, arguments in self.groups for argument in arguments)


def read_program() -> CommandArguments:
    """Return what the program itself takes: the options before a command; its verbs are the commands."""
    parser = make_parser(())
    return CommandArguments(
        (), parser.description or "", _usage(parser), tuple(_groups(parser)), (), tuple(read_commands())
    )


def read_commands() -> Iterator[CommandArguments]:
    """Yield what each command takes, in the order of `tracepoint --help`.

    >>> first = next(read_commands())
    >>> first.words, first.arguments[0].usage
    (('try',), 'HEADER[:EVENT]')
    """
    for name, command in COMMANDS.items():
        parser = _verbs(make_parser((name,)))[name]
        yield _read((name,), command.summary, parser, command.examples)


def _read(
    words: tuple[str, ...], summary: str, parser: argparse.ArgumentParser, examples: tuple[str, ...]
) -> CommandArguments:
    summaries = {
        choice.dest: choice.help or ""
        for action in _subparsers(parser)
        for choice in action._choices_actions  # noqa: SLF001 - argparse shows the help of verbs nowhere else
    }
    verbs = tuple(
        _read((*words, name), summaries.get(name, ""), verb, ()) for name, verb in _verbs(parser).items()
    )
    return CommandArguments(words, summary, _usage(parser), tuple(_groups(parser)), examples, verbs)


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return the usage on one line; the width of a terminal would break it."""
    return " ".join(parser.format_usage().removeprefix("usage: ").split())


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction[Any]]:
    return [
        action
        for action in parser._actions  # noqa: SLF001 - as above
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - as above
    ]


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return {name: verb for action in _subparsers(parser) for name, verb in action.choices.items()}


def _groups(parser: argparse.ArgumentParser) -> Iterator[tuple[str, tuple[CommandArgument, ...]]]:
    formatter = parser._get_formatter()  # noqa: SLF001 - argparse shows no other way to the texts
    for group in parser._action_groups:  # noqa: SLF001 - as above
        arguments = tuple(
            _argument(action, formatter)
            for action in group._group_actions  # noqa: SLF001 - as above
            if action.help != argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
        )
        if arguments:
            yield group.title or "options", arguments


def _argument(action: argparse.Action, formatter: argparse.HelpFormatter) -> CommandArgument:
    takes_value = action.nargs != 0
    metavar = action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar or ())
    choices = tuple(str(choice) for choice in action.choices or ())
    return CommandArgument(
        tuple(action.option_strings),
        (metavar or ("{" + ",".join(choices) + "}" if choices else action.dest.upper()))
        if takes_value
        else "",
        choices,
        " ".join(formatter._expand_help(action).split()) if action.help else "",  # noqa: SLF001 - as above
        " ".join(formatter._format_action_invocation(action).split()),  # noqa: SLF001 - as above
    )
