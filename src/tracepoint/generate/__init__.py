"""Source code made from declarations: modules, probes, programs for eBPF, commands, pages.

Everything here is pure: it returns a `FileSet`, and only the caller writes it.
"""

from __future__ import annotations

from tracepoint.generate.fileset import FileSet

__all__ = ["FileSet"]
