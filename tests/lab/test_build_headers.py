"""Kernel headers fetched with a package manager of our own, and the `lab` command without a guest."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tracepoint.cli.main import main
from tracepoint.errors import LabError
from tracepoint.lab.kernels import headers, packages

RELEASE = "6.1.0-99-cloud-amd64"
APT_CACHE = """#!/bin/sh
case "$*" in
madison*) [ -n "$NO_HEADERS" ] || echo "$2 | ${VERSION:-6.1.199-1} | a mirror";;
show*) printf 'Package: x\\nDepends: linux-headers-6.1.0-99-common (= 6.1.199-1), linux-kbuild-6.1 (>= 6), gcc-12\\n';;
policy*) printf 'p:\\n  Candidate: 6.1.200-1\\n';;
esac
"""
APT_GET = """#!/bin/sh
echo "$@" >>"$LOG"
case "$2" in
*common*) folder=usr/src/linux-headers-6.1.0-99-common;;
*headers*) folder=usr/src/linux-headers-6.1.0-99-cloud-amd64;;
*) folder=usr/lib/linux-kbuild-6.1;;
esac
[ -n "$NOT_THESE" ] && folder=usr/other
mkdir -p tree/DEBIAN tree/$folder/include/generated
[ -z "$NAMES_ITSELF" ] || echo 'KBUILD_OUTPUT=/usr/src/linux-headers-6.1.0-99-cloud-amd64' >tree/$folder/Makefile
echo 'include /usr/src/linux-headers-6.1.0-99-common/Makefile' >>tree/$folder/Makefile
touch tree/$folder/include/generated/autoconf.h
printf 'Package: x\\nVersion: 1\\nArchitecture: all\\nMaintainer: a\\nDescription: b\\n' >tree/DEBIAN/control
dpkg-deb --root-owner-group -b tree x.deb >/dev/null && rm -r tree
"""


@pytest.fixture
def debian(tmp_path, monkeypatch):
    if not os.access("/usr/bin/dpkg-deb", os.X_OK):
        pytest.skip("dpkg-deb is not installed (not a Debian machine)")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("apt-cache", APT_CACHE), ("apt-get", APT_GET)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(headers, "_SOURCES", tmp_path / "usr/src")
    monkeypatch.setattr(headers, "_RELEASES", tmp_path / "lib/modules")
    return tmp_path


@pytest.fixture
def image(tmp_path):
    return packages.KernelImage(
        RELEASE, tmp_path / "vmlinuz", tmp_path, f"linux-image-{RELEASE}", "6.1.199-1"
    )


def left_over(tmp_path: Path) -> list[str]:
    folder = tmp_path / "cache/tracepoint/headers"
    return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []


def test_headers_come_with_what_they_include_and_can_be_moved(debian, image):
    said = []
    folder = headers.fetch_headers(image, said.append)
    assert folder.name == f"linux-headers-{RELEASE}"
    assert said == [
        f"fetching linux-headers-{RELEASE} 6.1.199-1",
        "fetching linux-headers-6.1.0-99-common 6.1.199-1",
        "fetching linux-kbuild-6.1 6.1.200-1",
    ]
    line = (folder / "Makefile").read_text().strip()
    assert line == "include $(dir $(lastword $(MAKEFILE_LIST)))../linux-headers-6.1.0-99-common/Makefile"
    assert (folder / "../linux-headers-6.1.0-99-common/Makefile").is_file()
    assert headers.fetch_headers(image) == headers.find_headers(image) == folder
    assert len((debian / "log").read_text().splitlines()) == 3


def test_headers_that_name_their_own_place_can_be_moved(debian, image, monkeypatch):
    """As those of Debian's newest kernels do."""
    monkeypatch.setenv("NAMES_ITSELF", "1")
    folder = headers.fetch_headers(image)
    (folder / "../linux-headers-6.1.0-99-common/Makefile").write_text(
        "show:\n\t@echo $(realpath $(KBUILD_OUTPUT))\n"
    )
    done = subprocess.run(["make", "-s", "-C", folder], capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == folder.resolve()


def test_installed_headers_come_first(debian, image):
    place = debian / "usr/src" / f"linux-headers-{RELEASE}"
    (place / "include/generated").mkdir(parents=True)
    assert headers.find_headers(image) is None
    (place / "include/generated/autoconf.h").touch()
    (place / "Makefile").touch()
    assert headers.fetch_headers(image) == place
    assert not (debian / "log").exists()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("NO_HEADERS", "1", "neither installed nor known to apt"),
        ("VERSION", "6.1.201-1", r"6\.1\.199-1 are gone: apt has linux-headers-.* 6\.1\.201-1"),
        ("NOT_THESE", "1", "not a headers package of this layout"),
    ],
)
def test_headers_that_cannot_be_had(debian, image, monkeypatch, name, value, said):
    monkeypatch.setenv(name, value)
    with pytest.raises(LabError, match=said):
        headers.fetch_headers(image)
    assert left_over(debian) == []
    assert headers.find_headers(image) is None


