"""What is released: packages that are built again, checked by their own tools, installed and tried."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tracepoint
from oracles import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def make(target: str) -> str:
    """What `make TARGET` prints for HEAD."""
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=False).stdout:
        pytest.skip("the work tree has changes: commit first")
    done = subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.stdout.write(done.stdout)  # `pytest -rP` shows what was made, and what could not be tried
    return done.stdout


def test_debian_has_the_version_of_the_package() -> None:
    text = (ROOT / "debian/changelog").read_text(encoding="utf-8")
    assert text.startswith(f"tracepoint ({tracepoint.__version__}) ")


def test_the_smoke_test_of_packages_works_here() -> None:
    command = [sys.executable, "tools/smoke.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"smoke: tracepoint {tracepoint.__version__} in ")


def test_every_list_of_pythons_is_the_same() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: make setup")
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
    gitlab = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text(encoding="utf-8"))
    tested = jobs["python"]["strategy"]["matrix"]["python"]
    start = "Programming Language :: Python :: 3."
    named = ["3." + line.removeprefix(start) for line in PROJECT["project"]["classifiers"] if start in line]
    built = {one.removesuffix("-*") for one in PROJECT["tool"]["cibuildwheel"]["build"]}
    assert tested == named == gitlab["python"]["parallel"]["matrix"][0]["PYTHON"]
    assert {one for one in built if not one.endswith("t")} == {f"cp{one.replace('.', '')}" for one in tested}
    free = jobs["free-threaded"]["strategy"]["matrix"]["python"]
    assert free == gitlab["free-threaded"]["parallel"]["matrix"][0]["PYTHON"]
    assert {one for one in built if one.endswith("t")} <= {f"cp{one.replace('.', '')}" for one in free}


def test_a_package_index_takes_the_metadata() -> None:
    known = pytest.importorskip("trove_classifiers", reason="trove-classifiers is not installed: make setup")
    named = PROJECT["project"]["classifiers"]
    assert named == sorted(named)
    assert [one for one in named if one not in known.classifiers or one in known.deprecated_classifiers] == []
    assert not PROJECT["project"].keys() & {"urls"}, "there is no public address yet"
    assert all((ROOT / name).is_file() for name in PROJECT["project"]["license-files"])


@pytest.mark.programs
def test_the_page_of_a_package_index_has_no_links_to_files(tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"TRACEPOINT_PURE": "1"}, check=True)
    facts, _, page = (tmp_path / "tracepoint.egg-info/PKG-INFO").read_text(encoding="utf-8").partition("\n\n")
    assert "\nDescription-Content-Type: text/markdown\n" in facts
    assert page.startswith("# tracepoint\n")
    assert "[Your first event](docs/tutorial/first-event.md)" in (ROOT / "README.md").read_text(
        encoding="utf-8"
    )
    assert "* Your first event: declare it," in page
    assert re.findall(r"\]\((?!https?:)[^)]*\)", page) == []


@pytest.mark.programs
@pytest.mark.parametrize(("wanted", "fails"), [("", False), ("0", True)])
def test_a_release_has_its_c_modules_or_fails(wanted: str, fails: bool, tmp_path: Path) -> None:
    folders = ["--build-lib", str(tmp_path / "lib"), "--build-temp", str(tmp_path / "temp")]
    command = [sys.executable, "setup.py", "-q", "build_ext", *folders]
    environment = os.environ | {"CC": "false", "TRACEPOINT_PURE": wanted}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert "tracepoint._core" in done.stderr or "'false'" in done.stderr
    assert bool(done.returncode) is fails


@pytest.mark.programs
def test_the_changelog_has_each_change_once_under_its_kind() -> None:
    pytest.importorskip("towncrier", reason="towncrier is not installed: make setup")
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout[done.stdout.index("## 9.9 (") :].splitlines()
    assert lines[1] == ""
    kinds = [line.removeprefix("### ") for line in lines if line.startswith("### ")]
    assert kinds == [one["name"] for one in PROJECT["tool"]["towncrier"]["type"]]
    changes = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    fragments = [path.read_text(encoding="utf-8") for path in (ROOT / "changes.d").glob("*.md")]
    assert sorted(changes) == sorted(text.splitlines()[0] for text in fragments)


@pytest.mark.programs
@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("github-workflows", ".github/workflows/ci.yml"),
        ("github-workflows", ".github/workflows/release.yml"),
        ("github-actions", "action.yml"),
        ("gitlab-ci", ".gitlab-ci.yml"),
        ("gitlab-ci", "examples/ci/gitlab.yml"),
    ],
)
def test_files_of_ci_are_valid(schema: str, file: str) -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed: make setup")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_wheels_of_each_python_and_library_are_the_same_when_built_again() -> None:
    assert re.search(
        r"wheels: \d+ built twice with the same bytes, twine check passed, [1-9]\d* tried", make("wheels")
    )


@pytest.mark.slow
def test_release_is_the_same_when_built_again() -> None:
    assert "built twice with the same bytes, twine check passed, installed and tried" in make("release")


@pytest.mark.slow
@pytest.mark.root
def test_debian_packages_have_no_fault_and_work_in_a_clean_system() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("needs root and a Debian mirror: mmdebstrap unpacks a system")
    text = make("deb")
    assert "no error or warning of lintian, installed in a clean system and tried there" in text
