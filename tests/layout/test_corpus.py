"""Records and print formats computed from a kernel's headers, against those of its own objects.

`pytest -m oracle -s tests/layout/test_corpus.py` prints the counts.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import pytest

from oracles import builtin_formats, kernel_config, kernel_source, modules_of
from tracepoint.errors import LayoutError
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.format import EventFormat, read_format
from tracepoint.layout.objects import read_object
from tracepoint.model.event import Event, TraceHeader
from tracepoint.tree.headers import HeaderReader, paused_collector
from tracepoint.tree.scan import find_headers

PACKAGE = "linux-image-6.1.0-*-amd64_*"
#: Made from system call tables, or by the tracer itself.
OWN_SYSTEMS = {"ftrace", "syscalls"}


@dataclass
class Counts:
    """What became of each event: by its name, with the reason or both texts."""

    equal: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    moved: dict[str, tuple[object, object]] = field(default_factory=dict)
    printed: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __str__(self) -> str:
        n_all = sum(map(len, (self.equal, self.missing, self.refused, self.moved, self.printed)))
        return (
            f"{n_all} events: {len(self.equal)} equal, {len(self.missing)} not found, "
            f"{len(self.refused)} refused, {len(self.moved)} records differ, "
            f"{len(self.printed)} print formats differ"
        )


def kernel_formats() -> dict[str, list[EventFormat]]:
    """Every format of a Debian kernel: its modules', and those of the booted one of the recorded data."""
    found: dict[str, list[EventFormat]] = {}
    for data in modules_of(PACKAGE):
        for event in read_object(data) if b"_ftrace_events" in data else ():
            found.setdefault(f"{event.system}:{event.name}", []).append(event)
    for name, text in builtin_formats().items():
        system = name.split("/")[0]
        found.setdefault(name.replace("/", ":"), []).append(read_format(text, system))
    return {name: formats for name, formats in found.items() if name.split(":")[0] not in OWN_SYSTEMS}


def fields_of(event: EventFormat) -> list[tuple[object, ...]]:
    return [(f.name, f.ctype, f.offset, f.size, f.is_signed) for f in event.fields]


def compare(
    name: str, declared: list[tuple[TraceHeader, Event]], kernel: list[EventFormat], to: Counts
) -> None:
    """Count one event; of several declarations or formats of one name the best pair counts."""
    refused, made = "", list[EventFormat]()
    for header, event in declared:
        try:
            made.append(compute_layout(event, environment=header.environment, enums=header.exported_enums))
        except LayoutError as error:
            refused = str(error)
    pairs = [(ours, theirs) for ours in made for theirs in kernel]
    same = [(ours, theirs) for ours, theirs in pairs if fields_of(ours) == fields_of(theirs)]
    if not declared:
        to.missing.append(name)
    elif not made:
        to.refused[name] = refused
    elif not same:
        to.moved[name] = fields_of(made[0]), fields_of(kernel[0])
    elif all(ours.print_fmt != theirs.print_fmt for ours, theirs in same):
        to.printed[name] = same[0][0].print_fmt, same[0][1].print_fmt
    else:
        to.equal.append(name)


@pytest.fixture(scope="module")
def counts() -> Counts:
    formats = kernel_formats()
    reader = HeaderReader(config=kernel_config(PACKAGE))
    declared: dict[str, list[tuple[TraceHeader, Event]]] = {}
    with paused_collector():
        for path in find_headers([str(kernel_source("linux-source-6.1"))]):
            header = reader.read(path)
            for event in header.events:
                declared.setdefault(event.full_name, []).append((header, event))
    found = Counts()
    for name, kernel in sorted(formats.items()):
        compare(name, declared.get(name, []), kernel, found)
    sys.stdout.write(f"\n{found}\n")
    return found


@pytest.mark.oracle
def test_events_behind_macros_of_c_files_are_found(counts: Counts) -> None:
    # __KVM_HAVE_IOAPIC comes from a header that only virt/kvm/kvm_main.c includes.
    assert "kvm:kvm_ioapic_set_irq" in counts.equal
    assert counts.missing == []


@pytest.mark.oracle
def test_no_layout_is_refused_whose_types_the_tree_defines(counts: Counts) -> None:
    assert len(counts.refused) <= 2, counts.refused
    assert counts.moved == {}
    assert len(counts.equal) > 3300


@pytest.mark.oracle
def test_print_formats_are_the_kernels(counts: Counts) -> None:
    """One event has no TP_printk(); point releases and inline functions that are macros elsewhere are the rest."""
    assert len(counts.printed) <= 5, counts.printed
