"""`tracepoint mount` ends when it is asked to, though libfuse has the signals; what it shows: tests/runtime/test_mount.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tracepoint.cli.main import main

SERVICE = """
import time
import tracepoint as tp

@tp.trace_event(system="shop", printk='"left=%lld", left')
def stock_low(left: int) -> None: ...

time.sleep(600)
"""
SHELL = r"""
cd "$DIR"
TRACEPOINT=1 "$PYTHON" app.py & APP=$!
for i in $(seq 150); do [ -n "$(ls -A s 2>/dev/null)" ] && break; sleep 0.1; done
for signal in TERM HUP; do
    "$PYTHON" -m tracepoint mount m --pid $APP & MOUNT=$!
    for i in $(seq 150); do mountpoint -q m && break; sleep 0.1; done
    mountpoint -q m || echo "never mounted"
    kill -$signal $MOUNT
    for i in $(seq 100); do kill -0 $MOUNT 2>/dev/null || break; sleep 0.1; done
    kill -KILL $MOUNT 2>/dev/null && echo "$signal did not end it"
    mountpoint -q m && echo "$signal left it mounted"
done
kill $APP
echo done
"""


@pytest.mark.root
def test_it_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not Path("/dev/fuse").exists() or shutil.which("unshare") is None:
        pytest.skip(
            "needs root, /dev/fuse and unshare (apt install util-linux) for a mount namespace of its own"
        )
    pytest.importorskip("mfusepy", reason="pip install 'tracepoint[mount]'")
    (tmp_path / "app.py").write_text(SERVICE)
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "bash", "-c", SHELL],
        env={
            **os.environ,
            "DIR": str(tmp_path),
            "PYTHON": sys.executable,
            "TRACEPOINT_SOCKETS": str(tmp_path / "s"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "done\n", done.stderr
    assert "error" not in done.stderr


def test_a_file_is_no_folder_to_mount_on(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("tracepoint.cli.process.mount.why_not", lambda: "")
    monkeypatch.setattr("tracepoint.cli.process.mount.the_process", lambda pid: None)
    monkeypatch.setitem(sys.modules, "tracepoint.runtime.remote.fuse", type(sys)("stand_in"))
    sys.modules["tracepoint.runtime.remote.fuse"].serve = None  # never called
    (tmp_path / "file").touch()
    assert main(["mount", str(tmp_path / "file"), "--pid", "1"]) == 2
    assert capsys.readouterr().err == f"tracepoint: error: {tmp_path}/file: not a folder to mount on\n"
