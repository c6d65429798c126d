"""What changed between two formats, and who breaks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tracepoint.layout.compare import ChangeKind, Reader, compare_formats
from tracepoint.layout.format import COMMON_FIELDS, EventFormat, FieldFormat


def event(*fields: FieldFormat, name: str = "tick", print_fmt: str = '"x", ') -> EventFormat:
    return EventFormat("demo", name, (*COMMON_FIELDS, *fields), print_fmt)


A = FieldFormat("a", "int", 8, 4, is_signed=True)
B = FieldFormat("b", "char[16]", 12, 16, is_signed=True)


def kinds(old: EventFormat, new: EventFormat) -> dict[ChangeKind, frozenset[Reader]]:
    return {c.kind: c.breaks for c in compare_formats(old, new)}


def test_equal_formats_have_no_changes() -> None:
    assert compare_formats(event(A, B), replace(event(A, B), id=9)) == []


def test_a_field_declared_twice_is_compared_with_its_own_like() -> None:
    twice = event(A, FieldFormat("a", "long", 16, 8, is_signed=True))
    assert compare_formats(twice, twice) == []
    moved = event(A, FieldFormat("a", "long", 24, 8, is_signed=True))
    assert [(c.kind, c.before, c.after) for c in compare_formats(twice, moved)] == [
        (ChangeKind.FIELD_MOVED, "16", "24")
    ]
    assert kinds(twice, event(A)).keys() == {ChangeKind.FIELD_REMOVED}


@pytest.mark.parametrize(
    ("new", "kind", "breaks"),
    [
        (event(A), ChangeKind.FIELD_REMOVED, {Reader.OFFSETS, Reader.BPF_CORE, Reader.BY_NAME}),
        (event(A, replace(B, offset=16)), ChangeKind.FIELD_MOVED, {Reader.OFFSETS}),
        (event(A, replace(B, size=32, ctype="char[32]")), ChangeKind.FIELD_RESIZED, {Reader.OFFSETS}),
        (event(replace(A, is_signed=False), B), ChangeKind.SIGN_CHANGED, {Reader.OFFSETS, Reader.BY_NAME}),
        (event(A, replace(B, is_signed=False)), ChangeKind.SIGN_CHANGED, set()),
        (event(replace(A, ctype="pid_t"), B), ChangeKind.TYPE_CHANGED, set()),
        (event(A, B, print_fmt='"y", '), ChangeKind.PRINT_CHANGED, {Reader.TEXT}),
        (event(A, B, FieldFormat("c", "u8", 28, 1, is_signed=False)), ChangeKind.FIELD_ADDED, set()),
        (
            event(A, replace(B, ctype="__data_loc char[]", size=4)),
            ChangeKind.STORAGE_CHANGED,
            {Reader.OFFSETS, Reader.BPF_CORE, Reader.BY_NAME},
        ),
    ],
)
def test_one_change(new: EventFormat, kind: ChangeKind, breaks: set[Reader]) -> None:
    assert kinds(event(A, B), new) == {kind: frozenset(breaks)}


def test_a_field_at_the_end_moves_no_other_one() -> None:
    added = FieldFormat("c", "u8", 28, 1, is_signed=False)
    pushed = event(A, replace(B, offset=32), added)
    told = {
        new: [c.sentence for c in compare_formats(event(A, B), new) if c.kind is ChangeKind.FIELD_ADDED]
        for new in (event(A, B, added), pushed)
    }
    assert told == {
        event(A, B, added): ["a new field (u8) at the end, so no other field moves"],
        pushed: ["a new field (u8) at offset 28"],
    }


@pytest.mark.parametrize(
    ("old", "new", "by_name"),
    [
        ("char[16]", "char[32]", False),
        ("int", "long", False),
        ("__u8[4]", "__u8[28]", True),
        ("char[4]", "enum why", True),
        ("int", "int[2]", True),
    ],
)
def test_an_array_of_another_length_is_another_value(old: str, new: str, by_name: bool) -> None:
    one, other = replace(A, ctype=old, size=4), replace(A, ctype=new, size=8)
    breaks = kinds(event(one), event(other))[ChangeKind.FIELD_RESIZED]
    assert Reader.OFFSETS in breaks
    assert (Reader.BY_NAME in breaks, Reader.BPF_CORE in breaks) == (by_name, by_name)


def test_record_size() -> None:
    changes = compare_formats(replace(event(A), size_bytes=12), replace(event(A), size_bytes=16))
    assert [(c.kind, c.before, c.after) for c in changes] == [
        (ChangeKind.SIZE_CHANGED, "12 bytes", "16 bytes")
    ]


def test_sets_of_events() -> None:
    old = {"demo:tick": event(A), "demo:gone": event(B), "demo:old_name": event(A, B)}
    new = {"demo:tick": event(A), "demo:new_name": event(A, B), "demo:fresh": event()}
    found = [(c.kind, c.event, c.after, c.breaks_readers) for c in compare_formats(old, new)]
    assert found == [
        (ChangeKind.EVENT_REMOVED, "demo:gone", "", True),
        (ChangeKind.EVENT_RENAMED, "demo:old_name", "demo:new_name", True),
        (ChangeKind.EVENT_ADDED, "demo:fresh", "demo:fresh", False),
    ]


def test_a_sentence_says_it() -> None:
    (change,) = compare_formats(event(A), event(replace(A, offset=16)))
    assert str(change) == "demo:tick a: moved from offset 8 to 16: fixed offsets read other bytes"


def test_one_of_each_is_refused() -> None:
    with pytest.raises(TypeError, match="two mappings"):
        compare_formats(event(A), {"demo:tick": event(A)})
