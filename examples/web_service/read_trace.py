"""Read a recording of the service: what happened, and how often.  `python read_trace.py shop.dat`."""

import sys
from collections import defaultdict

from tracepoint.tracefile.text import TextWriter, facts_of
from tracepoint.tracefile.tracedat import open_tracedat


def main(path: str) -> None:
    """Print every record as `trace` shows it, then how often each event came."""
    counts: dict[str, int] = defaultdict(int)
    with open_tracedat(path) as trace:
        writer = TextWriter(trace.events, facts_of(trace))
        for record in trace.buffers[0].records():
            event = trace.events[int.from_bytes(record.data[:2], "little")]
            counts[f"{event.system}:{event.name}"] += 1
            print(writer.line(record), end="")
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")


if __name__ == "__main__":
    main(sys.argv[1])
