"""The guests' programs of ours: found by name, compiled once, and doing what they say on this machine."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tracepoint.cli.main import main
from tracepoint.errors import LabError
from tracepoint.lab.guest import workloads

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc) on this machine")
NAMES = [workload.name for workload in workloads.WORKLOADS]


@pytest.fixture
def program(tmp_path):
    """Give a function that writes a workload to a file and runs it with arguments."""

    def run(name: str, *words: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / name
        path.write_bytes(workloads.build_workload(name))
        path.chmod(0o755)
        return subprocess.run([path, *words], capture_output=True, text=True, timeout=60, check=False)

    return run


def words_of(line: str) -> dict[str, int]:
    return {name: int(value, 0) for name, value in re.findall(r"([\w-]+)=(-?\w+)(?=\s|$)", line)}


@pytest.mark.parametrize("name", NAMES)
def test_every_workload_has_a_source_that_says_what_it_does(name):
    assert f" * {name} - " in workloads.read_source(name)


def test_an_unknown_name_is_refused_with_those_there_are():
    with pytest.raises(LabError, match="no workload 'pig': there are hog, traps, faults"):
        workloads.build_workload("pig")


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_programs_are_static_and_built_once(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = workloads.build_workload(name)
    assert data.startswith(b"\x7fELF")
    assert b"ld-linux" not in data[:4096]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert workloads.build_workload(name) == data
    assert [path.name.split("-")[0] for path in (tmp_path / "tracepoint/workloads").iterdir()] == [name]


@pytest.mark.usefixtures("tmp_path")
def test_without_a_compiler_the_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match=r"no C compiler .*Debian package gcc"):
        workloads.build_workload("hog")


@needs_compiler
def test_what_does_not_compile_is_shown_and_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(workloads, "read_source", lambda _name: "int main(void) { return nothing; }\n")
    with pytest.raises(LabError, match=r"hog\.c does not compile") as caught:
        workloads.build_workload("hog")
    assert "nothing" in caught.value.log_tail
    assert list((tmp_path / "tracepoint/workloads").iterdir()) == []


@needs_compiler
def test_the_hog_checks_what_it_wrote(program):
    done = program("hog", "-m", "2", "-r", "3")
    rounds = [words_of(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [(one["round"], one["pages"], one["wrong"]) for one in rounds] == [
        (1, 512, 0),
        (2, 512, 0),
        (3, 512, 0),
    ]


@needs_compiler
def test_the_hog_shares_its_pages_with_children(program):
    done = program("hog", "-m", "1", "-p", "2")
    pids = [words_of(line)["pid"] for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert len(set(pids)) == 3


@needs_compiler
@pytest.mark.parametrize("words", [["-m", "0"], ["-m", "x"], ["-r", "1001"], ["-p", "-1"], ["-z"], ["-m"]])
def test_the_hog_refuses_what_is_no_number(program, words):
    done = program("hog", *words)
    assert (done.returncode, done.stdout) == (2, "")


@needs_compiler
def test_traps_are_listed_with_the_reasons_for_those_that_are_never_raised(program):
    lines = program("traps", "-l").stdout.splitlines()
    listed = {int(line.split()[0]): "never: " in line for line in lines}
    assert sorted(listed) == [*range(21), 32]
    assert sorted(vector for vector, is_never in listed.items() if is_never) == [
        2,
        7,
        8,
        9,
        10,
        15,
        18,
        20,
        32,
    ]


@needs_compiler
def test_a_trap_is_reported_by_the_child_that_raised_it(program):
    lines = program("traps", "de", "ud").stdout.splitlines()
    assert [re.sub(r"pid=\d+ +", "", line) for line in lines] == [
        "0  de          SIGFPE  FPE_INTDIV  trap=0  error=0      divl by 0",
        "6  ud          SIGILL  ILL_ILLOPN  trap=6  error=0      ud2",
    ]


@needs_compiler
def test_an_unknown_trap_stops_before_any_is_raised(program):
    done = program("traps", "de", "dee")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "traps: no trap dee; traps -l lists them\n"


@needs_compiler
def test_faults_are_counted(program):
    lines = program("faults", "-n", "16", "anon", "zero", "cow", "kernel", "efault").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["anon", "zero", "cow", "kernel", "efault"]
    found = {line.split()[0]: words_of(line) for line in lines}
    assert [found[kind]["minflt"] for kind in ("anon", "zero", "cow", "kernel")] == [16, 32, 16, 16]
    assert [one["errors"] for one in found.values()] == [0, 0, 0, 0, 16]


@needs_compiler
def test_faults_without_a_kind_make_those_that_need_nothing(program):
    lines = program("faults").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["anon", "zero", "cow", "stack", "kernel", "efault"]


@needs_compiler
def test_a_kind_that_needs_a_file_says_so(program):
    done = program("faults", "file")
    assert done.returncode == 1
    assert done.stderr == "faults: file and file-disk need -f FILE\n"


def test_the_command_wants_something_to_run(capsys):
    assert main(["lab", "run"]) != 0
    assert "name a module, a script, a command or a --workload" in capsys.readouterr().err


def test_the_command_refuses_an_unknown_workload(capsys):
    assert main(["lab", "run", "--workload", "pig"]) != 0
    assert "pig" in capsys.readouterr().err
