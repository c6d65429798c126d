"""What an object needs, and whether a kernel exports it to modules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracepoint.lab.programs import grep
from tracepoint.tree.headers import read_header
from tracepoint.tree.loader import source_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_EXPORTED = re.compile(rb"^0x[0-9a-f]+\t(\w+)\t", re.MULTILINE)
# What modpost adds to every module.
_OF_EVERY_MODULE = frozenset({"__this_module", "_GLOBAL_OFFSET_TABLE_"})
# The parts of a tracepoint that DEFINE_TRACE makes and EXPORT_TRACEPOINT_SYMBOL exports.
_OF_TRACEPOINT = re.compile(r"__(?:tracepoint|traceiter|probestub|SC[KT]__tp_func)_(\w+)")
_FOLDERS = ("include", "arch")


@dataclass(frozen=True, slots=True)
class Unexported:
    """Names that the kernel keeps to itself, and tracepoints that only another module can define."""

    names: tuple[str, ...] = ()
    tracepoints: tuple[str, ...] = ()


def find_unexported(needed: Iterable[str], kernel_headers: Path) -> Unexported:
    """Return the names that an object needs and that no part of a kernel exports.

    A tracepoint that no header of the kernel declares belongs to another module, which exports
    it. Without a table of exports (Module.symvers) nothing is reported.
    """
    table = kernel_headers / "Module.symvers"
    if not table.is_file():
        return Unexported()
    exported = {name.decode() for name in _EXPORTED.findall(table.read_bytes())}
    absent = sorted({*needed} - exported - _OF_EVERY_MODULE)
    tracepoints = {name: found[1] for name in absent if (found := _OF_TRACEPOINT.fullmatch(name))}
    others = {*tracepoints.values()} - _declared(tracepoints, kernel_headers)
    names = tuple(name for name in absent if tracepoints.get(name) not in others)
    return Unexported(names, tuple(sorted(others)))


def tracepoint_of(name: str) -> str:
    """Return the tracepoint that a symbol is a part of, empty for none."""
    found = _OF_TRACEPOINT.fullmatch(name)
    return found[1] if found else ""


def _declared(tracepoints: Mapping[str, str], kernel_headers: Path) -> set[str]:
    """Return the tracepoints that trace headers of a kernel declare."""
    if not tracepoints:
        return set()
    folders = [folder / name for folder in source_folders(kernel_headers) for name in _FOLDERS]
    paths = grep("wF", "*.h", set(tracepoints.values()), (one for one in folders if one.is_dir()))
    headers = [read_header(path) for path in paths if "trace" in path.parent.parts]
    events = {event.name for header in headers for event in header.events}
    return events | {bare.name for header in headers for bare in header.tracepoints}
