"""Where the time of a program's requests went: running, waiting for a CPU, blocked and on what."""
