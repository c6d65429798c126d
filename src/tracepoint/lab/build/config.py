"""A kernel's configuration: fragments of options, their results, and why one was dropped."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from tracepoint.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SET = re.compile(r"CONFIG_([A-Za-z0-9_]+)=(.*)")
_UNSET = re.compile(r"# CONFIG_([A-Za-z0-9_]+) is not set")
_NAME = re.compile(r"[A-Za-z0-9_]+")
_VALUE = re.compile(r'[ynm]|-?\d+|0[xX][0-9a-fA-F]+|"(?:[^"\\\n]|\\.)*"')
_DEFINITION = re.compile(r"^(?:menu)?config\s+(\w+)\s*$(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_DEPENDS = re.compile(r"^\s+depends on ((?:.*\\\n)*.*)", re.MULTILINE)


def lab_fragment(name: str) -> str:
    """Return the text of one of the fragments that come with the lab: `lab` or `optional`."""
    return (files("tracepoint.lab.build") / "fragments" / f"{name}.config").read_text(encoding="utf-8")


def read_fragment(text: str, name: str) -> dict[str, str]:
    r"""Return the options of a configuration fragment, without `CONFIG_`; `n` for one that is not set.

    `name` is its name in errors.  Raises LabError for a line that is not an option and no comment.

    >>> read_fragment("CONFIG_SMP=y\n# CONFIG_NET is not set\n", "mine")
    {'SMP': 'y', 'NET': 'n'}
    """
    options: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if match := _UNSET.fullmatch(words):
            options[match[1]] = "n"
        elif match := _SET.fullmatch(words):
            options[match[1]] = check_value(match[1], match[2], f"{name}:{number}")
        elif words and not words.startswith("#"):
            raise LabError(f"{name}:{number}: {words[:60]!r} is not an option: write CONFIG_NAME=y")
    return options


def read_option(word: str) -> tuple[str, str]:
    """Return name and value of `NAME=VALUE` as typed after `--config`, CONFIG_ being optional.

    >>> read_option("CONFIG_KASAN=y")
    ('KASAN', 'y')
    """
    name, equals, value = word.partition("=")
    name = name.strip().removeprefix("CONFIG_")
    if not equals or not _NAME.fullmatch(name):
        raise LabError(f'--config {word}: write NAME=y, NAME=n, NAME=number or NAME="text"')
    return name, check_value(name, value.strip(), f"--config {word}")


def check_value(name: str, value: str, where: str) -> str:
    """Return an option's value if it can be one (y, n, m, a number, text in quotes); LabError if not."""
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise LabError(f'{where}: {name} cannot be {value[:40]!r}: y, n, m, a number or "text"')
    return value


def write_fragment(options: Mapping[str, str]) -> str:
    r"""Return the text of a fragment with these options.

    >>> write_fragment({"SMP": "y", "NET": "n"})
    'CONFIG_SMP=y\n# CONFIG_NET is not set\n'
    """
    return "".join(
        f"# CONFIG_{name} is not set\n" if value == "n" else f"CONFIG_{name}={value}\n"
        for name, value in options.items()
    )


def dropped_options(wanted: Mapping[str, str], config: str) -> dict[str, str]:
    r"""Return the wanted options that have another value in a `.config` text, with that value.

    >>> dropped_options({"SMP": "y", "NET": "n", "A": "y"}, "CONFIG_SMP=y\n# CONFIG_A is not set\n")
    {'A': 'n'}
    """
    got: dict[str, str] = {}
    for line in config.splitlines():
        if match := _SET.fullmatch(line):
            got[match[1]] = match[2]
    return {name: got.get(name, "n") for name, value in wanted.items() if got.get(name, "n") != value}


def why_dropped(names: Iterable[str], kconfigs: Iterable[str]) -> dict[str, str]:
    """Return a reason for each option: it is unknown to the tree, or what it depends on.

    `kconfigs` are the texts of the tree's Kconfig files.
    """
    reasons = dict.fromkeys(names, "this kernel has no such option")
    for text in kconfigs:
        for match in _DEFINITION.finditer(text):
            if match[1] in reasons:
                needs = [" ".join(words.replace("\\\n", " ").split()) for words in _DEPENDS.findall(match[2])]
                needs = [f"({text})" if "||" in text and len(needs) > 1 else text for text in needs]
                reasons[match[1]] = (
                    f"it depends on {' && '.join(needs)}" if needs else "other options decide it"
                )
    return reasons
