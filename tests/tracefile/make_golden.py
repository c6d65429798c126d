"""Cut the golden files of this folder out of the recorded data: `PYTHONPATH=tests python tests/tracefile/make_golden.py DATA`.

Two pages of each CPU of small.v7.zstd.dat with the formats they need, written by trace-cmd as version 6 and 7,
and the kernel's own lines for their records.
"""

import re
import subprocess
import sys
from bisect import bisect_right
from dataclasses import replace
from pathlib import Path

from oracles import without_mounts
from tracefile.making import KNOWN
from tracepoint.printk.kallsyms import Kallsyms
from tracepoint.record.pages import read_pages, records_of
from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.text import TextWriter
from tracepoint.tracefile.tracedat import open_tracedat
from tracepoint.tracefile.write import write_tracedat

GOLDEN = Path(__file__).parent / "golden"
N_PAGES = 2


def cut(trace):
    """The first pages of each CPU, and the number of their records."""
    pages, counts = [], []
    for cpu in trace.buffers[0].cpus:
        blocks = list(cpu.blocks())
        data = b"".join(blocks)[: N_PAGES * trace.page_size]
        pages.append(CpuPages(cpu.cpu, (data,)))
        read = [head for _, found in cpu.pages() for head in found.heads][:N_PAGES]
        counts.append(sum(head.n_records for head in read))
    return BufferContent(tuple(pages), "", trace.clock), counts


class Asking(Kallsyms):
    """Remembers which addresses are asked for."""

    def __init__(self, text):
        super().__init__(text)
        self.asked = {0}

    def lookup(self, address):
        self.asked.add(address)
        return super().lookup(address)


def symbols_for(trace, buffer):
    """The lines of kallsyms around the addresses that the lines of these pages show."""
    table = Asking(trace.kallsyms)
    writer = TextWriter(trace.events, replace(KNOWN, kallsyms=table))
    for cpu in buffer.cpus:
        for block in cpu.blocks[:1]:
            for record in records_of([(block, read_pages(block, trace.layout))], cpu.cpu):
                writer.line(record)
    places = sorted({int(line.split()[0], 16) for line in trace.kallsyms.splitlines()})
    wanted = set()
    for address in table.asked:
        at = bisect_right(places, address)
        wanted.update(places[max(at - 1, 0) : at + 1])
    lines = [line for line in trace.kallsyms.splitlines() if int(line.split()[0], 16) in wanted - {0}]
    first = [line for line in trace.kallsyms.splitlines() if line.endswith(" _stext")]
    return "".join(f"{line}\n" for line in dict.fromkeys(first + lines))


def main():
    data = Path(sys.argv[1])
    trace = open_tracedat(data / "small.v7.zstd.dat")
    buffer, counts = cut(trace)
    used = {int.from_bytes(r.data[:2], "little") for c, n in zip(trace.buffers[0].cpus, counts, strict=True)
            for r, _ in zip(c.records(), range(n), strict=False)}  # fmt: skip
    texts = [trace.events[number] for number in sorted(used)]
    wanted = {(event.system, event.text) for event in texts}
    formats = tuple(pair for pair in trace.formats if pair in wanted)
    symbols = symbols_for(trace, buffer)
    content = trace.content()._replace(
        buffers=(buffer,), formats=formats, kallsyms=symbols, printk_formats=""
    )
    whole = GOLDEN / "whole.dat"
    with whole.open("wb") as file:
        write_tracedat(file, content)
    for name, version, compression in (("cut.v6.dat", "6", "none"), ("cut.v7.zstd.dat", "7", "zstd")):
        words = ["--file-version", version, "--compression", compression, "-i", str(whole)]
        command = without_mounts("trace-cmd", "convert", *words, "-o", str(GOLDEN / name))
        subprocess.run(command, check=True)
    whole.unlink()
    text = subprocess.run(
        ["zstd", "-dcq", data / "small.trace.txt.zst"], capture_output=True, check=True
    ).stdout
    left, lines = list(counts), []
    for line in text.decode().split("\n"):
        match = re.match(r".{16}-\d+ +\(.{7}\) \[(\d+)\]", line)
        if match is None:
            lines.extend([line] if line.startswith("#") else [])
        elif left[int(match[1])]:
            left[int(match[1])] -= 1
            lines.append(line)
    (GOLDEN / "cut.trace.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
