"""Who calls tracepoints: C, macros, Rust."""
