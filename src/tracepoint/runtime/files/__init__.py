"""The control files of this process, as tracefs is for a kernel."""
