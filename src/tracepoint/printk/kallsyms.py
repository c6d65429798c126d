"""Addresses to symbols as the kernel's kallsyms finds them."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import overload

from tracepoint.record.decode import DECODE

_PAGE = 4096
_TEXT_TYPES = frozenset("tTwW")
_UPPER_HALF = 1 << 63
_STARTS = ("_text", "_stext")
_LONG = 8
# Text and data of one module are nearer than this where they lie together.
_FAR = 1 << 16
# What kallsyms lists under these names the kernel does not look up: trampolines of ftrace and kprobes.
_NOT_LOOKED_UP = "__builtin__"
# Programs of BPF: they lie between the modules, have no neighbours, and are shown without this name.
_BPF = "bpf"


@dataclass(frozen=True, slots=True)
class Symbol:
    """The symbol that holds an address; `size` is None when it is not known.

    `is_sure` is False where the address lies so near after a module that it may be of this one or of none.
    """

    name: str
    offset: int
    size: int | None
    module: str = ""
    is_sure: bool = True


class _Names(Sequence[str]):
    """The names of symbols, each cut out of the text of kallsyms when it is asked for."""

    def __init__(self, text: str, starts: memoryview[int]) -> None:
        self._text = text
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> _Names: ...

    def __getitem__(self, index: int | slice) -> str | _Names:
        if isinstance(index, slice):
            return _Names(self._text, self._starts[index])
        start = self._starts[index]
        return self._text[start : self._text.index("\n", start)]

    def index(self, value: str, start: int = 0, stop: int | None = None) -> int:
        """Return the first place of a name; raises ValueError."""
        at = self._text.find(f" {value}\n", self._starts[start] - 1 if start < len(self) else len(self._text))
        place = bisect_left(self._starts, at + 1)
        if at < 0 or place >= (len(self) if stop is None else stop):
            raise ValueError(f"no symbol {value!r}")
        return place

    def __contains__(self, value: object) -> bool:
        with suppress(ValueError):
            return isinstance(value, str) and self.index(value) >= 0
        return False


@dataclass(slots=True)
class _Table:
    addresses: Sequence[int] = ()
    names: Sequence[str] = ()
    types: Sequence[str] = ()
    is_sorted: bool = True

    def address_of(self, name: str) -> int | None:
        """Return the first address of a name; None where there is none."""
        return self.addresses[self.names.index(name)] if name in self.names else None


class Kallsyms:
    r"""The text of /proc/kallsyms, parsed when the first address is looked up.

    `modules` is the text of /proc/modules: with it the end of each module is known.

    >>> Kallsyms("ffffffff81000000 T _stext\n"
    ...          "ffffffff81000040 t start\n"
    ...          "ffffffff81000080 t end\n").lookup(0xffffffff81000044)
    Symbol(name='start', offset=4, size=64, module='', is_sure=True)
    """

    def __init__(self, text: str, modules: str = "") -> None:
        self._text = text
        self._modules_text = modules
        self._core: _Table | None = None
        self._modules: dict[str, _Table] = {}
        # The address of every symbol of a module, and whose it is.
        self._places: list[tuple[int, str]] = []
        self._ends: dict[str, int] = {}
        self._first = 0

    def _parse(self) -> _Table:
        plain, text = _split_plain(self._text)
        found: dict[str, list[tuple[int, str, str]]] = {}
        is_upper = any((plain.address_of(name) or 0) >= _UPPER_HALF for name in _STARTS)
        for line in text.splitlines():
            words = line.split()
            if len(words) < 3 or (len(words) > 3 and _is_mapping_name(words[2])):
                continue
            try:
                address = int(words[0], 16)
            except ValueError:
                continue
            module = words[3].strip("[]") if len(words) > 3 else ""
            if module.startswith(_NOT_LOOKED_UP):
                continue
            is_upper = is_upper or (address >= _UPPER_HALF and words[2] in _STARTS)
            found.setdefault(module, []).append((address, words[2], words[1]))
        self._text = ""
        table = None if "" in found else _sorted_table(plain, is_upper=is_upper)
        if table is not None:
            self._modules[""] = table
        else:
            found[""] = [*zip(plain.addresses, plain.names, plain.types, strict=True), *found.get("", ())]
        for module, symbols in found.items():
            counted = [s for s in symbols if _is_place(s[0], s[2] if module else "", is_upper=is_upper)]
            counted.sort(key=lambda symbol: symbol[0])
            table = _Table([s[0] for s in counted], [s[1] for s in counted], [s[2] for s in counted])
            self._modules[module] = table
        core = self._modules.pop("")
        self._first = core.address_of("_stext") or 0
        self._place_modules()
        return core

    def _place_modules(self) -> None:
        """Order the symbols of all modules: since 6.4 text and data of one have others between them."""
        self._places = sorted((a, module) for module, table in self._modules.items() for a in table.addresses)
        for line in self._modules_text.splitlines():
            words = line.split()
            if len(words) < 6 or words[0] not in self._modules:
                continue
            addresses = self._modules[words[0]].addresses
            try:
                start, size = int(words[5], 16), int(words[1])
            except ValueError:
                continue
            # Where data lies elsewhere, the size of all parts does not tell where the text ends.
            if start and addresses and start <= addresses[0] and addresses[-1] < start + size:
                self._ends[words[0]] = start + size

    @property
    def lowest(self) -> int:
        """The lowest address that can have a symbol; 0 before the first lookup."""
        if self._core is None:
            return 0
        return min([self._first, *(address for address, _ in self._places[:1])])

    def lookup(self, address: int) -> Symbol | None:
        """Return the symbol that holds an address, None where the kernel finds none.

        The first of several names at one address wins and a size reaches to the next address
        (kernel/kallsyms.c: get_symbol_pos(), kernel/module/kallsyms.c: find_kallsyms_symbol()).
        """
        if self._core is None:
            self._core = self._parse()
        if address >= self._first:
            core = self._core
            at = bisect_right(core.addresses, address) - 1
            after = bisect_right(core.addresses, core.addresses[at]) if at >= 0 else 0
            if at >= 0 and core.addresses[at] and after < len(core.addresses):
                return _symbol(core, at, address, core.addresses[after])
        return self._lookup_module(address)

    def find(self, wanted: str | int) -> tuple[int, int] | None:
        r"""Return the first address and the size of the function of a name, or of the one at an address.

        None when there is none, or its size is not known.

        >>> Kallsyms("ffffffff81000000 T _stext\n"
        ...          "ffffffff81000040 t start\n"
        ...          "ffffffff81000080 t end\n").find("start") == (0xffffffff81000040, 64)
        True
        """
        address = wanted if isinstance(wanted, int) else self.address_of(wanted)
        symbol = None if address is None else self.lookup(address)
        if address is None or symbol is None or symbol.size is None:
            return None
        return address - symbol.offset, symbol.size

    def address_of(self, name: str) -> int | None:
        """Return the first address of a symbol of this name, None without one."""
        if self._core is None:
            self._core = self._parse()
        for table in (self._core, *self._modules.values()):
            if (found := table.address_of(name)) is not None:
                return found
        return None

    def _lookup_module(self, address: int) -> Symbol | None:
        at = bisect_right(self._places, (address, chr(0x10FFFF))) - 1
        if at < 0:
            return None
        module = self._places[at][1]
        table = self._modules[module]
        index = bisect_right(table.addresses, address) - 1
        after = bisect_right(table.addresses, table.addresses[index])
        is_last = after == len(table.addresses)
        is_sure = True
        if address >= (self._ends.get(module) or _reach(table, index, after)):
            # The functions of a module that run once lie after the rest of it.
            if module in self._ends or module == _BPF or address >= table.addresses[index] + _FAR:
                return None
            is_sure = False
        if module == _BPF:
            return Symbol(table.names[index], address - table.addresses[index], None)
        if not is_sure or (is_last and module not in self._ends):
            return Symbol(table.names[index], address - table.addresses[index], None, module, is_sure)
        # The next symbol counts only below the end of the text: after it the size wraps around.
        end = _text_end(table)
        if table.types[index] in _TEXT_TYPES and not is_last:
            following = table.addresses[after]
            if end is not None or table.types[after] in _TEXT_TYPES:
                end = min(following, end) if end is not None else following
        return _symbol(table, index, address, end, module)


def _sorted_table(plain: _Table, *, is_upper: bool) -> _Table | None:
    """Return the symbols that are at their addresses, if those are the last ones; None where they are not."""
    start = bisect_left(plain.addresses, _UPPER_HALF) if is_upper else 0
    kinds = plain.types[start:]
    if "a" in kinds or "A" in kinds or not plain.is_sorted:
        return None
    return _Table(plain.addresses[start:], plain.names[start:], kinds)


def _split_plain(text: str) -> tuple[_Table, str]:
    """Split the lines before those of modules at once, where each is as usual; return the text after them."""
    tab = text.find("\t")
    end = text.rfind("\n", 0, tab if tab >= 0 else len(text)) + 1
    # Places in a text are those of its bytes where it has no others.
    if DECODE is None or not text.isascii():
        return _split_slowly(text, end)
    found = DECODE.symbol_lines(text[:end].encode())
    if found is None:
        return _Table(), text
    addresses, starts, kinds, is_sorted = found
    names = _Names(text, memoryview(starts).cast("I"))
    return _Table(memoryview(addresses).cast("Q"), names, kinds.decode(), is_sorted), text[end:]


def _split_slowly(text: str, end: int) -> tuple[_Table, str]:
    words = text[:end].split()
    numbers, kinds = words[::3], words[1::3]
    is_usual = len(words) == 3 * text.count("\n", 0, end) and set(map(len, kinds)) <= {1}
    if not is_usual or set(map(len, numbers)) != {2 * _LONG}:
        return _Table(), text
    try:
        data = bytes.fromhex("".join(numbers))
    except ValueError:
        return _Table(), text
    addresses = list(struct.unpack(f">{len(numbers)}Q", data))
    return _Table(addresses, words[2::3], kinds, addresses == sorted(addresses)), text[end:]


def _symbol(table: _Table, at: int, address: int, end: int | None, module: str = "") -> Symbol:
    start = table.addresses[at]
    while at and table.addresses[at - 1] == start:
        at -= 1
    size = None if end is None else (end - start) & 0xFFFFFFFFFFFFFFFF
    return Symbol(table.names[at], address - start, size, module)


def _reach(table: _Table, index: int, after: int) -> int:
    """Return where a symbol ends at the latest: after the page of a last one modules that have gone lay."""
    start = table.addresses[index]
    following = table.addresses[after] if after < len(table.addresses) else start + _FAR
    return following if following - start < _FAR else (start // _PAGE + 1) * _PAGE


def _text_end(table: _Table) -> int | None:
    """Return where a module's text ends: the one page boundary between its text and its data.

    None when symbols leave more than one boundary to choose from.
    """
    last = first = None
    for address, kind in zip(table.addresses, table.types, strict=True):
        if kind in _TEXT_TYPES:
            last, first = address, None
        elif first is None:
            first = address
    if last is None or first is None:
        return None
    low, high = (last // _PAGE + 1) * _PAGE, first // _PAGE * _PAGE
    return low if low == high else None


def _is_place(address: int, kind: str, *, is_upper: bool) -> bool:
    """Return whether a symbol is at its address.

    Per-CPU variables do not: those of x86-64 count from 0, those of modules have the type of absolute
    numbers (kernel/module/kallsyms.c: elf_type()).
    """
    return kind not in ("a", "A") and (address >= _UPPER_HALF or not is_upper)


def _is_mapping_name(name: str) -> bool:
    """Names that the kernel passes over in modules (include/linux/module_symbol.h)."""
    return name.startswith(".L") or (name[0] == "$" and name[1:2] in ("a", "d", "t", "x"))
