"""Input of any size and kind: refused at once, in bounded memory, with a line that says why."""

import os
import re
import resource
import subprocess
import sys

import pytest

pytestmark = pytest.mark.programs

#: Words of commands; GIVEN is the file, TREE a small kernel tree, HEADER a header without faults.
COMMANDS = {
    "check": "check GIVEN",
    "check baseline": "check HEADER --baseline GIVEN",
    "check settings": "check HEADER --config GIVEN",
    "fmt": "fmt --diff GIVEN",
    "show": "show GIVEN",
    "show btf": "show HEADER --btf GIVEN",
    "try": "try GIVEN",
    "read": "read GIVEN",
    "generate": "generate module GIVEN",
    "index": "index GIVEN",
    "diff": "diff HEADER GIVEN",
    "diff uses": "diff HEADER HEADER --uses GIVEN",
    "place event": "place --tree TREE --event GIVEN --at a.c:f --entry --why ducks-are-lost-here",
    "place plan": "place --tree TREE --plan GIVEN",
    "place why": "place --tree TREE --event HEADER --at a.c:f --entry --why @GIVEN",
    "lab file": "lab run --file GIVEN:/x true",
    "lab patch": "lab build --kernel TREE --patch GIVEN",
}
KINDS = {
    "fifo": "a FIFO",
    "zero": "a device",
    "folder": "a folder",
    "sparse": "too much|not a trace.dat|magic",
}
TREE = (
    "include/linux/tracepoint.h",
    "Makefile",
    "Kconfig",
    "scripts/kconfig/merge_config.sh",
    "arch/x86/Makefile",
)
#: A folder is as good as a file there, a recording comes through a FIFO as well (test_pipes.py); devices are
#: refused where FIFOs are, so that one in three will do.
EXCEPT = {
    "fifo": {"read"},
    "folder": {"check", "fmt", "show", "try", "generate", "index", "diff"},
    "zero": set(sorted(COMMANDS)[::3]) | set(sorted(COMMANDS)[1::3]),
}
PLAIN = """#undef TRACE_SYSTEM
#define TRACE_SYSTEM plain
TRACE_EVENT(plain, TP_PROTO(int n), TP_ARGS(n), TP_STRUCT__entry(__field(int, n)),
	TP_fast_assign(__entry->n = n;), TP_printk("n=%d", __entry->n));
"""


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


def make(kind, path):
    if kind == "zero":
        path.symlink_to("/dev/zero")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(2 << 30)


def run(folder, *words, **more):
    """Run a command where a file that is waited for, or read to the end of memory, is an error."""
    return subprocess.run(
        [sys.executable, "-m", "tracepoint", *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        preexec_fn=limit,
        check=False,
        timeout=120,
        cwd=folder,
        **more,
    )


@pytest.mark.parametrize(
    ("command", "kind"),
    [(c, k) for c in sorted(COMMANDS) for k in sorted(KINDS) if c not in EXCEPT.get(k, ())],
)
def test_is_refused(command, kind, tmp_path):
    tree = tmp_path / "tree"
    for name in TREE:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    (tree / "a.c").write_text('#include "a.h"\n\nvoid f(int n)\n{\n\tg();\n}\n')
    (tmp_path / "plain.h").write_text(PLAIN)
    make(kind, tmp_path / "given.h")
    places = {"GIVEN": str(tmp_path / "given.h"), "TREE": str(tree), "HEADER": "plain.h"}
    words = COMMANDS[command]
    for word, place in places.items():
        words = words.replace(word, place)
    cache = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = run(tmp_path, *words.split(), env=cache)
    # `lab` ends with 5 where there is no such kernel, patch or module (docs/reference/commands.md).
    assert done.returncode in ((5,) if command == "lab patch" else (2, 3)), done.stdout + done.stderr
    assert "given.h" in done.stderr or "/dev/zero" in done.stderr
    assert "Traceback" not in done.stderr
    if kind != "sparse":
        assert KINDS[kind] in done.stderr
    else:
        assert re.search(KINDS[kind], done.stderr)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        "TRACE_EVENT(a, TP_PROTO(int n));".encode("utf-16"),
        b"#define A\rTRACE\r",
        bytes(range(256)) * 20,
        b"int main(void) { return 0; }\n",
    ],
    ids=["empty", "utf-16", "cr-only", "binary", "c"],
)
def test_a_file_without_trace_events_is_said_to_be_one(data, tmp_path):
    path = tmp_path / "given.h"
    path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-m", "tracepoint", "check", path],
        capture_output=True,
        text=True,
        errors="surrogateescape",  # the finding shows the line as it is
        check=False,
    )
    assert done.returncode == 2
    assert f"{path}: it has no trace events" in done.stderr


def test_programs_that_name_all_files_may_name_some_without_trace_events(tmp_path):
    (tmp_path / "one.h").write_text("int a;\n")
    words = [sys.executable, "-m", "tracepoint", "check", "--skip-eventless", "one.h"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "0 findings in 1 header\n")
    (tmp_path / "two.h").write_text(PLAIN.replace("n=%d", "n=%d\\n"))
    done = subprocess.run([*words, "two.h"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("error")) == (1, 0)
