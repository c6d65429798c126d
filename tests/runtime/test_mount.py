"""The mounted directory, used by the shell, in a mount namespace of its own."""

import errno
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

pytestmark = pytest.mark.root

PROGRAM = """
import sys, time
from tracepoint.runtime.declare.event import trace_event
from tracepoint.runtime.remote.mount import mount
from tracepoint.model.python.types import u64

@trace_event(system="shop", printk='"order=%llu by %s", order_id, customer')
def order_placed(order_id: u64, customer: str) -> None: ...

with mount(sys.argv[1]):
    number = 0
    while True:
        order_placed(number, "ada")
        number += 1
        time.sleep(0.01)
"""

SHELL = r"""
set -u
"$PYTHON" "$DIR/app.py" "$DIR/m" & APP=$!
for i in $(seq 150); do mountpoint -q "$DIR/m" && break; sleep 0.1; done
cd "$DIR/m" || exit 1
say() { echo "$1: $(eval "$2" 2>&1 | tr '\n' '|')"; }
say before 'cat events/shop/order_placed/enable'
echo 1 > events/shop/order_placed/enable
sleep 0.3
say after 'cat events/shop/order_placed/enable events/shop/enable events/enable set_event'
say trace 'grep -c "order_placed: order=[0-9]* by ada" trace | sed "s/^[1-9][0-9]*$/some/"'
say bad 'echo "shop bad order_placed" > set_event; echo $?'
say left 'cat set_event'
say append 'echo "!order_placed" >> set_event; cat set_event'
say filter 'echo "order_id >" > events/shop/order_placed/filter; cat events/shop/order_placed/filter'
say errors 'tail -1 error_log | wc -c'
say create 'echo x > nosuch'
say mkdir 'mkdir nosuch; rm trace; mv trace x; ln -s a b'
say instance 'mkdir instances/a && ls instances && rmdir instances/a && ls instances'
say modes 'stat -c "%a %n" trace trace_marker trace_pipe events instances'
say size 'echo 100 > buffer_size_kb; cat buffer_size_kb'
say marker 'echo hello > trace_marker; grep -o "tracing_mark_write: hello" trace'
say pipe 'timeout 2 cat trace_pipe | grep -o "mark_write: hello"'
say busy 'cat trace_pipe > /dev/null & sleep 0.5; head -c 1 trace_pipe; kill $!; wait $!'
say clear 'echo > trace; grep -vc "^#" trace'
say off 'echo 0 > tracing_on; cat tracing_on; echo x > trace_marker'
cd /
kill $APP; wait $APP
for i in $(seq 150); do mountpoint -q "$DIR/m" || { echo unmounted; break; }; sleep 0.1; done
"""


def missing():
    if os.geteuid() != 0:
        return "needs root: a mount namespace"
    if not Path("/dev/fuse").exists():
        return "there is no /dev/fuse"
    if shutil.which("unshare") is None:
        return "unshare is missing: apt install util-linux"
    return ""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    if missing():
        pytest.skip(missing())
    pytest.importorskip("mfusepy", reason="pip install 'tracepoint[mount]'")
    folder = tmp_path_factory.mktemp("mount")
    (folder / "m").mkdir()
    (folder / "app.py").write_text(PROGRAM)
    (folder / "shell.sh").write_text(SHELL)
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "bash", str(folder / "shell.sh")],
        env={
            **os.environ,
            "DIR": str(folder),
            "PYTHON": sys.executable,
            "TRACEPOINT_SOCKETS": str(folder / "s"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert len(lines) > 5, done.stderr
    return {line.partition(":")[0]: line.partition(":")[2].strip() for line in lines}


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("before", "0|"),
        ("after", "1|1|1|shop:order_placed|"),
        ("trace", "some|"),
        ("left", "shop:order_placed|"),
        ("append", ""),
        ("errors", "24|"),
        ("instance", "a|"),
        ("modes", "640 trace|220 trace_marker|440 trace_pipe|750 events|750 instances|"),
        ("size", "103|"),
        ("marker", "tracing_mark_write: hello|"),
        ("clear", "0|"),
        ("unmounted", ""),
    ],
)
def test_the_shell_gets(said, what, answer):
    assert said[what] == answer


@pytest.mark.parametrize(
    ("what", "part"),
    [
        ("bad", "Invalid argument|1|"),
        ("filter", "parse_error: "),
        ("create", "Permission denied"),
        ("mkdir", "Operation not permitted"),
        ("busy", "Device or resource busy"),
        ("off", "Bad file descriptor"),
    ],
)
def test_the_shell_is_told(said, what, part):
    assert part in said[what]


def test_an_interrupted_reader_gets_eintr():
    """Without a number mfusepy would print a traceback to the mounted program's stderr."""
    served = pytest.importorskip("tracepoint.runtime.remote.fuse", reason="pip install 'tracepoint[mount]'")

    class Waiting:
        def open(self, path, flags):
            return self

        def read(self, size, offset):
            raise InterruptedError

    operations = served.Operations(Waiting())
    info = types.SimpleNamespace(flags=os.O_RDONLY, fh=0, direct_io=False)
    operations("open", "/trace_pipe", info)
    with pytest.raises(InterruptedError) as caught:
        operations("read", "/trace_pipe", 4096, 0, info)
    assert caught.value.errno == errno.EINTR
