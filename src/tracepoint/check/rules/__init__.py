"""One file per rule: its docstring is the page that `tracepoint explain` prints, `check` finds the fault.

A rule takes a `CheckContext` and yields `Finding`s.  Files without `check` are the pages of findings
that the reader itself reports.
"""
