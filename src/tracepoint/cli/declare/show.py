"""`tracepoint show`: print a header, event, object or format file in another form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tracepoint.cli import settings
from tracepoint.cli.files import read_bytes
from tracepoint.cli.inputs import compute_formats, open_input
from tracepoint.cli.status import EXIT_CANNOT_RUN, EXIT_DONE, EXIT_IN_PART
from tracepoint.errors import TracepointError
from tracepoint.layout.btf import read_btf
from tracepoint.layout.format import write_format
from tracepoint.model.python.write import write_python
from tracepoint.model.schema import write_json
from tracepoint.model.write import header_of, write_header

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from tracepoint.cli.inputs import InputWord
    from tracepoint.cli.output import Output
    from tracepoint.cli.settings import Settings
    from tracepoint.layout.format import EventFormat
    from tracepoint.model.event import TraceHeader

_OF_RECORDS = ("format", "layout")
_OF_DECLARATIONS = ("header", "python")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "what", metavar="FILE[:EVENT]", help="a header, object, format file, a folder of them, or - for stdin"
    )
    parser.add_argument(
        "--as",
        dest="form",
        choices=(*_OF_RECORDS, *_OF_DECLARATIONS, "json"),
        default="format",
        help="tracefs format text (default), a table, TRACE_EVENT text, Python, or JSON",
    )
    parser.add_argument(
        "--btf", metavar="FILE", help="BTF for types that are not built in, such as a vmlinux"
    )
    settings.add_arguments(parser, "include", "define", "exclude", "abi")


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the events; the exit status is 3 when only some of them can be shown."""
    chosen = settings.read_settings(args)
    if settings.shows_settings(args, chosen, out):
        return EXIT_DONE
    given = open_input(args.what, chosen, out)
    if args.form in _OF_DECLARATIONS or (args.form == "json" and given.headers):
        return _show_declarations(given, args.form, out)
    return _show_records(given, args, chosen, out)


def _show_declarations(given: InputWord, form: str, out: Output) -> int:
    if not given.headers:
        raise TracepointError(f"{given.word}: only a header can be shown as {form}")
    write = {"header": write_header, "python": write_python, "json": _json_line}[form]
    for header in given.headers:
        if given.event:
            events = [event for _, event in given.events()]
            out.write(write(header_of(events, system=header.system, includes=header.form.includes)))
        else:
            out.write(write(header))
    return EXIT_DONE


def _json_line(header: TraceHeader) -> str:
    return write_json(header) + "\n"


def _show_records(given: InputWord, args: argparse.Namespace, chosen: Settings, out: Output) -> int:
    btf = read_btf(read_bytes(Path(args.btf), (b"\x7fELF", b"\x9f\xeb", b"\xeb\x9f"))) if args.btf else None
    formats, problems = compute_formats(given, chosen, btf)
    if not formats and not problems:
        raise TracepointError(f"no trace events in {given.word}: only an event has a record")
    for problem in problems:
        out.error(problem)
    if args.form == "json":
        data = [_as_data(event) for event in formats]
        out.line(json.dumps({"schema": "tracepoint.format/1", "events": data}, indent=1))
    for number, event in enumerate(formats if args.form != "json" else ()):
        if number:
            out.line()
        out.write(write_format(event) if args.form == "format" else "".join(_table(event, out)))
    if problems:
        return EXIT_IN_PART if formats else EXIT_CANNOT_RUN
    return EXIT_DONE


def _table(event: EventFormat, out: Output) -> Iterator[str]:
    """Yield the lines of a table of the record, holes included."""
    order = "big" if event.is_big_endian else "little"
    head = f"{event.system}:{event.name}: {event.end} bytes, {order}-endian, {event.long_size * 8}-bit long"
    yield out.style(head, "bold") + "\n"
    yield "offset  size  sign  field\n"
    for row in event.rows:
        if row.field is None:
            yield out.style(f"{row.offset:6}  {row.size:4}        {row.text}", "yellow") + "\n"
        else:
            sign = "yes" if row.field.is_signed else "no"
            yield f"{row.offset:6}  {row.size:4}  {sign:4}  {row.text}\n"


def _as_data(event: EventFormat) -> dict[str, object]:
    return {
        "system": event.system,
        "name": event.name,
        "id": event.id,
        "size": event.size_bytes,
        "big_endian": event.is_big_endian,
        "long_size": event.long_size,
        "fields": [
            {"name": f.name, "type": f.ctype, "offset": f.offset, "size": f.size, "signed": f.is_signed}
            for f in event.fields
        ],
        "print_fmt": event.print_fmt,
    }
