"""`git am` takes the patches, and the kernel's own checkpatch.pl finds nothing but what trace headers are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from oracles import kernel_source
from place.trees import EVENT, make_tree, open_kernel
from repositories import ENV, commit_all, git, needs_git
from tracepoint.cli.main import main
from tracepoint.place.fragment import EventText
from tracepoint.place.insert import InsertionPoint, Where
from tracepoint.place.message import Author, write_mail
from tracepoint.place.plan import CallAt, Plan
from tracepoint.place.series import make_series

ROOT = Path(__file__).resolve().parents[2]
needs_perl = pytest.mark.skipif(
    shutil.which("perl") is None, reason="perl is not installed: apt-get install perl"
)
#: What the layout of TRACE_EVENT() brings about: its parts are not C statements, and begin lines of their own.
INHERENT = {
    "CHECK: Alignment should match open parenthesis",
    "CHECK: Lines should not end with a '('",
}
NEW_FILE = "WARNING: added, moved or deleted file(s), does MAINTAINERS need updating?"


@needs_git
def test_series_is_taken_and_gives_the_texts(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree")
    calls = (
        CallAt("garden/reed.c", (InsertionPoint("reed_hide", Where.ENTRY),), "lake_splash", ("duck", "0")),
        CallAt(
            "water/shore.c", (InsertionPoint("shore_visit", Where.RETURNS),), "lake_splash", ("duck", "n")
        ),
        CallAt(
            "water/pond.c",
            (InsertionPoint("pond_dive", Where.AFTER, "duck->depth = depth;"),),
            "pond_sink",
            ("duck", "1"),
        ),
        CallAt("garden/reed.c", (InsertionPoint("reed_hide", Where.RETURNS),), "pond_dive", ("duck", "1")),
    )
    events = (
        EventText(EVENT.replace("pond_splash", "lake_splash"), system="lake", is_new=True),
        EventText(EVENT.replace("pond_splash", "pond_sink"), system="pond"),
    )
    why = "--- a/x\n\nFrom: x\n\nSubject: y\n\nBecause größer."
    series = make_series(open_kernel(root), Plan(events, calls, "water: größer", why))
    author = Author("Jürgen, Groß", "j@example.org", "Sat, 21 Nov 2026 03:00:00 +0100")
    commit_all(root)
    for number, patch in enumerate(series.patches, 1):
        mail = write_mail(patch.message, author, patch.changes, number=number, total=len(series.patches))
        file = tmp_path / f"{number}.patch"
        file.write_text(mail)
        assert git(root, "apply", "--check", "--verbose", str(file)) == ""
        stat = git(root, "apply", "--stat", str(file))
        assert stat.splitlines()[-1] == re.search(r"^ \d+ files? changed.*$", mail, re.MULTILINE)[0]
        git(root, "am", str(file))
        shown = git(root, "log", "-1", "--format=%an%n%ae%n%aI%n%s%n%b").splitlines()
        assert shown[:4] == [
            "Jürgen, Groß",
            "j@example.org",
            "2026-11-21T03:00:00+01:00",
            patch.message.subject,
        ]
        body = "\n".join(shown[4:]).strip()
        assert body == patch.message.body.strip() + "\n\nSigned-off-by: Jürgen, Groß <j@example.org>"
        assert git(root, "status", "--porcelain") == ""
    for path, text in series.files.items():
        assert (root / path).read_text() == text
    assert git(root, "fsck", "--strict") == ""


@needs_git
def test_stdout_is_a_mailbox(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = commit_all(make_tree(tmp_path / "tree"))
    event = [
        "--name",
        "lake_splash",
        "--proto",
        "struct duck *duck, int n",
        "--system",
        "lake",
        "--new-header",
    ]
    shore = ["--at", "water/shore.c:shore_visit", "--entry", "--args", "duck, n"]
    reed = ["--at", "garden/reed.c:reed_hide", "--entry", "--args", "duck, 0"]
    why = ["--why", "To see splashes.", "--author", "A <a@example.org>"]
    assert main(["place", "--tree", str(root), *event, *shore, *reed, *why]) == 0
    mailbox = tmp_path / "mailbox"
    mailbox.write_text(capsys.readouterr().out)
    git(root, "am", str(mailbox))
    assert git(root, "log", "--format=%s").splitlines() == [
        "garden: reed: call the trace event lake_splash",
        "water: shore: add the trace event lake_splash",
        "base",
    ]


def patches(tree: Path, plan: Path, out: Path) -> list[Path]:
    assert (
        main(
            [
                "place",
                "--tree",
                str(tree),
                "--plan",
                str(plan),
                "--author",
                "A <a@example.org>",
                "-o",
                str(out),
            ]
        )
        == 0
    )
    return sorted(p for p in out.iterdir() if not p.name.startswith("0000"))


def check(tree: Path, patch: Path) -> set[str]:
    done = subprocess.run(
        ["perl", tree / "scripts/checkpatch.pl", f"--root={tree}", "--strict", "--no-summary", patch],
        cwd=patch.parent, env=ENV | {"HOME": str(patch.parent)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return set(re.findall(r"^(?:ERROR|WARNING|CHECK): .*$", done.stdout, re.MULTILINE))


def scratch_of(tree: Path, folder: Path, *mails: Path) -> Path:
    """A repository of the files that patches touch."""
    for mail in mails:
        for path in re.findall(r"^--- a/(\S+)", mail.read_text(), re.MULTILINE):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree / path, folder / path)
    return commit_all(folder)


@pytest.mark.oracle
@needs_git
@needs_perl
@pytest.mark.parametrize("version", ["6.1", "6.12"])
@pytest.mark.parametrize("plan", sorted((ROOT / "examples/kernel").glob("*.toml")), ids=lambda p: p.stem)
def test_plans_of_the_examples_on_the_kernels_own_source(plan: Path, version: str, tmp_path: Path) -> None:
    tree = kernel_source(f"linux-source-{version}")
    mails = patches(tree, plan, tmp_path / "out")
    for mail in mails:
        is_new = "\nnew file mode 100644\n" in mail.read_text()
        assert check(tree, mail) <= (INHERENT | {NEW_FILE} if is_new else INHERENT)
    scratch = scratch_of(tree, tmp_path / "scratch", *mails)
    git(scratch, "am", *map(str, mails))
    changed = git(scratch, "diff", "-U0", f"HEAD~{len(mails)}")
    events = set(re.findall(r"^\+(?:TRACE_EVENT\(|DEFINE_EVENT\(\w+, )(\w+)", changed, re.MULTILINE))
    calls = set(re.findall(r"^\+\s+trace_(\w+)\(", changed, re.MULTILINE))
    assert events
    assert events == calls
    # kmem has its creator in mm/slab_common.c; a new header needs one.
    assert changed.count("+#define CREATE_TRACE_POINTS") == changed.count("new file mode")


SERIES = """
why = "To see who uses them."
[[event]]
system = "zoo"
new = true
text = '''
/* Something is looked at; the name is that of its user. */
TRACE_EVENT(zoo_visit,
TP_PROTO(struct inode *inode, const char *name, unsigned int flags), TP_ARGS(inode, name, flags),
TP_STRUCT__entry(__field(u64, ino) __string(name, name) __field(unsigned int, flags) __array(char, comm, TASK_COMM_LEN)),
TP_fast_assign(const struct inode *found = inode; __entry->ino = found->i_ino; __assign_str(name, name); if (flags) __entry->flags = flags; else __entry->flags = 0; memcpy(__entry->comm, current->comm, TASK_COMM_LEN);),
TP_printk("ino=%llu name=%s flags=%s comm=%s", __entry->ino, __get_str(name), __print_flags(__entry->flags, "|", { 1, "ONE" }, { 2, "TWO" }), __entry->comm)
);
'''
[[call]]
at = "fs/inode.c:clear_inode"
entry = true
call = "zoo_visit(inode, \\"clear\\", 1)"
[[call]]
at = "mm/truncate.c:truncate_inode_pages_final"
entry = true
call = "zoo_visit(mapping->host, \\"truncate\\", 2)"
"""


@pytest.mark.oracle
@needs_git
@needs_perl
@pytest.mark.parametrize("version", ["6.1", "6.12"])
def test_series_with_a_new_header_on_the_kernels_own_source(version: str, tmp_path: Path) -> None:
    tree = kernel_source(f"linux-source-{version}")
    plan = tmp_path / "plan.toml"
    plan.write_text(SERIES)
    first, second = patches(tree, plan, tmp_path / "out")
    assert check(tree, first) <= INHERENT | {NEW_FILE}
    assert check(tree, second) <= INHERENT
    scratch = scratch_of(tree, tmp_path / "scratch", first, second)
    git(scratch, "am", str(first), str(second))
    assert (
        "#define CREATE_TRACE_POINTS\n#include <trace/events/zoo.h>\n" in (scratch / "fs/inode.c").read_text()
    )
    assert "CREATE_TRACE_POINTS" not in git(scratch, "show", "--format=", "-U0")
