"""Settings: command line over file over default."""

from __future__ import annotations

import argparse
import io
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracepoint.cli import settings
from tracepoint.cli.output import Output
from tracepoint.cli.settings import Settings, SettingsError


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    settings.add_arguments(parser, "include", "define", "exclude", "select", "ignore", "abi", "baseline")
    return parser.parse_args(words)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_defaults(folder: Path) -> None:
    assert settings.read_settings(parse()) == Settings()


def test_a_file_without_an_end_of_its_lists_is_not_toml(folder: Path) -> None:
    (folder / ".tracepoint.toml").write_text("include = " + "[" * 100_000)
    with pytest.raises(SettingsError, match="not TOML"):
        settings.read_settings(parse())


def test_nearest_file_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".tracepoint.toml").write_text('abi = "arm64"\ninclude = ["inc"]\n')
    (folder / "pyproject.toml").write_text('[tool.tracepoint]\nabi = "s390x"\n')
    (folder / "a/b").mkdir(parents=True)
    monkeypatch.chdir(folder / "a/b")
    found = settings.read_settings(parse())
    assert found.abi == "arm64"
    assert found.include == (str(folder / "inc"),)
    assert found.source["abi"] == str(folder / ".tracepoint.toml")


def test_pyproject_table(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.tracepoint]\nselect = ["TP3"]\noutput-format = "json"\n')
    found = settings.read_settings(parse())
    assert (found.select, found.output_format) == (("TP3",), "json")


def test_pyproject_without_our_table_is_passed_over(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.other]\n")
    assert settings.read_settings(parse()) == Settings()


def test_command_line_wins(folder: Path) -> None:
    (folder / ".tracepoint.toml").write_text('abi = "arm64"\nselect = ["TP1"]\n')
    found = settings.read_settings(parse("--abi", "i386", "--select", "TP301,TP4", "--select", "TP2"))
    assert (found.abi, found.select) == ("i386", ("TP301", "TP4", "TP2"))
    assert found.source["select"] == "command line"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abi = ", "not TOML"),
        ('colour = "x"', "unknown key 'colour'"),
        ('select = "TP3"', "select must be a list of strings"),
        ("abi = 7", "abi must be a string"),
        ("select = [1]", "select must be a list of strings"),
    ],
)
def test_bad_file_is_named(folder: Path, text: str, message: str) -> None:
    (folder / ".tracepoint.toml").write_text(text)
    with pytest.raises(SettingsError, match=message) as caught:
        settings.read_settings(parse())
    assert ".tracepoint.toml" in str(caught.value)


def test_named_file(folder: Path) -> None:
    (folder / "other.toml").write_text('abi = "riscv64"\n')
    assert settings.read_settings(parse("--config", "other.toml")).abi == "riscv64"


def test_show_settings_prints_the_outcome(folder: Path) -> None:
    stdout = io.StringIO()
    args = parse("--show-settings", "--abi", "arm")
    assert settings.shows_settings(args, settings.read_settings(args), Output(stdout))
    assert 'abi = "arm"  # command line\n' in stdout.getvalue()
    assert "ignore = []  # default\n" in stdout.getvalue()


words = st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])), max_size=3).map(tuple)


@given(select=words, define=words)
def test_shown_settings_are_toml(select: tuple[str, ...], define: tuple[str, ...]) -> None:
    table = tomllib.loads(Settings(select=select, define=define).text())
    assert (tuple(table["select"]), tuple(table["define"])) == (select, define)


@pytest.mark.parametrize("text", ["tool = 3\n", "[tool]\ntracepoint = 3\n"])
def test_a_pyproject_of_another_shape_has_no_settings(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert settings.read_file(tmp_path / "pyproject.toml") == Settings()
