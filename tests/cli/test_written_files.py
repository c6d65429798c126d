"""The files that commands write: where none can be made, the folder is named."""

import os
import stat

import pytest

from tracefile.making import GOLDEN
from tracepoint.cli.main import main

CUT = str(GOLDEN / "cut.v6.dat")
COMMANDS = {
    "merge": lambda out: ["merge", CUT, CUT, "-o", out],
    "cut": lambda out: ["cut", CUT, "-o", out],
    "convert": lambda out: ["convert", CUT, out, "--to", "csv"],
    "perfetto": lambda out: ["convert", CUT, out, "--to", "perfetto"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_folder_that_does_not_exist_is_named(tmp_path, capsys, name):
    folder = tmp_path / "none"
    assert main(COMMANDS[name](str(folder / "x"))) == 2
    assert f"{folder}: No such file or directory\n" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_file_is_written_whole_and_nothing_beside_it(tmp_path, name):
    assert main(COMMANDS[name](str(tmp_path / "x"))) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").stat().st_size > 1000


@pytest.mark.parametrize("name", COMMANDS)
def test_the_recording_that_is_read_is_not_written_over(tmp_path, capsys, name):
    own = tmp_path / "own.dat"
    own.write_bytes((GOLDEN / "cut.v6.dat").read_bytes())
    words = [word if word != CUT else str(own) for word in COMMANDS[name](str(own))]
    assert main(words) == 2
    assert f"{own}: the recording that is read; write to another file" in capsys.readouterr().err
    assert own.read_bytes() == (GOLDEN / "cut.v6.dat").read_bytes()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_fifo_is_not_replaced_and_a_link_stays(tmp_path, capsys, name):
    fifo, link, target = tmp_path / "fifo", tmp_path / "link", tmp_path / "target"
    os.mkfifo(fifo)
    assert main(COMMANDS[name](str(fifo))) == 2
    assert f"{fifo}: not a regular file" in capsys.readouterr().err
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    target.write_bytes(b"old")
    link.symlink_to(target)
    assert main(COMMANDS[name](str(link))) == 0
    assert link.is_symlink()
    assert target.stat().st_size > 1000
