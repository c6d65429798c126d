"""Events from a prototype and a list of fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from place.trees import make_tree, open_kernel
from tracepoint.errors import PlaceError
from tracepoint.model.read import read_header_text
from tracepoint.place.declare import declare
from tracepoint.place.fragment import EventText
from tracepoint.place.from_prototype import write_event


def test_event_from_a_prototype(tmp_path: Path) -> None:
    proto = "struct duck *duck, const char * name, unsigned long flags, u64 weight, enum mood mood, bool wet"
    header = read_header_text(write_event("pond_x", proto))
    event = header["pond_x"]
    assert [(f.kind, f.ctype, f.name) for f in event.fields] == [
        ("string", "char", "name"),
        ("field", "unsigned long", "flags"),
        ("field", "u64", "weight"),
        ("field", "enum mood", "mood"),
        ("field", "bool", "wet"),
    ]
    assert event.printk.text.startswith('"name=%s flags=0x%lx weight=%llu mood=%d wet=%d", __get_str(name), ')
    assert not header.diagnostics
    kernel = open_kernel(make_tree(tmp_path))
    made = declare(kernel, EventText(write_event("pond_x", "struct duck *d, int n"), system="pond"))
    assert any("__entry->n = n;" in edit.replacement for edit in made.edits)


def test_devices_and_inodes_are_shown_as_the_kernel_does() -> None:
    header = read_header_text(write_event("pond_x", "dev_t dev, ino_t ino, unsigned long pfn"))
    assert header["pond_x"].printk.text == (
        '"dev=%d,%d ino=%lu pfn=0x%lx", '
        "MAJOR(__entry->dev), MINOR(__entry->dev), (unsigned long)__entry->ino, __entry->pfn"
    )
    assert not header.diagnostics


def test_typedefs_of_the_kernel_are_shown_as_what_they_stand_for() -> None:
    header = read_header_text(write_event("pond_x", "gfp_t gfp, blk_opf_t opf, size_t n, ktime_t at"))
    assert header["pond_x"].printk.text.startswith('"gfp=%#x opf=%u n=%zu at=%lld", ')


@pytest.mark.parametrize(
    ("name", "proto", "fields", "reason"),
    [
        ("a b", "int n", "", "is not a valid event name"),
        ("a", "int", "", "is not `type name`"),
        ("a", "int n[3]", "", "is not `type name`"),
        ("a", "int n; int m", "", "is not a list"),
        ("a", "int n)", "", "is not a list"),
        ("a", "void *p", "", "none of its parameters is a plain value"),
        ("a", "", "", "none of its parameters"),
        ("a", "int n", "int m", "there is no parameter m"),
        ("a", "struct list_head h", "", "how to print struct list_head h"),
        ("a", "int n", "nosuch_t x = n", "how to print nosuch_t x"),
        ("a", "__be32 a", "", "how to print __be32 a"),
        ("a", "dma_addr_t a", "", "how to print dma_addr_t a"),
    ],
)
def test_prototypes_that_make_no_event(name: str, proto: str, fields: str, reason: str) -> None:
    with pytest.raises(PlaceError) as caught:
        write_event(name, proto, fields)
    assert reason in str(caught.value)
