"""Put calls of tracepoints into C functions; the result is edits, nothing is written."""
