"""The extension of VS Code: what is in the archive that `make vsix` builds."""

from __future__ import annotations

import importlib.util
import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

import tracepoint
from oracles import ROOT

SPACE = "{http://schemas.microsoft.com/developer/vsx-schema/2011}"


def vsix() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tools_vsix", ROOT / "tools/vsix.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tools_vsix"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.programs
def test_archive_has_manifest_libraries_and_the_version(tmp_path: Path) -> None:
    tool = vsix()
    try:
        first, second = tool.build(tmp_path / "a"), tool.build(tmp_path / "b")
    except tool.VsixError as error:
        pytest.skip(str(error))
    assert first.name == f"tracepoint-{tracepoint.__version__}.vsix"
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        names = set(archive.namelist())
        package = json.loads(archive.read("extension/package.json"))
        manifest = ET.fromstring(archive.read("extension.vsixmanifest"))
        kinds = ET.fromstring(archive.read("[Content_Types].xml"))
        everything = b"".join(archive.read(name) for name in names)
    assert package["version"] == tracepoint.__version__
    assert f"extension/{package['main'].removeprefix('./')}" in names
    assert "extension/node_modules/vscode-languageclient/node.js" in names
    assert "extension/node_modules/vscode-languageclient/lib/node/main.js" in names
    assert {"extension/LICENSE.txt", "extension/README.md"} <= names
    assert str(tmp_path).encode() not in everything
    identity = manifest.find(f"{SPACE}Metadata/{SPACE}Identity")
    assert identity is not None
    assert (identity.get("Id"), identity.get("Version")) == ("tracepoint", tracepoint.__version__)
    assets = [asset.get("Path") for asset in manifest.iter(f"{SPACE}Asset")]
    assert assets
    assert set(assets) <= names
    known = {kind.get("Extension") for kind in kinds}
    assert {Path(name).suffix for name in names if "LICEN" not in name.upper()} - {".xml"} <= known
