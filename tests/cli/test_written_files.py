"""The files that commands write: where none can be made, the folder is named."""

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
