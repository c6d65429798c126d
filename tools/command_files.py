"""Manual pages, and completions of bash, zsh and fish, from the parsers: tools/command_files.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint import __version__
from tracepoint.cli.parsers import read_program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracepoint.cli.parsers import CommandArgument, CommandArguments


def command_files() -> dict[str, str]:
    """Return all files by their path below the prefix of an installation, such as /usr."""
    program = read_program()
    files = {"share/man/man1/tracepoint.1": "\n".join(_program_manual(program)) + "\n"}
    for command in program.verbs:
        name = f"share/man/man1/tracepoint-{command.words[0]}.1"
        files[name] = "\n".join(_manual(command)) + "\n"
    files["share/bash-completion/completions/tracepoint"] = "\n".join(_bash(program)) + "\n"
    files["share/zsh/site-functions/_tracepoint"] = "\n".join(_zsh(program)) + "\n"
    files["share/fish/vendor_completions.d/tracepoint.fish"] = "\n".join(_fish(program)) + "\n"
    return files


def write_command_files(folder: Path) -> list[Path]:
    """Write all files below `folder` and return their paths."""
    paths = []
    for name, text in command_files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def _leaves(command: CommandArguments) -> Iterator[CommandArguments]:
    """Yield what a command line can end in: a command without verbs, or each of its verbs."""
    if not command.verbs:
        yield command
    for verb in command.verbs:
        yield from _leaves(verb)


# --- manual pages: man(7) -----------------------------------------------------------------------


def _roff(text: str) -> str:
    """Return text that troff prints as it is, with hyphens that can be copied."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _head(name: str, summary: str) -> Iterator[str]:
    yield f'.TH {name.upper()} 1 "" "tracepoint {__version__}" "User Commands"'
    yield f".SH NAME\n{name.replace('-', chr(92) + '-')} \\- {_roff(summary)}"


def _program_manual(program: CommandArguments) -> Iterator[str]:
    yield from _head("tracepoint", "trace events, checked, laid out, simulated, recorded and analysed")
    yield f".SH SYNOPSIS\n{_roff(program.usage)}"
    yield f".SH DESCRIPTION\n{_roff(program.summary)}"
    yield from _arguments(program)
    yield ".SH COMMANDS"
    for command in program.verbs:
        yield f".TP\n.BR tracepoint\\-{command.words[0]} (1)\n{_roff(command.summary)}"


def _manual(command: CommandArguments) -> Iterator[str]:
    yield from _head(f"tracepoint-{command.words[0]}", command.summary)
    yield f".SH SYNOPSIS\n{_roff(command.usage)}"
    yield f".SH DESCRIPTION\n{_roff(command.summary[0].upper() + command.summary[1:])}."
    yield from _arguments(command)
    for verb in command.verbs:
        yield f".SH {_roff(' '.join(verb.words).upper())}\n{_roff(verb.summary)}\n.PP\n{_roff(verb.usage)}"
        yield from _arguments(verb, heading=".SS")
    yield ".SH EXAMPLES\n.EX"
    yield from map(_roff, command.examples)
    yield ".EE\n.SH SEE ALSO\n.BR tracepoint (1)"


def _arguments(command: CommandArguments, heading: str = ".SH") -> Iterator[str]:
    for title, arguments in command.groups:
        yield f"{heading} {_roff(title.upper())}"
        for argument in arguments:
            yield f".TP\n{_roff(argument.usage)}\n{_roff(argument.help)}"


# --- bash ---------------------------------------------------------------------------------------


def _bash(program: CommandArguments) -> Iterator[str]:
    leaves = [leaf for command in program.verbs for leaf in _leaves(command)]
    yield "# bash completion of tracepoint"
    yield "_tracepoint() {"
    yield '    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at="" word words=""'
    yield '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield '        case "$at $word" in'
    known = [*program.verbs, *(verb for command in program.verbs for verb in command.verbs)]
    for command in known:
        before = " ".join(command.words[:-1])
        yield f'        "{before} {command.words[-1]}") at="{" ".join(command.words)}" ;;'
    yield "        esac\n    done"
    yield '    case "$at" in'
    yield f'    "") words="{" ".join(command.words[0] for command in program.verbs)} {_flags(program)}" ;;'
    for command in program.verbs:
        if command.verbs:
            yield f'    "{command.words[0]}") words="{" ".join(verb.words[-1] for verb in command.verbs)}" ;;'
    for leaf in leaves:
        by_place = [c for a in leaf.arguments if not a.flags for c in a.choices]
        yield f'    "{" ".join(leaf.words)}") words="{" ".join([_flags(leaf), *by_place])}"'
        yield '        case "$prev" in'
        for argument in leaf.arguments:
            if argument.flags and argument.metavar:
                yield f'        {"|".join(argument.flags)}) words="{" ".join(argument.choices)}" ;;'
        yield "        esac ;;"
    yield "    esac"
    yield '    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")'
    yield "}"
    yield "complete -o default -F _tracepoint tracepoint"


