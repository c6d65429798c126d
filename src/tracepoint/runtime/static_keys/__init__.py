"""Call sites of events that are off, jumped over in byte code."""
