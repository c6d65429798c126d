"""`python -m benchmarks [--json FILE] [NAME...]`: exit status 1 when a row is short."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks import (
    analysis,
    beside_lisa,
    catalog,
    corpus,
    decode,
    editor,
    fleet,
    graph,
    lttng,
    printk,
    record,
    runtime,
    start,
    tree,
)
from benchmarks.harness import Benchmark, MissingError

ROWS: tuple[Benchmark, ...] = (
    *start.ROWS,
    *corpus.ROWS,
    *tree.ROWS,
    *catalog.ROWS,
    *editor.ROWS,
    *record.ROWS,
    *decode.ROWS,
    *analysis.ROWS,
    *beside_lisa.ROWS,
    *fleet.ROWS,
    *graph.ROWS,
    *printk.ROWS,
    *runtime.ROWS,
    *lttng.ROWS,
)


def main() -> int:
    """Measure the rows, print a line each, and say whether all promises are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write the rows and the machine there too")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(row.__name__ for row in ROWS)}")
    args = parser.parse_args()
    rows, n_short = [], 0
    for measure in ROWS:
        if args.names and measure.__name__ not in args.names:
            continue
        try:
            row = measure()
        except MissingError as missing:
            print(f"{measure.__name__:44} {'-':>8} not measured: {missing}", flush=True)
            continue
        print(row.line(), flush=True)
        rows.append({**asdict(row), "is_ok": row.is_ok})
        n_short += not row.is_ok
    if args.json:
        machine = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "load": os.getloadavg(),
        }
        Path(args.json).write_text(
            json.dumps({"schema": "tracepoint.bench/1", "machine": machine, "rows": rows}, indent=1)
        )
    return 1 if n_short else 0


if __name__ == "__main__":
    sys.exit(main())
