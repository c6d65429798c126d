"""`tracepoint catalog`: the same bytes twice, a folder replaced as a whole, what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from generate.catalog_trees import make_tree, make_trees, received
from tracepoint.cli.main import main
from tracepoint.generate.catalog import MARK


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_trees(tmp_path_factory.mktemp("trees"))


def run(*words: str | Path) -> int:
    return main(["catalog", *map(str, words)])


@pytest.mark.thorough
def test_same_bytes_twice(trees: Path, tmp_path: Path) -> None:
    made = []
    for seed in ("1", "2"):
        out = tmp_path / f"site{seed}"
        env = os.environ | {"PYTHONHASHSEED": seed, "XDG_CACHE_HOME": str(tmp_path / seed)}
        # Given newest first: the Makefiles say which is older.
        words = ["catalog", str(trees / "new"), str(trees / "old"), "-o", str(out), "-q"]
        subprocess.run([sys.executable, "-m", "tracepoint", *words], env=env, check=True, capture_output=True)
        made.append({p.relative_to(out): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()})
    assert made[0] == made[1]
    start = received(made[0][Path("data/start.js")].decode())[1]
    assert [(v["label"], v["full"]) for v in start["versions"]] == [("6.1", "6.1.7"), ("6.12", "6.12.3")]
    assert str(tmp_path).encode() not in b"".join(made[0].values())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_labels(trees: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = here / "site"
    assert run(f"before={trees / 'old'}", trees / "new", "-o", site) == 0
    start = received((site / "data/start.js").read_text())[1]
    assert [v["label"] for v in start["versions"]] == ["before", "6.12"]
    assert run(trees / "old", trees / "old", "-o", here / "b") == 2
    assert "two trees are called '6.1.7'" in capsys.readouterr().err
    assert not (here / "b").exists()
    twin = make_tree(here / "twin", "6.1.9", {"shop": ""}, "SYSCALL_DEFINE0(a)\n")
    assert run(twin, trees / "old", "-o", here / "c") == 0
    start = received((here / "c/data/start.js").read_text())[1]
    assert [v["label"] for v in start["versions"]] == ["6.1.7", "6.1.9"]


def test_refuses_what_is_no_catalog(trees: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "home").mkdir()
    (here / "home/letter.txt").write_text("dear")
    (here / "home" / MARK).write_text("[]")
    assert run(trees / "old", "-o", here / "home") == 2
    assert "not made by this command" in capsys.readouterr().err
    assert sorted(p.name for p in (here / "home").iterdir()) == [MARK, "letter.txt"]
    assert run(trees / "old", "-o", here / "home/letter.txt", "--force") == 2
    assert run(trees / "old", "-o", here / "home", "--force") == 0
    assert (here / "home/letter.txt").read_text() == "dear"
    assert (here / "home/index.html").exists()


def test_updates_a_catalog_and_keeps_what_is_not_its_own(trees: Path, here: Path) -> None:
    site = here / "site"
    assert run(trees / "new", "-o", site) == 0
    (site / ".git").mkdir()
    (site / ".git/HEAD").write_text("ref")
    (site / "plain/mine.html").write_text("mine")
    (site / "CNAME").write_text("example")
    assert (site / "plain/oven.html").exists()
    os.chmod(site, 0o750)  # noqa: PTH101 - a mode, not a path
    assert run(trees / "old", "-o", site) == 0
    assert not (site / "plain/oven.html").exists()
    assert (site / ".git/HEAD").read_text() == "ref"
    assert (site / "plain/mine.html").read_text() == "mine"
    assert (site / "CNAME").exists()
    assert site.stat().st_mode & 0o777 == 0o750
    assert [p.name for p in here.iterdir() if p.name.startswith(".")] == []


def test_a_failure_leaves_the_catalog_as_it_was(
    trees: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = here / "site"
    assert run(trees / "old", "-o", site) == 0
    before = {p: p.read_bytes() for p in site.rglob("*") if p.is_file()}
    write = Path.write_text

    def full(self: Path, *args, **kwargs) -> int:
        if self.name == "words.js":
            raise OSError(28, "No space left on device", str(self))
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", full)
    assert run(trees / "new", "-o", site) == 2
    assert {p: p.read_bytes() for p in site.rglob("*") if p.is_file()} == before
    assert [p.name for p in here.iterdir() if p.name.startswith(".")] == []


def test_without_an_exchange_by_the_system(trees: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracepoint.cli.folders._renameat2", lambda one, other: False)
    site = here / "site"
    assert run(trees / "new", "-o", site) == 0
    (site / "CNAME").write_text("example")
    assert run(trees / "old", "-o", site) == 0
    assert not (site / "plain/oven.html").exists()
    assert (site / "CNAME").exists()
    assert [p.name for p in here.iterdir() if p.name.startswith(".")] == []


def test_files_that_cannot_be_moved_are_not_lost(
    trees: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = here / "site"
    assert run(trees / "new", "-o", site) == 0
    (site / "CNAME").write_text("example")

    def refuse(*args) -> None:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr("tracepoint.cli.folders._move", refuse)
    assert run(trees / "old", "-o", site) == 2
    said = capsys.readouterr().err
    kept = next(p for p in here.iterdir() if p.name.startswith(".site."))
    assert f"are still in {kept}" in said
    assert (kept / "CNAME").read_text() == "example"
    assert (site / "index.html").exists()


def test_a_link_to_a_catalog_stays_a_link(trees: Path, here: Path) -> None:
    (here / "real").mkdir()
    (here / "link").symlink_to(here / "real")
    assert run(trees / "old", "-o", here / "link") == 0
    assert (here / "link").is_symlink()
    assert (here / "real/index.html").exists()


@pytest.mark.parametrize(
    "mark",
    ["", "{", "[" * 100_000, '{"schema": "tracepoint.catalog/1"}', '{"schema": 3, "files": []}', "\xff"],
)
def test_a_damaged_mark_is_no_mark(trees: Path, here: Path, mark: str) -> None:
    site = here / "site"
    site.mkdir()
    (site / MARK).write_text(mark)
    assert run(trees / "old", "-o", site) == 2
    assert (site / MARK).read_text() == mark


def test_a_mark_that_leads_elsewhere_deletes_nothing(trees: Path, here: Path) -> None:
    (here / "precious").write_text("x")
    site = here / "site"
    assert run(trees / "old", "-o", site) == 0
    data = json.loads((site / MARK).read_text())
    data["files"] += ["../precious", str(here / "precious")]
    (site / MARK).write_text(json.dumps(data))
    assert run(trees / "old", "-o", site) == 0
    assert (here / "precious").read_text() == "x"


def test_what_is_no_tree_is_said_and_nothing_made(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "empty").mkdir()
    assert run(here / "empty", "-o", here / "site") == 2
    assert "no kernel source tree" in capsys.readouterr().err
    assert run(here / "nowhere", "-o", here / "site") == 2
    assert not (here / "site").exists()