def _flags(command: CommandArguments) -> str:
    return " ".join(flag for argument in command.arguments for flag in argument.flags)


# --- zsh ----------------------------------------------------------------------------------------


def _zsh(program: CommandArguments) -> Iterator[str]:
    yield "#compdef tracepoint"
    yield "_tracepoint() {"
    yield "    local at=$words[2]"
    yield "    if (( CURRENT == 2 )); then"
    yield "        local -a commands=("
    for command in program.verbs:
        yield f"            {_quoted(command.words[0] + ':' + command.summary)}"
    yield "        )\n        _describe command commands\n        return\n    fi"
    yield "    if (( CURRENT > 3 )); then"
    verbs = [verb for command in program.verbs for verb in command.verbs]
    yield f'        case "$words[2] $words[3]" in {"|".join(_quoted(" ".join(v.words)) for v in verbs)})'
    yield '            at="$words[2] $words[3]" ;; esac\n    fi'
    yield '    case "$at" in'
    for command in program.verbs:
        if command.verbs:
            yield f"    {command.words[0]}) compadd {' '.join(verb.words[-1] for verb in command.verbs)} ;;"
        for leaf in _leaves(command):
            yield f"    {_quoted(' '.join(leaf.words))}) _arguments \\"
            yield from (
                f"        {_zsh_option(flag, argument)} \\"
                for argument in leaf.arguments
                for flag in argument.flags
            )
            places = [
                choice for argument in leaf.arguments if not argument.flags for choice in argument.choices
            ]
            words = f"compadd {' '.join(places)}; _files" if places else "_files"
            yield f"        {_quoted('*:word:{ ' + words + ' }' if places else '*:word:_files')} ;;"
    yield '    esac\n}\n_tracepoint "$@"'


def _zsh_option(flag: str, argument: CommandArgument) -> str:
    text = argument.help
    for mark in "\\[]:":
        text = text.replace(mark, "\\" + mark)
    value = ""
    if argument.metavar:
        value = f":value:({' '.join(argument.choices)})" if argument.choices else ":value:_files"
    return _quoted(f"*{flag}[{text}]{value}")


def _quoted(text: str) -> str:
    """Return a word of a shell's command line that stands for `text`."""
    return "'" + text.replace("'", "'\\''") + "'"


# --- fish ---------------------------------------------------------------------------------------


def _fish(program: CommandArguments) -> Iterator[str]:
    yield "# fish completion of tracepoint"
    for command in program.verbs:
        yield (
            f"complete -c tracepoint -n __fish_use_subcommand -a {command.words[0]} "
            f"-d {_fish_quoted(command.summary)}"
        )
        for verb in command.verbs:
            yield (
                f"complete -c tracepoint -n '__fish_seen_subcommand_from {command.words[0]}' "
                f"-a {verb.words[-1]} -d {_fish_quoted(verb.summary)}"
            )
        for leaf in _leaves(command):
            tests = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in leaf.words)
            for argument in leaf.arguments:
                yield from _fish_argument(f"complete -c tracepoint -n '{tests}'", argument)


def _fish_argument(start: str, argument: CommandArgument) -> Iterator[str]:
    flags = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in argument.flags)
    if flags:
        start += f" {flags}" + ((" -x" if argument.choices else " -r") if argument.metavar else "")
    if argument.choices:
        start += f" -a {_fish_quoted(' '.join(argument.choices))}"
    if flags or argument.choices:
        yield f"{start} -d {_fish_quoted(argument.help)}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


if __name__ == "__main__":
    write_command_files(Path(sys.argv[1]))