def test_a_download_that_breaks_leaves_nothing(debian, image):
    (debian / "bin/apt-get").write_text("#!/bin/sh\necho 'No space left on device' >&2\nexit 100\n")
    with pytest.raises(LabError, match="No space left on device"):
        headers.fetch_headers(image)
    assert left_over(debian) == []


def test_the_list_of_kernels(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for package in (f"linux-image-{RELEASE}_6.1.199-1", "linux-image-6.5.0-1-amd64_6.5.1"):
        release = package.partition("_")[0].removeprefix("linux-image-")
        folder = tmp_path / "tracepoint/kernels" / package
        (folder / "boot").mkdir(parents=True)
        (folder / "lib/modules" / release).mkdir(parents=True)
        (folder / f"boot/vmlinuz-{release}").touch()
        (folder / ".complete").touch()
    assert main(["lab", "kernels", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "tracepoint.lab.kernels.supported/1"
    rows = {row["name"]: row for row in document["kernels"]}
    assert rows["6.1"]["release"] == RELEASE
    assert rows["6.1"]["has_headers"] is False
    assert rows["6.12"]["release"] == ""
    assert rows["linux-image-6.5.0-1-amd64"]["version"] == "6.5.1"
    assert main(["lab", "kernels"]) == 0
    assert f"{RELEASE} (6.1.199-1), no headers" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "/no/such.ko"], "no such module"),
        (["run", "/no/such.ko.zst"], "no such module"),
        (["run", "--file", "x:relative", "true"], "write HERE:THERE"),
        (["run", "--file", "x:/../y", "true"], "write HERE:THERE"),
        (["run", "--kernel", "5.x", "true"], "unknown kernel '5.x'"),
        (["get", "5.x"], "unknown kernel '5.x'"),
    ],
)
def test_what_the_lab_cannot_do_is_an_error_of_one_sentence(capsys, words, said):
    assert main(["lab", *words]) == 5
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("there", "said"),
    [((), "busybox is not installed"), (("busybox",), "qemu-system-x86_64 is not installed")],
)
def test_a_missing_program_is_named(monkeypatch, debian, capsys, there, said):
    folder = debian / "cache/tracepoint/kernels" / f"linux-image-{RELEASE}_6.1.199-1"
    (folder / "boot").mkdir(parents=True)
    (folder / "lib/modules" / RELEASE).mkdir(parents=True)
    (folder / "lib/modules" / RELEASE / "modules.builtin").write_text("virtio_pci.ko\nvirtio_console.ko\n")
    (folder / f"boot/vmlinuz-{RELEASE}").touch()
    (folder / ".complete").touch()
    programs = debian / "few"
    programs.mkdir()
    for name in there:
        (programs / name).write_bytes(b"\x7fELF")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    assert main(["lab", "run", "true"]) == 5
    assert said in capsys.readouterr().err
