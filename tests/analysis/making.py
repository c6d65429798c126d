"""Recordings that a test writes line by line, in the formats of a real kernel."""

import struct
from pathlib import Path

from tracefile.making import layout_of, written
from tracepoint.layout.format import read_format
from tracepoint.record.layout import header_page_text
from tracepoint.record.write import PageWriter
from tracepoint.tracefile.content import BufferContent, CpuPages, TraceContent
from tracepoint.tracefile.options import OptionId, text_option

GOLDEN = Path(__file__).parent / "golden"
STATES = {"R": 0, "S": 1, "D": 2, "T": 4, "X": 16, "Z": 32, "P": 64, "I": 128, "R+": 256}
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def recorded_formats(names="formats-6.1*.txt"):
    """The formats of files of `golden` by `system:event`."""
    found = {}
    text = "".join(path.read_text() for path in sorted(GOLDEN.glob(names)))
    for part in text.split("# ")[1:]:
        system, _, text = part.partition("\n")
        found[f"{system}:{text.split()[1]}"] = text
    return found


FORMATS = recorded_formats()


class Schedule:
    """Records of CPUs, added in any order of CPUs; times are in us.

    `events` are those that the recording has formats of: all, or these; `formats` are those there are, and
    `host` is the machine that it names.
    """

    def __init__(self, *events, is_big_endian=False, host="", formats=None, clock="mono"):
        self._clock = clock
        self._host = host
        self._is_big = is_big_endian
        #: What the recorder saved beside the records.
        self.kallsyms, self.saved_cmdlines, self.saved_tgids = "", "", None
        self._texts = {
            name: text for name, text in (formats or FORMATS).items() if not events or name in events
        }
        self._forms = {
            name: read_format(text, name.partition(":")[0], is_big_endian=is_big_endian)
            for name, text in self._texts.items()
        }
        self._records = {}

    def add(self, us, cpu, event, values, by=0, flags=0):
        """Add a record that the task `by` writes; events that the recording does not have are left out."""
        form = self._forms.get(event)
        if form is None:
            return
        data = bytearray(form.end)
        order = ">" if self._is_big else "<"
        values = {**values, "common_type": form.id, "common_flags": flags, "common_pid": by}
        for field in form.fields:
            value = values.get(field.name)
            if isinstance(value, str):
                text = value.encode() + b"\0"
                if field.is_data_loc:
                    struct.pack_into(order + "I", data, field.offset, len(text) << 16 | len(data))
                    data += text
                else:
                    data[field.offset : field.offset + field.size] = text[: field.size].ljust(
                        field.size, b"\0"
                    )
            elif value is not None:
                value &= (1 << 8 * field.size) - 1
                struct.pack_into(order + _CODES[field.size], data, field.offset, value)
        self._records.setdefault(cpu, []).append((us * 1000, bytes(data)))

    def stack(self, us, cpu, by, addresses):
        """Add the stack of the record before, the innermost address first; `formats` has ftrace:kernel_stack."""
        form, order = self._forms["ftrace:kernel_stack"], ">" if self._is_big else "<"
        head = (form.id, 0, 0, by, len(addresses), 0)
        data = struct.pack(f"{order}HBBiII{len(addresses)}Q", *head, *addresses)
        self._records.setdefault(cpu, []).append((us * 1000, data))

    def lose(self, cpu, n):
        """The CPU loses `n` events here; -1: some."""
        self._records.setdefault(cpu, []).append(n)

    def switch(self, us, cpu, prev, state, after, prio=120):
        values = {"prev_pid": prev, "next_pid": after, "next_prio": prio, "prev_state": STATES[state]}
        names = {"prev_comm": f"t{prev}", "next_comm": f"t{after}"}
        self.add(us, cpu, "sched:sched_switch", values | names, prev)

    def waking(self, us, cpu, pid, by=0, flags=0):
        self._wake("sched_waking", us, cpu, pid, by, flags)

    def _wake(self, name, us, cpu, task, by, flags):
        self.add(us, cpu, f"sched:{name}", {"pid": task, "comm": f"t{task}"}, by, flags)

    def wakeup(self, us, cpu, pid, by=0, flags=0):
        self._wake("sched_wakeup", us, cpu, pid, by, flags)

    def wakeup_new(self, us, cpu, pid, by=0, flags=0):
        self._wake("sched_wakeup_new", us, cpu, pid, by, flags)

    def data(self):
        """The recording as a trace.dat."""
        layout = layout_of(self._is_big)
        cpus = []
        for cpu, records in sorted(self._records.items()):
            writer = PageWriter(layout)
            for record in records:
                if isinstance(record, int):
                    writer.lose(record)
                else:
                    writer.add(*record)
            cpus.append(CpuPages(cpu, (writer.pages(),)))
        formats = tuple((name.partition(":")[0], text) for name, text in self._texts.items())
        content = TraceContent(
            (BufferContent(tuple(cpus), "", self._clock),),
            formats,
            header_page_text(layout),
            kallsyms=self.kallsyms,
            saved_cmdlines=self.saved_cmdlines,
            saved_tgids=self.saved_tgids,
            n_cpus=max(self._records) + 1,
            is_big_endian=self._is_big,
            long_size=8,
            options=(text_option(OptionId.UNAME, f"Linux {self._host} 6.1.0 x86_64"),) if self._host else (),
        )
        return written(content)
