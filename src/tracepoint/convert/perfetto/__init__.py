"""Perfetto traces: events as its own recorder writes them, for its UI and SQL."""
