"""Read a recording of the service: which path took how long.  `python read_trace.py shop.dat`."""

import sys
from collections import defaultdict

from tracepoint.printk.program import compile_print
from tracepoint.printk.render import render_record
from tracepoint.tracefile.tracedat import open_tracedat


def main(path: str) -> None:
    """Print every record, then how often each event came."""
    counts: dict[str, int] = defaultdict(int)
    with open_tracedat(path) as trace:
        programs = {number: compile_print(event) for number, event in trace.events.items()}
        for record in trace.buffers[0].records():
            event = trace.events[int.from_bytes(record.data[:2], "little")]
            counts[f"{event.system}:{event.name}"] += 1
            print(
                f"{record.timestamp / 1e9:.6f} {event.name}: {render_record(programs[event.id], record.data)}"
            )
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")


if __name__ == "__main__":
    main(sys.argv[1])
