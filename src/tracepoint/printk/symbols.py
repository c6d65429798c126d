"""Addresses as their symbols, as `%pS` and the function tracer show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracepoint.printk.facts import UnknownPartError

if TYPE_CHECKING:
    from tracepoint.printk.memory import RecordMemory

#: How the function tracer shows an address, with signs of more after it; all others are letters after `%p`.
IP = "ip"
_WITH_OFFSET, _WITH_ADDRESS = "+", "<"
#: How trace-cmd shows what has these letters after `%p`: without the size and module of the kernel's text.
REPORTED = {"S": "report+", "s": "report", "B": "report+", "F": "report+", "f": "report"}
NO_SYMBOLS_NOTE = "symbols are not known (no kallsyms): addresses are shown instead"


def ip_letters(*, has_offset: bool, address_size: int) -> str:
    """Return how the function tracer shows an address under sym-offset, and sym-addr (bytes, or 0)."""
    return IP + _WITH_OFFSET * has_offset + f"{_WITH_ADDRESS}{2 * address_size}" * (address_size > 0)


def symbol_text(record: RecordMemory, address: int, letters: str) -> str:
    """Return an address as `%p` with these letters shows it, or as `IP`."""
    if letters.startswith(IP):
        text = _caller_text(record, address, letters)
    elif letters in REPORTED.values():
        text = _reported_text(record, address, letters)
    else:
        text = _pointer_text(record, address, letters)
    if record.facts.kallsyms is not None:
        record.symbols[letters, address] = text
    return text


def _pointer_text(record: RecordMemory, address: int, letters: str) -> str:
    """kernel/kallsyms.c: __sprint_symbol()."""
    table = record.facts.kallsyms
    if table is None:
        record.note(NO_SYMBOLS_NOTE)
        return f"0x{address:x}"
    back = 1 if letters[0] == "B" else 0
    found = table.lookup(address - back)
    if found is None:
        return f"0x{address:x}"
    if not found.is_sure:
        raise UnknownPartError(f"whether {address:#x}, after module {found.module}, is of it")
    text = found.name
    if letters.endswith("b"):
        record.note("build ids of symbols are not known")
    if letters[0] != "s":
        if found.size is None:
            raise UnknownPartError(f"the size of the symbol {found.name} [{found.module}]")
        text += f"+0x{found.offset + back:x}/0x{found.size:x}"
    return f"{text} [{found.module}]" if found.module else text


def _reported_text(record: RecordMemory, address: int, letters: str) -> str:
    """Return an address as `trace-cmd report` shows it."""
    table = record.facts.kallsyms
    if table is None:
        record.note(NO_SYMBOLS_NOTE)
        return f"0x{address:x}"
    found = table.lookup(address)
    if found is None or not found.is_sure:
        return f"0x{address:x}"
    return f"{found.name}+0x{found.offset:x}" if letters.endswith(_WITH_OFFSET) else found.name


def _caller_text(record: RecordMemory, address: int, letters: str) -> str:
    """kernel/trace/trace_output.c: seq_print_ip_sym()."""
    if address == 0:
        return "0"
    text = _caller_name(record, address, letters)
    width = letters.partition(_WITH_ADDRESS)[2]
    return f"{text} <{address:0{width}x}>" if width else text


def _caller_name(record: RecordMemory, address: int, letters: str) -> str:
    table = record.facts.kallsyms
    if table is None:
        record.note(NO_SYMBOLS_NOTE)
        return f"0x{address:08x}"
    if _WITH_OFFSET in letters:
        return _pointer_text(record, address, "S")
    found = table.lookup(address)
    return found.name if found and found.is_sure else f"0x{address:08x}"
