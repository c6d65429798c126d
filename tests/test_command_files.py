"""Manual pages and completions are made from the parsers, and what reads them takes them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oracles import ROOT
from tracepoint.cli.commands import COMMANDS

pytestmark = pytest.mark.programs


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: apt-get install {program}")


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command-files")
    subprocess.run([sys.executable, "tools/command_files.py", folder], cwd=ROOT, check=True)
    return folder / "share"


def bash_words(share: Path, line: str) -> list[str]:
    """What bash offers at the end of a line."""
    needs("bash")
    script = (
        'source "$1"; read -ra COMP_WORDS <<<"$2"; [[ $2 == *" " ]] && COMP_WORDS+=("");'
        'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tracepoint; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    file = share / "bash-completion/completions/tracepoint"
    done = subprocess.run(
        ["bash", "-c", script, "bash", file, line], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


def fish_words(share: Path, line: str) -> list[str]:
    """What fish offers at the end of a line."""
    needs("fish")
    script = f"source {share}/fish/vendor_completions.d/tracepoint.fish; complete -C '{line}'"
    done = subprocess.run(["fish", "-c", script], cwd=share, capture_output=True, text=True, check=True)
    return [offer.split("\t")[0] for offer in done.stdout.splitlines()]


@pytest.mark.parametrize("words", [bash_words, fish_words])
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tracepoint chec", {"check"}),
        ("tracepoint check --diff", {"--diff", "--diff-base"}),
        ("tracepoint check --output-format git", {"github", "gitlab"}),
        ("tracepoint analyse sys", {"syscalls"}),
    ],
)
def test_shells_offer_commands_options_and_values(share: Path, words, line: str, offered: set[str]) -> None:
    assert {word for word in words(share, line) if word.startswith(line.rsplit(maxsplit=1)[-1])} == offered


def test_verbs_are_offered(share: Path) -> None:
    assert set(bash_words(share, "tracepoint lab ")) == {"kernels", "get", "run", "build", "shell"}
    assert "--engine" in bash_words(share, "tracepoint fleet run --e")


def test_zsh_reads_its_completion(share: Path) -> None:
    needs("zsh")
    subprocess.run(["zsh", "-n", share / "zsh/site-functions/_tracepoint"], check=True)


def test_every_command_has_a_manual_page_without_warnings(share: Path) -> None:
    pages = share / "man/man1"
    assert {page.name for page in pages.iterdir()} == {
        "tracepoint.1",
        *(f"tracepoint-{name}.1" for name in COMMANDS),
    }
    needs("groff")
    for page in pages.iterdir():
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True, check=True
        )
        assert done.stderr == "", page.name
