"""Recordings that become Parquet datasets."""

from __future__ import annotations

import pytest

from control.test_record import files, records_of  # noqa: F401
from tracepoint.cli.main import main

parquet = pytest.importorskip("pyarrow.parquet")


def test_a_recording_becomes_a_dataset(files, tmp_path, capsys):  # noqa: F811
    target = tmp_path / "web.parquet"
    words = ["record", "irq", "--seconds", "0", "-o", str(target)]
    assert main(words) == 0
    table = parquet.read_table(target, filters=[("event", "=", "irq.softirq_entry")])
    assert table.column("vec").to_pylist() == list(range(1030))
    assert [path.name for path in tmp_path.iterdir()] == ["web.parquet"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "web.parquet: 1030 records\n" in told
    assert "is there already; nothing was recorded" in told
    # The file that is gone when the command ends is not named.
    assert "web.dat" not in told
    assert main([*words, "--force"]) == 0
    assert "web.parquet: the recording as a Parquet dataset" in capsys.readouterr().err


def test_without_pyarrow_nothing_is_recorded(files, tmp_path, capsys, monkeypatch):  # noqa: F811
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    assert main(["record", "irq", "--seconds", "0", "-o", str(tmp_path / "web.parquet")]) == 2
    assert "pyarrow" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert files.pages[0]


def test_a_conversion_that_fails_leaves_the_recording(files, tmp_path, capsys, monkeypatch):  # noqa: F811
    def full(*_) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tracepoint.cli.kernel.dataset.write_parquet", full)
    assert main(["record", "irq", "--seconds", "0", "-o", str(tmp_path / "web.parquet")]) == 2
    assert "web.dat has the recording" in capsys.readouterr().err
    assert records_of(tmp_path / "web.dat") == list(range(1030))
    assert set(files.arrays) == {""}


def test_a_dataset_is_a_folder(files, tmp_path, capsys):  # noqa: F811
    (tmp_path / "web.parquet").touch()
    assert main(["record", "irq", "--seconds", "0", "-o", str(tmp_path / "web.parquet"), "--force"]) == 2
    assert "is not a folder" in capsys.readouterr().err
    (tmp_path / "mine.dat").touch()
    assert main(["record", "irq", "-o", str(tmp_path / "mine.parquet"), "--force"]) == 2
    assert (tmp_path / "mine.dat").exists()
    convert = f"tracepoint convert {tmp_path / 'mine.dat'} {tmp_path / 'mine.parquet'} --to parquet"
    assert convert in capsys.readouterr().err
    assert main(["record", "irq", "--flight", "1s", "-o", str(tmp_path / "other.parquet")]) == 2
    assert "tracepoint convert" in capsys.readouterr().err
