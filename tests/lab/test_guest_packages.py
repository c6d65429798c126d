import os
import shutil
import subprocess
import sys

import pytest

from tracepoint.errors import LabError
from tracepoint.lab.kernels import packages
from tracepoint.lab.kernels import supported as kernels
from tracepoint.tree.cache import cache_folder

APT_CACHE = """#!/bin/sh
echo "asked $@" >>"$LOG.cache"
case "$*" in
*search*) echo "linux-image-6.1.0-9-cloud-amd64 - old"; echo "linux-image-6.1.0-53-cloud-amd64 - Linux (signed)"
  echo "linux-image-6.1.0-54-cloud-amd64-unsigned - no";;
*policy*) printf 'p:\\n  Installed: (none)\\n  Candidate: 6.1.187-1\\n';;
esac
"""
APT_GET = """#!/bin/sh
echo "$@" >>"$LOG"
mkdir -p tree/DEBIAN tree/boot tree/lib/modules/6.1.0-53-cloud-amd64
echo kernel >tree/boot/vmlinuz-6.1.0-53-cloud-amd64
printf 'Package: x\\nVersion: 1\\nArchitecture: all\\nMaintainer: a\\nDescription: b\\n' >tree/DEBIAN/control
"$REAL_DPKG" --root-owner-group -b tree x.deb >/dev/null && rm -r tree
"""


@pytest.fixture
def debian(tmp_path, monkeypatch):
    """A package manager of our own on an empty PATH: two kernels, the newer one can be downloaded."""
    real = "/usr/bin/dpkg-deb"
    if not os.access(real, os.X_OK):
        pytest.skip("dpkg-deb is not installed (not a Debian machine)")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("apt-cache", APT_CACHE), ("apt-get", APT_GET)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (programs / "dpkg-deb").symlink_to(real)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("REAL_DPKG", real)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "lists").mkdir()
    monkeypatch.setattr(packages, "_APT_LISTS", tmp_path / "lists")
    return tmp_path


def test_the_newest_is_fetched_once(debian):
    image = packages.fetch_kernel("6.1")
    assert image.package == "linux-image-6.1.0-53-cloud-amd64"
    assert image.version == "6.1.187-1"
    assert image.release == "6.1.0-53-cloud-amd64"
    assert image.image.read_text() == "kernel\n"
    assert image.modules.is_dir()
    assert packages.fetch_kernel("6.1") == image
    assert (debian / "log").read_text().splitlines() == [
        "download linux-image-6.1.0-53-cloud-amd64=6.1.187-1"
    ]
    assert [path.name for path in (debian / "cache/tracepoint/kernels").iterdir()] == [
        "linux-image-6.1.0-53-cloud-amd64_6.1.187-1"
    ]


def asked(debian):
    """Return how often apt-cache was asked since the last call."""
    log = debian / "log.cache"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return len(lines)


def test_apt_is_asked_again_when_its_lists_have_changed(debian):
    image = packages.fetch_kernel("6.1")
    assert asked(debian) == 2
    assert packages.fetch_kernel("6.1") == image
    assert asked(debian) == 0
    # Another kernel, and the same from other lists, are other questions.
    packages.fetch_kernel("6.1", ("-o", f"Dir::State::Lists={debian / 'elsewhere'}"))
    assert asked(debian) == 2
    (debian / "lists/mirror_main_binary-amd64_Packages.lz4").write_text("new")
    (debian / "bin/apt-cache").write_text(APT_CACHE.replace("6.1.187-1", "6.1.188-1"))
    assert packages.fetch_kernel("6.1").version == "6.1.188-1"
    assert asked(debian) == 2


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"state": 1}', "\0"])
def test_a_damaged_answer_of_apt_is_asked_for_again(debian, damage):
    image = packages.fetch_kernel("6.1")
    (answer,) = (debian / "cache/tracepoint/apt/answers").iterdir()
    answer.write_text(damage)
    assert packages.fetch_kernel("6.1") == image
    assert asked(debian) == 4


