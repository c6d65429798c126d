"""Trace events declared once, everything else computed from the declaration."""

__version__ = "0.1.0"
