"""Rendered lines against the kernel's own text of the same records."""

import io
import os
import random
import re
import struct
import tarfile
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from oracles import unpacked
from printk import pages
from printk.making import render_records
from tracepoint.layout.format import read_format
from tracepoint.printk.facts import NO_FACTS, Rendered, RenderFacts, read_printk_formats
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.printk.printer import Printer
from tracepoint.printk.program import compile_print
from tracepoint.printk.render import render_record

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("TRACEPOINT_DATA", ROOT.parent / "shared" / "data"))
ORACLE = Path(os.environ.get("TRACEPOINT_ORACLE", Path.home() / ".cache" / "tracepoint" / "oracle"))
RECORDINGS = sorted(p.parent for p in ORACLE.glob("*/info.json") if (p.parent / "passes").is_dir())
ADDRESS = re.compile(r"\b[0-9a-f]{16}\b")
MODULE_ADDRESS = re.compile(r"0xffffffffc[0-9a-f]{7}\b")
SYMBOL_IN_MODULE = re.compile(r"[\w.]+(\+0x[0-9a-f]+/0x[0-9a-f]+)? \[\w+\]")

pytestmark = pytest.mark.oracle


def text_of(data):
    return data.decode("utf-8", "surrogateescape")


class Tally:
    """Counts, for each type, lines that are equal, lines shown as fields, and others.

    With `uses_c` many records are rendered at once, by C where it was built.
    """

    def __init__(self, forms, facts, *, uses_c=False):
        self.forms, self.facts, self.uses_c = forms, facts, uses_c
        self.programs, self.printers = {}, {}
        self.equal, self.fields, self.wrong = Counter(), Counter(), Counter()
        self.examples = {}

    def compare(self, record, expected, same, limit=None):
        number = int.from_bytes(record[:2], "little")
        form = self.forms.get(number)
        if form is None:
            return
        name = f"{form.system}:{form.name}"
        if limit and self.equal[name] + self.wrong[name] + self.fields[name] >= limit:
            return
        program = self.programs.get(number)
        if program is None:
            program = self.programs[number] = compile_print(form)
        result = self.render(program, record)
        got = f"{form.name}: {result.text}" if program.is_named else result.text
        if same(got.rstrip("\n"), expected.rstrip("\n")):
            self.equal[name] += 1
        elif not result.is_exact:
            self.fields[name] += 1
        else:
            self.wrong[name] += 1
            self.examples.setdefault(name, (got, expected))

    def render(self, program, record):
        if not self.uses_c:
            return render_record(program, record, self.facts)
        number = program.format.id
        if number not in self.printers:
            self.printers[number] = Printer({number: program}, self.facts)
        lines = self.printers[number].render_list([record])
        return lines.noted.get(0) or Rendered(lines.texts[0])

    @property
    def types(self):
        return set(self.equal) | set(self.fields) | set(self.wrong)

    @property
    def identical(self):
        return self.types - set(self.fields) - set(self.wrong)


def same_but_for_hashes(got, expected):
    return got == expected or ADDRESS.sub("P", got) == ADDRESS.sub("P", expected)


@pytest.mark.parametrize("uses_c", [False, True], ids=["twin", "c"])
def test_small_recording_of_62_types(uses_c):
    trace = pages.V6(unpacked("small.v6.dat.zst"))
    forms = {form.id: form for form in (read_format(text, system=system) for system, text in trace.formats)}
    facts = RenderFacts(Kallsyms(trace.kallsyms), read_printk_formats(trace.printk_formats), hz=250)
    lines = pages.lines(text_of(unpacked("small.trace.txt.zst")))
    tally = Tally(forms, facts, uses_c=uses_c)
    for cpu, data in enumerate(trace.cpus):
        records = [record for _, record in pages.records(data)]
        assert len(records) == len(lines[cpu])
        for record, expected in zip(records, lines[cpu], strict=True):
            tally.compare(record, expected, same_but_for_hashes)
    assert not tally.wrong, tally.examples
    assert len(tally.types) == 62
    # vmemmap_base and HRTIMER_MODE_* are in neither the file nor the formats.
    assert set(tally.fields) == {
        "kmem:mm_page_alloc",
        "kmem:mm_page_free",
        "timer:hrtimer_start",
        "timer:hrtimer_init",
    }


def builtin_formats():
    """The formats of all events built into a kernel of Debian 12."""
    with tarfile.open(fileobj=io.BytesIO(unpacked("formats-6.1.187-builtin.tar.zst"))) as tar:
        names = [member.name for member in tar if member.name.endswith("/format")]
        return [
            read_format(text_of(tar.extractfile(name).read()), system=name.split("/")[-3]) for name in names
        ]


