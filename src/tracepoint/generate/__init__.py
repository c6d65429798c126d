"""Generate source code from declarations: modules, probes, programs for eBPF, commands, pages.

Everything here is pure: it returns a `FileSet`, and only the caller writes it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracepoint.generate.bpf import bpf_counter, libbpf_program
    from tracepoint.generate.catalog.data import CatalogVersion, read_catalog
    from tracepoint.generate.catalog.site import make_catalog
    from tracepoint.generate.fileset import FileSet
    from tracepoint.generate.inputs.variables import InputPlan, plan_inputs
    from tracepoint.generate.kernel_facts import read_facts
    from tracepoint.generate.lttng.probe import lttng_probe
    from tracepoint.generate.module import kernel_module, module_header
    from tracepoint.generate.page import markdown_page
    from tracepoint.generate.probe import probe_module
    from tracepoint.generate.scripts import bpftrace_script, command_lines
    from tracepoint.generate.stubs import type_stubs

# The home of each name: importing the room imports none of them.
_HOMES = {
    "bpf": "bpf_counter libbpf_program",
    "catalog.data": "CatalogVersion read_catalog",
    "catalog.site": "make_catalog",
    "fileset": "FileSet",
    "kernel_facts": "read_facts",
    "inputs.variables": "InputPlan plan_inputs",
    "lttng.probe": "lttng_probe",
    "module": "kernel_module module_header",
    "page": "markdown_page",
    "probe": "probe_module",
    "scripts": "bpftrace_script command_lines",
    "stubs": "type_stubs",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CatalogVersion",
    "FileSet",
    "InputPlan",
    "bpf_counter",
    "bpftrace_script",
    "command_lines",
    "kernel_module",
    "libbpf_program",
    "lttng_probe",
    "make_catalog",
    "markdown_page",
    "module_header",
    "plan_inputs",
    "probe_module",
    "read_catalog",
    "read_facts",
    "type_stubs",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'tracepoint.generate' has no attribute {name!r}")
    thing: object = getattr(import_module(f"tracepoint.generate.{home}"), name)
    globals()[name] = thing
    return thing
