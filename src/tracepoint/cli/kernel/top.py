"""`tracepoint top`: how often events of the running kernel fire, as they do."""

from __future__ import annotations

import time
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from tracepoint.cli import numbers
from tracepoint.cli.kernel.ending import EndingSignals
from tracepoint.cli.kernel.tracing import add_pid_argument, opened
from tracepoint.cli.output import is_terminal
from tracepoint.cli.status import EXIT_DONE
from tracepoint.control.rates import KEYS, EventRates
from tracepoint.wording import json_line

if TYPE_CHECKING:
    import argparse

    from tracepoint.cli.output import Output
    from tracepoint.control.rates import EventRate

_FIRST_LINE, _CLEAR_REST, _CLEAR_LINE = "\x1b[H", "\x1b[J", "\x1b[K"
# The heading, the sum and the line of the cursor.
_OTHER_LINES = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("pattern", nargs="+", metavar="PATTERN", help="a glob for system:event, or a system")
    parser.add_argument(
        "--by",
        choices=tuple(KEYS),
        default="event",
        help="rows: each event (default), also of each CPU or task",
    )
    parser.add_argument(
        "--interval",
        type=numbers.duration,
        metavar="TIME",
        default=1.0,
        help="between two tables (default: 1s)",
    )
    parser.add_argument(
        "--seconds", type=numbers.seconds, metavar="N", help="duration (default: until Ctrl-C)"
    )
    parser.add_argument("--once", action="store_true", help="end after the first table")
    parser.add_argument("--json", action="store_true", help="an object of JSON for each table, one a line")
    add_pid_argument(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    """Count in a new instance, print a table in each interval, and remove the instance."""
    with EndingSignals() as ending, opened(args) as tracing, tracing.instance() as array:
        rates = EventRates(array, array.available_events(*args.pattern), args.by)
        if args.words_after:
            ending.start(args.words_after, out)
        end = None if args.seconds is None else time.monotonic() + args.seconds
        is_over = False
        while not is_over:
            is_over = _wait(args, ending, end) or args.once
            seconds, found = rates.read()
            _print(seconds, found, rates.n_dropped, args, out)
            out.flush()
    return ending.wait(out) or EXIT_DONE


def _wait(args: argparse.Namespace, ending: EndingSignals, end: float | None) -> bool:
    """Wait for the next table; return whether it is the last one."""
    until = time.monotonic() + args.interval
    if end is not None:
        until = min(until, end)
    while (left := until - time.monotonic()) > 0:
        if ending.event.wait(min(left, 0.05)) or (args.words_after and not ending.is_running):
            return True
    return end is not None and until >= end


def _print(
    seconds: float, found: list[EventRate], n_dropped: int, args: argparse.Namespace, out: Output
) -> None:
    if args.json:
        rows = [_row(one, args.by) for one in found]
        totals = {"seconds": round(seconds, 6), "dropped": n_dropped}
        out.line(json_line({"schema": "tracepoint.top/1", "by": args.by, **totals, "rows": rows}))
        return
    is_live = is_terminal(out.stdout) and not args.once
    lines = _lines(found, args.by, out)
    if is_live:
        lines = lines[: max(get_terminal_size().lines - _OTHER_LINES, 1) + 1]
    lines.append(
        f"{sum(one.rate for one in found):>12,.1f} a second in all"
        + (f"; {n_dropped} had no room in a histogram" if n_dropped else "")
    )
    if is_live:
        text = "".join(f"{line}{_CLEAR_LINE}\n" for line in lines)
        out.write(f"{_FIRST_LINE}{text}{_CLEAR_REST}")
    else:
        out.write("".join(f"{line}\n" for line in (*lines, "")))


def _lines(found: list[EventRate], by: str, out: Output) -> list[str]:
    """Return the heading and a line for each row."""
    names = [_name(one) for one in found]
    width = max((len(name) for name in [*names, by]), default=0) + 2 if by != "event" else 0
    heading = f"{'a second':>12} {'in all':>12}  {by.ljust(width) if width else ''}event"
    rows = (
        f"{one.rate:>12,.1f} {one.total:>12,}  {name.ljust(width) if width else ''}{one.event}"
        for one, name in zip(found, names, strict=True)
    )
    return [out.style(heading, "bold"), *rows]


def _name(one: EventRate) -> str:
    return one.of if one.pid is None else f"{one.of}-{one.pid}"


def _row(one: EventRate, by: str) -> dict[str, object]:
    row: dict[str, object] = {"event": one.event, "rate": round(one.rate, 3), "total": one.total}
    if by == "cpu":
        row["cpu"] = int(one.of)
    elif by == "task":
        row |= {"task": one.of, "pid": one.pid}
    return row
