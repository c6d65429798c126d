"""Containers of records: ring-buffer pages, trace.dat, the text of `trace`; read and written."""
