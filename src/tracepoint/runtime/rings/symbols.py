"""Addresses for places in Python code, so that records of stacks look as the kernel's do.

A stack record holds addresses; `kallsyms` of a saved recording and of the text writer gives them
names: `qualified.name@file.py:12`.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from tracepoint.layout.process_events import ADDRESS_STEP, MARK_ADDRESS
from tracepoint.printk.kallsyms import Kallsyms

if TYPE_CHECKING:
    from types import FrameType

MAX_DEPTH = 64
_addresses: dict[str, int] = {}
_tables: dict[int, Kallsyms] = {}


def address_of(name: str) -> int:
    """Return the address that represents a name without blanks, the same for the life of the process."""
    return _addresses.setdefault(name, MARK_ADDRESS + ADDRESS_STEP * len(_addresses))


MARKER = address_of("tracing_mark_write")


def stack_of(frame: FrameType | None) -> list[int]:
    """Return the addresses of a frame and its callers, innermost first, 64 at most."""
    found: list[int] = []
    while frame is not None and len(found) < MAX_DEPTH:
        code = frame.f_code
        name = f"{code.co_qualname}@{PurePath(code.co_filename).name}:{frame.f_lineno}"
        found.append(address_of("".join(name.split())))
        frame = frame.f_back
    return found


def kallsyms_text() -> str:
    """Return all names in the form of /proc/kallsyms, with an end after the last."""
    lines = [f"{address:016x} t {name}\n" for name, address in list(_addresses.items())]
    return "".join(lines) + f"{MARK_ADDRESS + ADDRESS_STEP * len(lines):016x} t _end_of_names\n"


def symbols() -> Kallsyms:
    """Return the names for a text writer."""
    n_names = len(_addresses)
    if n_names not in _tables:
        _tables.clear()
        _tables[n_names] = Kallsyms(kallsyms_text())
    return _tables[n_names]
