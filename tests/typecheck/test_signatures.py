"""What type checkers see of events: the declared signatures, by mypy and by pyright."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tracepoint.cli.main import main
from tracepoint.errors import GenerateError
from tracepoint.generate.stubs import python_type, type_stubs
from tracepoint.model.read import read_header_text

pytestmark = pytest.mark.programs

SOURCE = Path(__file__).resolve().parents[2] / "src"
HEADER = """
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kmem
#include <linux/tracepoint.h>
DECLARE_EVENT_CLASS(page_class,
	TP_PROTO(struct page *page, int ret), TP_ARGS(page, ret),
	TP_STRUCT__entry(__field(int, ret)), TP_fast_assign(__entry->ret = ret;), TP_printk("%d", __entry->ret));
DEFINE_EVENT(page_class, page_in, TP_PROTO(struct page *page, int ret), TP_ARGS(page, ret));
DEFINE_EVENT(page_class, page_out, TP_PROTO(struct page *page, int ret), TP_ARGS(page, ret));
TRACE_EVENT(page_named,
	TP_PROTO(const char *name, enum kind in, u64 at), TP_ARGS(name, in, at),
	TP_STRUCT__entry(__string(name, name)), TP_fast_assign(__assign_str(name);), TP_printk("%s", __get_str(name)));
DECLARE_TRACE(page_bare, TP_PROTO(unsigned long pfn), TP_ARGS(pfn));
#include <trace/define_trace.h>
"""
# `# E` marks the lines at which a checker has to find something, `# P` those at which pyright has to, and at
# no others.
CALLS = """
import tracepoint as tp
from tracepoint import u32, u64
from typing import TYPE_CHECKING, cast
import kmem_events
from kmem_events import trace_page_in
if TYPE_CHECKING:
    from kmem_events import Header

kmem = cast("Header", tp.load("kmem.h"))
kmem.trace_page_in(object(), 1)
kmem.trace_page_in(page=object(), ret=True)
kmem.trace_page_in(object())  # E
kmem.trace_page_in(object(), "1")  # E
kmem.trace_page_inn(object(), 1)  # E
kmem["page_out"](object(), 1)
kmem["page_out"](1)  # E
kmem.trace_page_out.enable()
kmem.trace_page_out.filter = "ret > 1"
kmem.trace_page_out.filter = 3  # E
kmem.trace_page_bare(3)
kmem.trace_page_bare(None)  # E
kmem.trace_page_bare.enable()  # E
kmem.trace_page_bare.register(print).unregister()
kmem_events.trace_page_named("x", 1, 2)
kmem_events.trace_page_named(b"x", 1, 2)
kmem_events.trace_page_named(None, 1, 2)
kmem_events.trace_page_named(7, 1, 2)  # E
trace_page_in(object(), 1, 2)  # E
if trace_page_in:
    trace_page_in(object(), 1)


@tp.trace_event(system="shop", printk='"%llu %s", n, task')
def sold(n: u64, name: str, total: u32 = 5, task: str = tp.task_name) -> None: ...


sold(1, "x")
sold(n=1, name="x", total=3)
sold(1)  # E
sold("1", "x")  # E
sold(1, "x", colour="red")  # E
sold.enable()
sold.nothing()  # E
text: str = sold.format
number: int = sold.format  # E


class Placed(tp.TraceEvent, system="shop"):
    number: u64
    printk = '"%llu", number'


class Sent(tp.TraceEvent, system="shop"):
    number: u64
    printk = '"%llu", number'

    def assign(self, order: dict[str, int], how: str) -> None:
        self.number = order["number"]


Placed(7)
Placed(number=7)
Placed("x")  # P
Placed()  # P
Placed(1, 2)  # P
Placed.enable()
Placed.fliter = "number > 1"  # E
Sent({"number": 3}, "post")
Sent(order={"number": 3}, how="post")
Sent({"number": 3})  # P
Sent(3)  # P
Sent({"number": 3}, 5)  # P
Sent.enable()
Sent.enabel()  # E


@tp.trace_event(system="shop", printk='"%s %u", who, n')
def short(who: tp.char_array[16], n: u32) -> None: ...


short("x", 1)
short("x", "y")  # E
loaded = tp.load("kmem.h")
loaded.trace_page_in(object(), 1)
loaded.trace_page_in.enable()
loaded.trace_page_in.enabel()  # E
loaded["page_out"].filter = "ret > 1"
loaded["page_out"].filter = 3  # E


@tp.sites
def sell(n: int) -> int:
    sold(n, "x")
    return n


sell("1")  # E
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("types")
    (made / "kmem.h").write_text(HEADER)
    assert main(["generate", "stubs", str(made / "kmem.h"), "-o", str(made / "kmem_events.pyi"), "-q"]) == 0
    (made / "calls.py").write_text(CALLS)
    return made


PYRIGHT = [n for n, line in enumerate(CALLS.splitlines(), 1) if line.endswith(("# E", "# P"))]
EXPECTED = [n for n, line in enumerate(CALLS.splitlines(), 1) if line.endswith("# E")]


def test_mypy(folder):
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), "calls.py"]
    environment = {"MYPYPATH": str(SOURCE), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert "error: Cannot find" not in done.stdout
    assert set(re.findall(r"^(\S+?):\d+: error", done.stdout, re.MULTILINE)) == {"calls.py"}
    found = sorted({int(n) for n in re.findall(r"^calls.py:(\d+): error", done.stdout, re.MULTILINE)})
    assert found == EXPECTED, done.stdout


def test_mypy_finds_nothing_in_the_stub(folder):
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--cache-dir",
        str(folder / "cache"),
        "kmem_events.pyi",
    ]
    environment = {"MYPYPATH": str(SOURCE), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_pyright(folder):
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is missing: npm install -g pyright")
    settings = {"extraPaths": [str(SOURCE)], "typeCheckingMode": "strict", "reportUnusedExpression": False}
    (folder / "pyrightconfig.json").write_text(
        json.dumps({**settings, "include": ["calls.py", "kmem_events.pyi"]})
    )
    done = subprocess.run(
        [pyright, "--outputjson", "-p", str(folder)], capture_output=True, text=True, check=False
    )
    told = [d for d in json.loads(done.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    places = sorted({(Path(d["file"]).name, d["range"]["start"]["line"] + 1) for d in told})
    assert places == [("calls.py", n) for n in PYRIGHT], told


def test_what_is_no_module(folder):
    header = read_header_text(HEADER, path="kmem.h")
    for name in ("a-b", "class", "", "1a"):
        with pytest.raises(GenerateError, match="is not a valid Python module name"):
            type_stubs(header, name=name)
    with pytest.raises(GenerateError, match="declares no tracepoints"):
        type_stubs(read_header_text("", path="kmem.h"))


@pytest.mark.parametrize(
    ("ctype", "expected"),
    [
        ("int", "SupportsIndex"),
        ("const unsigned long long", "SupportsIndex"),
        ("enum x", "SupportsIndex"),
        ("char *", "str | bytes | None"),
        ("const char *const", "str | bytes | None"),
        ("char **", "Any"),
        ("u8 *", "Any"),
        ("pte_t", "Any"),
        ("struct cred", "Any"),
        ("int (*done)(void)", "Any"),
        ("", "Any"),
    ],
)
def test_types(ctype, expected):
    assert python_type(ctype) == expected
