"""`tracepoint generate`: modules, probes, programs, command lines and pages from declarations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli import settings
from tracepoint.cli.declare.generate_kernel import complete, find_target
from tracepoint.cli.inputs import compute_formats, open_input
from tracepoint.cli.names import split_event
from tracepoint.cli.status import EXIT_DONE
from tracepoint.errors import GenerateError, TracepointError
from tracepoint.generate.bpf import bpf_counter, libbpf_program
from tracepoint.generate.lttng.probe import lttng_probe
from tracepoint.generate.module import kernel_module, module_header
from tracepoint.generate.page import markdown_page
from tracepoint.generate.probe import probe_module
from tracepoint.generate.scripts import BUILTINS, MEASURES, bpftrace_script, command_lines
from tracepoint.generate.stubs import type_stubs
from tracepoint.generate.trace_header import select_events
from tracepoint.lab.simulate.inputs import split_assignment

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from tracepoint.cli.inputs import InputWord
    from tracepoint.cli.output import Output
    from tracepoint.cli.settings import Settings
    from tracepoint.generate.fileset import FileSet
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import BareTracepoint, Event, TraceHeader


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("kind", choices=tuple(_MAKERS), metavar="KIND", help=", ".join(_MAKERS))
    parser.add_argument(
        "inputs", nargs="+", metavar="HEADER[:EVENT]", help="the header that declares the events"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write the files there (default: to stdout); for stubs also FILE.pyi",
    )
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.add_argument("--name", default="", help="name of the module, program or file")
    parser.add_argument(
        "--kernel-headers",
        metavar="DIR",
        help="the kernel that a module, header or probe is for (default: the running one)",
    )
    _add_module_arguments(parser)
    other = parser.add_argument_group("bpftrace, commands and lttng")
    other.add_argument(
        "--by", default="comm", help=f"group by {', '.join(BUILTINS)} or fields (default: comm)"
    )
    other.add_argument("--measure", default="count", help=f"{', '.join(MEASURES)} (default: count)")
    other.add_argument("--filter", default="", help="a filter for the command lines")
    other.add_argument("--lttng", default="2.13", choices=("2.13", "2013"), help="layout of lttng-modules")
    settings.add_arguments(parser, "include", "define", "exclude", "abi")


def _add_module_arguments(parser: argparse.ArgumentParser) -> None:
    module = parser.add_argument_group("module, header, probe and lttng")
    module.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="PARAMETER=EXPRESSION",
        help="C for an argument; repeatable",
    )
    module.add_argument("--system", default="", help="use another TRACE_SYSTEM")
    module.add_argument("--prefix", default="", help="prefix for the names of events and classes")
    module.add_argument(
        "--with",
        dest="includes",
        action="append",
        default=[],
        metavar="'<FILE.h>'",
        help="also #include; repeatable",
    )
    module.add_argument("--export", action="store_true", help="let other modules register probes")
    module.add_argument(
        "--header", default="", metavar="'<FILE.h>'", help="the header with the tracepoint of a probe"
    )
    module.add_argument("--no-compile", action="store_true", help="do not test-compile before writing")
    module.add_argument("--by-name", action="store_true", help="find a tracepoint that is not exported")


def run(args: argparse.Namespace, out: Output) -> int:
    """Generate the files, write or print them, and report what could not be expressed."""
    chosen = settings.read_settings(args)
    if settings.shows_settings(args, chosen, out):
        return EXIT_DONE
    _refuse_foreign(args)
    inputs = [open_input(word, chosen, out) for word in args.inputs]
    if args.kind == "stubs" and str(args.output).endswith(".pyi"):
        # A single file, which may be named directly.
        args.name, args.output = args.name or Path(args.output).stem, str(Path(args.output).parent)
    files = _MAKERS[args.kind](args, inputs, chosen)
    for note in files.notes:
        out.say(f"note: {note}")
    if args.output:
        for written in files.write(args.output, overwrite=args.force):
            out.say(str(written))
        return EXIT_DONE
    for path, text in files.items():
        if len(files) > 1:
            out.line(out.style(f"==> {path} <==", "bold"))
        out.write(text)
    return EXIT_DONE


def _refuse_foreign(args: argparse.Namespace) -> None:
    """Raise TracepointError for an option that this kind of source code does not have."""
    for name, (kinds, unset) in _OPTIONS_OF.items():
        if args.kind not in kinds and getattr(args, name) != unset:
            spelt = {"includes": "with"}.get(name, name.replace("_", "-"))
            raise TracepointError(f"{args.kind} has no use for --{spelt}, which is for {', '.join(kinds)}")


def _one_header(args: argparse.Namespace, inputs: list[InputWord]) -> TraceHeader:
    """Return the declarations that the words name, which must be in one header."""
    headers = {header.path: header for item in inputs for header in item.headers}
    if len(headers) != 1:
        reason = (
            "no header with declarations is named" if not headers else f"{len(headers)} headers are named"
        )
        raise TracepointError(f"{args.kind} is generated from one header; {reason}")
    header = next(iter(headers.values()))
    if any(not item.event for item in inputs):
        return header
    return select_events(header, [event.full_name for item in inputs for _, event in item.events()])


def _one_event(args: argparse.Namespace, inputs: list[InputWord]) -> Event:
    events = [event for item in inputs for _, event in item.events()]
    if len(events) != 1:
        names = ", ".join(event.name for event in events[:8]) or "none"
        raise TracepointError(
            f"{args.kind} is generated for one event; write HEADER:EVENT (there are {names})"
        )
    return events[0]


def _one_point(args: argparse.Namespace, inputs: list[InputWord]) -> Event | BareTracepoint:
    """Return the event that a probe is for or, without events, the tracepoint."""
    points = [point for item in inputs for header in item.headers for point in header.tracepoints]
    if len(points) == 1 and not [event for item in inputs for event in item.events()]:
        return points[0]
    return _one_event(args, inputs)


def _name(args: argparse.Namespace, inputs: list[InputWord], end: str = "") -> str:
    if args.name:
        return str(args.name)
    stem = re.sub(r"[^A-Za-z0-9_]+", "_", Path(split_event(inputs[0].word)[0]).stem)
    return f"{stem[: 40 - len(end)]}{end}" if re.match("[A-Za-z_]", stem) else f"trace_{stem}{end}"[:40]


def _formats(inputs: list[InputWord], chosen: Settings) -> list[EventFormat]:
    made, problems = [], []
    for item in inputs:
        formats, wrong = compute_formats(item, chosen)
        made += formats
        problems += wrong
    if problems:
        raise TracepointError("\n".join(problems))
    return made


def _module(args: argparse.Namespace, inputs: list[InputWord], chosen: Settings) -> FileSet:
    del chosen
    kernel = find_target(args.kernel_headers)
    header = _one_header(args, inputs)
    name = _name(args, inputs, "_events")

    def make(more: Sequence[str], typedefs: Mapping[str, str]) -> FileSet:
        return kernel_module(
            header,
            name=name,
            arguments=dict(split_assignment(text) for text in args.arg),
            facts=kernel.facts,
            system=args.system,
            prefix=args.prefix,
            includes=[*args.includes, *more],
            export=args.export,
            typedefs=typedefs,
        )

    protos = [*(e.proto for e in header.events), *(p.proto for p in header.tracepoints)]
    return complete(make, f"{name}.c", kernel, protos, args)


def _header(args: argparse.Namespace, inputs: list[InputWord], chosen: Settings) -> FileSet:
    del chosen
    kernel = find_target(args.kernel_headers)
    files = module_header(
        _one_header(args, inputs),
        name=_name(args, inputs),
        facts=kernel.facts,
        system=args.system,
        prefix=args.prefix,
        includes=args.includes,
    )
    return files.with_notes(kernel.note)


def _probe(args: argparse.Namespace, inputs: list[InputWord], chosen: Settings) -> FileSet:
    del chosen
    kernel = find_target(args.kernel_headers)
    event = _one_point(args, inputs)
    name = args.name or f"{event.name}_probe"[:40]

    def make(more: Sequence[str], _: Mapping[str, str]) -> FileSet:
        return probe_module(
            event,
            name=name,
            header=args.header,
            by_name=args.by_name,
            facts=kernel.facts,
            includes=[*args.includes, *more],
        )

    return complete(make, f"{name}.c", kernel, [event.proto], args)


def _lttng(args: argparse.Namespace, inputs: list[InputWord], chosen: Settings) -> FileSet:
    del chosen
    header = _one_header(args, inputs)
    return lttng_probe(
        header,
        name=args.name,
        include=args.header,
        includes=args.includes,
        events=[event.name for event in header.events],
        layout=args.lttng,
    )


def _bpf(args: argparse.Namespace, inputs: list[InputWord], chosen: Settings) -> FileSet:
    event = _one_event(args, inputs)
    (layout,) = _formats(inputs, chosen)
    return libbpf_program(event, layout, name=args.name or f"{event.name}_bpf"[:40])


def _counter(args: argparse.Namespace, inputs: list[InputWord], chosen: Settings) -> FileSet:
    del chosen
    event = _one_event(args, inputs)
    return bpf_counter(event, name=args.name or f"{event.name}_count"[:40])


def _bpftrace(args: argparse.Namespace, inputs: list[InputWord], chosen: Settings) -> FileSet:
    layouts = _formats(inputs, chosen)
    if len(layouts) != 1:
        raise GenerateError("", f"a bpftrace script measures one event, {len(layouts)} are named")
    return bpftrace_script(layouts[0], by=args.by, measure=args.measure, name=args.name)


def _commands(args: argparse.Namespace, inputs: list[InputWord], chosen: Settings) -> FileSet:
    return command_lines(
        _formats(inputs, chosen), filter_text=args.filter, name=_name(args, inputs, "_commands")
    )


def _markdown(args: argparse.Namespace, inputs: list[InputWord], chosen: Settings) -> FileSet:
    events = [event for item in inputs for _, event in item.events() if not event.is_nop]
    formats = _formats(inputs, chosen)
    if len(events) != len(formats):
        raise TracepointError(
            "a page is generated from declarations in headers: format files and objects have none"
        )
    return markdown_page(list(zip(events, formats, strict=True)), name=_name(args, inputs))


def _stubs(args: argparse.Namespace, inputs: list[InputWord], chosen: Settings) -> FileSet:
    del chosen
    return type_stubs(_one_header(args, inputs), name=_name(args, inputs, "_events"))


# The kinds that an option is for, and its default.
_OPTIONS_OF: dict[str, tuple[tuple[str, ...], object]] = {
    "arg": (("module",), []),
    "system": (("module", "header"), ""),
    "prefix": (("module", "header"), ""),
    "includes": (("module", "header", "probe", "lttng"), []),
    "export": (("module",), False),
    "header": (("probe", "lttng"), ""),
    "by_name": (("probe",), False),
    "kernel_headers": (("module", "header", "probe"), None),
    "no_compile": (("module", "probe"), False),
    "by": (("bpftrace",), "comm"),
    "measure": (("bpftrace",), "count"),
    "filter": (("commands",), ""),
    "lttng": (("lttng",), "2.13"),
}
_MAKERS: dict[str, Callable[[argparse.Namespace, list[InputWord], Settings], FileSet]] = {
    "module": _module,
    "header": _header,
    "probe": _probe,
    "lttng": _lttng,
    "bpf": _bpf,
    "bpf-counter": _counter,
    "bpftrace": _bpftrace,
    "commands": _commands,
    "markdown": _markdown,
    "stubs": _stubs,
}
