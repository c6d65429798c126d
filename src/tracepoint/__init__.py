"""Trace events declared once, everything else computed from the declaration."""
