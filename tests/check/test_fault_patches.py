"""Patches for real faults: clean for checkpatch, fixing what they say, and listed in the docs."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from oracles import ROOT, kernel_source
from tracepoint.check.engine import check_headers
from tracepoint.lab.build.patch import apply_patches
from tracepoint.model.read import read_header_text
from tracepoint.source.text import decode

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(shutil.which("perl") is None, reason="perl is not installed: apt-get install perl"),
]
#: What is there at least, of more: a point release may have fixed some.
LEAST_FAULTS = 20


def tool():
    """The tool that makes the page."""
    spec = importlib.util.spec_from_file_location("fault_patches", ROOT / "tools/fault_patches.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["fault_patches"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("series", ["6.12", "7.2"])
def test_patches_are_clean_and_fix_what_they_name(series: str, tmp_path: Path) -> None:
    tree = kernel_source(f"linux-source-{series}")
    fault_patches = tool()
    texts: dict[str, str] = {}

    def read(name: str) -> str | None:
        return texts.get(name) or decode((tree / name).read_bytes())

    page = (
        fault_patches.PAGE.read_text(encoding="utf-8")
        .partition(f"## Linux {series}\n")[2]
        .partition("\n## ")[0]
    )
    n_faults = 0
    for patch in fault_patches.make_patches(tree, tmp_path):
        name, subject, faults = fault_patches.describe(patch)
        n_faults += len(faults)
        assert fault_patches.checkpatch(tree, patch) == "clean"
        assert f"| {subject} | {name} |" in page
        texts |= {
            p: f.text for p, f in apply_patches([(patch.name, decode(patch.read_bytes()))], read).items()
        }
    assert n_faults >= LEAST_FAULTS
    assert page.count(" compiles |") == 2 * page.count("| clean |") > 0
    for name, text in texts.items():
        left = check_headers([read_header_text(text, name)], select=["TP010", "TP305", "TP319"])
        assert [d for d in left if d.fix is not None] == []


@pytest.mark.parametrize("series", ["6.12", "7.2"])
@pytest.mark.parametrize(
    "name", ["drivers/base/trace.h", "drivers/net/wireless/ath/ath10k/trace.h", "include/trace/events/spmi.h"]
)
def test_the_files_that_create_the_events_compile(name: str, series: str) -> None:
    """Each against the headers of its kernel, one of them with an option that Debian leaves out."""
    tree, fault_patches = kernel_source(f"linux-source-{series}"), tool()
    headers = fault_patches.headers_of(fault_patches.KERNELS[series])
    if headers is None:
        pytest.skip(f"no headers of {series} are fetched: tracepoint lab get")
    text = decode((tree / name).read_bytes())
    assert fault_patches.compiles(tree, headers, name, text).endswith(".c compiles")
    assert fault_patches.compiles(tree, headers, name, f"{text}\n#error x\n").startswith("no: ")
