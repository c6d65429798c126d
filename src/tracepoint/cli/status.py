"""What the exit status says; scripts act on it, so a change here is a breaking change."""

from __future__ import annotations

#: Done; for `check` and `diff`: nothing found, or all of it fixed.
EXIT_DONE = 0
#: Done, and there are findings, breaking changes, or no match.
EXIT_FINDINGS = 1
#: Could not run: bad option, bad configuration, unreadable input, internal error.
EXIT_CANNOT_RUN = 2
#: Done in part.
EXIT_IN_PART = 3
#: Refused by the system: no tracefs, no permission.
EXIT_REFUSED = 4
#: An outside tool failed (compiler, QEMU, a module that does not load), or the lab lacks what was named.
EXIT_TOOL_FAILED = 5
#: Interrupted.
EXIT_INTERRUPTED = 130
#: The reader of our output went away; the shell shows the same for a program that SIGPIPE ends.
EXIT_PIPE_CLOSED = 141
