"""The pages of the commands, from their parsers."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from tracepoint.cli.commands import COMMANDS
from tracepoint.cli.parsers import read_commands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.cli.parsers import CommandArgument, CommandArguments


def command_pages() -> dict[str, str]:
    """Return one page for each command and their list, by their path below docs/."""
    pages = {f"reference/cli/{command.words[0]}.md": "\n".join(_page(command)) for command in read_commands()}
    return {**pages, "reference/options.md": "\n".join(_index())}


def _index() -> Iterator[str]:
    yield "# Options of the commands"
    yield "\nMade from the parsers; `tracepoint COMMAND --help` prints the same."
    yield "What the commands share is in [Commands](commands.md).\n"
    yield "| command | what it does |\n| --- | --- |"
    yield from (f"| [`{name}`](cli/{name}.md) | {command.summary} |" for name, command in COMMANDS.items())
    yield "\n```{toctree}\n:hidden:\n"
    yield from (f"cli/{name}" for name in COMMANDS)
    yield "```\n"


def _page(command: CommandArguments) -> Iterator[str]:
    yield f"# tracepoint {' '.join(command.words)}\n"
    yield f"{command.summary[0].upper()}{command.summary[1:]}.\n"
    yield from _arguments(command, level=2)
    for verb in command.verbs:
        yield f"## {' '.join(verb.words)}\n"
        yield f"{verb.summary[:1].upper()}{verb.summary[1:]}.\n"
        yield from _arguments(verb, level=3)
    yield "## Examples\n\n```sh"
    yield from command.examples
    yield "```\n"


def _arguments(command: CommandArguments, level: int) -> Iterator[str]:
    yield f"```text\n{_folded(command.usage)}\n```\n"
    for title, arguments in command.groups:
        yield f"{'#' * level} {title[0].upper()}{title[1:]}\n"
        yield "| argument | meaning |\n| --- | --- |"
        yield from (f"| {_name(argument)} | {_cell(argument.help)} |" for argument in arguments)
        yield ""


def _folded(usage: str) -> str:
    """Return a usage line in lines that a page can show."""
    return fill(usage, 88, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _name(argument: CommandArgument) -> str:
    return f"`` {argument.usage} ``".replace("|", "\\|")


def _cell(text: str) -> str:
    """Return a help text in a table: its words are text, not Markdown."""
    return "".join("\\" + c if c in "\\|*_<>[]{}$#~" else c for c in text)
