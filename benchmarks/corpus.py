"""A whole kernel tree: read in one process, formatted, simulated, and compared with a booted kernel."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from functools import cache
from io import BytesIO
from pathlib import Path

from benchmarks.harness import MissingError, Row
from tracepoint.errors import TracepointError
from tracepoint.lab.simulate.event import simulate_event
from tracepoint.layout.compute import compute_layout
from tracepoint.layout.format import read_format
from tracepoint.layout.objects import read_object
from tracepoint.model.event import TraceHeader
from tracepoint.model.fmt.text import format_text
from tracepoint.source.lexer import lex
from tracepoint.source.text import SourceFile, decode
from tracepoint.tree.cache import cache_folder
from tracepoint.tree.headers import HeaderReader, paused_collector
from tracepoint.tree.scan import find_headers

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "linux-source-6.1"
READ = """
import sys, time
from tracepoint.tree.headers import HeaderReader, paused_collector
reader = HeaderReader()
paths = sys.stdin.read().split("\\n")
begin = time.process_time()
with paused_collector():
    n = sum(len(reader.read(path).events) for path in paths)
print(time.process_time() - begin, n)
"""
READ_ONE_BY_ONE = """
import sys, time
from tracepoint import read_header
paths = sys.stdin.read().split("\\n")
begin = time.process_time()
n = sum(len(read_header(path).events) for path in paths)
print(time.process_time() - begin, n)
"""


def source() -> Path:
    """The kernel source that TRACEPOINT_KERNEL_SOURCE names, or that `make bench` fetched."""
    path = Path(os.environ.get("TRACEPOINT_KERNEL_SOURCE") or cache_folder() / "sources" / SOURCE)
    if not (path / "include/linux/tracepoint.h").is_file():
        raise MissingError(f"no kernel source in {path}: apt-get is needed, or TRACEPOINT_KERNEL_SOURCE")
    return path


def data(name: str) -> Path:
    """A file of the recorded data."""
    path = Path(os.environ.get("TRACEPOINT_DATA", ROOT.parent / "shared/data")) / name
    if not path.exists():
        raise MissingError(f"no recorded {name}: set TRACEPOINT_DATA to its folder")
    return path


@cache
def paths() -> list[Path]:
    """The trace headers of the tree."""
    return find_headers([str(source())])


@cache
def headers() -> list[TraceHeader]:
    """All of them, read."""
    reader = HeaderReader()
    with paused_collector():
        return [reader.read(path) for path in paths()]


def _read_row(name: str, program: str, floor: float) -> Row:
    names = "\n".join(map(str, paths()))
    done = subprocess.run(
        [sys.executable, "-c", program], input=names, capture_output=True, text=True, check=True
    )
    seconds, n_events = done.stdout.split()
    return Row(name, float(seconds), "CPU s", floor, True, f"{len(paths())} headers, {n_events} events")


def read_time() -> Row:
    """CPU seconds for reading every trace header of the tree, in a process of its own."""
    return _read_row("corpus read in one process", READ, 3)


def read_header_time() -> Row:
    """CPU seconds for the same through the public `read_header`, one call a header."""
    return _read_row("corpus read by read_header", READ_ONE_BY_ONE, 3)


def unread_headers() -> Row:
    """Headers that gave an error finding or nothing at all."""
    bad = sum(any(d.severity == "error" for d in header.diagnostics) for header in headers())
    return Row("headers read without an error", len(headers()) - bad, "headers", len(headers()), False)


def names_found() -> Row:
    """Events of a booted kernel that the headers declare."""
    listed = data("available_events").read_text().split()
    wanted = {name for name in listed if not name.startswith("syscalls:")}
    known = {event.full_name for header in headers() for event in header.events}
    return Row("event names of a booted 6.1 found", len(wanted & known), "events", len(wanted), False)


def layouts_right() -> Row:
    """Records computed from headers that are those of tracefs."""
    packed = subprocess.run(
        ["zstd", "-dcq", data("formats-6.1.187-builtin.tar.zst")], capture_output=True, check=True
    )
    known = {event.full_name: (header, event) for header in headers() for event in header.events}
    n_right = n_all = 0
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        for member in archive:
            parts = member.name.split("/")
            file = archive.extractfile(member) if parts[-1] == "format" else None
            name = ":".join(parts[-3:-1])
            if file is None or name not in known:
                continue
            n_all += 1
            header, event = known[name]
            try:
                computed = compute_layout(event, environment=header.environment, enums=header.exported_enums)
            except TracepointError:
                continue
            n_right += computed.same_record(read_format(decode(file.read()), parts[-3]))
    return Row(
        "record layout computed = tracefs",
        100 * n_right / max(n_all, 1),
        "%",
        99,
        False,
        f"{n_right} of {n_all}",
    )


def simulated() -> Row:
    """Events of include/trace/events that `try` can simulate."""
    n_done = n_all = 0
    for header in headers():
        if "/include/trace/events/" not in header.path:
            continue
        for event in header.events:
            n_all += 1
            try:
                done = simulate_event(event, environment=header.environment, enums=header.exported_enums)
            except TracepointError:
                continue
            n_done += done.is_complete
    return Row(
        "events of include/trace/events simulated",
        100 * n_done / max(n_all, 1),
        "%",
        90,
        False,
        f"{n_done} of {n_all}",
    )


def objects_read() -> Row:
    """Modules with events that can be read, of a Debian kernel."""
    packages = sorted((cache_folder() / "kernels").glob("linux-image-6.1.0-*-amd64_*"))
    full = [package for package in packages if "-cloud-" not in package.name]
    modules = [path.read_bytes() for package in full[-1:] for path in package.glob("**/*.ko")]
    modules = [module for module in modules if b"_ftrace_events" in module]
    if not modules:
        raise MissingError("no unpacked Debian kernel with modules in the cache: apt-get is needed")
    n_events = n_read = 0
    for module in modules:
        try:
            n_events += len(read_object(module))
        except TracepointError:
            continue
        n_read += 1
    return Row("modules with events read", n_read, "modules", len(modules), False, f"{n_events} events")


def tokens_kept() -> Row:
    """Headers that `fmt` leaves with the same tokens, and does not change a second time."""
    n_right = 0
    for path in paths():
        text = decode(path.read_bytes())
        tidy = format_text(text, str(path)).text
        same = [t.text for t in lex(SourceFile("", tidy))] == [t.text for t in lex(SourceFile("", text))]
        n_right += same and format_text(tidy, str(path)).text == tidy
    return Row("fmt keeps tokens and is idempotent", n_right, "headers", len(paths()), False)


ROWS = (
    read_time,
    read_header_time,
    unread_headers,
    names_found,
    layouts_right,
    simulated,
    objects_read,
    tokens_kept,
)
