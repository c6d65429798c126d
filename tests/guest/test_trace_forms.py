"""The options `raw`, `hex` and `bin` of a booted kernel's `trace`, beside what ours makes of the same records."""

import re
import struct

import pytest

from tracepoint.layout.format import EventFormat
from tracepoint.layout.process_events import OWN_EVENTS, PRINT_ID, RAW_ID
from tracepoint.printk.facts import NO_FACTS
from tracepoint.record.raw import RawRecord
from tracepoint.tracefile.text import TextWriter
from tracepoint.tracefile.textoptions import FORMS, TextOptions

pytestmark = pytest.mark.guest
SCRIPT = r"""
cd /sys/kernel/tracing
echo 1 >tracing_on
echo >trace
echo 1 >events/sched/sched_process_exec/enable
echo stacktrace >events/sched/sched_process_exec/trigger
/bin/true
echo hello >trace_marker
printf 'abcdefghi' >trace_marker_raw
echo 0 >tracing_on
for context in 1 0; do
  echo $context >options/context-info
  for form in raw hex bin; do echo 1 >options/$form; cat trace >/tmp/$form$context; echo 0 >options/$form; done
done
echo 1 >options/context-info
echo '!stacktrace' >events/sched/sched_process_exec/trigger
echo 0 >events/enable
echo 1 >tracing_on
"""
LINE = re.compile(rb"^(\d+) (\d+) (\d+) (type: (\d+)|# ([0-9a-f]+) (buf: )?(.*))$", re.MULTILINE)


def records_of(text):
    """Return records that look like those of a raw text."""
    for match in LINE.finditer(text):
        pid, cpu, time = map(int, match.groups()[:3])
        if match[5]:
            number, rest = int(match[5]), b""
        elif match[7]:
            number, rest = RAW_ID, struct.pack("<I", int(match[6], 16)) + bytes.fromhex(match[8].decode())
        else:
            number, rest = PRINT_ID, struct.pack("<Q", int(match[6], 16)) + match[8] + b"\n\0"
        yield RawRecord(time, cpu, struct.pack("<HxxI", number, pid) + rest, 0)


@pytest.mark.parametrize("has_context", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_that_of_the_kernel(guest, form, has_context):
    guest.run(SCRIPT)
    theirs = guest.get(f"/tmp/{form}{int(has_context)}")
    records = list(records_of(guest.get("/tmp/raw1")))
    numbers = [int.from_bytes(record.data[:2], "little") for record in records]
    assert len(numbers) >= 4
    assert {PRINT_ID, RAW_ID, 4} < set(numbers)
    known = {own.id: own for own in OWN_EVENTS}
    other = OWN_EVENTS[0].common_fields
    events = {n: known.get(n, EventFormat("demo", "other", other, "", n)) for n in numbers}
    writer = TextWriter(events, NO_FACTS, TextOptions(context_info=has_context, **{form: True}))
    n_cpus = int(guest.run("grep -c ^processor /proc/cpuinfo").text)
    ours = writer.header(len(records), len(records), n_cpus) + "".join(writer.lines(records))
    assert ours.encode(errors="surrogateescape") == theirs
