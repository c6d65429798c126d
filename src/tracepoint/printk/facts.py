"""What a renderer may know beside the record: symbols, HZ, constants, kernel addresses.

Everything is optional; what is missing becomes a note on the rendered line, never a guess.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracepoint.errors import RenderError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class UnknownPartError(RenderError):
    """A part of a line that neither the record nor the facts tell; `reason` names it."""


class Kallsyms:
    """The text of /proc/kallsyms, parsed when the first address is looked up.

    >>> table = Kallsyms("ffffffff81000000 T _stext\\nffffffff81000040 t start\\nffffffff81000080 t end\\n")
    >>> table.lookup(0xffffffff81000044)
    ('start', 4, 64, '')
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tables: list[tuple[list[int], list[tuple[str, str]], int]] | None = None

    def _parse(self) -> list[tuple[list[int], list[tuple[str, str]], int]]:
        core: list[tuple[int, str, str]] = []
        loaded: list[tuple[int, str, str]] = []
        for line in self._text.splitlines():
            words = line.split()
            if len(words) < 3:
                continue
            try:
                address = int(words[0], 16)
            except ValueError:
                continue
            module = words[3].strip("[]") if len(words) > 3 else ""
            (loaded if module else core).append((address, words[2], module))
        tables = []
        for symbols in (core, loaded):
            symbols.sort(key=lambda symbol: symbol[0])
            addresses = [symbol[0] for symbol in symbols]
            first = next((s[0] for s in symbols if s[1] == "_stext"), 0)
            tables.append((addresses, [(name, module) for _, name, module in symbols], first))
        self._text = ""
        return tables

    def lookup(self, address: int) -> tuple[str, int, int, str] | None:
        """Return name, offset, size and module of the symbol that holds an address, or None.

        The first of several names at one address wins and a size reaches to the next address
        (kernel/kallsyms.c: get_symbol_pos(), kernel/module/kallsyms.c: find_kallsyms_symbol()).
        A size of 0 means that it is not known.
        """
        if self._tables is None:
            self._tables = self._parse()
        for addresses, names, first in self._tables:
            at = bisect_right(addresses, address) - 1
            if at < 0 or address < first or addresses[at] == 0:
                continue
            after = bisect_right(addresses, addresses[at])
            is_last = after == len(addresses) or names[after][1] != names[at][1]
            if is_last and after == len(addresses) and not names[at][1]:
                continue
            while at and addresses[at - 1] == addresses[at]:
                at -= 1
            size = 0 if is_last else addresses[after] - addresses[at]
            if is_last and address - addresses[at] > 1 << 20:
                continue
            name, module = names[at]
            return name, address - addresses[at], size, module
        return None


def read_printk_formats(text: str) -> dict[int, str]:
    r"""Read the text of tracefs `printk_formats`: address to string, escapes undone.

    >>> read_printk_formats('0xffffffff82000010 : "rcu\\n"\n')
    {18446744071595982864: 'rcu\n'}
    """
    from tracepoint.source.cwrite import decode_string  # noqa: PLC0415  heavy only when it is used

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
    `hash_pointers` tells that `%p` is hashed there (the line then shows the address with a
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
    """One rendered line: the text behind `event_name: `, and notes on what is not the kernel's text.

    `is_exact` is False when the text is the list of fields because a part could not be known.
    """

    text: str
    notes: tuple[str, ...] = ()
    is_exact: bool = True

    def __str__(self) -> str:
        return self.text
