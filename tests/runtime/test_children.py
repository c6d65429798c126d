"""Workers and children of one program in one recording, by rings in a directory that all inherit."""

import collections
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tracepoint.cli.main import main
from tracepoint.errors import LossWarning, TracepointError
from tracepoint.runtime.fire import mechanism as core
from tracepoint.runtime.rings.mapped import open_rings
from tracepoint.tracefile.recording import read_tgids
from tracepoint.tracefile.text import TextWriter, facts_of
from tracepoint.tracefile.tracedat import open_tracedat

pytestmark = pytest.mark.programs

SOURCE = Path(__file__).resolve().parents[2] / "src"
N_JOBS = 60

PROGRAM = """
import multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor
import tracepoint as tp

if __name__ != "__main__":
    # In a worker that was spawned the numbers of events are others.
    @tp.trace_event(system="pool", printk='"%s", text')
    def started(text: str) -> None: ...

    started(__name__)

@tp.trace_event(system="pool", printk='"%u by %d", n, pid')
def job(n: tp.u32, pid: tp.s32) -> None: ...

def work(n):
    job(n, os.getpid())
    time.sleep(0.005)
    return os.getpid()

if __name__ == "__main__":
    job(1000, os.getpid())
    context = multiprocessing.get_context(sys.argv[1])
    with ProcessPoolExecutor(3, mp_context=context) as pool:
        pids = list(pool.map(work, range(60)))
    child = os.fork()
    if not child:
        job(1001, os.getpid())
        os._exit(0)
    os.waitpid(child, 0)
    saved = tp.save(sys.argv[2], children=True)
    print(os.getpid(), child, *pids)
    print(saved.n_records, saved.missing or "all", flush=True)
    sys.stdin.read()
"""


def environment(directory, **more):
    names = {
        "TRACEPOINT_DIRECTORY": str(directory),
        "TRACEPOINT_EVENTS": "pool:job",
        "PYTHONPATH": str(SOURCE),
    }
    return {**os.environ, **names, **more}


@pytest.fixture
def program(tmp_path):
    if core.IS_PURE:
        pytest.skip("rings in files need the C core: install gcc and run `make setup`")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def lines_of(path):
    """Return (tid, tgid, text) of every record of a trace.dat."""
    with open_tracedat(path) as trace:
        assert trace.damage == ()
        writer, tgids = TextWriter(trace.events, facts_of(trace)), read_tgids(trace.saved_tgids)
        records = sorted(trace.buffers[0].records(), key=lambda r: r.timestamp)
        tids = [int.from_bytes(r.data[4:8], "little") for r in records]
        return [(tid, tgids[tid], writer.line(r)) for tid, r in zip(tids, records, strict=True)]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_event_of_a_pool(program, tmp_path, method):
    rings, target = tmp_path / "rings", tmp_path / "x.dat"
    rings.mkdir()
    done = subprocess.run(
        [sys.executable, program, method, target],
        env=environment(rings), capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    numbers, told = done.stdout.splitlines()
    parent, child, *workers = map(int, numbers.split())
    assert told == f"{N_JOBS + 2} all"
    expected = collections.Counter({(parent, f"1000 by {parent}"): 1, (child, f"1001 by {child}"): 1})
    expected.update((pid, f"{n} by {pid}") for n, pid in enumerate(workers))
    lines = lines_of(target)
    assert (
        collections.Counter((tgid, re.search(r"job: (.*)", text)[1]) for _, tgid, text in lines) == expected
    )
    assert {tid for tid, _, _ in lines} == {parent, child, *workers}


def test_of_a_running_process_and_from_its_files(program, tmp_path, monkeypatch, capsys):
    rings, target = tmp_path / "rings", tmp_path / "x.dat"
    rings.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    words = [sys.executable, str(program), "fork", str(target)]
    with subprocess.Popen(
        words,
        env=environment(rings, TRACEPOINT="1"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.readline()
        process.stdout.readline()
        asked = tmp_path / "asked.dat"
        assert main(["ps", "--pid", str(process.pid), "--record", str(asked), "--children"]) == 0
        n_processes = len({path.name.split("-")[1] for path in rings.glob("ring-*")})
        assert f"{N_JOBS + 2} records of {n_processes} processes" in capsys.readouterr().err
        process.kill()
    later = tmp_path / "later.dat"
    assert open_rings(rings).save(later, version=6).n_records == N_JOBS + 2
    assert lines_of(later) == lines_of(asked) == lines_of(target)


def test_what_is_missing_is_a_warning(program, tmp_path):
    rings = tmp_path / "rings"
    rings.mkdir()
    text = "import tracepoint as tp\n@tp.trace_event(system='pool', printk='\"x\"')\ndef job(n: tp.u32, s: str) -> None: ...\n"
    text += "for n in range(3000): job(n, 'x' * 1000)\n"
    subprocess.run([sys.executable, "-c", text], env=environment(rings), check=True)
    (rings / "ring-1-1-1").write_bytes(b"x" * 5000)
    with pytest.warns(LossWarning, match=r"of 3000 events were overwritten.*ring-1-1-1: ") as told:
        saved = open_rings(rings).save(tmp_path / "x.dat")
    assert saved.n_records + saved.overrun == 3000
    assert Path(told[0].filename).name == Path(__file__).name


def test_two_clocks_do_not_mix(program, tmp_path):
    text = (
        "import tracepoint as tp; from pathlib import Path\n@tp.trace_event(system='pool', printk='\"x\"')\n"
    )
    text += "def job(n: tp.u32) -> None: ...\njob(1)\n"
    other = text.replace("job(1)", "tp.tracing.clock = 'boot'\njob(1)")
    for script in (text, other):
        subprocess.run([sys.executable, "-c", script], env=environment(tmp_path), check=True)
    with pytest.raises(TracepointError, match="the rings have the clocks boot, local"):
        open_rings(tmp_path).save(tmp_path / "x.dat")


def test_text_of_several_processes_is_refused_and_not_something_else_under_its_name(tmp_path):
    with pytest.raises(TracepointError, match=r"x\.txt: what is written is a trace\.dat, not \.txt"):
        open_rings(tmp_path).save(tmp_path / "x.txt")
    assert not (tmp_path / "x.txt").exists()


@pytest.mark.parametrize("pure", ["", "1"])
def test_without_a_directory_that_can_be_used(program, tmp_path, pure):
    where = tmp_path if pure else tmp_path / "missing"
    text = "import tracepoint as tp\ntp.tracing\ntp.save('x.dat', children=True)"
    done = subprocess.run(
        [sys.executable, "-c", text], env=environment(where, TRACEPOINT_PURE=pure), capture_output=True, text=True,
        check=False, cwd=tmp_path,
    )  # fmt: skip
    assert "RuntimeWarning: TRACEPOINT_DIRECTORY: " in done.stderr
    assert "start the program with TRACEPOINT_DIRECTORY=" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "x.dat").exists()


def test_rings_in_files_keep_their_size(program, tmp_path):
    text = (
        "import tracepoint as tp\nfrom tracepoint.runtime.files.tree import process_files\n"
        "try: process_files().write_text('buffer_size_kb', '64')\nexcept OSError as error: print(error.errno)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], env=environment(tmp_path), capture_output=True, check=True
    )
    assert done.stdout == b"16\n"
