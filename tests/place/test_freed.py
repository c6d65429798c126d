"""A pointer that was freed before a call is not followed by it."""

from __future__ import annotations

import pytest

from place.helpers import AFTER, BEFORE, body, place, refusal

MSG = "void f(struct msg *msg, int a)\n{\n%s\tlast(a);\n}\n"


def msg(*lines: str) -> str:
    return MSG % "".join(f"\t{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("free_msg(msg);", "free_msg() in line 3 may have freed `msg`"),
        ("msg_put(msg);", "msg_put() in line 3 may have freed `msg`"),
        ("kfree_rcu(msg, rcu);", "kfree_rcu() in line 3 may have freed `msg`"),
        ("kfree(msg);", "kfree() in line 3 has freed `msg`"),
        ("kmem_cache_free(cache, msg);", "kmem_cache_free() in line 3 has freed `msg`"),
    ],
)
def test_a_freed_argument_is_told(call: str, said: str) -> None:
    for where, statement in ((AFTER, call), (BEFORE, "last(a);")):
        assert any(said in note for note in place(msg(call), where, statement, "msg").notes)
    assert not any("freed" in note for note in place(msg(call), BEFORE, call, "msg").notes)


def test_what_a_freed_pointer_leads_to_is_refused() -> None:
    assert "kfree() in line 3 has freed `msg`: `msg->len` follows it" in refusal(
        msg("kfree(msg);"), AFTER, "kfree(msg);", "msg->len"
    )


def test_the_body_at_hand_decides() -> None:
    drop = "static void drop(int a, struct msg *m)\n{\n\tunlink(m);\n\tkfree(m);\n}\n"
    assert "drop() in line 8 has freed `msg`" in refusal(
        drop + msg("drop(a, msg);"), BEFORE, "last(a);", "msg->len"
    )
    maybe = "static void drop(int a, struct msg *m)\n{\n\tif (a) {\n\t\tkfree(m);\n\t}\n}\n"
    assert not place(maybe + msg("drop(a, msg);"), BEFORE, "last(a);", "msg").notes


@pytest.mark.parametrize(
    "lines",
    [
        ("kfree(msg);", "msg = next(a);"),
        ("if (a) {", "\tkfree(msg);", "\treturn;", "}"),
        ("kfree(msg->text);",),
        ("put(msg);",),
    ],
)
def test_others_are_not_told(lines: tuple[str, ...]) -> None:
    notes = place(msg(*lines), BEFORE, "last(a);", "msg").notes
    assert not any("freed" in note for note in notes)


@pytest.mark.parametrize("kind", ["uint", "ulong", "ushort", "u_int", "uint8_t", "u_int32_t", "unchar"])
def test_the_types_of_the_kernel_are_numbers(kind: str) -> None:
    reason = refusal(body("g(page);"), BEFORE, "g(page);", "page", params=[(kind, "n")])
    assert kind in reason
