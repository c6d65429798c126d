"""The formatter of trace headers."""
