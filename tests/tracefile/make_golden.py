"""Cut the golden files of this folder out of the recorded data: `python tests/tracefile/make_golden.py DATA`.

Two pages of each CPU of small.v7.zstd.dat with the formats they need, written by trace-cmd as version 6 and 7,
and the kernel's own lines for their records.
"""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tracepoint.tracefile.content import BufferContent, CpuPages
from tracepoint.tracefile.tracedat import open_tracedat
from tracepoint.tracefile.write import write_tracedat

GOLDEN = Path(__file__).parent / "golden"
N_PAGES = 2
SYMBOLS = re.compile(
    r" [tT] (_stext|exc_page_fault|asm_exc_page_fault|__put_user_nocheck_4|clear_user_erms)$"
)


def cut(trace):
    """The first pages of each CPU, and the number of their records."""
    pages, counts = [], []
    for cpu in trace.buffers[0].cpus:
        blocks = list(cpu.blocks())
        data = b"".join(blocks)[: N_PAGES * trace.page_size]
        pages.append(CpuPages(cpu.cpu, (data,)))
        read = [page for _, page in cpu.pages()][:N_PAGES]
        counts.append(sum(len(page.records) for page in read))
    return BufferContent(tuple(pages), "", trace.clock), counts


def main():
    data = Path(sys.argv[1])
    trace = open_tracedat(data / "small.v7.zstd.dat")
    buffer, counts = cut(trace)
    used = {int.from_bytes(r.data[:2], "little") for c, n in zip(trace.buffers[0].cpus, counts, strict=True)
            for r, _ in zip(c.records(), range(n), strict=False)}  # fmt: skip
    texts = [trace.events[number] for number in sorted(used)]
    wanted = {(event.system, event.text) for event in texts}
    formats = tuple(pair for pair in trace.formats if pair in wanted)
    symbols = "".join(f"{line}\n" for line in trace.kallsyms.split("\n") if SYMBOLS.search(line))
    content = replace(
        trace.content(), buffers=(buffer,), formats=formats, kallsyms=symbols, printk_formats=""
    )
    whole = GOLDEN / "whole.dat"
    with whole.open("wb") as file:
        write_tracedat(file, content)
    for name, version, compression in (("cut.v6.dat", "6", "none"), ("cut.v7.zstd.dat", "7", "zstd")):
        command = ["trace-cmd", "convert", "--file-version", version, "--compression", compression]
        subprocess.run([*command, "-i", whole, "-o", GOLDEN / name], check=True)
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