def test_a_kernel_that_apt_named_and_that_is_gone_is_fetched_again(debian):
    image = packages.fetch_kernel("6.1")
    shutil.rmtree(image.image.parents[1])
    assert packages.fetch_kernel("6.1") == image
    assert len((debian / "log").read_text().splitlines()) == 2


def test_the_cache_serves_without_apt(debian, monkeypatch):
    image = packages.fetch_kernel("6.1")
    monkeypatch.setenv("PATH", str(debian))
    assert packages.fetch_kernel("6.1") == image


def test_no_apt_and_no_cache(debian, monkeypatch):
    monkeypatch.setenv("PATH", str(debian))
    with pytest.raises(LabError, match="apt-cache is not installed"):
        packages.fetch_kernel("6.1")


def test_no_network(debian):
    (debian / "bin/apt-get").write_text("#!/bin/sh\necho 'E: Failed to fetch it' >&2\nexit 100\n")
    with pytest.raises(LabError, match="Failed to fetch it") as caught:
        packages.fetch_kernel("6.1")
    assert caught.value.status == 100
    assert not list((debian / "cache/tracepoint/kernels").iterdir())


def test_a_package_without_a_kernel(debian):
    (debian / "bin/apt-get").write_text(APT_GET.replace("boot/vmlinuz", "boot/other"))
    with pytest.raises(LabError, match=r"no boot/vmlinuz"):
        packages.fetch_kernel("6.1")
    assert not list((debian / "cache/tracepoint/kernels").iterdir())


def test_nothing_matches(debian):
    (debian / "bin/apt-cache").write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(LabError, match="apt-get update"):
        packages.fetch_kernel("6.12")


def test_names():
    names = [kernel.name for kernel in kernels.KERNELS]
    assert len(set(names)) == len(names)
    assert {"6.1", "6.1-full", "6.12"} <= set(names)
    with pytest.raises(LabError, match=r"use one of 6\.1, "):
        kernels.find_kernel("5.x; rm")


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "tracepoint"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert str(cache_folder()) == "/home/somebody/.cache/tracepoint"


def test_import_is_light():
    code = "import sys, tracepoint.lab.kernels.supported; print('subprocess' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )


OFFLINE = """#!/bin/sh
for n in 1 2 3; do echo "Ign:1 http://deb/debian main linux-image amd64 1"; done
echo "Err:1 http://deb/debian main linux-image amd64 1"
echo "  Temporary failure resolving 'deb'"
echo "W: Download is performed unsandboxed as root as file 'x' couldn't be accessed by user '_apt'." >&2
echo "E: Failed to fetch http://deb/x.deb  Temporary failure resolving 'deb'" >&2
exit 100
"""
FULL = """#!/bin/sh
for n in 1 2 3; do echo "tar: ./usr/lib/file$n: Cannot write: No space left on device" >&2; done
echo "dpkg-deb: error: tar subprocess returned error exit status 2" >&2
exit 2
"""


def test_no_network_is_told_in_few_lines(debian):
    (debian / "bin/apt-get").write_text(OFFLINE)
    with pytest.raises(LabError) as caught:
        packages.fetch_kernel("6.1")
    assert str(caught.value).splitlines() == [
        "apt-get failed: no network, or the mirror is away; what is in the cache works without",
        "Err:1 http://deb/debian main linux-image amd64 1",
        "  Temporary failure resolving 'deb'",
        "E: Failed to fetch http://deb/x.deb  Temporary failure resolving 'deb'",
    ]


def test_a_full_disk_is_told_once_and_leaves_nothing(debian):
    (debian / "bin/dpkg-deb").unlink()
    (debian / "bin/dpkg-deb").write_text(FULL)
    (debian / "bin/dpkg-deb").chmod(0o755)
    with pytest.raises(LabError) as caught:
        packages.fetch_kernel("6.1")
    first, *others = str(caught.value).splitlines()
    folder = debian / "cache/tracepoint"
    assert first.startswith(f"dpkg-deb failed: no space left on the disk of {folder}; make room")
    assert others == ["tar: ./usr/lib/file1: Cannot write: No space left on device"]
    assert list((folder / "kernels").iterdir()) == []
