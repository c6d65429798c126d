"""How records are shown as text: the tracer whose layout they get, and the options of tracefs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.tracefile.graphcalls import is_graph_event
from tracepoint.tracefile.recording import settings_of
from tracepoint.tracefile.textoptions import (
    GRAPH_TRACER,
    LATENCY_TRACERS,
    TextOptions,
    is_of_layout,
    is_of_text,
    is_option,
    with_option,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection

    from tracepoint.layout.format import EventFormat
    from tracepoint.tracefile.container import Container

# The tracers that write entries of their own, by the event.
_TRACERS = ("mmiotrace", "hwlat", "osnoise", "timerlat", "branch", "function")
_EVENTS = {"mmiotrace": "mmiotrace_rw"}
_KNOWN = sorted({"nop", GRAPH_TRACER, *_TRACERS, *LATENCY_TRACERS})
_WITH_TGIDS = ("text", "jsonl")


def add_layout_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the tracer and the options."""
    parser.add_argument(
        "--tracer",
        metavar="NAME",
        choices=_KNOWN,
        help="the tracer whose layout and heading the text gets; default: the one whose records the file has",
    )
    parser.add_argument(
        "-O",
        "--option",
        action="append",
        default=[],
        metavar="NAME[=no]",
        help="an option of tracefs trace_options that changes the text, such as sym-offset or funcgraph-proc",
    )
    parser.add_argument("--latency", action="store_true", help="lines as with the option latency-format")


def with_layout(
    options: TextOptions, args: argparse.Namespace, trace: Container, recorded: Collection[int]
) -> TextOptions:
    """Return options with what the recording, then the arguments say; `recorded` are the types of records.

    Raises TracepointError for an argument that is no option, and for one of the layout of lines with a format
    that has none.
    """
    settings = settings_of(trace.options)
    known = [word for word in settings.options if is_option(word)]
    told = settings.tracer if settings.tracer != "nop" else ""
    found = [trace.events[number] for number in recorded if number in trace.events]
    options = replace(options, tracer=args.tracer or told or tracer_of(found))
    # These set the option themselves: __irqsoff_tracer_init(), __wakeup_tracer_init().
    options = replace(options, latency_format=options.measures_latency)
    _check_format(args)
    asked = [*(["latency-format"] if args.latency else []), *args.option]
    for word in (*known, *asked):
        options = with_option(options, word)
    return replace(options, record_tgid=options.record_tgid or args.tgids is not None)


def _check_format(args: argparse.Namespace) -> None:
    """Refuse what changes the kernel's lines with a format that has none."""
    if args.format == "text":
        return
    # The text of a record is the same in all but that of trace-cmd.
    is_refused = is_of_text if args.format == "report" else is_of_layout
    words = [f"--tracer {args.tracer}"] if args.tracer else []
    words += ["--latency"] if args.latency else []
    words += [f"-O {word}" for word in args.option if is_refused(word)]
    words += ["--tgids"] if args.tgids is not None and args.format not in _WITH_TGIDS else []
    if words:
        raise TracepointError(
            f"{words[0]} is for lines of text as the kernel's, which --format {args.format} has not: "
            "leave out one of them"
        )


def tracer_of(recorded: Collection[EventFormat]) -> str:
    """Return the tracer that writes events such as these; `nop` when they are those of none."""
    if any(map(is_graph_event, recorded)):
        return GRAPH_TRACER
    own = {event.name for event in recorded if event.kernel_system == "ftrace"}
    return next((tracer for tracer in _TRACERS if _EVENTS.get(tracer, tracer) in own), "nop")
