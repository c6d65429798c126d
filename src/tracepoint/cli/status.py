"""The exit statuses; scripts rely on them, so a change here is a breaking change."""

from __future__ import annotations

#: Done; for `check` and `diff`: nothing found, or all of it fixed.
EXIT_DONE = 0
#: Done, and there are findings, breaking changes, or no match.
EXIT_FINDINGS = 1
#: Could not run: bad option, bad configuration, unreadable input, internal error.
EXIT_CANNOT_RUN = 2
#: Partly done.
EXIT_IN_PART = 3
#: Refused by the system: no tracefs, no permission.
EXIT_REFUSED = 4
#: An external tool failed (compiler, QEMU, a module that does not load), or the lab lacks something.
EXIT_TOOL_FAILED = 5
#: Interrupted.
EXIT_INTERRUPTED = 130
#: The reader of our output went away; the shell shows the same for a program killed by SIGPIPE.
EXIT_PIPE_CLOSED = 141
