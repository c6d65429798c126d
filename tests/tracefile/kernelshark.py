"""KernelShark's library as a judge of recordings: `kshark` opens a file and returns what it sees."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tracepoint.tree.cache import cache_folder

KSHARK_PACKAGES = ("libkshark2", "libkshark-dev", "libtracecmd1", "libjson-c-dev")


def kshark_folder():
    """Packages of KernelShark's library, unpacked and not installed; skips where they cannot be had."""
    folder = cache_folder() / "kshark"
    if not (folder / "usr").is_dir():
        if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            pytest.skip("no apt-get to fetch libkshark2 with")
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["apt-get", "download", *KSHARK_PACKAGES],
            cwd=folder,
            capture_output=True,
            check=False,
            timeout=300,
        )
        archives = sorted(folder.glob("*.deb"))
        if done.returncode or len(archives) < len(KSHARK_PACKAGES):
            pytest.skip("apt-get cannot download " + " ".join(KSHARK_PACKAGES))
        for archive in archives:
            subprocess.run(["dpkg-deb", "-x", archive, folder], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def kshark(tmp_path_factory):
    """A function that opens a file with KernelShark's library and returns its lines."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: apt-get install gcc")
    folder = kshark_folder()
    (library,) = folder.glob("usr/lib/*/libkshark.so.2")
    program = tmp_path_factory.mktemp("kshark") / "kshark"
    include = [f"-I{folder / 'usr/include/kernelshark'}", f"-I{folder / 'usr/include'}"]
    source = Path(__file__).with_name("kshark.c")
    link = [str(library), f"-Wl,-rpath,{library.parent}", f"-Wl,-rpath-link,{library.parent}"]
    built = subprocess.run(
        ["cc", *include, "-o", program, source, *link], capture_output=True, text=True, check=False
    )
    if built.returncode:
        pytest.skip(f"KernelShark's library cannot be linked here: {built.stderr[-300:]}")

    def run(path):
        environment = {"LD_LIBRARY_PATH": str(library.parent)}
        done = subprocess.run([program, path], capture_output=True, check=False, env=environment, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode("utf-8", "surrogateescape").split("\n")[:-1]

    return run
