"""Build Debian packages of HEAD, check and install them: tools/debian_package.py FOLDER.

Needs root and a Debian mirror.  mmdebstrap unpacks the suite below with what debian/control asks for (kept in
the cache for a week); dpkg-buildpackage and lintian run there.  Then apt installs the packages into a clean
system that has nothing else, and they are tried there.  The system that this runs on is not changed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from release import unpack_head

from tracepoint import __version__
from tracepoint.lab.kernels.suites import find_mirror, list_text
from tracepoint.tree.cache import cache_folder

ROOT = Path(__file__).resolve().parent.parent
#: The first Debian whose setuptools reads pyproject.toml (docs/decisions/0061-release.md).
SUITE = "trixie"
STALE_SECONDS = 7 * 86_400
#: What has to be installed when the packages are: commands, a manual page of each, completions.
TRIED = """\
for file in man/man1/tracepoint.1.gz man/man1/tracepoint-check.1.gz bash-completion/completions/tracepoint \\
    zsh/vendor-completions/_tracepoint fish/vendor_completions.d/tracepoint.fish; do
    test -s "/usr/share/$file"
done
python3 /checkout/tools/smoke.py
"""


def run(*words: str | Path, status: tuple[int, ...] = (0,)) -> str:
    """Run a program and return all that it prints; end with that when its status is not one of `status`."""
    command = [str(word) for word in words]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"},
        check=False,
    )
    text = done.stdout.decode(errors="replace")
    if done.returncode not in status:
        tail = "\n".join(text.splitlines()[-40:])
        sys.exit(f"deb: {' '.join(command[:6])}: status {done.returncode}\n{tail}")
    return text


def source_line() -> str:
    """Return the line of sources.list for the suite, from this machine's own mirror."""
    mirror = find_mirror()
    if mirror.signed_by.startswith("-----BEGIN"):
        sys.exit("deb: the key of the mirror is written out in its source list; it has to be a file")
    return list_text(mirror, [SUITE]).strip()


def build_system() -> Path:
    """Return a tar file of a system that has the build dependencies, making it when it is missing or old."""
    control = (ROOT / "debian/control").read_text(encoding="utf-8")
    depends = re.search(r"^Build-Depends:(.*?)^\S", control, re.MULTILINE | re.DOTALL)
    names = [re.sub(r"\s*\(.*?\)", "", name).strip() for name in (depends[1] if depends else "").split(",")]
    wanted = ",".join(["debhelper", *(n for n in names if not n.startswith("debhelper-compat")), "lintian"])
    wanted = wanted.replace("dh-sequence-python3", "dh-python")
    system = cache_folder() / "debian-package" / f"{SUITE}.tar"
    packages = system.with_suffix(".packages")
    is_same = packages.is_file() and packages.read_text() == wanted
    if system.is_file() and is_same and time.time() - system.stat().st_mtime < STALE_SECONDS:
        return system
    system.parent.mkdir(parents=True, exist_ok=True)
    print(f"deb: unpacking {SUITE} with the build dependencies, which takes minutes", flush=True)
    made = system.with_suffix(".new.tar")
    run("mmdebstrap", "--mode=root", "--variant=buildd", f"--include={wanted}", SUITE, made, source_line())
    made.rename(system)
    packages.write_text(wanted)
    return system


def build(system: Path, folder: Path) -> Path:
    """Build HEAD in an unpacked system below `folder`; return the folder of the packages in it."""
    print("deb: building", flush=True)
    inside = folder / "root"
    inside.mkdir()
    run("tar", "-xf", system, "-C", inside)
    checkout = inside / "build" / f"tracepoint-{__version__}"
    unpack_head(checkout)
    build = f"cd /build/{checkout.name} && dpkg-buildpackage -us -uc && chown -R nobody /build"
    run("chroot", inside, "sh", "-c", build)
    return inside / "build"


def judge(inside: Path) -> str:
    """Return the errors and warnings that lintian, run in an unpacked system, finds in the packages."""
    print("deb: checking with lintian", flush=True)
    lintian = "cd /build && lintian --fail-on none --show-overrides *.changes"
    text = run("chroot", inside, "su", "-s", "/bin/sh", "nobody", "-c", lintian)
    print("".join(f"deb: {line}\n" for line in text.splitlines()), end="")
    return "\n".join(line for line in text.splitlines() if line.startswith(("E:", "W:")))


def install(packages: list[Path], folder: Path) -> None:
    """Let apt install the packages into a clean system, and try them there."""
    print("deb: installing in a clean system", flush=True)
    script = folder / "tried"
    script.write_text("set -e\n" + TRIED)
    hooks = [
        'mkdir -p "$1/checkout/tools" "$1/checkout/tests/tracefile/golden"',
        f"sync-in {ROOT / 'tools'} /checkout/tools",
        f"sync-in {ROOT / 'tests/tracefile/golden'} /checkout/tests/tracefile/golden",
        f"copy-in {ROOT / 'README.md'} {ROOT / 'examples'} /checkout",
        f"copy-in {script} /tmp",
        'chroot "$1" sh /tmp/tried',
    ]
    run(
        "mmdebstrap",
        "--mode=root",
        "--variant=apt",
        *(f"--include={package}" for package in packages),
        "--hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount",
        *(f"--customize-hook={hook}" for hook in hooks),
        SUITE,
        "/dev/null",
        source_line(),
    )


def main(target: Path) -> None:
    """Make, check, install and keep the packages."""
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        sys.exit("deb: needs root and mmdebstrap: apt-get install mmdebstrap")
    changelog = (ROOT / "debian/changelog").read_text(encoding="utf-8")
    if not changelog.startswith(f"tracepoint ({__version__}) "):
        sys.exit(f"deb: debian/changelog does not begin with version {__version__}: add an entry")
    system = build_system()
    with TemporaryDirectory() as name:
        made = build(system, Path(name))
        problems = judge(made.parent)
        if problems:
            sys.exit(f"deb: lintian is not content:\n{problems}")
        packages = sorted(path for path in made.glob("*.deb") if "-dbgsym" not in path.name)
        install(packages, Path(name))
        target.mkdir(exist_ok=True)
        for path in [*packages, *made.glob("*.dsc"), *made.glob("*.tar.xz"), *made.glob("*.changes")]:
            shutil.copyfile(path, target / path.name)
            print(target / path.name)
    print("deb: built, no error or warning of lintian, installed in a clean system and tried there")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
