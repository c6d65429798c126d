"""What cannot be done is reported: rings that cannot be made, a socket folder of somebody else."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracepoint.errors import TracepointError
from tracepoint.runtime.fire import mechanism as core
from tracepoint.runtime.remote.registry import ProcessError, check_folder

SOURCE = Path(__file__).resolve().parents[2] / "src"

DECLARE = """
import sys
sys.path.insert(0, {source!r})
import tracepoint as tp

@tp.trace_event(system="map", printk='"%llu", n')
def step(n: tp.u64) -> None: ...
"""
RINGS_GONE = (
    DECLARE
    + """
import os
os.mkdir({folder!r})
instance = tp.tracing.make_instance("mapped", n_pages=8, directory={folder!r})
step.enable(instance)
for name in os.listdir({folder!r}):
    os.unlink(os.path.join({folder!r}, name))
os.rmdir({folder!r})
step(1)
step(2)
print(step.n_faults, instance.stats["dropped"], tp.tracing.faults[1][-1])
"""
)


def run(text, environment=None, *options):
    """Run a program; return what it printed and what was reported."""
    command = [sys.executable, *options, "-c", text]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **(environment or {})}, check=True
    )
    return done.stdout, done.stderr


@pytest.mark.skipif(core.IS_PURE, reason="rings in files need the C core: install gcc and run `make setup`")
def test_a_ring_that_cannot_be_made_is_a_fault(tmp_path):
    folder = str(tmp_path / "rings")
    told, said = run(RINGS_GONE.format(source=str(SOURCE), folder=folder))
    assert told.startswith("2 2 ('map:step', 'ring', ")
    assert "FileNotFoundError" in told
    assert folder in told
    assert said.count("Warning") == 1
    assert folder in said


def test_a_directory_that_is_not_there_is_reported_at_once(runtime, tmp_path):
    (tmp_path / "file").write_text("")
    for name, number in (("nowhere", errno.ENOENT), ("file", errno.ENOTDIR)):
        with pytest.raises(TracepointError, match=name) as told:
            runtime.tracing.make_instance("mapped", directory=str(tmp_path / name))
        assert told.value.errno == number
    assert "mapped" not in runtime.tracing.instances


@pytest.fixture
def somebodys(tmp_path):
    """A folder that belongs to another user; only root can make one."""
    if os.geteuid():
        pytest.skip("root makes a folder of another user: run as root")
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    return folder


@pytest.mark.parametrize("options", [(), ("-W", "error")])
def test_a_socket_folder_of_somebody_else_is_reported(somebodys, options):
    text = DECLARE.format(source=str(SOURCE)) + "print('runs')"
    environment = {"TRACEPOINT": "1", "TRACEPOINT_SOCKETS": str(somebodys)}
    told, said = run(text, environment, *options)
    assert told == "runs\n"
    if not options:
        assert f"this process cannot be traced from outside: {somebodys} belongs to user 12345" in said


def test_a_folder_that_others_may_write_to_is_told_from_one_of_others(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(ProcessError, match="may be written by others"):
        check_folder(tmp_path)
