"""Tracepoints in a Python process: declared once, off at almost no cost, recorded as the kernel records."""
