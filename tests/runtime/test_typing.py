"""What type checkers see of declarations: the declared parameters, and what events can do."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

ROOT = Path(__file__).resolve().parents[2]
# A line that must be refused says so.
PROGRAM = """
import tracepoint as tp


@tp.trace_event(system="shop", printk='"item=%s left=%u", item, left')
def stock_low(item: str, left: tp.u32 = 3) -> None: ...


stock_low("tea")
stock_low("tea", left=2)
stock_low(5, 3)  # refused
stock_low("tea", "x")  # refused
stock_low()  # refused
stock_low.enable()
stock_low.enable(tp.tracing.make_instance("mine"))
stock_low.filter = "left > 2"
stock_low.filter = 5  # refused
stock_low.fliter = "left > 2"  # refused
with stock_low.register(lambda item, left: None, prio=5):
    print(bool(stock_low), stock_low.enabled, stock_low.n_faults, stock_low.format)


class OrderPlaced(tp.TraceEvent, system="shop"):
    number: tp.u64
    printk = '"%llu", number'


OrderPlaced(7)
OrderPlaced.enable()
OrderPlaced.filter = "number > 1"
OrderPlaced.fliter = "number > 1"  # refused


class OrderSent(tp.TraceEvent, system="shop", condition=lambda order, how: bool(how)):
    number: tp.u64
    printk = '"%llu", number'

    def assign(self, order: dict[str, int], how: str) -> None:
        self.number = order["number"]


OrderSent({"number": 3}, "post")
OrderSent.register(lambda order, how: None)
bits = tp.declare("bits", system="shop", struct=[tp.fields.bitmask("cpus", 64)], proto="long *cpus", printk='"%s", cpus')
tp.make_tracepoint(bits)(5)
"""


def test_mypy_sees_what_was_declared(tmp_path):
    pytest.importorskip("mypy", reason="pip install mypy")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(path)],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    refused = {int(line) for line in re.findall(r"^program.py:(\d+): error", done.stdout, re.MULTILINE)}
    lines = PROGRAM.splitlines()
    wanted = {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}
    assert refused == wanted, done.stdout + done.stderr
