"""Build sdist and wheel of the commit HEAD into a folder: tools/release.py FOLDER.

Both are built twice, in folders of different names, and must have the same bytes; twine checks them.
The wheel is installed in an empty environment and tried; `tracepoint-VERSION.cdx.json` lists what is in them.
A tag of HEAD must be the version.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import uuid
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent


def run(*words: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """Run a program and return what it prints; end with its messages when it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(
            f"release: {' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


@cache
def head() -> str:
    """Return what HEAD is when this is first asked, whatever is committed later."""
    return run("git", "rev-parse", "HEAD").strip()


def unpack_head(folder: Path) -> None:
    """Unpack HEAD into `folder`, which is made."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", head()], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tree:
        tree.extractall(folder, filter="data")


def fixed_environment(epoch: str) -> dict[str, str]:
    """Return what makes a build the same on each machine and day, and an error without the C modules."""
    same = {"SOURCE_DATE_EPOCH": epoch, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    return same | {"TRACEPOINT_PURE": "0"}


def build(folder: Path, epoch: str) -> list[Path]:
    """Unpack HEAD into `folder`, build there, and return the sdist and the wheel made from it."""
    unpack_head(folder)
    out = folder / "out"
    run(sys.executable, "-m", "build", "--outdir", out, folder, cwd=folder, **fixed_environment(epoch))
    sdist, wheel = *out.glob("*.tar.gz"), *out.glob("*.whl")
    normalise(sdist, int(epoch))
    return [sdist, wheel]


def normalise(sdist: Path, epoch: int) -> None:
    """Write an sdist again with one time and owner for all files, in the order of their names.

    setuptools keeps the times of files that it makes, and gzip that of the archive.
    """
    packed = io.BytesIO()
    with tarfile.open(sdist) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    with sdist.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=epoch) as zipped:
        zipped.write(packed.getvalue())


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def materials(version: str, files: list[Path], epoch: str) -> str:
    """Return a CycloneDX bill of materials: the package, its files and what its extras may install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, base = project["name"], f"pkg:pypi/{project['name']}@{version}"
    wanted = sorted({one for extra in project["optional-dependencies"].values() for one in extra})
    files_made = [
        {"type": "file", "name": file.name, "hashes": [{"alg": "SHA-256", "content": digest(file)}]}
        for file in files
    ]
    extras = [{"type": "library", "name": one, "scope": "optional"} for one in wanted]
    when = run("date", "-u", "-d", f"@{epoch}", "+%Y-%m-%dT%H:%M:%SZ").strip()
    main = {"type": "application", "bom-ref": base, "name": name, "version": version, "purl": base}
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, ''.join(map(digest, files)))}",
        "version": 1,
        "metadata": {
            "timestamp": when,
            "component": main | {"licenses": [{"license": {"id": project["license"]}}]},
        },
        "components": [*files_made, *extras],
    }
    return json.dumps(bill, indent=1) + "\n"


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install the wheel in an empty environment, without an index, and use it."""
    run("sh", "tools/make-venv", sys.executable, folder)
    run(folder / "bin/python", "-m", "pip", "install", "-q", "--no-index", wheel)
    modules = run(folder / "bin/tracepoint", "-V", "-v", cwd=folder)
    if modules.count(".so") != 2:
        sys.exit(f"release: the wheel has not both C modules:\n{modules}")
    run(folder / "bin/tracepoint", "try", "--example", "swap:mm_page_swap_in", cwd=folder)
    for name in ("man/man1/tracepoint-check.1", "bash-completion/completions/tracepoint"):
        if not (folder / "share" / name).is_file():
            sys.exit(f"release: the wheel does not install share/{name}")


def head_epoch() -> str:
    """Return the time of HEAD in seconds; end when the work tree has changes that HEAD has not."""
    if run("git", "status", "--porcelain"):
        sys.exit("release: commit first: what is built is HEAD")
    return run("git", "log", "-1", "--format=%ct", head()).strip()


def main(target: Path) -> None:
    """Make the release."""
    epoch = head_epoch()
    version = run(sys.executable, "-c", "import tracepoint; print(tracepoint.__version__)").strip()
    tags = [tag for tag in run("git", "tag", "--points-at", "HEAD").split() if tag.startswith("v")]
    if tags and f"v{version}" not in tags:
        sys.exit(f"release: HEAD is tagged {', '.join(tags)}, and __version__ is {version}")
    fragments = len(list((ROOT / "changes.d").glob("*.md")))
    if tags and fragments:
        sys.exit(f"release: HEAD is tagged, and changes.d has {fragments} files: run towncrier build before")
    with TemporaryDirectory() as name:
        files, again = build(Path(name) / "one", epoch), build(Path(name) / "two/longer", epoch)
        for first, second in zip(files, again, strict=True):
            if digest(first) != digest(second):
                sys.exit(f"release: {first.name} is not the same when built again")
        run(sys.executable, "-m", "twine", "check", "--strict", *files)
        try_wheel(files[1], Path(name) / "venv")
        target.mkdir(exist_ok=True)
        for file in files:
            (target / file.name).write_bytes(file.read_bytes())
            print(f"{digest(file)}  {target / file.name}")
        bill = target / f"tracepoint-{version}.cdx.json"
        bill.write_text(materials(version, files, epoch), encoding="utf-8")
        print(f"{digest(bill)}  {bill}")
    print("release: built twice with the same bytes, twine check passed, installed and tried")
    print(f"release: tag {tags[0]}" if tags else f"release: HEAD has no tag v{version}: for testing only")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
