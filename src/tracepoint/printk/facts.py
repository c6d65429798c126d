"""What a renderer may know beside the record: symbols, HZ, constants, kernel addresses.

Everything is optional; what is missing becomes a note on the rendered line, never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import RenderError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracepoint.printk.kallsyms import Kallsyms


HASHED_NOTE = "the kernel shows a hash where this line shows an address (%p)"


class UnknownPartError(RenderError):
    """A part of a line that neither the record nor the facts tell; `reason` names it."""


def read_printk_formats(text: str) -> dict[int, str]:
    r"""Read the text of tracefs `printk_formats`: address to string, escapes undone.

    >>> read_printk_formats('0xffffffff82000010 : "rcu\\n"\n')
    {18446744071595622416: 'rcu\n'}
    """
    from tracepoint.source.cwrite import decode_string  # noqa: PLC0415 - with what reads C

    found: dict[int, str] = {}
    for line in text.splitlines():
        address, _, rest = line.partition(" : ")
        body = rest.strip()
        if not address.startswith("0x") or len(body) < 2:
            continue
        try:
            found[int(address, 16)] = decode_string(body[1:-1])
        except ValueError:
            continue
    return found


def _no_constant(name: str) -> int | None:
    del name
    return None


@dataclass(frozen=True, slots=True)
class RenderFacts:
    """What is known of the kernel that wrote the records; all of it may be left out.

    `printk_formats` maps addresses of kernel strings to their text; `hz` is jiffies a second;
    `hash_pointers` says that `%p` is hashed there (the line then shows the address with a
    note); `kptr_restrict` is the sysctl (0 to 2); `variables` are values of kernel variables
    that print formats name, such as `vmemmap_base`; `constants` gives the value of an enum
    constant or None; `sizeof` the size in bytes of a type spelt in C or None;
    `n_possible_cpus` the width of a cpumask; `comms` maps a pid to its command name.
    """

    kallsyms: Kallsyms | None = None
    printk_formats: Mapping[int, str] = field(default_factory=dict)
    hz: int | None = None
    hash_pointers: bool = False
    kptr_restrict: int = 0
    variables: Mapping[str, int] = field(default_factory=dict)
    constants: Callable[[str], int | None] = _no_constant
    sizeof: Callable[[str], int | None] = _no_constant
    n_possible_cpus: int | None = None
    comms: Mapping[int, str] = field(default_factory=dict)


NO_FACTS = RenderFacts()


@dataclass(frozen=True, slots=True)
class Rendered:
    """One rendered line: the text after `event_name: `, and notes on what is not the kernel's text.

    `is_exact` is False when the text is the list of fields because a part could not be known.
    """

    text: str
    notes: tuple[str, ...] = ()
    is_exact: bool = True

    def __str__(self) -> str:
        return self.text
