"""Suites beside the machine's own: package sources read, scratch lists, and what apt is told; no network."""

from __future__ import annotations

import os

import pytest

from tracepoint.cli.main import main
from tracepoint.errors import LabError
from tracepoint.lab.kernels import packages, suites

SOURCES = """# a comment
Types: deb deb-src
# where from
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /k.gpg

Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://off.test/debian
Suites: bookworm
Components: main
"""
KEY = "Types: deb\nURIs: http://m.test/debian\nSuites: sid\nComponents: main\nSigned-By:\n -----BEGIN X\n .\n abc\n"
OTHER = "deb http://other.test/x bookworm main\n"
APT = """#!/bin/sh
echo "$(basename "$0") $@" >>"$LOG"
[ -z "$FAIL" ] || { echo "Reading"; echo "W: $FAIL unsandboxed"; echo "E: $FAIL" >&2; exit 100; }
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with package sources of our own and an apt that only notes how it was called."""
    (tmp_path / "etc/sources.list.d").mkdir(parents=True)
    (tmp_path / "etc/sources.list.d/debian.sources").write_text(SOURCES)
    (tmp_path / "etc/sources.list.d/other.list").write_text(OTHER)
    (tmp_path / "os-release").write_text("VERSION_CODENAME=bookworm\n")
    find = suites.find_mirror
    monkeypatch.setattr(suites, "find_mirror", lambda: find(tmp_path / "etc", tmp_path / "os-release"))
    (tmp_path / "bin").mkdir()
    for name in ("apt-get", "apt-cache"):
        (tmp_path / "bin" / name).write_text(APT)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def calls(machine):
    log = machine / "log"
    return log.read_text().splitlines() if log.exists() else []


def test_sources_are_read():
    assert [s.uri for s in suites.parse_deb822(SOURCES)] == [
        "http://mirror.test/debian",
        "http://mirror.test/debian-security",
    ]
    assert suites.parse_deb822(SOURCES)[0].suites == ("bookworm", "bookworm-updates")
    assert suites.parse_deb822(KEY)[0].signed_by == "-----BEGIN X\n\nabc"
    text = "# deb http://a b c\ndeb-src http://a b c\ndeb [ arch=amd64 signed-by=/k ] http://a/ b c d # e\n"
    assert suites.parse_one_line(text) == [suites.PackageSource("http://a/", ("b",), ("c", "d"), "/k")]


def test_a_list_of_suites(machine):
    options = suites.apt_options(["trixie", "sid"])
    folder = machine / "cache/tracepoint/apt"
    line = "deb [signed-by=/k.gpg] http://mirror.test/debian {} main\n"
    assert (folder / "trixie+sid.list").read_text() == line.format("trixie") + line.format("sid")
    assert options[1::2] == (
        f"Dir::Etc::sourcelist={folder / 'trixie+sid.list'}",
        "Dir::Etc::sourceparts=/dev/null",
        f"Dir::State::Lists={folder / 'lists'}",
        "Dir::Cache::pkgcache=",
        "Dir::Cache::srcpkgcache=",
    )
    assert set(options[::2]) == {"-o"}
    assert suites.apt_options([]) == ()


def test_lists_are_fetched_once_a_day(machine):
    said = []
    suites.apt_options(["trixie"], said.append)
    suites.apt_options(["trixie"], said.append)
    assert said == ["fetching the package list of trixie"]
    assert [call.endswith(" update") for call in calls(machine)] == [True]
    os.utime(machine / "cache/tracepoint/apt/trixie.fetched", (1, 1))
    suites.apt_options(["trixie"], said.append)
    assert len(calls(machine)) == 2


def test_old_lists_serve_without_a_network(machine, monkeypatch):
    suites.apt_options(["trixie"])
    os.utime(machine / "cache/tracepoint/apt/trixie.fetched", (1, 1))
    monkeypatch.setenv("FAIL", "Could not resolve")
    said = []
    assert suites.apt_options(["trixie"], said.append)
    assert "used as it is" in said[-1]


@pytest.mark.parametrize(
    ("fail", "said"),
    [("404  Not Found", "the mirror has no suite nosuch"), ("Could not resolve", "could not be fetched")],
)
def test_lists_that_cannot_be_had(machine, monkeypatch, fail, said):
    monkeypatch.setenv("FAIL", fail)
    with pytest.raises(LabError, match=said) as caught:
        suites.apt_options(["nosuch"])
    assert caught.value.log_tail == f"E: {fail}"
    assert not (machine / "cache/tracepoint/apt/nosuch.fetched").exists()


def test_no_apt_no_mirror_no_name(machine, monkeypatch):
    with pytest.raises(LabError, match="not the name"):
        suites.apt_options(["../x"])
    monkeypatch.setenv("PATH", str(machine))
    with pytest.raises(LabError, match="apt-get is not installed"):
        suites.apt_options(["sid"])
    (machine / "etc/sources.list.d/debian.sources").unlink()
    (machine / "etc/sources.list.d/other.list").unlink()
    with pytest.raises(LabError, match="no Debian mirror"):
        suites.apt_options(["sid"])


def test_kernels_are_looked_for_in_the_suite_alone(machine):
    options = suites.apt_options(["trixie"])
    with pytest.raises(LabError, match="the suites asked for have none"):
        packages.fetch_kernel("6.12", options)
    assert calls(machine)[-1].startswith(f"apt-cache {' '.join(options)} --names-only search ^linux-image")


def test_a_suite_without_a_kernel(capsys, tmp_path):
    assert main(["try", str(tmp_path), "--suite", "sid"]) != 0
    assert "there is no --kernel" in capsys.readouterr().err
