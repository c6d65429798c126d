"""The C module that reads bytes, for all that have a use for it; None where their twins run."""

from __future__ import annotations

from tracepoint.record.extension import load_extension

DECODE = load_extension("_decode", "records are read in Python, a hundred times slower")
