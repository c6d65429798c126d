"""What the stubs say of the C modules is what the modules have."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

ROOT = Path(__file__).resolve().parents[2]
# Python can call it since 3.12, the class has it before, for C; and what a metatype has from `type`.
ALLOWED = r"""
tracepoint\._decode\.Buffer\.__buffer__
tracepoint\._core\.Tracepoint\.__init__
"""
BORDER = """
from tracepoint import _core
from tracepoint.runtime.fire import twin
from tracepoint.runtime.fire.mechanism import CompiledCore, Core

compiled: CompiledCore = _core
both: list[Core] = [_core, twin]
"""


@pytest.mark.parametrize("name", ["_core", "_decode"])
def test_stubs_are_true(name, tmp_path):
    if importlib.util.find_spec(f"tracepoint.{name}") is None:
        pytest.skip(f"{name} is not built: run `make setup`")
    allowed = tmp_path / "allowed"
    allowed.write_text(ALLOWED)
    command = [sys.executable, "-m", "mypy.stubtest", f"tracepoint.{name}", "--allowlist", str(allowed)]
    done = subprocess.run(
        [*command, "--ignore-unused-allowlist", "--ignore-disjoint-bases"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_both_sides_of_the_border_are_what_the_runtime_expects(tmp_path):
    """The stub of the C core and the twin, against the protocols in `runtime.fire.mechanism`."""
    path = tmp_path / "border.py"
    path.write_text(BORDER)
    command = [sys.executable, "-m", "mypy", "--strict", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
