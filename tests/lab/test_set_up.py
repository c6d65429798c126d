"""The set-up of a machine (tools/debian.py) with an apt of our own: its lists are old until `apt-get update`."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from tracepoint.lab.build import source as kernel_source
from tracepoint.tree.cache import cache_folder

pytestmark = pytest.mark.programs

TOOL = Path(__file__).resolve().parents[2] / "tools" / "debian.py"
#: Package and version, one a line, in the files `old` and `new`; `update` makes the new ones known.
APT_CACHE = """#!/bin/sh
lists="$STATE/old"; [ -e "$STATE/updated" ] && lists="$STATE/new"
for last; do :; done
case "$*" in
*search*) while read -r name version; do echo "$name" | grep -E "$last" >/dev/null && echo "$name - x"; done <"$lists";;
*madison*) grep "^$last " "$lists" | while read -r name version; do echo "$name | $version | a mirror"; done;;
*policy*) grep "^$last " "$lists" | head -n 1 | sed 's/.* /  Candidate: /';;
esac
exit 0
"""
APT_GET = """#!/bin/sh
echo "$@" >>"$STATE/log"
for last; do :; done
name=${last%%=*}; version=${last#*=}
case "$*" in
*update) [ ! -e "$STATE/offline" ] || { echo "E: Could not resolve" >&2; exit 100; }; touch "$STATE/updated"; exit 0;;
*install*) echo "$name $version" >>"$STATE/installed"; exit 0;;
esac
mkdir -p tree/DEBIAN tree/usr/src tree/boot "tree/lib/modules/$name"
printf 'Package: x\\nVersion: 1\\nArchitecture: all\\nMaintainer: a\\nDescription: b\\n' >tree/DEBIAN/control
case "$name" in
linux-image*) echo kernel >"tree/boot/vmlinuz-$name";;
linux-source*)
    mkdir "$name"; rest=${version#*.*.}
    printf 'VERSION = 6\\nPATCHLEVEL = %s\\nSUBLEVEL = %s\\n' "${name#linux-source-6.}" "${rest%%-*}" >"$name/Makefile"
    tar -cf "tree/usr/src/$name.tar.xz" "$name"; rm -r "$name";;
esac
"$REAL_DPKG" --root-owner-group -b tree x.deb >/dev/null && rm -r tree
"""
DPKG_QUERY = """#!/bin/sh
for last; do :; done
found=$(grep "^$last " "$STATE/installed" | tail -n 1)
[ -n "$found" ] && printf 'installed %s' "${found#* }"
"""
OLD = """\
linux-image-6.1.0-51-cloud-amd64 6.1.176-1
linux-image-6.1.0-51-amd64 6.1.176-1
linux-headers-6.1.0-51-amd64 6.1.176-1
linux-source-6.1 6.1.176-1
"""
NEW = """\
linux-image-6.1.0-56-cloud-amd64 6.1.192-2
linux-image-6.1.0-51-cloud-amd64 6.1.176-1
linux-image-6.1.0-56-amd64 6.1.192-2
linux-headers-6.1.0-56-amd64 6.1.192-2
linux-source-6.1 6.1.192-2
linux-source-6.1 6.1.176-1
linux-image-6.12.117+deb12-cloud-amd64 6.12.117-1~deb12u1
linux-source-6.12 6.12.117-1~deb12u1
"""
ALL_OF_6_1 = [
    "linux-image-6.1.0-56-cloud-amd64=6.1.192-2",
    "linux-image-6.1.0-56-amd64=6.1.192-2",
    "linux-headers-6.1.0-56-amd64=6.1.192-2",
    "linux-source-6.1=6.1.192-2",
]


class Machine:
    """A machine with an empty cache: what apt knows, and what was asked of it."""

    def __init__(self, state: Path, tool) -> None:
        self.state, self.tool = state, tool

    def lists(self, *, old: str = OLD, new: str = NEW) -> None:
        (self.state / "old").write_text(old)
        (self.state / "new").write_text(new)

    def asked(self) -> list[str]:
        """The last word of each call of apt-get."""
        log = self.state / "log"
        return [line.split()[-1] for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture
def machine(tmp_path, monkeypatch):
    real = "/usr/bin/dpkg-deb"
    if not os.access(real, os.X_OK):
        pytest.skip("dpkg-deb is not installed (not a Debian machine)")
    specification = importlib.util.spec_from_file_location("debian_tool", TOOL)
    tool = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "debian_tool", tool)
    specification.loader.exec_module(tool)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("apt-cache", APT_CACHE), ("apt-get", APT_GET), ("dpkg-query", DPKG_QUERY)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    state, lists = tmp_path / "state", tmp_path / "lists"
    for folder in (state, lists):
        folder.mkdir()
    (state / "installed").touch()
    for name, value in {"STATE": state, "REAL_DPKG": real, "XDG_CACHE_HOME": tmp_path / "cache"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(tool, "LISTS", lists)
    monkeypatch.setattr(tool, "PROGRAMS", {"kmod": "the guest's module order"})
    monkeypatch.setattr(tool, "NEWEST_SUITE", "no suite")
    monkeypatch.setattr(tool.os, "geteuid", lambda: 0)
    made = Machine(state, tool)
    made.lists()
    return made


def version_of_source() -> str:
    return kernel_source.tree_version(cache_folder() / "sources/linux-source-6.1")


def test_old_lists_are_refreshed_once_and_all_of_a_series_has_one_version(machine, capsys):
    os.utime(machine.tool.LISTS, (1, 1))
    assert machine.tool.prepare_tests()
    asked = machine.asked()
    assert asked[:2] == ["update", "kmod"]
    assert asked[2:6] == ALL_OF_6_1
    assert asked.count("update") == 1
    assert version_of_source() == "6.1.192"
    said = capsys.readouterr().err
    assert "days old" in said
    assert "one version" not in said


def test_new_lists_are_refreshed_only_when_something_is_not_found(machine):
    machine.lists(old=NEW)
    assert machine.tool.prepare_tests()
    assert "update" not in machine.asked()
    machine.lists(old=OLD)  # which have no 6.12
    assert machine.tool.prepare_tests()
    assert machine.asked().count("update") == 1


def test_a_source_of_another_point_release_is_replaced(machine):
    machine.lists(old=OLD + NEW[NEW.index("linux-image-6.12") :])
    assert machine.tool.prepare_tests()
    assert version_of_source() == "6.1.176"
    machine.lists(old=NEW)
    assert machine.tool.prepare_tests()
    assert version_of_source() == "6.1.192"
    assert [path.name for path in (cache_folder() / "sources").glob("*6.1")] == ["linux-source-6.1"]


def test_which_differ_is_said(machine, capsys):
    machine.lists(new=NEW.replace("linux-source-6.1 6.1.192-2\n", ""))
    assert not machine.tool.prepare_tests()
    said = [line for line in capsys.readouterr().err.splitlines() if "cannot be had in one version" in line]
    assert len(said) == 1
    assert "image linux-image-6.1.0-56-amd64 6.1.192-2" in said[0]
    assert "source linux-source-6.1 6.1.176-1" in said[0]
    assert version_of_source() == "6.1.176"


def test_without_a_network_the_cache_serves_and_nothing_is_asked_twice(machine, capsys):
    machine.lists(old=NEW)
    assert machine.tool.prepare_tests()
    (machine.state / "offline").touch()
    os.utime(machine.tool.LISTS, (1, 1))
    machine.lists(old="")
    assert not machine.tool.prepare_tests()
    assert version_of_source() == "6.1.192"
    assert machine.asked().count("update") == 1
    assert "the package lists could not be refreshed: E: Could not resolve" in capsys.readouterr().err


def test_without_root_nothing_is_refreshed_or_installed(machine, monkeypatch, capsys):
    monkeypatch.setattr(machine.tool.os, "geteuid", lambda: 1000)
    os.utime(machine.tool.LISTS, (1, 1))
    machine.lists(old=NEW)
    assert not machine.tool.prepare_tests()
    assert {"update", "kmod", "linux-headers-6.1.0-56-amd64=6.1.192-2"}.isdisjoint(machine.asked())
    assert "the package lists are not refreshed: they are" in capsys.readouterr().err
