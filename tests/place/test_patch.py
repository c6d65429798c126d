"""Diffs made from edits: they say what git would say, and applying them gives the edited text."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from repositories import needs_git
from tracepoint.diagnostics import Edit
from tracepoint.errors import PlaceError
from tracepoint.place.patch import blob_name, change_file, diffstat, new_file, split_lines, write_diff
from tracepoint.source.text import apply_edits, encode

lines = st.text(alphabet="ab\t {};", max_size=4)
texts = st.tuples(st.lists(lines, max_size=40), st.booleans()).map(
    lambda t: "\n".join(t[0]) + ("\n" if t[1] and t[0] else "")
)


@st.composite
def edited(draw) -> tuple[str, list[Edit]]:
    """A text and edits of it that do not touch each other."""
    text = draw(texts)
    ends = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    edits = []
    for first, last in zip(ends[::2], ends[1::2], strict=False):
        start, end = first, last
        if draw(st.booleans()):
            start = end = text.rfind("\n", 0, first) + 1
        put = draw(st.sampled_from(["", "x", "x\n", "\n", "new\nlines\n", "}\n"]))
        if not edits or start >= edits[-1].end:
            edits.append(Edit("f.c", start, end, put))
    return text, edits


def apply_diff(old: str, diff: str) -> str:
    """Apply a diff of one file as strictly as can be: every line where the hunk says."""
    source = split_lines(old)
    out: list[str] = []
    at = 0
    before = ""
    for line in split_lines(diff):
        if line.startswith("@@"):
            first, _, count = line.split()[1][1:].partition(",")
            begin = int(first) - (count != "0")
            assert at <= begin <= len(source)
            out += source[at:begin]
            at = begin
        elif line.startswith(" ") or (line.startswith("-") and not line.startswith("---")):
            assert source[at].removesuffix("\n") == line[1:].removesuffix("\n")
            if line.startswith(" "):
                out.append(source[at])
            at += 1
        elif line.startswith("+") and not line.startswith("+++"):
            out.append(line[1:])
        elif line.startswith("\\") and before != "-":
            out[-1] = out[-1].removesuffix("\n")
        before = line[0]
    return "".join(out + source[at:])


@given(edited())
def test_diff_gives_the_edited_text(case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    change = change_file("f.c", text, edits)
    assert change.new == apply_edits(text, edits)
    diff = write_diff([change])
    assert (diff == "") == (change.new == text)
    assert apply_diff(text, diff) == change.new


@needs_git
@settings(max_examples=examples(25))
@given(edited())
def test_git_takes_the_diff_and_knows_the_blobs(tmp_path_factory, case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    change = change_file("f.c", text, edits)
    if change.new == text or not text:
        return
    folder = tmp_path_factory.mktemp("git")
    (folder / "f.c").write_bytes(encode(text))
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=folder,
        input=encode(write_diff([change])),
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "f.c").read_bytes() == encode(change.new)
    name = subprocess.run(
        ["git", "hash-object", "f.c"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert name.stdout.startswith(blob_name(change.new))


def test_changes_that_are_near_share_a_hunk() -> None:
    text = "".join(f"line {n}\n" for n in range(40))
    at = [text.index(f"line {n}\n") for n in (5, 11, 30)]
    diff = write_diff([change_file("f.c", text, [Edit("f.c", a, a, "new\n") for a in at])])
    assert [line for line in diff.splitlines() if line.startswith("@@")] == [
        "@@ -3,12 +3,14 @@ line 1",
        "@@ -28,6 +30,7 @@ line 26",
    ]


def test_new_file() -> None:
    diff = write_diff([new_file("a/b.h", "one\ntwo\n")])
    assert diff == (
        "diff --git a/a/b.h b/a/b.h\nnew file mode 100644\nindex 000000000000..814f4a422927\n"
        "--- /dev/null\n+++ b/a/b.h\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    )


def test_missing_newline_at_the_end_is_told() -> None:
    diff = write_diff([change_file("f.c", "a\nb", [Edit("f.c", 0, 1, "A")])])
    assert diff.endswith("@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n")


def test_mode_stays() -> None:
    diff = write_diff([change_file("run", "a\n", [Edit("run", 0, 1, "b")], "100755")])
    assert " 100755\n" in diff


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(PlaceError, match="conflict"):
        change_file("f.c", "abcdef\n", [Edit("f.c", 0, 3, "x"), Edit("f.c", 2, 4, "y")])


def test_diffstat() -> None:
    text = "a\n" * 10
    changes = [
        change_file("long/name.c", text, [Edit("", 0, 4, "b\n")]),
        new_file("x.h", "c\n" * 99),
    ]
    assert diffstat(changes) == (
        " long/name.c |  3 +-\n"
        " x.h         | 99 " + "+" * 54 + "\n"
        " 2 files changed, 100 insertions(+), 2 deletions(-)\n"
        " create mode 100644 x.h\n"
    )


@pytest.mark.thorough
def test_large_file_is_quick() -> None:
    text = "\tstatement();\n" * 700_000  # 10 MB
    edits = [Edit("f.c", at, at, "\tcall();\n") for at in range(14 * 1000, len(text), 14 * 20_000)]
    change = change_file("f.c", text, edits)
    assert change.n_added == len(edits)
    assert write_diff([change]).count("@@ ") == len(edits)
