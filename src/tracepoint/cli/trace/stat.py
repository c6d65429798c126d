"""`tracepoint stat`: what is in a recording, and what was lost of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint.cli.status import EXIT_DONE, EXIT_IN_PART
from tracepoint.cli.trace.recordings import (
    add_file_argument,
    add_instance_argument,
    buffer_named,
    open_file,
    warn_of_damage,
)
from tracepoint.decode.summary import outline_buffer, summarize_buffer
from tracepoint.layout.compressed import compression_of
from tracepoint.record.page import LOST_UNKNOWN
from tracepoint.tracefile.filebytes import STDIN
from tracepoint.tracefile.options import uname_of
from tracepoint.tracefile.recording import losses_of, read_pairs
from tracepoint.wording import counted, json_line, size_text, visible

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from tracepoint.cli.output import Output
    from tracepoint.decode.summary import Outline, Summary
    from tracepoint.tracefile.buffers import TraceBuffer
    from tracepoint.tracefile.container import Container

_SECOND = 1_000_000_000
_MAX_TASKS = 20
_HEAD = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_file_argument(parser)
    parser.add_argument("--quick", action="store_true", help="only what the headers and 64 pages say")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_instance_argument(parser)
    parser.add_argument("--strict", action="store_true", help="exit status 3 for damaged or lost data")
    parser.add_argument(
        "--all", action="store_true", help=f"all tasks, not the {_MAX_TASKS} with most records"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Print what the headers say at once, then count every record."""
    with open_file(args.file) as file:
        buffer = buffer_named(file, args.instance)
        outline = outline_buffer(buffer)
        facts = _facts(file, buffer, outline)
        if not args.json:
            _print_facts(facts, out)
        if not args.quick:
            out.flush()
            summary = summarize_buffer(file, buffer)
            facts |= _counts(file, summary)
            if not args.json:
                _print_counts(facts, out, None if args.all else _MAX_TASKS)
                warn_of_damage(args.file, file.damage, out)
        if args.json:
            out.line(json_line(facts))
        return EXIT_IN_PART if args.strict and _is_incomplete(facts) else EXIT_DONE


def _facts(file: Container, buffer: TraceBuffer, outline: Outline) -> dict[str, Any]:
    path, lost = Path(file.path), losses_of(file.options, buffer.name)
    is_file = file.path != STDIN and path.is_file()
    return {
        "schema": "tracepoint.stat/1",
        "file": file.path,
        "size_bytes": path.stat().st_size if is_file else sum(cpu.size for cpu in buffer.cpus),
        "form": file.form,
        "compression": file.compression,
        "file_compression": _file_compression(path),
        "is_big_endian": file.is_big_endian,
        "long_size": file.layout.long_size,
        "uname": " ".join(uname_of(file.options)),
        "n_cpus": file.n_cpus,
        "clock": buffer.clock or file.clock,
        "instances": [b.name for b in file.buffers if b.name],
        "outline": outline._asdict(),
        "recorder": {"overrun": lost.overrun, "commit_overrun": lost.commit_overrun, "dropped": lost.dropped},
        "damage": [],
    }


def _file_compression(path: Path) -> str:
    """Return what the file as a whole is compressed with; empty where it is not."""
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        return compression_of(stream.read(_HEAD))


def _counts(file: Container, summary: Summary) -> dict[str, Any]:
    first, last = summary.span
    comms = read_pairs(file.saved_cmdlines)
    tasks = sorted(summary.tasks.items(), key=lambda item: (-item[1], item[0]))
    return {
        "n_records": summary.n_records,
        "first": first,
        "last": last,
        "events": summary.events,
        "cpus": [
            {"cpu": c.cpu, "n_records": c.n_records, "lost": c.lost, "first": c.first, "last": c.last}
            for c in summary.cpus
        ],
        "tasks": [{"pid": pid, "comm": _comm(comms, pid), "n_records": n} for pid, n in tasks],
        "damage": [{"cpu": d.cpu, "offset": d.offset, "reason": d.reason} for d in file.damage],
    }


