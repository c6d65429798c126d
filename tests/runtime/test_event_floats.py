"""Floating point: recorded as bits, shown by integers, the same in every reader."""

import math
import random
import re
import shutil
import struct
import subprocess

import pytest

from tracepoint.errors import LayoutError
from tracepoint.filter.error import FilterError
from tracepoint.layout.floats import show_floats
from tracepoint.model.python.types import double, float32, u32
from tracepoint.runtime.files.tree import ControlFiles
from tracepoint.runtime.rings.save import save

EXACT = [0.0, 1.5, 0.1, 0.999999999, 1e-5, 1e-7, 123456.789, 5e-324, 1e-20, -3.14159265, 65535.9999999, -0.0]
EXACT += [2.0**39 + 0.25, 2.0**52, 2.0**60, 2.0**62, 9.0e18, -(2.0**62)]
random.seed(7)
EXACT += [random.uniform(-1e3, 1e3) for _ in range(60)] + [10 ** random.uniform(-12, 12) for _ in range(60)]


def narrow(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


@pytest.fixture
def shown(runtime, tmp_path):
    """Fires values and gives the lines: ours, and trace-cmd's where it is there."""

    @runtime.trace_event(
        system="fl", printk='"a=%f b=%.3f %s c=%.0f d=%5.4f 100%% n=%u", a, b, name, a, a, n', name="fl"
    )
    def event(a: double, b: float32, name: str, n: u32) -> None: ...

    tree = ControlFiles(runtime.tracing)

    def show(values):
        event.enable()
        for value in values:
            event(value, value, "x", 7)
        assert runtime.tracing.faults == (0, [])
        texts = [tree.read_text("trace")]
        if shutil.which("trace-cmd") is not None:
            target = tmp_path / "x.dat"
            save(target, version=6, files=tree)
            command = ["trace-cmd", "report", "-i", str(target)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            assert done.stderr == ""
            texts.append(done.stdout)
        return [re.findall(r"fl: +(.*)", text) for text in texts]

    show.event = event
    return show


def test_every_reader_shows_what_printf_shows(shown):
    lines = [f"a={v:f} b={narrow(v):.3f} x c={v:.0f} d={v:.4f} 100% n=7" for v in EXACT]
    for found in shown(EXACT):
        assert found == lines


def test_what_has_no_digits(shown):
    values = [math.inf, -math.inf, math.nan, 2.0**63, -(2.0**70)]
    words = ["inf ", "-inf ", "nan ", "huge ", "-huge "]
    for found in shown(values):
        assert found == [f"a={w}0.000000 b={w}0.000 x c={w}0 d={w}0.0000 100% n=7" for w in words]


def test_numbers_of_other_types(shown):
    class Half:
        def __float__(self):
            return 0.5

    for found in shown([3, True, Half()]):
        assert [line.split()[0] for line in found] == ["a=3.000000", "a=1.000000", "a=0.500000"]


def test_the_record_is_the_number(shown, runtime):
    shown.event.enable()
    shown.event(-1.25, 0.5, "x", 7)
    (record,) = runtime.tracing.records()
    assert struct.unpack_from("<df", record.data, 8) == (-1.25, 0.5)
    assert "\tfield:double a;\toffset:8;\tsize:8;" in shown.event.format
    assert "%f" not in shown.event.format


@pytest.mark.parametrize(
    "text", ['"%d", a', '"%x %f", a, a', '"%f", n', '"%*f", n, a', '"%s", a', '"%f", a + 1']
)
def test_what_cannot_be_shown_is_refused_at_the_declaration(runtime, text):
    with pytest.raises(LayoutError, match="cannot show"):

        @runtime.trace_event(system="fl", printk=text)
        def event(a: double, n: u32) -> None: ...


def test_filters_know_no_floating_point(shown):
    with pytest.raises(FilterError, match="Field not found"):
        shown.event.filter = "a > 1"
    shown.event.filter = "n > 1"


def test_print_formats_that_are_no_text_are_left_alone():
    assert show_floats("REC->a", {"a": "double"}) == "REC->a"
    assert show_floats('"%d%%", REC->n', {"a": "double"}) == '"%d%%", REC->n'
