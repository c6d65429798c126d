"""Event probes of a booted kernel: from the bytes of the same record ours make the same bytes and text."""

import re

import pytest

from runtime import control_tree
from tracepoint.lab.verify.script import read_records
from tracepoint.layout.format import read_format
from tracepoint.printk.render import render_record
from tracepoint.runtime.dynamic.event_probe import define_probe
from tracepoint.runtime.dynamic.probe_values import make_probe_record
from tracepoint.runtime.hierarchy import Tracing

pytestmark = pytest.mark.guest
EXEC = "sched/sched_process_exec"
FORK = "sched/sched_process_fork"
PROBES = {
    "whole": f"{EXEC} file=$filename:string pid=$pid old=$old_pid:s32",
    "cut": f"{EXEC} a=$pid:u8 b=$pid:s8 c=$pid:x16 d=$pid:b4@2/32 e=$pid:b3@5/16 f=$pid:symbol",
    "texts": f"{EXEC} a=$comm:string b=$COMM:string c=+2($comm):string d=+4($filename):string e=$pid:string f=+0($filename):ustring",
    "record": f"{EXEC} a=+1($filename):u8[3] b=+0($filename):x64 c=+0($filename):b4@1/8[4] d=+2($comm):u16",
    "fixed": f'{EXEC} a=\\5:u8 b=\\-5 c=\\0x1ff:x8 d=\\"text":string e=\\7:string f=@0x10:string',
    "arrays": f"{FORK} a=$parent_comm:string b=+3($child_comm):u8[4] c=+4(+0($child_comm)):string d=$child_pid:s64",
    "none": FORK,
    "some": f'{FORK} pid=$child_pid if child_pid > 0 && child_comm ~ "*"',
    "no": f"{FORK} pid=$child_pid if child_pid < 0",
}  # fmt: skip
SCRIPT = r"""
cd /sys/kernel/tracing
echo 1 >tracing_on
echo >trace
echo >dynamic_events
while read -r probe; do printf '%s\n' "$probe" >>dynamic_events || echo "refused: $probe"; done </tmp/probes
echo 1 >events/eprobes/enable
echo 1 >events/sched/sched_process_exec/enable
echo 1 >events/sched/sched_process_fork/enable
for n in 1 2 3; do /bin/true; cat /dev/null; done
echo 0 >tracing_on
cat trace >/tmp/trace
: >/tmp/raw
for cpu in per_cpu/cpu*; do
  left=$(sed -n 's/^entries: //p' $cpu/stats)
  while [ "$left" -gt 0 ]; do
    dd if=$cpu/trace_pipe_raw bs=4096 count=1 2>/dev/null >>/tmp/raw
    left=$(sed -n 's/^entries: //p' $cpu/stats)
  done
done
for name in events/eprobes/*/; do echo "@@@ $(basename $name)"; cat $name/format; done >/tmp/formats
echo 0 >events/enable
echo 1 >tracing_on
echo >dynamic_events
"""


def lines_of(text):
    """Return what stands after the time of each record's line."""
    return [re.sub(r"^.*?\d+\.\d{6}: ", "", line) for line in text.splitlines() if not line.startswith("#")]


def comm_of(record):
    """Return the name of a task that has just begun a program: the end of the program's path."""
    start = int.from_bytes(record[8:10], "little")
    return record[start:].partition(b"\0")[0].rpartition(b"/")[2][:15]


def plain(text):
    return re.sub(r"^ID: \d+$", "ID: N", text, flags=re.MULTILINE)


def test_records_and_text_are_those_of_the_kernel(guest):
    if not guest.image.release.startswith("6.1."):
        pytest.skip("print formats and types are those of 6.1")
    tracing = Tracing()
    sources = {}
    for path in (EXEC, FORK):
        form = read_format(guest.read(f"/sys/kernel/tracing/events/{path}/format"), system="sched")
        sources[form.id] = control_tree.declare_format(form, tracing)
    ours = {name: define_probe(tracing, f"e:{name} {text}".split()) for name, text in PROBES.items()}
    guest.put("/tmp/probes", "".join(f"e:{name} {text}\n" for name, text in PROBES.items()).encode())
    assert guest.run(SCRIPT, timeout=120).text == ""
    shown = dict(part.split("\n", 1) for part in guest.read("/tmp/formats").split("@@@ ")[1:])
    assert {name: plain(text) for name, text in shown.items()} == {
        name: plain(probe.format) for name, probe in ours.items()
    }
    numbers = {int(re.search(r"^ID: (\d+)$", text, re.MULTILINE)[1]): name for name, text in shown.items()}
    made, expected, source, wrong = {}, lines_of(guest.read("/tmp/trace")), b"", []
    for raw in read_records(guest.get("/tmp/raw")):
        number, record = raw.id(), raw.data
        if number in sources:
            source = record
        elif number in numbers:
            probe = ours[numbers[number]]
            here = make_probe_record(probe.args, source, lambda record=source: comm_of(record))
            # The ring buffer rounds lengths up to 4, and 8 bytes up to 12.
            if record[8 : len(here)] != here[8:] or len(record) - len(here) > 4:
                wrong.append((numbers[number], record[8:], here[8:]))
            text = render_record(probe.print_program(here), here).text
            made.setdefault(numbers[number], []).append(f"{numbers[number]}: {text}")
    assert wrong == []
    for name in PROBES:
        theirs = [line for line in expected if line.startswith(f"{name}: ")]
        assert sorted(made.get(name, [])) == sorted(theirs), name
        assert bool(theirs) is (name != "no"), name
