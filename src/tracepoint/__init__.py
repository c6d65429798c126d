"""Trace events declared once, everything else computed from the declaration."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tracepoint import diagnostics, errors
    from tracepoint.analysis.otel.export import export_spans
    from tracepoint.analysis.otel.named import SpanPair
    from tracepoint.analysis.sql.database import sql
    from tracepoint.check.engine import check_header, check_headers, check_text, fix_text
    from tracepoint.control.session import open_tracefs
    from tracepoint.convert.ctf.write import write_ctf
    from tracepoint.convert.parquet import write_parquet
    from tracepoint.convert.perfetto.write import write_perfetto
    from tracepoint.convert.tables import write_arrow, write_csv, write_json_lines
    from tracepoint.convert.tracedat import write_cut
    from tracepoint.decode.following import follow
    from tracepoint.decode.trace import open_trace
    from tracepoint.diagnostics import Diagnostic
    from tracepoint.errors import (
        FaultWarning,
        LossWarning,
        TracepointError,
    )
    from tracepoint.lab.simulate.event import simulate_event
    from tracepoint.layout.abi import Abi
    from tracepoint.layout.compare import compare_formats
    from tracepoint.layout.compute import compute_layout
    from tracepoint.layout.format import EventFormat, read_format, write_format
    from tracepoint.layout.objects import read_object
    from tracepoint.model.event import Event, TraceHeader
    from tracepoint.model.fmt.text import format_text
    from tracepoint.model.python import fields
    from tracepoint.model.python.declare import (
        declare,
        declare_class,
        declare_tracepoint,
        define_event,
    )
    from tracepoint.model.python.types import (
        char_array,
        double,
        float32,
        s8,
        s16,
        s32,
        s64,
        string_t,
        u8,
        u16,
        u32,
        u64,
    )
    from tracepoint.model.python.write import write_python
    from tracepoint.model.read import read_header_text
    from tracepoint.model.schema import read_json, write_json
    from tracepoint.model.write import write_header
    from tracepoint.printk.program import compile_print
    from tracepoint.printk.render import render_record
    from tracepoint.runtime.bridges.log_records import TraceHandler, TraceProcessor, trace_calls
    from tracepoint.runtime.bridges.prometheus import EventCounts, prometheus_app, prometheus_text
    from tracepoint.runtime.bridges.spans import TraceSpanProcessor
    from tracepoint.runtime.bridges.user_events import UserEvents
    from tracepoint.runtime.declare.defaults import task_name
    from tracepoint.runtime.declare.event import TraceEvent, make_tracepoint, trace_event
    from tracepoint.runtime.declare.load import load
    from tracepoint.runtime.hierarchy import tracing
    from tracepoint.runtime.remote.mount import mount
    from tracepoint.runtime.remote.server import listen
    from tracepoint.runtime.rings.mapped import open_rings
    from tracepoint.runtime.rings.save import save
    from tracepoint.runtime.static_keys.keys import sites, static_keys
    from tracepoint.tree.headers import read_header
    from tracepoint.tree.query.opening import open_tree

__version__ = "0.1.0"

# Where each public name lives: importing the package imports none of them.
_HOMES = {
    "check.engine": "check_header check_headers check_text fix_text",
    "control.session": "open_tracefs",
    "convert.ctf.write": "write_ctf",
    "convert.parquet": "write_parquet",
    "convert.perfetto.write": "write_perfetto",
    "analysis.otel.export": "export_spans",
    "analysis.otel.named": "SpanPair",
    "analysis.sql.database": "sql",
    "convert.tables": "write_arrow write_csv write_json_lines",
    "convert.tracedat": "write_cut",
    "decode.following": "follow",
    "decode.trace": "open_trace",
    "diagnostics": "Diagnostic",
    "errors": "FaultWarning LossWarning TracepointError",
    "lab.simulate.event": "simulate_event",
    "layout.abi": "Abi",
    "layout.compare": "compare_formats",
    "layout.compute": "compute_layout",
    "layout.format": "EventFormat read_format write_format",
    "layout.objects": "read_object",
    "model.event": "Event TraceHeader",
    "model.fmt.text": "format_text",
    "model.python.declare": "declare declare_class declare_tracepoint define_event",
    "model.python.types": "char_array double float32 s8 s16 s32 s64 string_t u8 u16 u32 u64",
    "model.python.write": "write_python",
    "model.read": "read_header_text",
    "model.schema": "read_json write_json",
    "model.write": "write_header",
    "printk.program": "compile_print",
    "printk.render": "render_record",
    "runtime.bridges.log_records": "TraceHandler TraceProcessor trace_calls",
    "runtime.bridges.prometheus": "EventCounts prometheus_app prometheus_text",
    "runtime.bridges.spans": "TraceSpanProcessor",
    "runtime.declare.event": "TraceEvent make_tracepoint trace_event",
    "runtime.hierarchy": "tracing",
    "runtime.declare.load": "load",
    "runtime.rings.mapped": "open_rings",
    "runtime.declare.defaults": "task_name",
    "runtime.static_keys.keys": "sites static_keys",
    "runtime.remote.mount": "mount",
    "runtime.rings.save": "save",
    "runtime.remote.server": "listen",
    "runtime.bridges.user_events": "UserEvents",
    "tree.headers": "read_header",
    "tree.query.opening": "open_tree",
}
# Modules whose names are reached through them: `tracepoint.fields.scalar`, `tracepoint.errors.TreeError`.
_MODULES = {"diagnostics": "diagnostics", "errors": "errors", "fields": "model.python.fields"}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Abi",
    "Diagnostic",
    "Event",
    "EventCounts",
    "EventFormat",
    "FaultWarning",
    "LossWarning",
    "SpanPair",
    "TraceEvent",
    "TraceHandler",
    "TraceHeader",
    "TraceProcessor",
    "TraceSpanProcessor",
    "TracepointError",
    "UserEvents",
    "char_array",
    "check_header",
    "check_headers",
    "check_text",
    "compare_formats",
    "compile_print",
    "compute_layout",
    "declare",
    "declare_class",
    "declare_tracepoint",
    "define_event",
    "diagnostics",
    "double",
    "errors",
    "export_spans",
    "fields",
    "fix_text",
    "float32",
    "follow",
    "format_text",
    "listen",
    "load",
    "make_tracepoint",
    "mount",
    "open_rings",
    "open_trace",
    "open_tracefs",
    "open_tree",
    "prometheus_app",
    "prometheus_text",
    "read_format",
    "read_header",
    "read_header_text",
    "read_json",
    "read_object",
    "render_record",
    "s8",
    "s16",
    "s32",
    "s64",
    "save",
    "simulate_event",
    "sites",
    "sql",
    "static_keys",
    "string_t",
    "task_name",
    "trace_calls",
    "trace_event",
    "tracing",
    "u8",
    "u16",
    "u32",
    "u64",
    "write_arrow",
    "write_csv",
    "write_ctf",
    "write_cut",
    "write_format",
    "write_header",
    "write_json",
    "write_json_lines",
    "write_parquet",
    "write_perfetto",
    "write_python",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        thing: object = import_module(f"tracepoint.{_MODULES[name]}")
    elif name in _HOME_OF:
        thing = getattr(import_module(f"tracepoint.{_HOME_OF[name]}"), name)
    else:
        raise AttributeError(f"module 'tracepoint' has no attribute {name!r}")
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
