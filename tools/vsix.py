"""Build the extension of VS Code into a folder: tools/vsix.py FOLDER.

A .vsix is a ZIP file with a manifest and the extension's folder, whose libraries npm installs; it is the same
each time that it is built.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import quoteattr

import tracepoint

ROOT = Path(__file__).resolve().parent.parent
EXTENSION = ROOT / "editors/vscode"
SECONDS = 300
#: The kinds of files that VS Code is shown in the archive; others are left out.
KINDS = {
    ".json": "application/json",
    ".js": "application/javascript",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".vsixmanifest": "text/xml",
}
WHEN = (1980, 1, 1, 0, 0, 0)


class VsixError(Exception):
    """The extension cannot be built, with the reason."""


def build(folder: Path) -> Path:
    """Build the extension into a folder and return the file; raises VsixError."""
    program = shutil.which("npm")
    if program is None:
        raise VsixError("no npm to install the extension's libraries with; Debian: apt-get install npm")
    if os.environ.get("TRACEPOINT_NPM") == "no":
        raise VsixError("TRACEPOINT_NPM=no forbids installing the extension's libraries")
    package = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    package["version"] = tracepoint.__version__
    out = folder / f"{package['name']}-{tracepoint.__version__}.vsix"
    with TemporaryDirectory() as name:
        place = Path(name)
        for file in EXTENSION.iterdir():
            shutil.copy(file, place)
        shutil.copy(ROOT / "LICENSE", place / "LICENSE.txt")
        (place / "package.json").write_text(json.dumps(package, indent=2) + "\n", encoding="utf-8")
        install(program, place)
        folder.mkdir(parents=True, exist_ok=True)
        pack(place, package, out)
    return out


def install(program: str, place: Path) -> None:
    """Install the libraries that a package names beside it."""
    command = [program, "install", "--silent", "--omit=dev", "--no-package-lock", "--ignore-scripts"]
    try:
        done = subprocess.run(
            command, cwd=place, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise VsixError(f"npm did not install the extension's libraries within {SECONDS} s") from None
    if done.returncode:
        last = (done.stderr.strip() or "no message").splitlines()[-1]
        raise VsixError(f"npm cannot install the extension's libraries: {last}")


def pack(place: Path, package: dict[str, str], out: Path) -> None:
    """Write the files of a folder into an archive, with the manifests that VS Code reads."""
    files = sorted(
        path
        for path in place.rglob("*")
        if path.is_file() and path.name[0] != "." and (path.suffix in KINDS or "LICEN" in path.name.upper())
    )
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        write(archive, "[Content_Types].xml", content_types())
        write(archive, "extension.vsixmanifest", manifest(package))
        for path in files:
            write(archive, f"extension/{path.relative_to(place)}", path.read_bytes())


def write(archive: zipfile.ZipFile, name: str, data: str | bytes) -> None:
    """Add a file with a fixed time, so that the archive is the same when it is built again."""
    info = zipfile.ZipInfo(name, WHEN)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)


def content_types() -> str:
    """Return the list of the kinds of files, as Open Packaging wants it."""
    rows = "".join(
        f'<Default Extension={quoteattr(suffix)} ContentType="{kind}"/>' for suffix, kind in KINDS.items()
    )
    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{space}">{rows}</Types>\n'


def manifest(package: dict[str, str]) -> str:
    """Return what VS Code reads before the extension's own package.json."""
    space = "http://schemas.microsoft.com/developer/vsx-schema/2011"
    engine = package["engines"]["vscode"]  # type: ignore[index]
    identity = " ".join(
        f"{key}={quoteattr(value)}"
        for key, value in (
            ("Language", "en-US"),
            ("Id", package["name"]),
            ("Version", package["version"]),
            ("Publisher", package["publisher"]),
        )
    )
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="{space}">
  <Metadata>
    <Identity {identity}/>
    <DisplayName>{package["displayName"]}</DisplayName>
    <Description xml:space="preserve">{package["description"]}</Description>
    <Categories>{",".join(package["categories"])}</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value="{engine}"/>
    </Properties>
    <License>extension/LICENSE.txt</License>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details"
      Path="extension/README.md" Addressable="true"/>
  </Assets>
</PackageManifest>
"""


def main() -> int:
    """Build into the folder that is the only argument."""
    if len(sys.argv) != 2:
        sys.exit((__doc__ or "").splitlines()[0])
    try:
        out = build(Path(sys.argv[1]).absolute())
    except VsixError as error:
        sys.exit(f"vsix: {error}")
    sys.stdout.write(f"vsix: {out.name}, {out.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
