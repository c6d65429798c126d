"""Callers of tracepoints: C, macros, Rust."""
