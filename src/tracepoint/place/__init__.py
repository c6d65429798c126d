"""Add tracepoint calls to C functions; the result is edits, and nothing is written."""