def _comm(comms: Mapping[int, str], pid: int) -> str | None:
    return "<idle>" if pid == 0 else comms.get(pid)


def _is_incomplete(facts: Mapping[str, Any]) -> bool:
    lost = [cpu["lost"] for cpu in facts.get("cpus", ())]
    return bool(facts["damage"]) or any(lost) or any(facts["recorder"].values())


def _print_facts(facts: Mapping[str, Any], out: Output) -> None:
    outline, recorder = facts["outline"], facts["recorder"]
    within = "" if facts["compression"] in ("none", "") else facts["compression"]
    around = f"in a {facts['file_compression']} file" if facts["file_compression"] else ""
    packed = " ".join(filter(None, (within, around))) or "not compressed"
    order = "big" if facts["is_big_endian"] else "little"
    words = f"{8 * facts['long_size']}-bit, {order}-endian"
    size = f"{size_text(facts['size_bytes'])}, {packed}"
    # Files name themselves and their machines as they like.
    out.line(f"file      {visible(facts['file'])}: {facts['form']}, {size}")
    uname = visible(facts["uname"]) or "not named"
    out.line(f"machine   {uname}: {counted(facts['n_cpus'], 'CPU')}, {words}")
    out.line(f"clock     {visible(facts['clock']) or 'not named'}")
    if facts["instances"]:
        out.line(f"instances {', '.join(map(visible, facts['instances']))}")
    out.line(f"span      {_span(outline['first'], outline['last'])}")
    n, pages = outline["n_records"], outline["n_pages"]
    about = "" if outline["n_sampled"] == pages else f", estimated from {outline['n_sampled']}"
    out.line(f"records   {_about(n, is_exact=not about)} on {counted(pages, 'page')}{about}")
    out.line(f"recorder  {recorder['overrun']:,} overwritten, {recorder['dropped']:,} dropped")


def _print_counts(facts: Mapping[str, Any], out: Output, most: int | None) -> None:
    n, seconds = facts["n_records"], (facts["last"] - facts["first"]) / _SECOND
    rate = f", {n / seconds:,.0f} a second" if seconds else ""
    out.line(f"counted   {counted(n, 'record')}{rate}")
    events = sorted(facts["events"].items(), key=lambda item: (-item[1], item[0]))
    _print_table("event", events, n, out)
    out.line()
    out.line(f"{'cpu':>10} {'records':>13} {'lost':>11}  span")
    for cpu in facts["cpus"]:
        lost = "some" if cpu["lost"] == LOST_UNKNOWN else f"{cpu['lost']:,}"
        span = _span(cpu["first"], cpu["last"])
        out.line(f"{cpu['cpu']:>10} {cpu['n_records']:>13,} {lost:>11}  {span}")
    tasks = [(f"{t['comm'] or '<...>'}-{t['pid']}", t["n_records"]) for t in facts["tasks"]]
    _print_table("task", tasks[:most], n, out)
    if most is not None and len(tasks) > most:
        out.line(f"{'':>23} and {counted(len(tasks) - most, 'other task')} (--all)")


def _print_table(what: str, rows: Iterable[tuple[str, int]], total: int, out: Output) -> None:
    out.line()
    out.line(f"{'records':>14} {'share':>8} {what}")
    for name, n in rows:
        out.line(f"{n:>14,} {100 * n / max(total, 1):>7.2f}% {visible(name)}")


def _about(n: int, *, is_exact: bool) -> str:
    return counted(n, "record") if is_exact else f"about {int(float(f'{n:.2g}')):,} records"


def _span(first: int, last: int) -> str:
    if not (first or last):
        return "no records"
    return f"{first / _SECOND:.6f} to {last / _SECOND:.6f} ({(last - first) / _SECOND:.6f} s)"
