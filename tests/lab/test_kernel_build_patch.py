"""Patches are applied in memory: right, or refused with the hunk and the line that is not as expected."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import mini_kernel
from tracepoint.lab.build.patch import PatchError, apply_patches, read_patch

NAME = "mm/swap.c"
LINES = st.lists(st.sampled_from(["a", "b", "c", "", "{", "\treturn;"]), max_size=30)


def diff(before: list[str], after: list[str], context: int = 3) -> str:
    texts = [[line + "\n" for line in lines] for lines in (before, after)]
    old = f"a/{NAME}" if before else "/dev/null"
    new = f"b/{NAME}" if after else "/dev/null"
    return "".join(difflib.unified_diff(*texts, old, new, n=context))


def text(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


@given(LINES, LINES, st.integers(0, 3))
def test_what_diff_writes_is_applied(before: list[str], after: list[str], context: int):
    patch = diff(before, after, context)
    if before == after:
        return
    files = {NAME: text(before)} if before else {}
    result = apply_patches([("p", patch)], files.get)
    if not after:
        assert result == {NAME: None}
        return
    assert result[NAME].text == text(after)
    # Every line that the patch brought is known by its place in the patch.
    for line, (name, number) in result[NAME].origins.items():
        assert name == "p"
        assert patch.split("\n")[number - 1] == "+" + after[line - 1]
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in patch.split("\n"))
    assert len(result[NAME].origins) == added


@given(LINES, st.integers(1, 40))
def test_a_hunk_that_has_moved_is_found(lines: list[str], moved: int):
    before = ["one", "two", "three", "four", "five"]
    after = ["one", "two", "NEW", "four", "five"]
    around = [f"line {number}" for number in range(moved)]
    files = {NAME: text([*around, *before, *lines])}
    result = apply_patches([("p", diff(before, after))], files.get)
    assert result[NAME].text == text([*around, *after, *lines])


def test_patches_follow_one_another():
    first, second, third = ["a", "b"], ["a", "x", "b"], ["a", "x", "y", "b"]
    result = apply_patches([("1", diff(first, second)), ("2", diff(second, third))], {NAME: text(first)}.get)
    assert result[NAME].text == text(third)
    assert result[NAME].origins == {2: ("1", 5), 3: ("2", 6)}


def test_a_mail_is_read():
    result = apply_patches([("0001.patch", mini_kernel.PATCH)], mini_kernel.FILES.get)
    assert "int more = MINI;" in result[NAME].text
    assert result[NAME].origins[5] == ("0001.patch", 14)


def test_the_hunk_that_does_not_apply_is_named_with_the_line():
    patch = mini_kernel.PATCH.replace("-\treturn MINI;", "-\treturn OTHER;")
    with pytest.raises(PatchError) as error:
        apply_patches([("0001.patch", patch)], mini_kernel.FILES.get)
    assert str(error.value).split("\n") == [
        "0001.patch:9: hunk 1 does not apply to mm/swap.c:2",
        "mm/swap.c:5:",
        "  expected: \treturn OTHER;",
        "  is there: \treturn MINI;",
    ]


def test_a_patch_applied_already_is_refused():
    once = apply_patches([("p", mini_kernel.PATCH)], mini_kernel.FILES.get)[NAME].text
    with pytest.raises(PatchError, match="hunk 1 does not apply"):
        apply_patches([("p", mini_kernel.PATCH)], {NAME: once}.get)


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("", "no patch"),
        ("some words\n", "no patch"),
        ("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n", "ends early"),
        ("--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n a\n-b\n+c\n+d\n", "other lengths"),
        ("--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -0,0 +1 @@\n+x\n", "not a path below the tree"),
        ("--- /etc/passwd\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+x\n", "not a path below the tree"),
        ("--- a//etc/passwd\n+++ b//etc/passwd\n@@ -0,0 +1 @@\n+x\n", "not a path below the tree"),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 3\n", "binary"),
        ("diff --git a/x b/y\nrename from x\nrename to y\n", "without renames"),
        ("--- a/nosuch.c\n+++ b/nosuch.c\n@@ -1 +1 @@\n-a\n+b\n", "has no file nosuch.c"),
        (f"--- /dev/null\n+++ b/{NAME}\n@@ -0,0 +1 @@\n+b\n", "is there already"),
    ],
)
def test_what_is_no_good_patch_is_refused(patch: str, message: str):
    with pytest.raises(PatchError, match=message):
        apply_patches([("p", patch)], mini_kernel.FILES.get)


@given(st.text(max_size=200) | st.text("+-@ ,1\n\\", max_size=200).map(lambda s: "--- a/x\n+++ b/x\n" + s))
def test_any_text_is_read_or_refused(patch: str):
    try:
        changes = read_patch(patch, "p")
    except PatchError:
        return
    assert changes
