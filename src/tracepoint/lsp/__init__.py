"""A language server for trace headers, C files that call `trace_x()`, and Python events."""
