"""`tracepoint hist`: count an event by its fields, in the kernel, and show the table."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tracepoint.cli import numbers
from tracepoint.cli.kernel.tracing import add_array_arguments, chosen_array, opened, run_command
from tracepoint.cli.status import EXIT_DONE
from tracepoint.wording import json_line

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.control.hist import HistTable, Value


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("event", metavar="EVENT", help="system:event")
    parser.add_argument(
        "key", nargs="+", metavar="KEY", help="a field, optionally with .hex .log2 .execname .sym"
    )
    parser.add_argument("--values", metavar="FIELDS", default="", help="fields to sum up, comma-separated")
    parser.add_argument("--sort", metavar="FIELDS", default="", help="such as hitcount.descending")
    parser.add_argument("--where", metavar="FILTER", default="", help="count only the records that pass")
    parser.add_argument(
        "--size",
        type=numbers.whole(65, 1 << 17),
        metavar="N",
        default=0,
        help="number of entries to make room for (default: 2048)",
    )
    parser.add_argument(
        "--seconds", type=numbers.seconds, metavar="N", default=5.0, help="duration (default: 5)"
    )
    parser.add_argument("--json", action="store_true", help="the table as JSON")
    add_array_arguments(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Count for some seconds or while a command runs, print the table, and remove the trigger."""
    status = EXIT_DONE
    with opened(args) as tracing, chosen_array(tracing, args) as array:
        event = array.event(args.event)
        trigger = event.add_trigger(_trigger(args))
        try:
            if args.words_after:
                status = run_command(args.words_after, out)
            else:
                out.say(f"counting {args.event} for {args.seconds:g} s; Ctrl-C shows what there is")
                time.sleep(args.seconds)
        except KeyboardInterrupt:
            out.say("interrupted")
        for table in event.histograms()[-1:]:
            _print(table, args, out)
        event.add_trigger(trigger.removal)
    return status


def _trigger(args: argparse.Namespace) -> str:
    parts = ["hist", f"keys={','.join(args.key)}"]
    parts += [f"{n}={getattr(args, n)}" for n in ("values", "sort", "size") if getattr(args, n)]
    return ":".join(parts) + (f" if {args.where}" if args.where else "")


def _print(table: HistTable, args: argparse.Namespace, out: Output) -> None:
    if args.json:
        rows = [{k: _plain(v) for k, v in (row.keys | row.values).items()} for row in table.rows]
        totals = {"hits": table.hits, "entries": table.entries, "dropped": table.dropped}
        out.line(json_line({"schema": "tracepoint.hist/1", "trigger": table.trigger, "rows": rows, **totals}))
        return
    if table.rows:
        names = [*table.rows[0].keys, *table.rows[0].values]
        lines = [[_cell(v) for v in (row.keys | row.values).values()] for row in table.rows]
        widths = [max(len(line[i]) for line in [names, *lines]) for i in range(len(names))]
        for line in [names, *lines]:
            out.line("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    out.say(f"{table.hits} hits, {table.entries} entries, {table.dropped} dropped")


def _cell(value: Value) -> str:
    match value:
        case range():
            return f"{value.start}..{value.stop - 1}"
        case tuple():
            return " < ".join(value)
        case _:
            return str(value)


def _plain(value: Value) -> object:
    match value:
        case range():
            return [value.start, value.stop - 1]
        case int() | float() | str():
            return value
        case tuple():
            return list(value)
        case _:
            return {"name": value.name, "number": value.number}