def test_every_builtin_format_compiles():
    needs = {
        f"{form.system}:{form.name}": compile_print(form, constants=lambda _: 0).needs
        for form in builtin_formats()
    }
    assert len(needs) == 1336
    left = {name: need for name, need in needs.items() if need and not name.startswith("ftrace:")}
    wanted = {need for needed in left.values() for need in needed}
    # Enum constants are given; what remains are kernel functions, kernel variables and a type's size.
    assert wanted <= {
        "sizeof(struct page)",
        "the function decode_prq_descriptor()",
        "the function cper_mem_err_unpack()",
        "the function xen_hypercall_name()",
    }


def random_record(rng, form, addresses):
    """Return a record that mostly is one: dynamic data inside, addresses of the kernel; or cut off."""
    size = max(f.offset + f.size for f in form.fields)
    tail = rng.choice((0, 8, 40, 100))
    fill = rng.choice((range(256), (0, 0, 0, 1, 2, 3, 65, 66, 255), range(32, 127)))
    record = bytearray(rng.choice(fill) for _ in range(size + tail))
    for field in form.fields:
        if field.is_data_loc and rng.random() < 0.85:
            length = rng.randrange(tail + 1)
            start = size - (field.offset + 4 if field.is_rel_loc else 0)
            struct.pack_into("<I", record, field.offset, length << 16 | start)
            if length:
                record[size + length - 1] = 0
        elif field.size == 8 and rng.random() < 0.3:
            struct.pack_into("<Q", record, field.offset, rng.choice(addresses))
    return bytes(record[: rng.randrange(len(record))] if rng.random() < 0.2 else record)


def test_c_and_twin_agree_on_any_record_of_any_builtin_event():
    rng = random.Random(5)
    symbols = Kallsyms(unpacked("kallsyms.zst").decode())
    texts = read_printk_formats((DATA / "printk_formats").read_text())
    addresses = [0, (1 << 64) - 5, 0xFFFFFFFF81000044, *list(texts)[:5]]
    some = RenderFacts(None, texts, 250, hash_pointers=True, variables={"jiffies": 5000, "vmemmap_base": 1 << 62},
                       constants=lambda name: sum(map(ord, name)) % 50, sizeof=lambda _: 64)  # fmt: skip
    forms = builtin_formats()
    for form, facts in product(forms, (NO_FACTS, some, replace(some, kallsyms=symbols, kptr_restrict=1))):
        program = compile_print(form)
        records = [random_record(rng, form, addresses) for _ in range(6)]
        assert render_records(program, records, facts) == [
            render_record(program, r, facts) for r in records
        ], form
    # What is left to the twin: functions of the kernel, and stacks and formats of the tracer's own events.
    left = [form.name for form in forms if compile_print(form).ops.leaves]
    assert len(left) <= 22, left


def same_but_for_later_modules(got, expected):
    """Symbols were read at the end: a module loaded after the text had no name there yet."""
    if got == expected:
        return True
    return SYMBOL_IN_MODULE.sub("S", got) == MODULE_ADDRESS.sub("S", expected)


@pytest.mark.skipif(
    not RECORDINGS, reason=f"no recording in {ORACLE}: make one with tests/guest/recording.py"
)
@pytest.mark.parametrize("uses_c", [False, True], ids=["twin", "c"])
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.name)
def test_recording_of_a_guest(recording, uses_c):
    texts = {path: path.read_bytes() for path in recording.glob("events/*/*/format")}
    if not any(texts.values()):
        pytest.skip(f"the format files of {recording} are empty")
    forms = {}
    for path, text in texts.items():
        form = read_format(text_of(text), system=path.parts[-3])
        forms[form.id] = form
    facts = RenderFacts(
        Kallsyms((recording / "kallsyms").read_text(), (recording / "modules").read_text()),
        read_printk_formats((recording / "printk_formats").read_text()),
        hz=250,
    )
    tally = Tally(forms, facts, uses_c=uses_c)
    for folder in sorted((recording / "passes").iterdir()):
        text = (folder / "trace.txt").read_text(encoding="utf-8", errors="surrogateescape")
        lines = pages.lines(text)
        for cpu, bodies in lines.items():
            data = (folder / f"cpu{cpu}.raw").read_bytes()
            for (_, record), expected in zip(pages.records(data), bodies, strict=False):
                tally.compare(record, expected, same_but_for_later_modules, limit=200)
    assert not tally.wrong, tally.examples
    assert sum(not name.startswith("syscalls:") for name in tally.types) >= 300
    # What remains shows its fields with a note: enum constants, jiffies and vmemmap_base are not in the recording.
    assert len(tally.identical) >= 0.97 * len(tally.types), sorted(tally.fields)
